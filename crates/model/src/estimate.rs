//! Token estimates, for hosts that send no counts. They are always labelled as estimates.

use crate::message::{Block, Message, Part, Source};
use crate::request::TurnRequest;
use crate::tool::Tool;

/// English text and JSON have about this many bytes per token in every current tokenizer.
const BYTES_PER_TOKEN: u64 = 4;
/// The overhead of a message or tool.
const TOKENS_PER_ITEM: u64 = 4;
/// An image of ordinary size.
const TOKENS_PER_IMAGE: u64 = 1_500;

/// The estimated input tokens of a request.
pub fn input_tokens(request: &TurnRequest) -> u64 {
    let mut count = Count::default();
    count.parts(&request.system);
    for message in &request.messages {
        count.items += 1;
        match message {
            Message::System(message) => count.parts(&message.content),
            Message::User(message) => count.parts(&message.content),
            Message::Assistant(message) => message.content.iter().for_each(|block| count.block(block)),
            Message::ToolResults(results) => {
                results.results.iter().for_each(|result| count.parts(&result.content));
            }
        }
    }
    request.tools.iter().for_each(|tool| count.tool(tool));
    count.tokens()
}

/// The estimated tokens of a text.
pub fn text_tokens(text: &str) -> u64 {
    byte_tokens(text.len())
}

/// The estimated tokens of a number of bytes of text.
pub fn byte_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

#[derive(Default)]
struct Count {
    bytes: u64,
    items: u64,
    images: u64,
}

impl Count {
    fn tokens(&self) -> u64 {
        self.bytes.div_ceil(BYTES_PER_TOKEN) + self.items * TOKENS_PER_ITEM + self.images * TOKENS_PER_IMAGE
    }

    fn text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Text(text) => self.text(&text.text),
                Part::Document(document) => match &document.source {
                    Source::Text(text) => self.text(text),
                    Source::Base64 { .. } | Source::Url(_) | Source::File { .. } => self.images += 1,
                },
                Part::Image(_) | Part::Audio(_) => self.images += 1,
                Part::Opaque(_) => self.items += 1,
            }
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) | Block::Refusal(text) => self.text(&text.text),
            Block::Reasoning(reasoning) => reasoning.parts.iter().for_each(|part| self.text(&part.text)),
            Block::ToolCall(call) => {
                self.items += 1;
                self.text(call.name.as_str());
                self.text(&call.arguments);
            }
            Block::Opaque(_) => self.items += 1,
        }
    }

    fn tool(&mut self, tool: &Tool) {
        self.items += 1;
        match tool {
            Tool::Function(tool) => {
                self.text(tool.name.as_str());
                self.text(tool.description.as_deref().unwrap_or_default());
                self.text(tool.schema.as_ref().map_or("", |schema| schema.as_str()));
            }
            Tool::Custom(tool) => {
                self.text(tool.name.as_str());
                self.text(tool.description.as_deref().unwrap_or_default());
            }
            Tool::Provider(_) => {}
        }
    }
}
