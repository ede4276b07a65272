//! Tables of prompted models, valid and invalid.

use expect_test::expect;
use toolgate_backend::config::Tools;

use super::super::tests::{OPENAI, check, load_in};
use super::*;

fn tools_of(text: &str) -> Tools {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("prompt.txt"), "{trigger_signal} of {tools_list}").unwrap();
    let loaded =
        load_in(folder.path(), &format!("{OPENAI}{text}")).unwrap_or_else(|errors| panic!("{errors}"));
    loaded.config.backend.models[0].tools.clone()
}

#[test]
fn a_prompted_model_needs_no_options() {
    assert_eq!(
        tools_of("[models.x]\nupstream = \"openai\"\ntools = \"prompted\"\n"),
        Tools::Prompted(PromptedOptions::default())
    );
    assert_eq!(tools_of("[models.x]\nupstream = \"openai\"\n"), Tools::Native);
}

#[test]
fn every_option_is_read() {
    let tools = tools_of(
        r#"
[models.x]
upstream = "openai"
tools = "prompted"
[models.x.prompted]
strict = true
prompt_template = "file:prompt.txt"
system_placement = "first"
reminder = false
reasoning_tags = ["<think>", "[THINK]"]
starts_in_reasoning = true
unknown_tool = "text"
after_calls = "text"
markerless = "guarded"
calls_in_fence = false
repair = false
continuations = 3
retries = 2
retry_template = "wrong: {error_details}"
nudge = false
"#,
    );
    let expected = PromptedOptions {
        prompt_template: Some("{trigger_signal} of {tools_list}".to_owned()),
        system_placement: Placement::First,
        reminder: Switch::Off,
        unknown_tool: UnknownTool::Text,
        after_calls: AfterCalls::Text,
        markerless: Markerless::Guarded,
        calls_in_fence: Switch::Off,
        reasoning_tags: vec![
            ReasoningTag::new("<think>", "</think>"),
            ReasoningTag::new("[THINK]", "[/THINK]"),
        ],
        starts_in_reasoning: Switch::On,
        repair: Repair::Off,
        continuations: 3,
        retries: 2,
        retry_template: Some("wrong: {error_details}".to_owned()),
        nudge: Switch::Off,
        strictness: Strictness::Strict,
    };
    assert_eq!(tools, Tools::Prompted(expected));
}

#[test]
fn errors_are_reported_with_what_to_write() {
    check(
        &format!(
            r#"{OPENAI}
[models.a]
upstream = "openai"
tools = "prompted"
[models.a.prompted]
strickt = true
reminder = "yes"
prompt_template = "Tools: {{tools_list}}"
reasoning_tags = ["think"]
unknown_tool = "fixx"
continuations = 11
[models.b]
upstream = "openai"
prompted = {{ strict = true }}
[models.c]
demo = true
tools = "prompted"
[models.d]
upstream = "openai"
tools = "prompted"
prompted = {{ prompt_template = "file:nowhere/prompt.txt" }}
"#
        ),
        &expect![[r#"
            toolgate.toml:11:1: unknown key `strickt` in [models.a.prompted]; did you mean `strict`?
            toolgate.toml:12:12: `reminder` must be true or false, not a string
            toolgate.toml:13:19: `prompt_template`: the template lacks {trigger_signal}: add it
            toolgate.toml:14:19: "think" is not an opening tag: write it like "<think>" or "[THINK]"
            toolgate.toml:15:16: unknown value `fixx` of `unknown_tool`; did you mean `fix`?
            toolgate.toml:16:17: `continuations` must be a whole number from 0 to 10, not 11
            toolgate.toml:19:1: `prompted` has no effect on its own: add `tools = "prompted"` to [models.b]
            toolgate.toml:22:1: the demo model supports tools natively: remove `tools`
            toolgate.toml:26:32: `prompt_template`: cannot read the file nowhere/prompt.txt (No such file or directory (os error 2)): check the path and its permissions
            9 errors: nothing was started
        "#]],
    );
}
