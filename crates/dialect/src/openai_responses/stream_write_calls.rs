//! The events of a call. The call of a tool search has none besides those of its item.

use serde_json::Value;
use toolgate_model::{CallKind, Fields, Losses, ToolCall};

use super::client_tools::is_search;
use super::content_write;
use super::stream_write_events::{DeltaFrame, EventPosition, EventWriter};
use crate::NameMap;

/// The prefix of the item's id.
pub(super) fn id_prefix(call: &ToolCall) -> &'static str {
    match call.kind {
        CallKind::Function if is_search(call) => "tsc",
        CallKind::Function => "fc",
        CallKind::Custom => "ctc",
    }
}

/// The type of a delta; `None` if the input is not streamed.
pub(super) fn delta_event(call: &ToolCall) -> Option<&'static str> {
    match call.kind {
        CallKind::Function if is_search(call) => None,
        CallKind::Function => Some("response.function_call_arguments.delta"),
        CallKind::Custom => Some("response.custom_tool_call_input.delta"),
    }
}

/// The item of a call that has no input yet.
pub(super) fn opening(call: &ToolCall, losses: &mut Losses) -> Fields {
    let mut item = with_status("in_progress", call, losses);
    if delta_event(call).is_some() && call.kind == CallKind::Function {
        item.insert("arguments".to_owned(), Value::from(""));
    }
    item
}

/// Ends the input, and returns the complete item.
pub(super) fn finish(
    call: &ToolCall,
    position: EventPosition<'_>,
    events: &mut EventWriter,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Fields {
    let all = content_write::arguments(call.kind, &call.arguments);
    let (done, field) = match call.kind {
        CallKind::Function => ("response.function_call_arguments.done", "arguments"),
        CallKind::Custom => ("response.custom_tool_call_input.done", "input"),
    };
    if let Some(delta) = delta_event(call) {
        if all != call.arguments {
            // T9: clients concatenate the deltas.
            events.delta(DeltaFrame::new(delta, position, all), out);
        }
        events.whole_item(done, position, Fields::from_iter([(field.to_owned(), Value::from(all))]), out);
    }
    with_status(content_write::call_status(call.kind, all), call, losses)
}

fn with_status(status: &str, call: &ToolCall, losses: &mut Losses) -> Fields {
    let mut item = Fields::from_iter([("status".to_owned(), Value::from(status))]);
    item.extend(content_write::call_item(call, call.id.as_str(), &NameMap::default(), losses));
    item
}
