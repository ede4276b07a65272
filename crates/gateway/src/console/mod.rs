//! The API for people who watch and decide, below `/console/api`. The token that opens it is in `token.rs`; `http/console.rs`
//! guards it.

mod events;
mod token;

pub(crate) use self::events::{events, snapshot};
pub use self::token::{ConsoleKey, NoRandomness};
