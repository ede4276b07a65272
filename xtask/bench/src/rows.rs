//! What is measured: one row of the table each. A new row is one entry in [`rows`].

use crate::dialect::{Delivery, Dialect, Ending, Pace, Script, Trigger};
use crate::load::Shot;

/// Words of a reply.
const WORDS: usize = 64;

/// Words of a reply with pauses: fewer, because each costs a pause and one hop is like the next.
const STEADY_WORDS: usize = 8;

/// A client of one dialect that asks a host of another (or the same) one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) client: Dialect,
    pub(crate) host: Dialect,
    pub(crate) delivery: Delivery,
    pub(crate) script: Script,
}

/// A row of the table: the exchanges it averages over, and what it may cost.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) exchanges: Vec<Exchange>,
    /// The goal for processor time as a ratio to the relay, where there is one.
    pub(crate) cpu_goal: Option<f64>,
}

pub(crate) fn rows() -> Vec<Row> {
    use Delivery::{Streamed, Whole};
    use Dialect::{Chat, Messages, Responses};
    use Ending::{Text, ToolCall, WrittenCall};
    let exchange = |client, host, delivery, ending| Exchange {
        client,
        host,
        delivery,
        script: Script { words: WORDS, ending, pace: Pace::Fast },
    };
    let round_trip = [(Messages, Chat), (Chat, Responses), (Responses, Messages)];
    vec![
        Row {
            name: "same dialect, whole",
            exchanges: vec![exchange(Chat, Chat, Whole, Text)],
            cpu_goal: Some(1.15),
        },
        Row {
            name: "same dialect, streamed",
            exchanges: vec![exchange(Chat, Chat, Streamed, Text)],
            cpu_goal: Some(1.05),
        },
        Row {
            name: "translated, tool call, streamed",
            exchanges: vec![exchange(Messages, Chat, Streamed, ToolCall)],
            cpu_goal: Some(1.25),
        },
        Row {
            name: "prompted streamed",
            exchanges: vec![exchange(Chat, Chat, Streamed, WrittenCall(Trigger::UNTAUGHT))],
            cpu_goal: Some(1.4),
        },
        Row {
            name: "three dialects round trip",
            exchanges: round_trip.map(|(client, host)| exchange(client, host, Streamed, ToolCall)).to_vec(),
            cpu_goal: None,
        },
    ]
}

impl Row {
    /// How many rounds are as good as one of a streamed reply. A whole reply costs so little that whoever else happens
    /// to run on the machine weighs more: single rounds differ by a seventh.
    pub(crate) fn rounds_for_one(&self) -> u32 {
        let is_whole = |exchange: &Exchange| exchange.delivery == Delivery::Whole;
        if self.exchanges.iter().all(is_whole) { 4 } else { 1 }
    }
}

impl Exchange {
    /// What the client sends to the gateway.
    pub(crate) fn translated(self) -> Shot {
        let proof = match self.script.ending {
            // A call that came through as text would be measured as a fast one.
            Ending::WrittenCall(_) => Some("\"tool_calls\""),
            Ending::Text | Ending::ToolCall => None,
        };
        Shot { proof, ..self.shot(self.client) }
    }

    /// What a client of the host's own dialect sends, so that relay and host do the same work with it.
    pub(crate) fn native(self) -> Shot {
        self.shot(self.host)
    }

    /// How many of these take about as long as one streamed reply: what is done ten times a second, such as writing
    /// usage down, must not fall into one round by chance and miss the next.
    pub(crate) fn requests_for_one_stream(self) -> u32 {
        match self.delivery {
            Delivery::Whole => 10,
            Delivery::Streamed => 1,
        }
    }

    /// The same exchange with a host that takes its time.
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

    fn shot(self, dialect: Dialect) -> Shot {
        let body = dialect.request(&self.script.model_at(self.host), self.delivery);
        Shot { dialect, delivery: self.delivery, body, proof: None }
    }
}
