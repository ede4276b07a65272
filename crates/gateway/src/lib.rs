//! The service: three client APIs over any back end.

pub mod config;
