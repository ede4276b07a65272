//! Writes whole responses, and the response objects in streams.

use serde_json::{Value, json};
use toolgate_model::{
    Fields, Finish, Losses, Parallel, Reply, ReplyHead, ReplyId, Retention, StopReason, Translated,
    TurnRequest,
};

use super::ID;
use super::client_tools::CallForms;
use super::content_read::is_empty_value;
use super::content_write;
use super::reply_read::status_of;
use super::reply_write_reasoning::ReasoningForm;
use super::request_write::{self, Origin};
use super::request_write_tools;
use super::usage;
use crate::openai_shared::OpenAiFields;
use crate::{NameMap, ReplyContext};

/// Writes a whole reply.
pub(super) fn write(reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
    let mut losses = Losses::default();
    let id = reply_id(&reply.head, context);
    let mut response = in_progress(&reply.head, context, &mut losses);
    let blocks = ReasoningForm::new(&reply.head, &context.request).blocks(&reply.blocks);
    let blocks = CallForms::of(&context.request.tools).applied(blocks);
    let output = content_write::output(&blocks, &id, 0, &mut losses);
    finished(&mut response, &reply.finish, output, &mut losses);
    Translated { value: Value::Object(response).to_string().into_bytes(), losses }
}

/// The reply's id: the host's if it is an id of this API, else a generated one.
pub(super) fn reply_id(head: &ReplyHead, context: &ReplyContext) -> String {
    let own = head.extras.known_to(ID).is_some();
    let kept =
        head.id.as_ref().map(ReplyId::as_str).filter(|id| !id.is_empty() && (own || id.starts_with("resp_")));
    kept.unwrap_or(&context.fallback_id).to_owned()
}

/// The response without output.
pub(super) fn in_progress(head: &ReplyHead, context: &ReplyContext, losses: &mut Losses) -> Fields {
    let model = head.model.as_ref().unwrap_or(&context.request.model);
    let mut response = Fields::new();
    response.insert("id".to_owned(), Value::from(reply_id(head, context)));
    response.insert("object".to_owned(), Value::from("response"));
    response.insert("created_at".to_owned(), Value::from(head.created.unwrap_or(context.now)));
    response.insert("status".to_owned(), Value::from("in_progress"));
    response.insert("error".to_owned(), Value::Null);
    response.insert("incomplete_details".to_owned(), Value::Null);
    response.insert("model".to_owned(), Value::from(model.as_str()));
    response.insert("output".to_owned(), Value::Array(Vec::new()));
    response.insert("usage".to_owned(), Value::Null);
    // Required fields; the host's or the request's values replace these.
    response.insert("instructions".to_owned(), Value::Null);
    response.insert("metadata".to_owned(), json!({}));
    response.insert("tools".to_owned(), Value::Array(Vec::new()));
    let extras = head.extras.write(ID, "response", losses);
    if head.extras.known_to(ID).is_some() {
        response.extend(extras);
    } else {
        response.extend(echo(&context.request));
        let tier = head.service_tier.as_deref();
        response.extend(tier.map(|tier| ("service_tier".to_owned(), Value::from(tier))));
    }
    response
}

/// Adds output, status and usage to a response.
pub(super) fn finished(response: &mut Fields, finish: &Finish, output: Vec<Value>, losses: &mut Losses) {
    let (status, reason) = match status_of(&finish.stop) {
        // A refusal without a refusal part would look like an answer.
        _ if finish.stop == StopReason::Refusal && !output.iter().any(has_refusal) => {
            ("incomplete", Some("content_filter"))
        }
        status => status,
    };
    if finish.stop_sequence.is_some() {
        losses.unknown_to(ID, "stop_sequence");
    }
    response.insert("status".to_owned(), Value::from(status));
    if let Some(reason) = reason {
        response.insert("incomplete_details".to_owned(), json!({ "reason": reason }));
    }
    response.insert("output".to_owned(), Value::Array(output));
    if let Some(usage) = &finish.usage {
        response.insert("usage".to_owned(), usage::write(usage, losses));
    }
    response.extend(finish.extras.write(ID, "response", losses));
}

fn has_refusal(item: &Value) -> bool {
    let parts = item.get("content").and_then(Value::as_array);
    parts.is_some_and(|parts| parts.iter().any(|part| part["type"] == "refusal"))
}

/// The request fields that the API repeats in its response.
fn echo(request: &TurnRequest) -> Fields {
    /// Fields of this dialect that are repeated unchanged.
    const REPEATED: [&str; 4] = ["background", "max_tool_calls", "prompt", "truncation"];
    // Losses were reported when the request was read or sent.
    let losses = &mut Losses::default();
    let names = NameMap::default();
    let tools = request_write_tools::tools(&request.tools, &names, Origin::of(request), losses);
    let reasoning =
        request.reasoning.as_ref().and_then(|asked| request_write::reasoning(asked, Origin::Native, losses));
    let effort = reasoning.as_ref().and_then(|asked| asked.get("effort")).cloned();
    let summary = reasoning.as_ref().and_then(|asked| asked.get("summary")).cloned();
    let own = request.extras.known_to(ID);
    let text = own.and_then(|own| own.get("text")).cloned();
    let value = json!({
        "instructions": request_write::instructions(&request.system, losses),
        "max_output_tokens": request.max_output,
        "parallel_tool_calls": request.tool_choice.parallel != Some(Parallel::Forbidden),
        "previous_response_id": request.previous,
        "reasoning": { "effort": effort, "summary": summary },
        "store": request.retention != Some(Retention::Discard),
        "temperature": request.sampling.temperature,
        "text": request_write::text_echo(request, text),
        "tool_choice": request_write_tools::choice(&request.tool_choice, &names, losses).unwrap_or_else(|| json!("auto")),
        "tools": serde_json::to_value(tools).unwrap_or_else(|_| json!([])),
        "top_p": request.sampling.top_p,
        "truncation": "disabled",
        "user": request.user,
        "metadata": {},
    });
    let Value::Object(mut fields) = value else { return Fields::new() };
    // An id or an object in the request; an object in the response.
    if let Some(conversation) = own.and_then(|own| own.get("conversation")) {
        let by_id = conversation.as_str().map(|id| json!({ "id": id }));
        fields.insert("conversation".to_owned(), by_id.unwrap_or_else(|| conversation.clone()));
    }
    for name in REPEATED {
        if let Some(value) = own.and_then(|own| own.get(name)).filter(|value| !is_empty_value(value)) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    if let Ok(Value::Object(shared)) = serde_json::to_value(OpenAiFields::of(&request.openai)) {
        fields.extend(shared);
    }
    fields
}
