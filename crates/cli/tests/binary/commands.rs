//! The commands `check`, `doctor`, `keys` and `import`, and starts that must fail.

use std::net::TcpListener;
use std::process::Output;

use tempfile::TempDir;

use crate::gateway_process::{GatewayProcess, run, toolgate};

fn home_with(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("toolgate.toml"), config).unwrap();
    home
}

/// Runs a command that must fail and returns its stderr.
fn failure(home: &TempDir, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(home, arguments);
    let output = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}: {output}{}", String::from_utf8_lossy(&stdout));
    output
}

fn success(home: &TempDir, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(home, arguments);
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[test]
fn every_config_error_is_reported_with_its_line() {
    let home = home_with("lisen = 1\n[models.x]\nupstream = \"nobody\"\n");
    for arguments in [&["check"][..], &["serve"], &[]] {
        let output = failure(&home, arguments);
        assert!(
            output.contains("toolgate.toml:1:1: unknown key `lisen`; did you mean `listen`?"),
            "{output}"
        );
        assert!(output.contains("toolgate.toml:3:12: unknown upstream `nobody`"), "{output}");
        assert!(output.contains("2 errors"), "{output}");
    }
}

#[test]
fn a_valid_config_passes_the_check() {
    let home = home_with("[models.demo]\ndemo = true\n");
    assert_eq!(success(&home, &["check"]), "toolgate.toml: ok, 1 model, no upstreams and no keys\n");
}

#[test]
fn the_check_prints_every_profile_and_why_it_was_chosen() {
    let config = r#"
[upstreams.groq]
dialect = "openai-chat"
base_url = "https://api.groq.com/openai/v1"
[upstreams.local]
dialect = "openai-chat"
base_url = "http://127.0.0.1:8000/v1"
profile = "vllm"
[upstreams.other]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9000/v1"
[models."claude-*"]
upstream = ["groq", "local"]
model = "openai/gpt-oss-120b"
[models.x]
upstream = "other"
model = "my-model"
"#;
    let output = success(&home_with(config), &["check"]);
    let expected = [
        "upstream groq: profile groq, because of api.groq.com",
        "  claude-* is openai/gpt-oss-120b there: rules of gpt-oss",
        "upstream local: profile vllm, as configured",
        "  claude-* is openai/gpt-oss-120b there: rules of gpt-oss",
        "upstream other: no profile: 127.0.0.1 is unknown, so it gets the most widely accepted form (set `profile`)",
        "  x is my-model there: no rules for this model",
        "toolgate.toml: ok, 2 models, 3 upstreams and no keys",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_agent_program_is_a_warning() {
    let config = "[agents.a]\ncommand = \"no-such-agent\"\nmodel = \"demo\"\n[models.x]\nagent = \"a\"\n\
                  [models.demo]\ndemo = true\n";
    let home = home_with(config);
    let output = success(&home, &["check"]);
    assert!(output.contains("toolgate.toml:2:11") && output.contains("install Claude Code"), "{output}");
}

#[test]
fn the_trigger_secret_is_stored_beside_the_database_and_survives_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let config = format!(
        r#"
store = "sqlite:{}/gate.db"
[upstreams.host]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[models.x]
upstream = "host"
tools = "prompted"
"#,
        data.path().display()
    );
    let secret_after_a_start = || {
        drop(GatewayProcess::start(home_with(&config), &["--listen", "127.0.0.1:0"]));
        std::fs::read(data.path().join("secret")).unwrap()
    };
    let first = secret_after_a_start();
    assert_eq!(first.len(), 32);
    assert_eq!(secret_after_a_start(), first);
}

#[test]
fn a_public_address_without_keys_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let output = failure(&home, &["--listen", "0.0.0.0:0"]);
    assert!(output.contains("there are no keys"), "{output}");
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = tempfile::tempdir().unwrap();
    let output = failure(&home, &["--listen", &address]);
    assert!(output.contains(&format!("{address} is in use")) && output.contains("--listen"), "{output}");
}

#[test]
fn a_store_that_cannot_be_opened_is_reported() {
    let home = home_with("listen = \"127.0.0.1:0\"\nstore = \"sqlite:toolgate.toml\"\n");
    let output = failure(&home, &[]);
    assert!(output.contains("opening the store"), "{output}");
}

#[test]
fn doctor_reports_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let output = success(&home, &["doctor", "--listen", "127.0.0.1:0"]);
    for line in
        ["ANTHROPIC_API_KEY is not set", "will be created at the first start", "demo: built in", "claude"]
    {
        assert!(output.contains(line), "{line} is missing:\n{output}");
    }
}

#[test]
fn the_lines_of_a_new_key_are_a_valid_config() {
    let home = tempfile::tempdir().unwrap();
    let output = success(&home, &["keys", "new", "alice"]);
    std::fs::write(home.path().join("toolgate.toml"), &output[output.find("[[keys]]").unwrap()..]).unwrap();
    assert!(success(&home, &["check"]).ends_with("1 key\n"));
}

#[test]
fn an_imported_toolify_config_passes_the_check() {
    let home = tempfile::tempdir().unwrap();
    let yaml = "upstream_services:\n  - {name: a, base_url: 'http://127.0.0.1:9/v1', api_key: k, models: ['fast:m', n], is_default: true}\nclient_authentication: {allowed_keys: [sk-1]}\n";
    std::fs::write(home.path().join("config.yaml"), yaml).unwrap();
    let printed = success(&home, &["import", "toolify", "config.yaml"]);
    success(&home, &["import", "toolify", "config.yaml", "--output", "toolgate.toml"]);
    assert_eq!(std::fs::read_to_string(home.path().join("toolgate.toml")).unwrap(), printed);
    let checked = success(&home, &["check"]);
    assert!(checked.ends_with("toolgate.toml: ok, 3 models, 1 upstream and 1 key\n"), "{checked}");

    let output = failure(&home, &["import", "toolify", "config.yaml", "--output", "toolgate.toml"]);
    assert!(output.contains("choose a file that does not exist yet"), "{output}");
    std::fs::write(home.path().join("config.yaml"), "server:\n  port: none\n").unwrap();
    let output = failure(&home, &["import", "toolify", "config.yaml"]);
    assert!(
        output.contains("config.yaml:2:9: `port` of `server`") && output.contains("2 errors"),
        "{output}"
    );
}

#[test]
fn help_shows_examples() {
    let home = tempfile::tempdir().unwrap();
    let output = success(&home, &["--help"]);
    assert!(output.contains("Examples:") && output.contains("toolgate doctor"), "{output}");
}

#[test]
fn doctor_names_the_proxy_and_hides_its_password() {
    let home = tempfile::tempdir().unwrap();
    let doctor = |proxy: &str| {
        let mut command = toolgate(&home, &["doctor", "--listen", "127.0.0.1:0"]);
        let Output { stdout, .. } =
            command.env("HTTPS_PROXY", proxy).env("NO_PROXY", "localhost,.lan").output().unwrap();
        String::from_utf8(stdout).unwrap()
    };
    let output = doctor("http://me:hidden@proxy.lan:3128");
    assert!(output.contains("proxy.lan:3128 for https:// hosts"), "{output}");
    assert!(output.contains("except localhost, .lan"), "{output}");
    assert!(!output.contains("hidden") && !output.contains("me:"), "{output}");

    let output = doctor("socks5://me:hidden@proxy.lan:3128");
    assert!(output.contains("HTTPS_PROXY must begin with http://") && !output.contains("hidden"), "{output}");
}
