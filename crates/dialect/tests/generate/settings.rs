//! Tools and settings.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toolgate_model::{
    CallKind, Choice, CustomTool, Extras, FunctionTool, JsonText, OutputFormat, Parallel, ReasoningRequest,
    SchemaFormat, Tool, ToolChoice, TurnRequest,
};

/// The settings of a request.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    max_output: Option<u64>,
    temperature: Option<u8>,
    tool_choice: ToolChoice,
    output: Option<OutputFormat>,
    tools: Vec<Tool>,
    effort: Option<&'static str>,
}

impl Settings {
    pub(crate) fn apply(self, request: &mut TurnRequest) {
        let Self { max_output, temperature, tool_choice, output, tools, effort } = self;
        request.max_output = max_output;
        request.sampling.temperature = temperature.map(Into::into);
        request.tools = named(tools);
        let named_tool = request.tools.first();
        if let Some(first) = named_tool {
            request.tool_choice = tool_choice;
            // A named choice names an offered tool.
            if let (Some(Choice::Named(_, kind)), Tool::Custom(_)) = (&mut request.tool_choice.choice, first)
            {
                *kind = CallKind::Custom;
            }
        }
        request.output = output.unwrap_or(OutputFormat::Text);
        request.reasoning = effort.map(|effort| ReasoningRequest {
            effort: Some(effort.to_owned()),
            ..ReasoningRequest::default()
        });
    }
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let effort = option::of(prop_oneof![Just("low"), Just("medium"), Just("high")]);
    (option::of(1..9000_u64), option::of(0..10_u8), choice(), option::of(format()), vec(tool(), 0..3), effort)
        .prop_map(|(max_output, temperature, tool_choice, output, tools, effort)| Settings {
            max_output,
            temperature,
            tool_choice,
            output,
            tools,
            effort,
        })
}

fn tool() -> impl Strategy<Value = Tool> {
    let description = || option::of("[a-z ]{1,20}");
    let function = (description(), option::of(any::<bool>()), "[a-z]{1,6}").prop_map(
        |(description, strict, property)| {
            let schema =
                serde_json::json!({ "type": "object", "properties": { property: { "type": "string" } } });
            Tool::Function(FunctionTool {
                name: "tool".into(),
                description,
                schema: Some(JsonText::from_value(&schema)),
                strict,
                extras: Extras::NONE,
            })
        },
    );
    let custom = description().prop_map(|description| {
        Tool::Custom(CustomTool { name: "tool".into(), description, format: None, extras: Extras::NONE })
    });
    prop_oneof![2 => function, 1 => custom]
}

fn named(tools: Vec<Tool>) -> Vec<Tool> {
    let rename = |(at, mut tool): (usize, Tool)| {
        match &mut tool {
            Tool::Function(tool) => tool.name = format!("tool_{at}").into(),
            Tool::Custom(tool) => tool.name = format!("tool_{at}").into(),
            Tool::Provider(_) => {}
        }
        tool
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
        schema: JsonText::parse(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#).unwrap(),
        strict: Some(true),
        extras: Extras::NONE,
    };
    prop_oneof![
        Just(OutputFormat::Text),
        Just(OutputFormat::JsonObject),
        Just(OutputFormat::JsonSchema(schema))
    ]
}
