//! Tools and settings.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_model::{
    CallKind, Choice, CustomTool, Delivery, Extras, Fields, FunctionTool, JsonText, OpenAiOptions,
    OutputFormat, Parallel, ReasoningRequest, SchemaFormat, Tool, ToolChoice, TurnRequest, UsageReport,
};

/// The settings of a request.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    max_output: Option<u64>,
    temperature: Option<u8>,
    tool_choice: ToolChoice,
    output: Option<OutputFormat>,
    tools: Vec<Tool>,
    reasoning: Option<ReasoningRequest>,
    openai: OpenAiOptions,
    user: Option<String>,
    is_streamed: bool,
}

impl Settings {
    pub(crate) fn apply(self, request: &mut TurnRequest) {
        let Self {
            max_output,
            temperature,
            tool_choice,
            output,
            tools,
            reasoning,
            openai,
            user,
            is_streamed,
        } = self;
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
        request.reasoning = reasoning;
        request.openai = openai;
        request.user = user;
        if is_streamed {
            request.delivery = Delivery::Stream(UsageReport::Default);
        }
    }
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let limits = (option::of(1..200_000_u64), option::of(0..10_u8));
    let tools = (choice(), vec(tool(), 0..3));
    let others = (option::of(reasoning()), openai(), option::of("[a-z@ ]{1,90}"), any::<bool>());
    (limits, tools, option::of(format()), others).prop_map(
        |(
            (max_output, temperature),
            (tool_choice, tools),
            output,
            (reasoning, openai, user, is_streamed),
        )| Settings {
            max_output,
            temperature,
            tool_choice,
            output,
            tools,
            reasoning,
            openai,
            user,
            is_streamed,
        },
    )
}

/// Efforts, budgets, and the switch alone.
fn reasoning() -> impl Strategy<Value = ReasoningRequest> {
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "newest"];
    let effort = proptest::sample::select(efforts.to_vec()).prop_map(|effort| ReasoningRequest {
        effort: Some(effort.to_owned()),
        ..ReasoningRequest::default()
    });
    let budget = (1_u64..50_000).prop_map(|budget| ReasoningRequest {
        mode: Some("enabled".to_owned()),
        budget: Some(budget),
        ..ReasoningRequest::default()
    });
    let modes = ["enabled", "disabled", "adaptive"];
    let mode = proptest::sample::select(modes.to_vec())
        .prop_map(|mode| ReasoningRequest { mode: Some(mode.to_owned()), ..ReasoningRequest::default() });
    let summary = option::of(Just("detailed".to_owned()));
    (prop_oneof![effort, budget, mode], summary)
        .prop_map(|(request, summary)| ReasoningRequest { summary, ..request })
}

fn openai() -> impl Strategy<Value = OpenAiOptions> {
    let word = || option::of("[a-z]{1,8}");
    (word(), word(), option::of(Just("flex".to_owned())), word(), any::<bool>()).prop_map(
        |(verbosity, prompt_cache_key, service_tier, safety_identifier, logprobs)| OpenAiOptions {
            verbosity,
            prompt_cache_key,
            service_tier,
            safety_identifier,
            logprobs: logprobs.then_some(true),
            top_logprobs: logprobs.then_some(2),
            ..OpenAiOptions::default()
        },
    )
}

fn tool() -> impl Strategy<Value = Tool> {
    let description = || option::of("[a-z ]{1,20}");
    let function =
        (description(), option::of(any::<bool>()), schema()).prop_map(|(description, strict, schema)| {
            Tool::Function(FunctionTool {
                name: "tool".into(),
                description,
                schema: schema.as_ref().map(JsonText::from_value),
                strict,
                extras: Extras::NONE,
            })
        });
    let custom = description().prop_map(|description| {
        Tool::Custom(CustomTool { name: "tool".into(), description, format: None, extras: Extras::NONE })
    });
    prop_oneof![2 => function, 1 => custom]
}

/// Schemas with required keys, limits, nested descriptions and references; some that hosts refuse at the root.
fn schema() -> impl Strategy<Value = Option<Value>> {
    let property = prop_oneof![
        Just(json!({ "type": "string", "minLength": 2, "description": "A name.", "pattern": "^a" })),
        Just(json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 9 })),
        Just(json!({ "type": "array", "minItems": 1, "maxItems": 3 })),
        Just(
            json!({ "type": "array", "items": { "type": "object", "properties": { "b": { "enum": [1, 2] } } } })
        ),
        Just(json!({ "const": "x", "default": { "type": "array" } })),
        Just(json!({ "anyOf": [{ "type": "string" }, { "type": "object", "required": ["c"] }] })),
        Just(json!({ "$ref": "#/$defs/point" })),
    ];
    let object = (vec(("[a-z]{1,6}", property, any::<bool>()), 0..3), any::<bool>(), any::<bool>()).prop_map(
        |(properties, is_closed, is_typed)| {
            let required: Vec<Value> = properties
                .iter()
                .filter(|(_, _, required)| *required)
                .map(|(name, ..)| json!(name))
                .collect();
            let properties: Fields = properties.into_iter().map(|(name, schema, _)| (name, schema)).collect();
            let mut schema = json!({ "properties": properties, "required": required });
            schema["$defs"] =
                json!({ "point": { "type": "object", "properties": { "x": { "type": "number" } } } });
            if is_closed {
                schema["additionalProperties"] = json!(false);
            }
            if is_typed {
                schema["type"] = json!("object");
            }
            schema
        },
    );
    let variant = json!({ "properties": { "v": { "type": "string" } }, "required": ["v"] });
    let other = json!({ "properties": { "w": { "type": "string" } }, "required": ["w", "v"] });
    prop_oneof![
        6 => object.prop_map(Some),
        1 => Just(Some(json!({ "anyOf": [variant, other] }))),
        1 => Just(Some(json!({ "type": "object", "allOf": [variant, other], "description": "Both." }))),
        1 => Just(Some(json!({ "type": ["object", "null"] }))),
        1 => Just(None),
    ]
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
    let format = (schema(), option::of(any::<bool>()), option::of("[a-z ]{1,9}")).prop_map(
        |(schema, strict, description)| {
            OutputFormat::JsonSchema(SchemaFormat {
                name: Some("answer".into()),
                description,
                schema: JsonText::from_value(&schema.unwrap_or_else(|| json!({}))),
                strict,
                extras: Extras::NONE,
            })
        },
    );
    prop_oneof![Just(OutputFormat::Text), Just(OutputFormat::JsonObject), format]
}
