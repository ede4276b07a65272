//! Plays: replies that a test defines for a model, turn by turn.
//!
//! `PUT /v1/plays/NAME` with `{"turns":[{"text":"…","pieces":[7,42],"end":"stop"}]}` makes a model whose name ends in
//! `/NAME` reply with these texts, one per turn. The number of assistant messages in the history selects the turn.
//! [`TRIGGER`] in a text is replaced by the trigger that the request's prompt defines. A turn may also have `calls`, each
//! with an `id`, a `name` and an `input`, as a model with native tools sends them. `GET` of the same path returns the
//! requests that the play received.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::reply::{Block, Reply, ReplyEnd};

/// Placeholder for the trigger in a line: a private-use character, so that it never occurs in other text.
pub const TRIGGER: char = '\u{E000}';

/// The most plays. Tests reuse a few names.
const MAX_PLAYS: usize = 256;

/// The most requests kept for each play.
const MAX_REQUESTS: usize = 512;

/// The reply of one turn, and how it is split and ended.
#[derive(Debug, Clone)]
pub struct Line {
    text: String,
    pieces: Pieces,
    calls: Vec<Call>,
    end: ReplyEnd,
}

/// A native tool call.
#[derive(Debug, Clone)]
struct Call {
    id: String,
    name: String,
    input: Value,
}

/// How a text is split into deltas, in characters.
#[derive(Debug, Clone, Copy)]
pub enum Pieces {
    /// One delta.
    Whole,
    /// Deltas of this length.
    Of(usize),
    /// Deltas of pseudo-random lengths from 1 to `longest`.
    UpTo {
        /// The longest delta.
        longest: usize,
        /// The same seed gives the same lengths.
        seed: u64,
    },
}

impl Line {
    /// A text that ends with the stop reason `stop`.
    pub fn new(text: impl Into<String>, pieces: Pieces) -> Self {
        Self { text: text.into(), pieces, calls: Vec::new(), end: ReplyEnd::Stop }
    }

    /// The same text, ended by the token limit.
    #[must_use]
    pub fn out_of_tokens(self) -> Self {
        Self { end: ReplyEnd::Length, ..self }
    }

    /// The reply to a request with this body.
    pub(super) fn reply_to(&self, body: &str) -> Reply {
        let text = match trigger_in(body) {
            Some(trigger) => self.text.replace(TRIGGER, trigger),
            None if self.text.contains(TRIGGER) => "I was taught no calls.".to_owned(),
            None => self.text.clone(),
        };
        let call = |call: &Call| Block::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            deltas: self.pieces.cut(&call.input.to_string()),
        };
        let is_silent = text.is_empty() && !self.calls.is_empty();
        let text = (!is_silent).then(|| Block::Text { deltas: self.pieces.cut(&text) });
        Reply { blocks: text.into_iter().chain(self.calls.iter().map(call)).collect(), end: self.end }
    }

    fn from_json(turn: &Value) -> Result<Self, String> {
        let text = turn["text"].as_str().ok_or("a turn has a `text`")?.to_owned();
        let calls = turn["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls: Vec<Call> = calls.iter().map(Call::from_json).collect::<Result<_, _>>()?;
        let pieces = Pieces::from_json(&turn["pieces"]).ok_or("`pieces` is a length, or [longest, seed]")?;
        let end = match turn["end"].as_str().unwrap_or("stop") {
            "stop" if calls.is_empty() => ReplyEnd::Stop,
            "stop" => ReplyEnd::Calls,
            "length" => ReplyEnd::Length,
            "cut" => ReplyEnd::Cut,
            other => return Err(format!("there is no end `{other}`: use stop, length or cut")),
        };
        Ok(Self { text, pieces, calls, end })
    }
}

impl Call {
    fn from_json(call: &Value) -> Result<Self, String> {
        let word = |field: &str| {
            call[field].as_str().map(str::to_owned).ok_or_else(|| format!("a call has a `{field}`"))
        };
        Ok(Self { id: word("id")?, name: word("name")?, input: call["input"].clone() })
    }
}

impl Pieces {
    fn from_json(value: &Value) -> Option<Self> {
        let length = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        if value.is_null() {
            return Some(Self::Whole);
        }
        if let Some([longest, seed]) = value.as_array().map(Vec::as_slice) {
            return Some(Self::UpTo { longest: length(longest)?, seed: seed.as_u64()? });
        }
        length(value).map(Self::Of)
    }

    fn cut(self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        let mut deltas = Vec::new();
        let mut rest = characters.as_slice();
        let mut state = match self {
            Self::Whole | Self::Of(_) => 0,
            Self::UpTo { seed, .. } => seed,
        };
        while !rest.is_empty() {
            let length = match self {
                Self::Whole => rest.len(),
                Self::Of(length) => length,
                Self::UpTo { longest, .. } => {
                    // Knuth's linear congruential generator; its high bits are the good ones.
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    1 + usize::try_from(state >> 33).unwrap_or_default() % longest.max(1)
                }
            };
            let (piece, after) = rest.split_at(length.clamp(1, rest.len()));
            deltas.push(piece.iter().collect());
            rest = after;
        }
        deltas
    }
}

/// The trigger that a request's prompt defines: the last one, because a tool's description or quoted text may contain
/// others before it. It is plain ASCII, so JSON does not escape it.
fn trigger_in(body: &str) -> Option<&str> {
    let start = body.rfind("<<CALL_")?;
    let length = body[start..].find(">>")? + 2;
    Some(&body[start..start + length])
}

/// All plays by their names.
#[derive(Debug, Default)]
pub(super) struct Plays(Mutex<HashMap<String, Play>>);

#[derive(Debug, Default)]
struct Play {
    turns: Vec<Line>,
    requests: VecDeque<Value>,
}

impl Plays {
    /// Stores a play from its JSON form. The error is a message for the author of the test.
    pub(super) fn put(&self, name: &str, body: &[u8]) -> Result<(), String> {
        let play: Value = serde_json::from_slice(body).map_err(|error| format!("a play is JSON: {error}"))?;
        let turns = play["turns"].as_array().ok_or("a play has `turns`")?;
        let turns = turns.iter().map(Line::from_json).collect::<Result<_, _>>()?;
        let mut plays = self.0.lock();
        if plays.len() >= MAX_PLAYS && !plays.contains_key(name) {
            return Err(format!("there are {MAX_PLAYS} plays already: use a name again"));
        }
        plays.insert(name.to_owned(), Play { turns, requests: VecDeque::new() });
        Ok(())
    }

    /// The requests that a play received, oldest first. Only the last ones are kept.
    pub(super) fn requests(&self, name: &str) -> Value {
        json!(self.0.lock().get(name).map(|play| &play.requests))
    }

    /// The line of this turn. `None` if there is no such play.
    pub(super) fn line(&self, name: &str, turn: usize, body: &Value) -> Option<Line> {
        let mut plays = self.0.lock();
        let play = plays.get_mut(name)?;
        if play.requests.len() == MAX_REQUESTS {
            play.requests.pop_front();
        }
        play.requests.push_back(body.clone());
        let over = || Line::new("The play is over.", Pieces::Whole);
        Some(play.turns.get(turn).cloned().unwrap_or_else(over))
    }
}
