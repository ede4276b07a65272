//! The content of a reply, independent of any dialect.

use super::model_request::{ModelRequest, Part};

/// A reply: its blocks and how it ends.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) blocks: Vec<Block>,
    pub(super) end: ReplyEnd,
}

impl Reply {
    /// One token for each streamed delta.
    pub(super) fn output_tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.deltas().len()).sum()
    }

    pub(super) fn reasoning_tokens(&self) -> usize {
        let tokens = |block: &Block| match block {
            Block::Reasoning { deltas, .. } => deltas.len(),
            Block::Text { .. } | Block::Call { .. } => 0,
        };
        self.blocks.iter().map(tokens).sum()
    }
}

/// A block of the reply, split into the deltas that a stream sends.
#[derive(Debug)]
pub(super) enum Block {
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

impl Block {
    pub(super) fn deltas(&self) -> &[String] {
        match self {
            Self::Reasoning { deltas, .. } | Self::Text { deltas } | Self::Call { deltas, .. } => deltas,
        }
    }

    pub(super) fn whole(&self) -> String {
        self.deltas().concat()
    }
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    Stop,
    Calls,
    Length,
    /// The connection is cut. A stop reason, if written, is `Stop`.
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

/// Bounds the memory that a typo in a test can cost.
const MAX_WORDS: usize = 100_000;

/// Chooses the outcome by the last segment of the model's name.
pub(super) fn outcome(request: &ModelRequest) -> Outcome {
    let name = request.model.rsplit('/').next().unwrap_or_default();
    let unknown = || {
        let message = format!("The model `{}` does not exist.", request.model);
        Outcome::Failure(Failure { status: 404, message })
    };
    if let Some(count) = name.strip_prefix("text-") {
        return match count.parse() {
            Ok(count) if count <= MAX_WORDS => stop(vec![Block::Text { deltas: words(count) }]),
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
        "parallel" => parallel(request),
        "reasoning" => stop(vec![
            Block::Reasoning {
                deltas: texts(&["Let me", " think", " about it."]),
                seal: "c2NyaXB0ZWQtc2VhbA==",
            },
            Block::Text { deltas: texts(&["The answer", " is 42."]) },
        ]),
        "echo" => stop(vec![text(&request.describe().to_string())]),
        "cut" => ends(vec![Block::Text { deltas: words(40) }], ReplyEnd::Cut),
        "length" => ends(vec![weather("paris", &["{\"ci", "ty\":\"Pa"])], ReplyEnd::Length),
        _ => unknown(),
    }
}

fn parallel(request: &ModelRequest) -> Outcome {
    let results = request.latest_results();
    if !results.is_empty() {
        let line = |part: &&Part| part.result_text();
        return stop(vec![text(&results.iter().map(line).collect::<Vec<_>>().join("\n"))]);
    }
    ends(
        vec![
            Block::Text { deltas: texts(&["I will", " look up both."]) },
            weather("paris", &["{\"ci", "ty\":\"Pa", "ris\"}"]),
            weather("tokyo", &["{\"city\"", ":\"Tok", "yo\"}"]),
        ],
        ReplyEnd::Calls,
    )
}

fn weather(id: &str, arguments: &[&str]) -> Block {
    Block::Call { id: id.to_owned(), name: "get_weather".to_owned(), deltas: texts(arguments) }
}

fn stop(blocks: Vec<Block>) -> Outcome {
    ends(blocks, ReplyEnd::Stop)
}

fn ends(blocks: Vec<Block>, end: ReplyEnd) -> Outcome {
    Outcome::Reply(Reply { blocks, end })
}

fn words(count: usize) -> Vec<String> {
    (0..count).map(|n| if n == 0 { "word0".to_owned() } else { format!(" word{n}") }).collect()
}

/// Streams a longer text in deltas of a few characters.
fn text(whole: &str) -> Block {
    let characters: Vec<char> = whole.chars().collect();
    Block::Text { deltas: characters.chunks(16).map(|chunk| chunk.iter().collect()).collect() }
}

fn texts(deltas: &[&str]) -> Vec<String> {
    deltas.iter().map(|delta| (*delta).to_owned()).collect()
}
