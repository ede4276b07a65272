//! Peers for tests: hosts and clients whose every byte a test controls. For tests only.
//!
//! - [`ScriptedUpstream`]: an HTTP server with scripted responses, released byte by byte by named gates, so that no
//!   test sleeps.
//! - [`ScriptedModel`]: a model on top of it that speaks three dialects and behaves as the model's name says.
//! - [`StrictHost`]: one of the real hosts, as strict as it is.
//! - [`say`]: a [`Line`] of a model that knows only text, in the dialect of the request.
//! - [`RawHost`] and [`RawClient`]: peers that send exactly the bytes they are given, valid HTTP or not.

mod gates;
mod raw;
mod request_check;
mod schema;
mod scripted_model;
mod strict;
mod tls;
mod upstream;

pub use raw::{RawClient, RawConnection, RawEnd, RawHost, RawMessage, RawStep, messages};
pub use schema::Schema;
pub use scripted_model::{Line, Pieces, ScriptedModel, TRIGGER, say};
pub use strict::{Exchange, HostTurn, STRICT_HOSTS, StrictDialect, StrictHost, StrictProfile, Verdict};
pub use tls::Offer;
pub use upstream::{Received, Script, ScriptedUpstream, Step};
