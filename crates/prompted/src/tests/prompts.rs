//! The exact text that models read. A change here changes behaviour: try it with real models.

use expect_test::{Expect, expect};
use toolgate_model::{
    AssistantMessage, Choice, DialectId, Opaque, Parallel, ToolCall, ToolOutcome, ToolResult, ToolResults,
};

use super::*;
use crate::side::{FollowUp, FollowUpReason, MissingValue};
use crate::{CallFault, Notation};

/// Compares a text, in which the trigger of the conversation is replaced by a fixed one.
fn check(prepared: &PreparedRequest, text: &str, expect: &Expect) {
    let trigger = prepared.plan.trigger().unwrap_or("no trigger");
    expect.assert_eq(&text.replace(trigger, "<<CALL_k3f9q2ab7c>>"));
}

fn weather() -> Tool {
    function(
        "get_weather",
        &json!({"properties": {
            "city": {"type": "string", "description": "The city's name."},
            "days": {"type": "integer"},
            "level": {"enum": ["1", 1]},
        }, "required": ["city"]}),
    )
}

fn weather_request() -> TurnRequest {
    TurnRequest { tools: vec![weather()], ..request() }
}

fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Image(_) | Part::Document(_) | Part::Audio(_) | Part::Opaque(_) => format!("{part:?}"),
    });
    texts.collect::<Vec<_>>().join("\n---\n")
}

fn user_text(message: Option<&Message>) -> String {
    let Some(Message::User(message)) = message else { panic!("not a user message: {message:?}") };
    texts(&message.content)
}

#[test]
fn the_system_prompt_teaches_the_format() {
    let mut request = weather_request();
    request.tool_choice.parallel = Some(Parallel::Forbidden);
    let prepared = prepared(&request, &PromptedOptions::default());
    check(
        &prepared,
        &texts(&prepared.request.system),
        &expect![[r#"
        # Functions

        You can call the functions listed below. Their results are returned to you in the next message.

        <function_list>
        <tool><name>get_weather</name>
        <description>Does get_weather.</description>
        <parameters>
        <parameter name="city" type="string" required="true">The city's name.</parameter>
        <parameter name="days" type="integer"></parameter>
        <parameter name="level" type="string|number" write_as="JSON, strings in double quotes" schema='{"enum":["1",1]}'></parameter>
        </parameters></tool>
        </function_list>

        To call functions, first write this trigger line on its own, exactly as shown:
        <<CALL_k3f9q2ab7c>>
        Directly below it, write one block per call:
        <invoke name="FUNCTION">
        <parameter name="PARAMETER">VALUE</parameter>
        </invoke>

        - Write strings raw: no quotes, no escaping, all whitespace exactly as intended.
        - Write values of every other type as JSON. Write strings as JSON only where the list says so.
        - Start a multi-line value on a new line after the opening tag, and put the closing tag on a new line after the value:
        <parameter name="PARAMETER">
        first line
        second line
        </parameter>
        - Use function and parameter names exactly as listed, and include every required parameter.
        - Do not put calls in a code fence.
        - You may write text before the trigger line. After the last </invoke>, stop and write nothing more: the results come next.
        - Write the trigger line only to make calls. Do not mention it otherwise.
        - Make at most one call per answer.
    "#]],
    );
}

#[test]
fn tools_without_a_schema_of_their_own_are_described() {
    let dialect = DialectId { name: "anthropic-messages", provider: "anthropic" };
    let provider = |kind: &str, name: &str| {
        let fields = json!({"type": kind, "name": name}).as_object().unwrap().clone();
        Tool::Provider(Opaque { dialect, kind: kind.to_owned(), fields })
    };
    let custom = Tool::Custom(CustomTool {
        name: "patch".into(),
        description: Some("Applies a patch.".to_owned()),
        format: Some(JsonText::from_value(&json!({"type": "grammar", "syntax": "lark"}))),
        extras: Extras::NONE,
    });
    let tools = vec![provider("bash_20250124", "bash"), provider("text_editor_20250728", "edit"), custom];
    let options =
        PromptedOptions { prompt_template: Some("{tools_list}".to_owned()), ..PromptedOptions::default() };
    let prepared = prepared(&TurnRequest { tools, ..request() }, &options);
    check(
        &prepared,
        &texts(&prepared.request.system),
        &expect![[r#"
        <function_list>
        <tool><name>bash</name>
        <description>Runs a command in a shell session that persists between calls, and returns its output.</description>
        <parameters>
        <parameter name="command" type="string">The command to run. Required unless restart is true.</parameter>
        <parameter name="restart" type="boolean">Set to true to restart the shell session.</parameter>
        </parameters></tool>
        <tool><name>edit</name>
        <description>Views, creates and edits text files. Each command has its own parameters.</description>
        <parameters>
        <parameter name="command" type="string" required="true" schema='{"enum":["view","create","str_replace","insert","undo_edit"]}'></parameter>
        <parameter name="path" type="string" required="true">Absolute path of the file or directory.</parameter>
        <parameter name="view_range" type="array" schema='{"items":{"type":"integer"}}'>view: the first and last line to show, counted from 1; -1 means the end of the file.</parameter>
        <parameter name="file_text" type="string">create: the full content of the file.</parameter>
        <parameter name="old_str" type="string">str_replace: the text to replace; it must occur exactly once in the file.</parameter>
        <parameter name="new_str" type="string">str_replace: the replacement text. insert: the text to insert.</parameter>
        <parameter name="insert_line" type="integer">insert: the number of the line to insert after; 0 inserts at the top.</parameter>
        <parameter name="insert_text" type="string">insert: the text to insert.</parameter>
        </parameters></tool>
        <tool><name>patch</name>
        <description>Applies a patch.
        The input must follow this format: {"type":"grammar","syntax":"lark"}</description>
        <parameters>
        <parameter name="input" type="string" required="true"></parameter>
        </parameters></tool>
        </function_list>"#]],
    );
}

#[test]
fn the_reminder_repeats_the_trigger_and_says_whether_a_call_is_required() {
    let reminder = |choice: Option<Choice>, expect: &Expect| {
        let mut request = weather_request();
        request.tool_choice.choice = choice;
        let prepared = prepared(&request, &PromptedOptions::default());
        check(&prepared, &user_text(prepared.request.messages.last()), expect);
    };
    reminder(
        None,
        &expect![[r#"
            do it

            (To call functions, write the line <<CALL_k3f9q2ab7c>> on its own, then one <invoke name="…"> block per call.)"#]],
    );
    reminder(
        Some(Choice::Any),
        &expect![[r#"
            do it

            (You must call at least one function now. To call functions, write the line <<CALL_k3f9q2ab7c>> on its own, then one <invoke name="…"> block per call.)"#]],
    );
    reminder(
        Some(Choice::Named("get_weather".into(), CallKind::Function)),
        &expect![[r#"
            do it

            (You must call the function get_weather now. To call functions, write the line <<CALL_k3f9q2ab7c>> on its own, then one <invoke name="…"> block per call.)"#]],
    );
}

#[test]
fn calls_and_results_of_the_history_are_text() {
    let call = |id: &str, arguments: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "get_weather".into(),
            kind: CallKind::Function,
            arguments: arguments.to_owned(),
            extras: Extras::NONE,
        })
    };
    let result = |id: &str, text: &str, outcome: ToolOutcome| ToolResult {
        call: id.into(),
        kind: CallKind::Function,
        content: vec![Part::text(text)],
        outcome,
        extras: Extras::NONE,
    };
    let calls = vec![
        Block::Text(toolgate_model::Text::new("Let me look.")),
        call("a", r#"{"city":"Paris","days":3}"#),
        call("b", r#"{"city":"two\nlines </parameter>"}"#),
    ];
    let mut request = weather_request();
    request.messages.push(Message::Assistant(AssistantMessage { content: calls, extras: Extras::NONE }));
    request.messages.push(Message::ToolResults(ToolResults {
        results: vec![
            result("a", "18 degrees", ToolOutcome::Success),
            result("b", "no such city", ToolOutcome::Error),
        ],
    }));
    let options = PromptedOptions { reminder: crate::Switch::Off, ..PromptedOptions::default() };
    let prepared = prepared(&request, &options);
    let [_, Message::Assistant(answer), results] = prepared.request.messages.as_slice() else {
        panic!("{:?}", prepared.request.messages)
    };
    let [Block::Text(answer)] = answer.content.as_slice() else { panic!("{answer:?}") };
    check(
        &prepared,
        &answer.text,
        &expect![[r#"
        Let me look.
        <<CALL_k3f9q2ab7c>>
        <invoke name="get_weather">
        <parameter name="city">Paris</parameter>
        <parameter name="days">3</parameter>
        </invoke>
        <invoke name="get_weather">
        <parameter name="city"><![CDATA[two
        lines </parameter>]]></parameter>
        </invoke>"#]],
    );
    let results = user_text(Some(results));
    let nonce = results.split(['_', ' ']).nth(2).unwrap();
    check(
        &prepared,
        &results.replace(nonce, "x7p2m4ka"),
        &expect![[r#"
        <tool_result_x7p2m4ka name="get_weather" id="a">
        18 degrees
        </tool_result_x7p2m4ka>
        <tool_result_x7p2m4ka name="get_weather" id="b" error="true">
        no such city
        </tool_result_x7p2m4ka>
    "#]],
    );
}

#[test]
fn a_question_about_a_value_names_the_call_the_parameter_and_the_format() {
    let question = |written: Option<&str>, notation: Notation, expect: &Expect| {
        let missing = MissingValue {
            call: "get_weather".to_owned(),
            parameter: "days".to_owned(),
            schema: r#"{"type":"integer"}"#.to_owned(),
            notation,
            written: written.map(str::to_owned),
            answer: "Let me look.".to_owned(),
        };
        let prepared = prepared(&weather_request(), &PromptedOptions::default());
        let side = missing.request(&prepared.request);
        check(&prepared, &user_text(side.messages.last()), expect);
    };
    question(
        None,
        Notation::Raw,
        &expect![[r#"
        Your call to get_weather is missing the required parameter "days".
        The parameter's schema is {"type":"integer"}. Reply with the value only: no tags, no code fence, no explanation. Write a string raw, and any other type as JSON."#]],
    );
    question(
        Some("soon"),
        Notation::Raw,
        &expect![[r#"
        Your call to get_weather has an invalid value for the parameter "days": soon
        The parameter's schema is {"type":"integer"}. Reply with the value only: no tags, no code fence, no explanation. Write a string raw, and any other type as JSON."#]],
    );
    question(
        None,
        Notation::Json,
        &expect![[r#"
        Your call to get_weather is missing the required parameter "days".
        The parameter's schema is {"type":"integer"}. Reply with the value only: no tags, no code fence, no explanation. Write it as JSON, strings in double quotes."#]],
    );
}

/// Checks the last message of a follow-up request.
fn follow_up(reason: FollowUpReason, retry_template: Option<&str>, expect: &Expect) {
    let prepared = prepared(&weather_request(), &PromptedOptions::default());
    let follow_up = FollowUp {
        reason,
        answer: "Let me look.".to_owned(),
        trigger: prepared.plan.trigger().unwrap().to_owned(),
        retry_template: retry_template.map(str::to_owned),
    };
    let next = follow_up.request(&prepared.request);
    check(&prepared, &user_text(next.messages.last()), expect);
}

#[test]
fn a_follow_up_says_what_is_wrong_and_what_to_write() {
    follow_up(
        FollowUpReason::Truncated,
        None,
        &expect![
            "Your answer was cut off. Continue exactly where it stopped, starting with the very next character. Do not repeat anything, do not explain anything, and do not start the call again."
        ],
    );
    follow_up(
        FollowUpReason::NoCall,
        None,
        &expect![
            "You did not call a function, but a call is required now. Write only the call: the line <<CALL_k3f9q2ab7c>> on its own, then the call below it."
        ],
    );
    follow_up(
        FollowUpReason::InvalidCall(CallFault::MalformedTag),
        None,
        &expect![
            "Your call could not be parsed and was not run. The first tag after the trigger line is incomplete or misspelled. Write the complete call again in exactly the required format, and nothing else: the line <<CALL_k3f9q2ab7c>> on its own, then the call below it."
        ],
    );
    follow_up(
        FollowUpReason::InvalidCall(CallFault::InvalidJson),
        Some("Error: {error_details} Your answer was: {original_response}"),
        &expect!["Error: The JSON is not valid. Your answer was: Let me look."],
    );
}

#[test]
fn every_fault_is_a_sentence() {
    let faults = [
        CallFault::WrongTool("Fly".to_owned()),
        CallFault::MalformedTag,
        CallFault::UnexpectedText,
        CallFault::InvalidJson,
        CallFault::NotExact,
        CallFault::TooLarge,
    ];
    let sentences = faults.iter().map(CallFault::to_string).collect::<Vec<_>>().join("\n");
    expect![[r#"
        You cannot call the function "Fly" now.
        The first tag after the trigger line is incomplete or misspelled.
        There is unexpected text between the parameters, or a tag is misplaced or not closed.
        The JSON is not valid.
        It does not follow the required format exactly.
        One of the parameter values is too large."#]]
    .assert_eq(&sentences);
}
