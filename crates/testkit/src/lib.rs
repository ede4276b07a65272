//! What tests talk to instead of the world. For tests only.
//!
//! - [`ScriptedUpstream`]: an HTTP server whose answers, byte by byte, are written down in the test and released by
//!   named gates, so that no test sleeps.

mod upstream;

pub use upstream::{Received, Script, ScriptedUpstream, Step};
