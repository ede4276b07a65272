//! What a host issued, and whether it comes back.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::profile::{Back, CallIds, Rule, StrictDialect, StrictProfile};
use super::{HostTurn, claude_messages, claude_models};

/// Where a host puts thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningField {
    /// It shows none.
    Hidden,
    ReasoningContent,
    Reasoning,
    /// `reasoning` and `reasoning_details`.
    ReasoningDetails,
    /// A `thinking` part of the content.
    ThinkingPart,
    /// `<think>` in the text.
    ThinkTags,
    /// A thinking block or a reasoning item, with a seal.
    Sealed,
}

impl ReasoningField {
    /// The fields of a chat message that carry it.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::ReasoningContent => &["reasoning_content"],
            Self::Reasoning => &["reasoning"],
            Self::ReasoningDetails => &["reasoning", "reasoning_details"],
            Self::Hidden | Self::ThinkingPart | Self::ThinkTags | Self::Sealed => &[],
        }
    }
}

/// A reply with everything the host issued for it.
#[derive(Debug)]
pub(super) struct HostReply {
    pub(super) thought: Option<Thought>,
    pub(super) text: Option<String>,
    pub(super) calls: Vec<HostCall>,
}

#[derive(Debug, Clone)]
pub(super) struct Thought {
    pub(super) text: String,
    pub(super) seal: String,
}

#[derive(Debug)]
pub(super) struct HostCall {
    pub(super) id: String,
    pub(super) name: &'static str,
    pub(super) arguments: Value,
    /// Gemini's.
    pub(super) signature: Option<String>,
}

impl HostReply {
    pub(super) fn shown_thought(&self) -> Option<String> {
        self.thought.as_ref().map(|thought| thought.text.clone()).filter(|text| !text.is_empty())
    }
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    turns: usize,
    /// By the id of each call.
    calls: HashMap<String, Issued>,
    /// The text of each seal.
    seals: HashMap<String, String>,
}

#[derive(Debug)]
struct Issued {
    thought: Option<Thought>,
    signature: Option<String>,
}

impl Memory {
    /// Makes the reply of a turn and remembers it.
    pub(super) fn issue(&mut self, profile: &StrictProfile, body: &Value, turn: &HostTurn) -> HostReply {
        self.turns += 1;
        let number = self.turns;
        let is_shown = shows_thoughts(profile, body);
        let thought = profile.thinks(body).then(|| Thought {
            text: if is_shown { format!("Thought {number}: what is best?") } else { String::new() },
            seal: format!("c2VhbCBvZiB0aG91Z2h0{number}=="),
        });
        if let Some(Thought { text, seal }) = &thought {
            self.seals.insert(seal.clone(), text.clone());
        }
        let planned = match turn {
            HostTurn::Text(text) => {
                return HostReply { thought, text: Some((*text).to_owned()), calls: Vec::new() };
            }
            HostTurn::Calls(planned) => planned,
        };
        let is_signed = profile.has(&Rule::ThoughtSignatures);
        let mut calls = Vec::new();
        for (index, (name, arguments)) in planned.iter().enumerate() {
            // Gemini signs the first of parallel calls.
            let signature = (is_signed && index == 0).then(|| format!("c2lnbmF0dXJl{number}=="));
            let id = call_id(profile.ids, number, index, name);
            let issued = Issued { thought: thought.clone(), signature: signature.clone() };
            self.calls.insert(id.clone(), issued);
            calls.push(HostCall { id, name, arguments: arguments.clone(), signature });
        }
        HostReply { thought, text: None, calls }
    }

    /// Whether the signature of a call is the one that was issued with it.
    pub(super) fn signature_is_right(&self, call: &Value) -> bool {
        let issued = call["id"].as_str().and_then(|id| self.calls.get(id));
        let Some(signature) = issued.and_then(|issued| issued.signature.as_deref()) else { return true };
        call["extra_content"]["google"]["thought_signature"] == signature
    }

    /// The text that was sealed so. `None` for a seal of another host.
    pub(super) fn sealed_text(&self, seal: &str) -> Option<&str> {
        self.seals.get(seal).map(String::as_str)
    }

    /// The thoughts of earlier turns that the host wants and did not get.
    pub(super) fn missing(&self, profile: &StrictProfile, body: &Value) -> Vec<String> {
        let wanted = match profile.back {
            Back::Refused | Back::Ignored => return Vec::new(),
            Back::Wanted | Back::OnCalls | Back::OnEveryTurn => profile.reasoning,
        };
        let text = body.to_string();
        let mut missing: Vec<String> = self
            .calls
            .iter()
            .filter(|(id, _)| text.contains(&json!(id).to_string()))
            .filter_map(|(id, issued)| Some((id, issued.thought.as_ref()?)))
            .filter(|(id, thought)| !Self::came_back(profile, wanted, body, (id, thought)))
            .map(|(id, thought)| {
                format!("the thought of the call {id} ({:?}) did not come back", thought.text)
            })
            .collect();
        missing.sort();
        missing
    }

    fn came_back(
        profile: &StrictProfile,
        field: ReasoningField,
        body: &Value,
        (id, thought): (&str, &Thought),
    ) -> bool {
        match profile.dialect {
            StrictDialect::Chat => {
                let mut messages = body["messages"].as_array().into_iter().flatten();
                let Some(message) = messages.find(|message| has_call(message, id)) else { return true };
                chat_thought(message, field).as_deref() == Some(&thought.text)
            }
            StrictDialect::Messages => claude_messages::thought_precedes(body, id, &thought.seal),
            StrictDialect::Responses => {
                let items = body["input"].as_array().into_iter().flatten();
                items.into_iter().any(|item| item["encrypted_content"] == thought.seal.as_str())
            }
        }
    }
}

/// Whether a reply shows what the model thought.
fn shows_thoughts(profile: &StrictProfile, body: &Value) -> bool {
    match profile.dialect {
        StrictDialect::Chat => profile.reasoning != ReasoningField::Hidden,
        StrictDialect::Messages => {
            body["thinking"]["display"] == "summarized" || claude_models::shows_thoughts(profile.model)
        }
        StrictDialect::Responses => !body["reasoning"]["summary"].is_null(),
    }
}

fn has_call(message: &Value, id: &str) -> bool {
    message["tool_calls"].as_array().into_iter().flatten().any(|call| call["id"] == id)
}

/// The thought in a chat message.
pub(super) fn chat_thought(message: &Value, field: ReasoningField) -> Option<String> {
    match field {
        ReasoningField::Hidden | ReasoningField::Sealed => None,
        ReasoningField::ReasoningContent => message["reasoning_content"].as_str().map(str::to_owned),
        ReasoningField::Reasoning => message["reasoning"].as_str().map(str::to_owned),
        ReasoningField::ReasoningDetails => {
            let details = message["reasoning_details"].as_array()?;
            details.first()?["text"].as_str().map(str::to_owned)
        }
        ReasoningField::ThinkingPart => {
            let part = message["content"].as_array()?.iter().find(|part| part["type"] == "thinking")?;
            let texts = part["thinking"].as_array()?.iter().filter_map(|text| text["text"].as_str());
            Some(texts.collect())
        }
        ReasoningField::ThinkTags => {
            let text = message["content"].as_str()?;
            let (thought, _) = text.trim_start().strip_prefix("<think>")?.split_once("</think>")?;
            Some(thought.trim().to_owned())
        }
    }
}

fn call_id(ids: CallIds, turn: usize, index: usize, name: &str) -> String {
    match ids {
        CallIds::OpenAi => format!("call_{turn:012}{index:012}"),
        CallIds::Mistral => format!("aB{turn:03}x{index:03}"),
        CallIds::Moonshot => format!("functions.{name}:{}", turn * 10 + index),
        CallIds::Claude => format!("toolu_01{turn:011}{index:011}"),
    }
}
