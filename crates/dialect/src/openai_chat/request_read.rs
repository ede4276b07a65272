//! Reads a request.

use serde_json::Value;
use toolgate_model::{
    Delivery, Fields, JsonText, Losses, OpenAiOptions, OutputFormat, Retention, Sampling, SchemaFormat,
    Translated, TurnError, TurnRequest, UsageReport,
};

use super::extras::{marked_extras, nested_extras};
use super::wire::{FormatIn, RequestIn, SchemaIn, StreamOptionsIn};
use super::wire_either::StringOrArray;
use super::{marks, request_read_messages, request_read_reasoning, request_read_tools};
use crate::json::{self, Unreadable};

/// Reads a request body. An error names the field at fault.
pub(super) fn read(body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
    let wire: RequestIn = json::read(body).map_err(unreadable)?;
    if wire.messages.is_empty() {
        return Err(TurnError::invalid_param("messages", "messages: send at least one message"));
    }
    translate(wire)
}

/// The error for a body that cannot be parsed.
pub(super) fn unreadable(Unreadable { path, cause }: Unreadable) -> TurnError {
    if cause.is_syntax() || cause.is_eof() {
        return TurnError::invalid(format!("the request body is not valid JSON: {cause}")).caused_by(cause);
    }
    match path {
        None => TurnError::invalid(format!("the request body cannot be read: {cause}")).caused_by(cause),
        Some(path) => TurnError::invalid_param(path.clone(), format!("{path}: {cause}")).caused_by(cause),
    }
}

fn translate(wire: RequestIn) -> Result<Translated<TurnRequest>, TurnError> {
    let RequestIn {
        model,
        messages,
        tools,
        functions,
        tool_choice,
        function_call,
        parallel_tool_calls,
        max_tokens,
        max_completion_tokens,
        temperature,
        top_p,
        top_k,
        frequency_penalty,
        presence_penalty,
        seed,
        stop,
        response_format,
        reasoning_effort,
        stream,
        stream_options,
        n,
        user,
        store,
        verbosity,
        prompt_cache_key,
        prompt_cache_retention,
        service_tier,
        metadata,
        safety_identifier,
        logprobs,
        top_logprobs,
        mut extra,
    } = wire;
    let mut marks = Vec::from([marks::NATIVE]);
    let is_legacy = functions.is_some() || function_call.is_some() && tools.is_none();
    marks.extend(is_legacy.then_some(marks::LEGACY));
    let max_output = match (max_completion_tokens, max_tokens) {
        (Some(limit), also) => {
            extra.extend(also.map(|also| ("max_tokens".to_owned(), Value::from(also))));
            Some(limit)
        }
        (None, limit) => {
            marks.extend(limit.map(|_| marks::MAX_TOKENS));
            limit
        }
    };
    let stop = match stop {
        Some(StringOrArray::String(text)) => {
            marks.push(marks::STOP_STRING);
            vec![text]
        }
        Some(StringOrArray::Array(texts)) => texts,
        None => Vec::new(),
    };
    let logprobs = match logprobs {
        Some(Value::Bool(wanted)) => Some(wanted),
        other => {
            extra.extend(other.map(|other| ("logprobs".to_owned(), other)));
            None
        }
    };
    let output = read_format(response_format, &mut extra, &mut marks);
    let delivery = read_delivery(stream, stream_options, &mut extra);
    let mut request = TurnRequest::new(model, request_read_messages::read(messages));
    request.tool_choice = request_read_tools::read_choice(tool_choice, function_call, parallel_tool_calls)?;
    request.tools = request_read_tools::read(tools, functions);
    request.max_output = max_output;
    request.sampling =
        Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop };
    request.reasoning = request_read_reasoning::read(reasoning_effort, &mut extra);
    request.output = output;
    request.delivery = delivery;
    request.samples = n;
    request.user = user;
    request.retention = store.map(|keep| if keep { Retention::Keep } else { Retention::Discard });
    request.openai = OpenAiOptions {
        verbosity,
        prompt_cache_key,
        prompt_cache_retention,
        service_tier,
        metadata: metadata.unwrap_or_default(),
        safety_identifier,
        logprobs,
        top_logprobs,
    };
    request.extras = marked_extras(extra, marks);
    Ok(Translated { value: request, losses: Losses::default() })
}

fn read_format(format: Option<FormatIn>, extra: &mut Fields, marks: &mut Vec<&'static str>) -> OutputFormat {
    let (format, unknown) = match format {
        None => return OutputFormat::Text,
        Some(FormatIn::Text(unknown)) => {
            marks.push(marks::TEXT_FORMAT);
            (OutputFormat::Text, unknown)
        }
        Some(FormatIn::JsonObject(unknown)) => (OutputFormat::JsonObject, unknown),
        Some(FormatIn::Other(format)) => (OutputFormat::Text, format.fields),
        Some(FormatIn::JsonSchema { json_schema, extra: unknown }) => {
            let SchemaIn { name, description, schema, strict, extra: inner } = json_schema;
            let schema = schema.unwrap_or_else(JsonText::empty_object);
            let extras = nested_extras(unknown, "json_schema", inner);
            return OutputFormat::JsonSchema(SchemaFormat { name, description, schema, strict, extras });
        }
    };
    if !unknown.is_empty() {
        extra.insert("response_format".to_owned(), Value::Object(unknown));
    }
    format
}

fn read_delivery(stream: Option<bool>, options: Option<StreamOptionsIn>, extra: &mut Fields) -> Delivery {
    let StreamOptionsIn { include_usage, extra: unknown } =
        options.unwrap_or(StreamOptionsIn { include_usage: None, extra: Fields::new() });
    if !unknown.is_empty() {
        extra.insert("stream_options".to_owned(), Value::Object(unknown));
    }
    if stream != Some(true) {
        return Delivery::Whole;
    }
    Delivery::Stream(match include_usage {
        None => UsageReport::Default,
        Some(true) => UsageReport::Included,
        Some(false) => UsageReport::Omitted,
    })
}
