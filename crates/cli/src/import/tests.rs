//! Toolify's config, valid and invalid.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it records a message")]

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::*;

fn check(yaml: &str, expected: &Expect) {
    let environment = Environment::Fixed(BTreeMap::from([("HOME".to_owned(), "/home/alice".to_owned())]));
    let text =
        convert(Path::new("config.yaml"), yaml, &environment).unwrap_or_else(|errors| panic!("{errors}"));
    expected.assert_eq(&text);
    let loaded = config::from_text(Path::new("toolgate.toml"), &text, &environment);
    assert!(loaded.is_ok(), "{}\n{text}", loaded.err().map(|errors| errors.to_string()).unwrap_or_default());
}

fn check_refused(yaml: &str, expected: &Expect) {
    let environment = Environment::Fixed(BTreeMap::from([("HOME".to_owned(), "/home/alice".to_owned())]));
    match convert(Path::new("config.yaml"), yaml, &environment) {
        Ok(text) => panic!("this was imported:\n{text}"),
        Err(errors) => expected.assert_eq(&format!("{errors}\n")),
    }
}

const SERVICE: &str = "
upstream_services:
  - name: local
    base_url: http://127.0.0.1:8000/v1/
    api_key: none
    is_default: true
    models: [llama]
client_authentication:
  allowed_keys: [sk-one]
";

#[test]
fn a_typical_config_is_imported() {
    check(
        r#"
server:
  port: 8000
  host: "0.0.0.0"
  timeout: 180
upstream_services:
  - name: "openai"
    base_url: "https://api.openai.com/v1"
    api_key: "sk-host"
    description: "The official one"
    is_default: true
    models:
      - "gpt-4o"
  - name: "google"
    base_url: "https://generativelanguage.googleapis.com/v1beta/openai/"
    api_key: "other"
    models:
      - "gemini-2.5:gemini-2.5-pro"
      - "gemini-2.5:gemini-2.5-flash"
      - "gemini-2.5-pro"
client_authentication:
  allowed_keys:
    - "sk-my-secret-key-1"
    - "sk-my-secret-key-2"
features:
  enable_function_calling: true
  log_level: "DEBUG"
  convert_developer_to_system: true
  enable_fc_error_retry: true
  fc_error_retry_max_attempts: 2
  shiny: new
"#,
        &expect![[r#"
            # Imported from config.yaml by `toolgate import toolify`. Every key: docs/configuration.md.
            listen = "0.0.0.0:8000"
            # If clients connect to this machine by a name, list it: hosts = ["gate.example.com"]
            # features.log_level: set TOOLGATE_LOG=debug in the environment.
            # features.convert_developer_to_system: no equivalent; the host gets the roles that the client sent.
            # line 31, shiny: no equivalent.

            # The official one
            [upstreams."openai"]
            dialect = "openai-chat"
            base_url = "https://api.openai.com/v1"
            api_key = "sk-host"
            # Safer outside of this file: api_key = "env:NAME" or "file:PATH"
            timeouts = { first_byte = "180s", idle = "180s" }

            [upstreams."google"]
            dialect = "openai-chat"
            base_url = "https://generativelanguage.googleapis.com/v1beta/openai/"
            api_key = "other"
            # Safer outside of this file: api_key = "env:NAME" or "file:PATH"
            timeouts = { first_byte = "180s", idle = "180s" }

            [models."gpt-4o"]
            upstream = "openai"
            tools = "prompted"
            prompted.retries = 2

            # Toolify chose between gemini-2.5-pro and gemini-2.5-flash at random; toolgate always uses the first.
            [models."gemini-2.5"]
            upstream = "google"
            model = "gemini-2.5-pro"
            tools = "prompted"
            prompted.retries = 2

            [models."gemini-2.5-pro"]
            upstream = "google"
            tools = "prompted"
            prompted.retries = 2

            # All other names go to the default service.
            [models."*"]
            upstream = "openai"
            tools = "prompted"
            prompted.retries = 2

            [[keys]]
            name = "toolify-1"
            sha256 = "03be877eb3883310286efc4a28b590e31fa30b505ed1775cbd8d1d948593a8c5"
            # Number 1 of allowed_keys. The caller's key stays valid.

            [[keys]]
            name = "toolify-2"
            sha256 = "57768a0dc57e73db511259e10f0d071badbf4d2b2b17fec51c1863d2adea6664"
            # Number 2 of allowed_keys. The caller's key stays valid.
        "#]],
    );
}

#[test]
fn templates_and_features_are_converted() {
    check(
        &format!(
            "server: {{host: 127.0.0.1, port: 9000}}\nfeatures:\n  enable_fc_error_retry: no\n  key_passthrough: true\n  prompt_template: |\n    Tools: {{tools_list}}\n    \"Say\" {{trigger_signal}} {{{{x}}}}\n  fc_error_retry_prompt_template: '{{error_details}} in {{original_response}} {{{{}}}}'\n{SERVICE}"
        ),
        &expect![[r#"
            # Imported from config.yaml by `toolgate import toolify`. Every key: docs/configuration.md.
            listen = "127.0.0.1:9000"
            # features.key_passthrough: no equivalent; callers' keys are never sent to hosts, each host has its own key.

            [upstreams."local"]
            dialect = "openai-chat"
            base_url = "http://127.0.0.1:8000/v1/"
            api_key = "none"
            # Safer outside of this file: api_key = "env:NAME" or "file:PATH"

            [models."llama"]
            upstream = "local"
            tools = "prompted"
            prompted.prompt_template = """
            Tools: {tools_list}
            "Say" {trigger_signal} {{x}}
            """
            prompted.retries = 0
            prompted.retry_template = "{error_details} in {original_response} {}"

            # All other names go to the default service.
            [models."*"]
            upstream = "local"
            tools = "prompted"
            prompted.prompt_template = """
            Tools: {tools_list}
            "Say" {trigger_signal} {{x}}
            """
            prompted.retries = 0
            prompted.retry_template = "{error_details} in {original_response} {}"

            [[keys]]
            name = "toolify-1"
            sha256 = "456f1612bd25c6c8455039437bf441f43aa3b7d1c0b0047c712d5036dfebef0d"
            # Number 1 of allowed_keys. The caller's key stays valid.
        "#]],
    );
    check(
        &format!("features: {{enable_function_calling: false, model_passthrough: true}}\n{SERVICE}"),
        &expect![[r#"
            # Imported from config.yaml by `toolgate import toolify`. Every key: docs/configuration.md.
            listen = "0.0.0.0:8000"
            # If clients connect to this machine by a name, list it: hosts = ["gate.example.com"]

            [upstreams."local"]
            dialect = "openai-chat"
            base_url = "http://127.0.0.1:8000/v1/"
            api_key = "none"
            # Safer outside of this file: api_key = "env:NAME" or "file:PATH"

            # features.model_passthrough: all names go to one host.
            [models."*"]
            upstream = "local"

            [[keys]]
            name = "toolify-1"
            sha256 = "456f1612bd25c6c8455039437bf441f43aa3b7d1c0b0047c712d5036dfebef0d"
            # Number 1 of allowed_keys. The caller's key stays valid.
        "#]],
    );
}

#[test]
fn every_error_is_reported_with_its_line() {
    check_refused(
        r#"
server: {port: 99999}
upstream_services:
  - name: a
    base_url: ftp://x
    api_key: ""
    models: []
  - name: b
    base_url: http://x/v1
    api_key: 5
    models: ["m", ":x"]
    is_default: maybe
features:
  prompt_template: "{tools_list}"
"#,
        &expect![[r#"
            config.yaml:2:16: `port` of `server` must be a whole number from 1 to 65535
            config.yaml:4:5: this service has no `models`
            config.yaml:5:15: `base_url` must begin with http:// or https://, such as "https://api.openai.com/v1"
            config.yaml:6:14: `api_key` of service 1 must not be empty
            config.yaml:10:14: `api_key` of service 2 must be a string: put it in quotes
            config.yaml:11:19: the model `:x` must be a name, or an alias, a colon and a name
            config.yaml:12:17: `is_default` of service 2 must be true or false
            config.yaml:14:20: `prompt_template` lacks {trigger_signal}: add it
            8 errors: nothing was imported
        "#]],
    );
    check_refused(
        "server: [",
        &expect![[r#"
            config.yaml:2:1: invalid YAML (while parsing a node, did not find expected node content): correct this line
            1 error: nothing was imported
        "#]],
    );
    check_refused(
        "",
        &expect![[r#"
            config.yaml: is empty: use Toolify's config.yaml
            1 error: nothing was imported
        "#]],
    );
    check_refused(
        "- a\n",
        &expect![[r"
            config.yaml:1:1: the file must be a mapping of keys and values
            1 error: nothing was imported
        "]],
    );
    check_refused(
        "server: {}\n",
        &expect![[r#"
            config.yaml:1:1: `upstream_services` is empty: add a service with name, base_url, api_key and models
            1 error: nothing was imported
        "#]],
    );
}
