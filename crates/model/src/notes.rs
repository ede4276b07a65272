//! What a host says about a text besides the text: its sources, and the probabilities of its tokens.

use std::ops::Range;

use serde_json::Value;

/// The notes on one text, in a form that several dialects can write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// The web pages that parts of the text are based on.
    pub citations: Vec<Citation>,
    /// The probability of each token: `{"token", "logprob", "bytes", "top_logprobs"}`.
    pub logprobs: Vec<Value>,
}

impl Notes {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.citations.is_empty() && self.logprobs.is_empty()
    }
}

/// The source of a part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// The page.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// The characters of the text that it supports; `None` for all of them.
    pub range: Option<Range<u64>>,
}
