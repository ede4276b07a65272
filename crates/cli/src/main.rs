//! The binary.
mod config;
mod environment;
fn main() {}
