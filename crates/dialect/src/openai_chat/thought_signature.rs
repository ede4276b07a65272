//! Gemini's thought signatures. Gemini signs a call in `extra_content.google.thought_signature` and refuses a history
//! without it. Clients of other dialects return a call without unknown fields, but they return sealed reasoning. So the
//! signature becomes an empty block of reasoning before its call, with a seal that names the call.

use serde_json::{Value, json};
use toolgate_model::{Block, Extras, Fields, Reasoning, Seal, ToolCall};

use super::ID;

/// The kind of the seal.
const KIND: &str = "thought_signature";
/// What Gemini accepts for a call that another model made.
pub(super) const PLACEHOLDER: &str = "skip_thought_signature_validator";

const EXTRA_CONTENT: &str = "extra_content";
const GOOGLE: &str = "google";

/// Takes the signature out of the unknown fields of a call.
pub(super) fn take(call: &mut Fields) -> Option<String> {
    let extra_content = call.get_mut(EXTRA_CONTENT)?.as_object_mut()?;
    let google = extra_content.get_mut(GOOGLE)?.as_object_mut()?;
    let Value::String(signature) = google.shift_remove(KIND)? else { return None };
    if google.is_empty() {
        extra_content.shift_remove(GOOGLE);
    }
    if extra_content.is_empty() {
        call.shift_remove(EXTRA_CONTENT);
    }
    Some(signature)
}

/// The seal with the signature of the call with this id.
pub(super) fn seal(id: &str, signature: String) -> Seal {
    Seal { id: Some(id.to_owned()), ..Seal::new(ID, KIND, signature) }
}

/// The block for a signature.
pub(super) fn block(id: &str, signature: String) -> Block {
    Block::Reasoning(Reasoning { parts: Vec::new(), seal: Some(seal(id, signature)), extras: Extras::NONE })
}

/// True for the seal of a call.
pub(super) fn is_signature(seal: &Seal) -> bool {
    seal.belongs_to(ID) && seal.kind == KIND
}

/// The signature of a call, in the blocks of its message.
pub(super) fn find<'a>(blocks: &'a [Block], call: &ToolCall) -> Option<&'a Seal> {
    blocks.iter().find_map(|block| match block {
        Block::Reasoning(reasoning) => {
            reasoning.seal.as_ref().filter(|seal| is_signature(seal) && signs(seal, call.id.as_str()))
        }
        Block::Text(_) | Block::Refusal(_) | Block::ToolCall(_) | Block::Opaque(_) => None,
    })
}

/// True if the signature belongs to the call with this id.
pub(super) fn signs(seal: &Seal, id: &str) -> bool {
    seal.id.as_deref() == Some(id)
}

/// Puts a signature back into the fields of its call.
pub(super) fn put(call: &mut Fields, signature: &str) {
    let extra_content = call.entry(EXTRA_CONTENT).or_insert_with(|| json!({}));
    if !extra_content.get(GOOGLE).is_some_and(Value::is_object) {
        extra_content[GOOGLE] = json!({});
    }
    extra_content[GOOGLE][KIND] = Value::from(signature);
}
