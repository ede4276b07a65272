//! The rows of the result table. A new row is one entry in [`rows`].

use crate::dialect::{Delivery, Dialect, LastBlock, Pace, Script, Trigger};
use crate::link::Link;
use crate::load::Shot;

/// Words of a reply.
const WORDS: usize = 64;

/// Words of a steady reply: fewer, because each costs a pause and all are alike.
const STEADY_WORDS: usize = 8;

/// A client of one dialect and a host of the same or another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) client: Dialect,
    pub(crate) host: Dialect,
    pub(crate) link: Link,
    pub(crate) delivery: Delivery,
    pub(crate) script: Script,
}

/// A row of the table: the exchanges it averages over, and its goal.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) goal: Goal,
}

/// The most processor time that a row may take, as a ratio to the relay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// Holds for every release.
    Bound(f64),
    /// Worth reaching, and reported.
    Aim(f64),
    None,
}

impl Goal {
    pub(crate) fn ratio(self) -> Option<f64> {
        match self {
            Self::Bound(ratio) | Self::Aim(ratio) => Some(ratio),
            Self::None => None,
        }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    use Delivery::{Streamed, Whole};
    use Dialect::{Chat, Messages, Responses};
    use LastBlock::{Text, ToolCall, WrittenCall};
    let exchange = |client, host, delivery, last| Exchange {
        client,
        host,
        link: Link::Plain,
        delivery,
        script: Script { words: WORDS, last, pace: Pace::Fast },
    };
    let relayed = |delivery, link| vec![Exchange { link, ..exchange(Chat, Chat, delivery, Text) }];
    let round_trip = [(Messages, Chat), (Chat, Responses), (Responses, Messages)];
    vec![
        Row { name: "same dialect, whole", exchanges: relayed(Whole, Link::Plain), goal: Goal::Bound(1.15) },
        Row {
            name: "same dialect, streamed",
            exchanges: relayed(Streamed, Link::Plain),
            goal: Goal::Bound(0.95),
        },
        Row {
            name: "translated, tool call, streamed",
            exchanges: vec![exchange(Messages, Chat, Streamed, ToolCall)],
            goal: Goal::Bound(1.15),
        },
        Row {
            name: "prompted streamed",
            exchanges: vec![exchange(Chat, Chat, Streamed, WrittenCall(Trigger::DEFAULT))],
            goal: Goal::Bound(1.25),
        },
        Row {
            name: "three dialects round trip",
            exchanges: round_trip.map(|(client, host)| exchange(client, host, Streamed, ToolCall)).to_vec(),
            goal: Goal::None,
        },
        Row {
            name: "whole over TLS (HTTP/1.1)",
            exchanges: relayed(Whole, Link::Tls),
            goal: Goal::Aim(1.15),
        },
        Row {
            name: "streamed over TLS (HTTP/1.1)",
            exchanges: relayed(Streamed, Link::Tls),
            goal: Goal::Aim(1.00),
        },
        Row { name: "whole over HTTP/2", exchanges: relayed(Whole, Link::Http2), goal: Goal::Aim(1.15) },
        Row {
            name: "streamed over HTTP/2",
            exchanges: relayed(Streamed, Link::Http2),
            goal: Goal::Aim(1.00),
        },
    ]
}

impl Row {
    /// The link to the host, which all exchanges of a row share.
    pub(crate) fn link(&self) -> Link {
        self.exchanges.first().map_or(Link::Plain, |exchange| exchange.link)
    }

    /// How many rounds replace one round of streamed replies. A whole reply costs so little that other work on the
    /// machine weighs more: single rounds differ by a seventh.
    pub(crate) fn rounds_for_one(&self) -> u32 {
        let is_whole = |exchange: &Exchange| exchange.delivery == Delivery::Whole;
        if self.exchanges.iter().all(is_whole) { 4 } else { 1 }
    }
}

impl Exchange {
    /// The client's request to the gateway.
    pub(crate) fn translated(self) -> Shot {
        let proof = match self.script.last {
            // A call that was relayed as text would be measured as a fast one.
            LastBlock::WrittenCall(_) => Some("\"tool_calls\""),
            LastBlock::Text | LastBlock::ToolCall => None,
        };
        Shot { proof, ..self.shot(self.client) }
    }

    /// The same request in the host's own dialect, for the relay and for the host alone.
    pub(crate) fn native(self) -> Shot {
        self.shot(self.host)
    }

    /// How many of these take about as long as one streamed reply: work that is done ten times a second, such as writing
    /// usage records, must not fall into one round by chance and miss the next.
    pub(crate) fn requests_for_one_stream(self) -> u32 {
        match self.delivery {
            Delivery::Whole => 10,
            Delivery::Streamed => 1,
        }
    }

    /// The same exchange with a slow host.
    pub(crate) fn slow(self) -> Self {
        Self { script: Script { pace: Pace::Slow, ..self.script }, ..self }
    }

    /// The same exchange for measuring latency; a whole reply has no pace.
    pub(crate) fn steady(self) -> Self {
        match self.delivery {
            Delivery::Whole => self,
            Delivery::Streamed => {
                Self { script: Script { pace: Pace::Steady, words: STEADY_WORDS, ..self.script }, ..self }
            }
        }
    }

    /// The model name that selects this exchange, at the gateway and at the host.
    pub(crate) fn model(self) -> String {
        self.script.model_at(&self.link.upstream(self.host))
    }

    fn shot(self, dialect: Dialect) -> Shot {
        let body = dialect.request(&self.model(), self.delivery);
        Shot { dialect, delivery: self.delivery, body, proof: None }
    }
}
