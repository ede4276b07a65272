//! All text that reaches the model from outside. A trigger must not occur in it.

use toolgate_model::{Block, JsonText, Message, Part, Source, Tool, TurnRequest};

/// The inbound texts of a request, in order.
#[derive(Default)]
pub(crate) struct Inbound<'a> {
    borrowed: Vec<&'a str>,
    /// Text of blocks and tools that only their own dialect understands.
    owned: Vec<String>,
}

impl<'a> Inbound<'a> {
    pub(crate) fn of(request: &'a TurnRequest) -> Self {
        let mut inbound = Self::default();
        inbound.parts(&request.system);
        inbound.tools(&request.tools);
        inbound.messages(&request.messages);
        inbound
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.borrowed.iter().copied().chain(self.owned.iter().map(String::as_str))
    }

    pub(crate) fn contains(&self, needle: &str) -> bool {
        self.texts().any(|text| memchr::memmem::find(text.as_bytes(), needle.as_bytes()).is_some())
    }

    pub(crate) fn tools(&mut self, tools: &'a [Tool]) {
        for tool in tools {
            match tool {
                Tool::Function(tool) => {
                    self.borrowed.push(tool.name.as_str());
                    self.borrowed.extend(tool.description.as_deref());
                    self.borrowed.extend(tool.schema.as_ref().map(JsonText::as_str));
                }
                Tool::Custom(tool) => {
                    self.borrowed.push(tool.name.as_str());
                    self.borrowed.extend(tool.description.as_deref());
                    self.borrowed.extend(tool.format.as_ref().map(JsonText::as_str));
                }
                Tool::Provider(tool) => {
                    self.owned.push(serde_json::Value::Object(tool.fields.clone()).to_string());
                }
            }
        }
    }

    pub(crate) fn messages(&mut self, messages: &'a [Message]) {
        for message in messages {
            match message {
                Message::System(message) => self.parts(&message.content),
                Message::User(message) => self.parts(&message.content),
                Message::Assistant(message) => message.content.iter().for_each(|block| self.block(block)),
                Message::ToolResults(results) => {
                    for result in &results.results {
                        self.borrowed.push(result.call.as_str());
                        self.parts(&result.content);
                    }
                }
            }
        }
    }

    fn parts(&mut self, parts: &'a [Part]) {
        for part in parts {
            match part {
                Part::Text(text) => self.borrowed.push(&text.text),
                Part::Document(document) => {
                    self.borrowed.extend(document.name.as_deref());
                    if let Source::Text(text) = &document.source {
                        self.borrowed.push(text);
                    }
                }
                Part::Image(_) | Part::Audio(_) => {}
                Part::Opaque(opaque) => {
                    self.owned.push(serde_json::Value::Object(opaque.fields.clone()).to_string());
                }
            }
        }
    }

    fn block(&mut self, block: &'a Block) {
        match block {
            Block::Text(text) | Block::Refusal(text) => self.borrowed.push(&text.text),
            Block::Reasoning(reasoning) => {
                self.borrowed.extend(reasoning.parts.iter().map(|part| part.text.as_str()));
            }
            Block::ToolCall(call) => {
                self.borrowed.push(call.id.as_str());
                self.borrowed.push(call.name.as_str());
                self.borrowed.push(&call.arguments);
            }
            Block::Opaque(opaque) => {
                self.owned.push(serde_json::Value::Object(opaque.fields.clone()).to_string());
            }
        }
    }
}
