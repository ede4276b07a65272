//! Claude Code as a back end.

mod decide;

pub use self::decide::{Decider, Decision, DenyAll, Question};
