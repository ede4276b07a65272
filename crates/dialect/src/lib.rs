//! dialect

pub mod frame;
