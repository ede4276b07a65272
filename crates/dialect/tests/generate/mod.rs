//! Requests and replies of every shape the model can hold, small enough to shrink well.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toolgate_model::{
    AssistantMessage, Block, CallKind, Choice, Extras, Finish, FunctionTool, Image, JsonText, Message,
    OutputFormat, Parallel, Part, Reasoning, ReasoningKind, ReasoningPart, Reply, ReplyHead, SchemaFormat,
    Source, StopReason, SystemMessage, SystemRole, Text, Tool, ToolCall, ToolChoice, ToolOutcome, ToolResult,
    ToolResults, TurnRequest, Usage, UserMessage,
};

/// Any complete reply.
pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    let blocks = (option::of(reasoning()), option::of(text()), vec(call(), 0..3)).prop_map(
        |(reasoning, text, calls)| {
            let calls = calls.into_iter().enumerate().map(|(at, call)| numbered(call, at));
            reasoning
                .into_iter()
                .chain(text.map(Block::Text))
                .chain(calls.map(Block::ToolCall))
                .collect::<Vec<_>>()
        },
    );
    (blocks, 0..10_000_u64, 0..500_u64, any::<bool>()).prop_map(|(blocks, input, output, cut)| {
        let called = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
        let stop = match (cut, called) {
            (true, _) => StopReason::MaxTokens,
            (false, true) => StopReason::ToolUse,
            (false, false) => StopReason::EndTurn,
        };
        let usage = Usage { input, cache_read: input / 2, output, ..Usage::default() };
        Reply {
            head: ReplyHead {
                id: Some("id_1".into()),
                model: Some("host-model".into()),
                ..ReplyHead::default()
            },
            blocks,
            finish: Finish { stop, usage: Some(usage), ..Finish::default() },
        }
    })
}

/// Any request whose results answer its calls.
pub(crate) fn request() -> impl Strategy<Value = TurnRequest> {
    let rounds = vec((parts(), option::of(text()), vec(call(), 0..3), vec(parts(), 3), any::<bool>()), 1..3);
    let settings =
        (option::of(1..9000_u64), option::of(0..10_u8), choice(), option::of(format()), vec(tool(), 0..3));
    (option::of("[a-z ]{1,20}"), rounds, parts(), settings).prop_map(|(system, rounds, last, settings)| {
        let mut messages = Vec::new();
        for (at, round) in rounds.into_iter().enumerate() {
            messages.extend(one_round(at, round));
        }
        messages.push(user(last));
        let mut request = TurnRequest::new("some-model", messages);
        request.system = system.into_iter().map(Part::text).collect();
        let (max_output, temperature, tool_choice, output, tools) = settings;
        request.max_output = max_output;
        request.sampling.temperature = temperature.map(Into::into);
        request.tools = named(tools);
        if !request.tools.is_empty() {
            request.tool_choice = tool_choice;
        }
        request.output = output.unwrap_or(OutputFormat::Text);
        request
    })
}

/// Question, answer, calls and results, and whether the tools failed.
type Round = (Vec<Part>, Option<Text>, Vec<ToolCall>, Vec<Vec<Part>>, bool);

fn one_round(round: usize, (question, reply, calls, results, failed): Round) -> Vec<Message> {
    let calls: Vec<ToolCall> =
        calls.into_iter().enumerate().map(|(at, call)| numbered(call, round * 10 + at)).collect();
    let answer = |(call, content): (&ToolCall, &Vec<Part>)| ToolResult {
        call: call.id.clone(),
        kind: CallKind::Function,
        content: content.clone(),
        outcome: if failed { ToolOutcome::Error } else { ToolOutcome::Success },
        extras: Extras::NONE,
    };
    let results: Vec<ToolResult> = calls.iter().zip(&results).map(answer).collect();
    let text = reply.unwrap_or_else(|| Text::new("so"));
    let content = std::iter::once(Block::Text(text)).chain(calls.into_iter().map(Block::ToolCall)).collect();
    let mut messages =
        vec![user(question), Message::Assistant(AssistantMessage { content, extras: Extras::NONE })];
    if !results.is_empty() {
        messages.push(Message::ToolResults(ToolResults { results }));
    }
    if round == 1 {
        let content = vec![Part::text("be brief")];
        messages.push(Message::System(SystemMessage {
            role: SystemRole::System,
            content,
            extras: Extras::NONE,
        }));
    }
    messages
}

fn user(content: Vec<Part>) -> Message {
    Message::User(UserMessage { content, extras: Extras::NONE })
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,12}( [a-z]{1,9})?", "[äöü€🙂\\\\\"<>&{}a-z]{1,8}"]
}

fn text() -> impl Strategy<Value = Text> {
    words().prop_map(Text::new)
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let image = Just(Part::Image(Image::new(Source::Base64 {
        media_type: "image/png".into(),
        data: "aGVsbG8=".into(),
    })));
    vec(prop_oneof![4 => text().prop_map(Part::Text), 1 => image], 1..3)
}

fn reasoning() -> impl Strategy<Value = Block> {
    words().prop_map(|text| {
        let parts = vec![ReasoningPart { kind: ReasoningKind::Full, text }];
        Block::Reasoning(Reasoning { parts, seal: None, extras: Extras::NONE })
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        words().prop_map(|word| serde_json::json!({ "city": word, "n": 1 }).to_string()),
    ];
    (prop_oneof!["[a-z_]{1,10}", "[a-z]{60,80}", "[a-z]{1,3}\\.[a-z]{1,3}"], arguments).prop_map(
        |(name, arguments)| ToolCall {
            id: "c".into(),
            name: name.into(),
            kind: CallKind::Function,
            arguments,
            extras: Extras::NONE,
        },
    )
}

fn numbered(mut call: ToolCall, at: usize) -> ToolCall {
    call.id = format!("call_{at}").into();
    call
}

fn tool() -> impl Strategy<Value = Tool> {
    (option::of("[a-z ]{1,20}"), option::of(any::<bool>())).prop_map(|(description, strict)| {
        Tool::Function(FunctionTool {
            name: "tool".into(),
            description,
            schema: Some(
                JsonText::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#).unwrap(),
            ),
            strict,
            extras: Extras::NONE,
        })
    })
}

fn named(tools: Vec<Tool>) -> Vec<Tool> {
    let rename = |(at, tool)| match tool {
        Tool::Function(mut tool) => {
            tool.name = format!("tool_{at}").into();
            Tool::Function(tool)
        }
        other @ (Tool::Custom(_) | Tool::Provider(_)) => other,
    };
    tools.into_iter().enumerate().map(rename).collect()
}

fn choice() -> impl Strategy<Value = ToolChoice> {
    let choice = prop_oneof![
        Just(Choice::Auto),
        Just(Choice::Any),
        Just(Choice::None),
        Just(Choice::Named("tool_0".into(), CallKind::Function)),
    ];
    let parallel = prop_oneof![Just(Parallel::Allowed), Just(Parallel::Forbidden)];
    (option::of(choice), option::of(parallel)).prop_map(|(choice, parallel)| ToolChoice {
        choice,
        parallel,
        ..ToolChoice::default()
    })
}

fn format() -> impl Strategy<Value = OutputFormat> {
    let schema = SchemaFormat {
        name: Some("answer".into()),
        description: None,
        schema: JsonText::parse(r#"{"type":"object"}"#).unwrap(),
        strict: Some(true),
        extras: Extras::NONE,
    };
    prop_oneof![
        Just(OutputFormat::Text),
        Just(OutputFormat::JsonObject),
        Just(OutputFormat::JsonSchema(schema))
    ]
}
