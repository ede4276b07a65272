//! `profile`, `family` and `facts`, valid and invalid, and the configs in `docs/hosts.md`.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it records a message")]

use std::collections::BTreeSet;

use expect_test::expect;
use toolgate_dialect::host::{Effort, HostProfile, LimitField, Set};

use super::super::tests::{check, load_in};
use super::*;

const HOSTS_DOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hosts.md");

/// A host with these keys.
fn upstream(keys: &str) -> String {
    format!(
        "[models.m]\nupstream = \"h\"\n[upstreams.h]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{keys}"
    )
}

fn facts_of(text: &str) -> HostFacts {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load_in(folder.path(), text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    loaded.config.backend.upstreams[0].facts.clone()
}

fn profile_of(keys: &str, model: &str) -> HostProfile {
    facts_of(&upstream(keys)).profile(model)
}

fn hosts_doc() -> String {
    std::fs::read_to_string(HOSTS_DOC).unwrap()
}

#[test]
fn a_profile_is_chosen_by_name() {
    assert_eq!(facts_of(&upstream("")).name(), None);
    for name in HostFacts::names() {
        assert_eq!(facts_of(&upstream(&format!("profile = \"{name}\""))).name(), Some(name));
    }
}

#[test]
fn a_family_replaces_the_name_of_a_deployment() {
    let limit_field = |keys| profile_of(keys, "my-deployment").limit_field;
    assert_eq!(limit_field(""), LimitField::MaxTokens);
    assert_eq!(limit_field("family = \"gpt-5\""), LimitField::MaxCompletionTokens);
}

#[test]
fn facts_replace_those_of_the_profile() {
    let keys = r#"
facts = { max_output = 99, strict_tools = true, limit_field = "max_tokens", efforts = "none, high", refused = "" }
profile = "groq"
"#;
    let profile = profile_of(keys, "openai/gpt-oss-120b");
    assert_eq!((profile.max_output, profile.strict_tools), (99, true));
    assert_eq!(profile.limit_field, LimitField::MaxTokens);
    assert_eq!(profile.efforts, Set::<Effort>::of(&[Effort::None, Effort::High]));
    assert!(profile.refused.is_empty());
    // What is not set stays.
    assert_eq!(
        profile.reasoning_field,
        profile_of("profile = \"groq\"", "openai/gpt-oss-120b").reasoning_field
    );
}

#[test]
fn unknown_names_get_a_suggestion() {
    check(
        &upstream("profile = \"grok\"\nfamily = \"my-deployment\"\n[upstreams.h.facts]\nmax_outputs = 1\n"),
        &expect![[r#"
            toolgate.toml:6:11: unknown profile `grok`; did you mean `groq`?
            toolgate.toml:7:10: unknown family `my-deployment`: write a model's name, such as "gpt-5"
            toolgate.toml:9:1: unknown fact `max_outputs`; did you mean `max_output`?
            3 errors: nothing was started
        "#]],
    );
}

#[test]
fn a_profile_like_no_other_gets_the_list() {
    check(
        &upstream("profile = \"somewhere\""),
        &expect![[r#"
        toolgate.toml:6:11: unknown profile `somewhere`; the profiles are `openai`, `azure`, `gemini`, `groq`, `cerebras`, `deepseek`, `mistral`, `xai`, `moonshot`, `dashscope`, `zai`, `minimax`, `openrouter`, `together`, `fireworks`, `snowflake`, `vllm`, `sglang`, `llamacpp`, `ollama`, `lmstudio`, `anthropic`, `bedrock`, `vertex` and `foundry`
        1 error: nothing was started
    "#]],
    );
}

#[test]
fn a_bad_value_of_a_fact_gets_the_allowed_ones() {
    check(
        &upstream(
            "[upstreams.h.facts]\nlimit_field = \"max\"\nmax_output = \"many\"\nstrict_tools = 1\nefforts = \"low huge\"\nrefused = [\"stop\"]\n",
        ),
        &expect![[r#"
            toolgate.toml:7:1: `limit_field` cannot be `max`; allowed: max_tokens, max_completion_tokens
            toolgate.toml:8:1: `max_output` cannot be `many`; allowed: a whole number
            toolgate.toml:9:1: `strict_tools` cannot be `1`; allowed: true or false
            toolgate.toml:10:1: `efforts` cannot be `low huge`; allowed: none, minimal, low, medium, high, xhigh, max
            toolgate.toml:11:1: `refused` must be a string, a number or a boolean
            5 errors: nothing was started
        "#]],
    );
}

#[test]
fn a_base_url_may_have_a_query_but_no_fragment() {
    let with_url = |url: &str| upstream("").replace("http://127.0.0.1:1/v1", url);
    let url = "https://name.openai.azure.com/openai/deployments/d?api-version=2024-10-21";
    assert_eq!(facts_of(&with_url(url)).name(), Some("azure"));
    check(
        &with_url("https://api.groq.com/openai/v1#top"),
        &expect![[r#"
        toolgate.toml:5:12: `base_url` must not contain `#`
        1 error: nothing was started
    "#]],
    );
    check(
        &with_url("https://h/v1/chat/completions?api-version=1"),
        &expect![[r#"
        toolgate.toml:5:12: `base_url` must not include `/chat/completions`: remove it
        1 error: nothing was started
    "#]],
    );
}

#[test]
fn every_config_in_the_docs_chooses_its_hosts_profile() {
    let doc = hosts_doc();
    let sections = doc.split("\n### ").skip(1);
    let documented: BTreeSet<&str> = sections
        .map(|section| {
            let (title, rest) = section.split_once('\n').unwrap();
            let config = rest.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
            let config = config.unwrap_or_else(|| panic!("{title} has no config"));
            let facts = facts_of(&config.replace("\"env:", "\"a-key-"));
            facts.name().unwrap_or_else(|| panic!("{title} has no profile"))
        })
        .collect();
    assert_eq!(documented, HostFacts::names().collect());
}

#[test]
fn every_fact_is_in_the_docs() {
    let doc = hosts_doc();
    let documented = doc.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let documented: BTreeSet<&str> = documented.map(|(key, _)| key).collect();
    let known = Facts::KEYS.iter().copied();
    let missing: Vec<&str> = known.filter(|key| !documented.contains(key)).collect();
    assert_eq!(missing, [] as [&str; 0]);
}
