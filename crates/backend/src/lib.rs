//! Who answers: a back end turns a [`Turn`] into a stream of events, or of its own bytes where the client speaks the
//! same dialect.
//!
//! ```text
//!  model name ─Router─▶ targets ─┬─ http::Upstream  request ─▶ bytes ─▶ host ─▶ frames ─▶ events
//!                                │                  (same dialect: original bytes ─▶ host ─▶ bytes, metered)
//!                                └─ demo            a scripted model inside the binary
//! ```
//!
//! Dropping what a back end gave cancels the turn at the host at once (T20).

pub mod config;
mod pattern;

pub use pattern::ModelPattern;
