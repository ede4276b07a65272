//! What the model says, before any dialect.

use super::heard::{Heard, Part};

/// A reply as pieces and the way it ends.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) pieces: Vec<Piece>,
    pub(super) ending: Ending,
}

impl Reply {
    /// One token for each streamed delta.
    pub(super) fn output_tokens(&self) -> usize {
        self.pieces.iter().map(|piece| piece.deltas().len()).sum()
    }

    pub(super) fn reasoning_tokens(&self) -> usize {
        let tokens = |piece: &Piece| match piece {
            Piece::Reasoning { deltas, .. } => deltas.len(),
            Piece::Text { .. } | Piece::Call { .. } => 0,
        };
        self.pieces.iter().map(tokens).sum()
    }
}

/// A block of the reply, in the deltas in which it is streamed.
#[derive(Debug)]
pub(super) enum Piece {
    Reasoning {
        deltas: Vec<String>,
        seal: &'static str,
    },
    Text {
        deltas: Vec<String>,
    },
    /// `id` is the part after the dialect's own prefix.
    Call {
        id: String,
        name: String,
        deltas: Vec<String>,
    },
}

impl Piece {
    pub(super) fn deltas(&self) -> &[String] {
        match self {
            Self::Reasoning { deltas, .. } | Self::Text { deltas } | Self::Call { deltas, .. } => deltas,
        }
    }

    pub(super) fn whole(&self) -> String {
        self.deltas().concat()
    }
}

/// Why the reply is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Stop,
    Calls,
    Length,
    /// The connection is cut; what is written says `Stop`.
    Cut,
}

/// A reply, or an HTTP error instead.
#[derive(Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    Failure(Failure),
}

/// An HTTP error.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn anthropic_type(&self) -> &'static str {
        match self.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            _ => "api_error",
        }
    }

    pub(super) fn openai_type(&self) -> &'static str {
        match self.status {
            429 => "requests",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    pub(super) fn openai_code(&self) -> Option<&'static str> {
        match self.status {
            401 => Some("invalid_api_key"),
            404 => Some("model_not_found"),
            429 => Some("rate_limit_exceeded"),
            529 => Some("overloaded"),
            _ => None,
        }
    }
}

/// A slip of the pen in a test must not ask for gigabytes.
const MAX_WORDS: usize = 100_000;

/// Chooses by the last segment of the model's name.
pub(super) fn outcome(heard: &Heard) -> Outcome {
    let name = heard.model.rsplit('/').next().unwrap_or_default();
    let unknown = || {
        let message = format!("The model `{}` does not exist.", heard.model);
        Outcome::Failure(Failure { status: 404, message })
    };
    if let Some(count) = name.strip_prefix("text-") {
        return match count.parse() {
            Ok(count) if count <= MAX_WORDS => stop(vec![Piece::Text { deltas: words(count) }]),
            Ok(_) | Err(_) => unknown(),
        };
    }
    if let Some(status) = name.strip_prefix("error-") {
        return match status.parse() {
            Ok(status @ 400..=599) => {
                Outcome::Failure(Failure { status, message: format!("scripted error {status}") })
            }
            Ok(_) | Err(_) => unknown(),
        };
    }
    match name {
        "parallel" => parallel(heard),
        "reasoning" => stop(vec![
            Piece::Reasoning {
                deltas: texts(&["Let me", " think", " about it."]),
                seal: "c2NyaXB0ZWQtc2VhbA==",
            },
            Piece::Text { deltas: texts(&["The answer", " is 42."]) },
        ]),
        "echo" => stop(vec![text(&heard.describe().to_string())]),
        "cut" => ends(vec![Piece::Text { deltas: words(40) }], Ending::Cut),
        "length" => ends(vec![weather("paris", &["{\"ci", "ty\":\"Pa"])], Ending::Length),
        _ => unknown(),
    }
}

fn parallel(heard: &Heard) -> Outcome {
    let results = heard.latest_results();
    if !results.is_empty() {
        let line = |part: &&Part| part.result_text();
        return stop(vec![text(&results.iter().map(line).collect::<Vec<_>>().join("\n"))]);
    }
    ends(
        vec![
            Piece::Text { deltas: texts(&["I will", " look up both."]) },
            weather("paris", &["{\"ci", "ty\":\"Pa", "ris\"}"]),
            weather("tokyo", &["{\"city\"", ":\"Tok", "yo\"}"]),
        ],
        Ending::Calls,
    )
}

fn weather(id: &str, arguments: &[&str]) -> Piece {
    Piece::Call { id: id.to_owned(), name: "get_weather".to_owned(), deltas: texts(arguments) }
}

fn stop(pieces: Vec<Piece>) -> Outcome {
    ends(pieces, Ending::Stop)
}

fn ends(pieces: Vec<Piece>, ending: Ending) -> Outcome {
    Outcome::Reply(Reply { pieces, ending })
}

fn words(count: usize) -> Vec<String> {
    (0..count).map(|n| if n == 0 { "word0".to_owned() } else { format!(" word{n}") }).collect()
}

/// Streams a longer text in deltas of a few characters.
fn text(whole: &str) -> Piece {
    let characters: Vec<char> = whole.chars().collect();
    Piece::Text { deltas: characters.chunks(16).map(|chunk| chunk.iter().collect()).collect() }
}

fn texts(deltas: &[&str]) -> Vec<String> {
    deltas.iter().map(|delta| (*delta).to_owned()).collect()
}
