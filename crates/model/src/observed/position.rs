//! Where an event is in the stream.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The position of an event. Written as `epoch:seq`, which is the id of a server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPosition {
    /// The run of the gateway.
    pub epoch: Epoch,
    /// Counts from 1 in each epoch, without gaps.
    pub seq: u64,
}

/// A random number for each start of the gateway: a position of an earlier run is never mistaken for one of this run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// An epoch from a random number.
    pub const fn new(random: u64) -> Self {
        Self(random)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPosition;

impl fmt::Display for InvalidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not the position of an event: use the `id` of a received event, such as `0123456789abcdef:42`",
        )
    }
}

impl std::error::Error for InvalidPosition {}

impl FromStr for Epoch {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = Some(text).filter(|_| is_hex).ok_or(InvalidPosition)?;
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| InvalidPosition)
    }
}

impl Serialize for Epoch {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Epoch {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

impl FromStr for EventPosition {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (epoch, seq) = text.split_once(':').ok_or(InvalidPosition)?;
        Ok(Self { epoch: epoch.parse()?, seq: seq.parse().map_err(|_| InvalidPosition)? })
    }
}
