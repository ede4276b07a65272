//! What tests talk to instead of the world. For tests only.
//!
//! - [`ScriptedUpstream`]: an HTTP server whose answers, byte by byte, are written down in the test and released by
//!   named gates, so that no test sleeps.
//! - [`ScriptedModel`]: a model on top of it that speaks three dialects and behaves as the model's name says.
//! - [`say`]: a [`Line`] of a model that only knows text, in whichever dialect it was asked.

mod scripted_model;
mod upstream;

pub use scripted_model::{Line, Pieces, ScriptedModel, TRIGGER, say};
pub use upstream::{Offer, Received, Script, ScriptedUpstream, Step};
