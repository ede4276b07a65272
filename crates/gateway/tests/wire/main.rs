//! The gateway byte by byte: clients and hosts that send exactly what a test names.
//!
//! Every test states one fact about malformed, truncated, early, late or missing bytes. None of them depends on how the
//! gateway reads HTTP.

#[cfg(test)]
mod accounting;
#[cfg(test)]
mod capacity;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
#[path = "../service/gate.rs"]
#[expect(dead_code, reason = "shared with the tests of the service, which use the rest")]
mod gate;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod host_bodies;
#[cfg(test)]
mod host_connections;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod http2_hosts;
#[cfg(test)]
#[path = "../service/replies.rs"]
mod replies;
#[cfg(test)]
mod requests;
#[cfg(test)]
#[path = "../service/hosts.rs"]
#[expect(dead_code, reason = "shared with the tests of the service, which use the rest")]
mod service_hosts;
#[cfg(test)]
mod stage;
