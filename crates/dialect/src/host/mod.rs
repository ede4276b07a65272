//! What hosts and their models accept, and how a request is fitted to it.
//!
//! | file | role |
//! |---|---|
//! | `profile.rs` | [`HostProfile`]: the facts, with their defaults |
//! | `facts.rs` | the values that facts can have |
//! | `families.rs` | the facts of model families, by the model's name at the host |
//! | `hosts.rs` | the facts of hosts, by their URL or by name |
//! | `choose.rs` | which rows of both tables apply |
//! | `fit/` | changes a request to what the profile accepts |
//!
//! Layers, later ones win: dialect, family, host, family at a host, configuration.

mod choose;
mod facts;
mod families;
pub(crate) mod fit;
mod hosts;
mod profile;

pub use choose::{Choice, HostFacts, UnknownFact};
pub use facts::{
    CallIds, Effort, ForcedCalls, Images, JsonOutput, LimitField, Param, Prefill, ReasoningField,
    ReasoningRequired, ReasoningSwitch, Reasons, SchemaPart, Set, SystemMessages, ThinkingMode,
    ThoughtSignatures,
};
pub use profile::{Facts, HostProfile};
