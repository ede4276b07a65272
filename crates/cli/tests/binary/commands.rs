//! `check`, `doctor` and `keys`, and starts that must not succeed.

use std::net::TcpListener;
use std::process::Output;

use tempfile::TempDir;

use crate::running::{Running, run, toolgate};

fn home_with(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("toolgate.toml"), config).unwrap();
    home
}

/// Runs to a failure and gives what was said about it.
fn refusal(home: &TempDir, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(home, arguments);
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}: {said}{}", String::from_utf8_lossy(&stdout));
    said
}

fn success(home: &TempDir, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(home, arguments);
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[test]
fn every_mistake_of_a_config_is_reported_with_its_line() {
    let home = home_with("lisen = 1\n[models.x]\nupstream = \"nobody\"\n");
    for arguments in [&["check"][..], &["serve"], &[]] {
        let said = refusal(&home, arguments);
        assert!(said.contains("toolgate.toml:1:1: unknown key `lisen`; did you mean `listen`?"), "{said}");
        assert!(said.contains("toolgate.toml:3:12: no upstream is called `nobody`"), "{said}");
        assert!(said.contains("2 errors"), "{said}");
    }
}

#[test]
fn a_good_config_is_called_good() {
    let home = home_with("[models.demo]\ndemo = true\n");
    assert_eq!(success(&home, &["check"]), "toolgate.toml: good, with 1 model, no upstreams and no keys\n");
}

#[test]
fn an_agent_whose_program_is_missing_is_a_warning_that_says_what_to_do() {
    let config = "[agents.a]\ncommand = \"no-such-agent\"\nmodel = \"demo\"\n[models.x]\nagent = \"a\"\n\
                  [models.demo]\ndemo = true\n";
    let home = home_with(config);
    let said = success(&home, &["check"]);
    assert!(said.contains("toolgate.toml:2:11") && said.contains("install Claude Code"), "{said}");
}

#[test]
fn a_prompted_model_gets_a_secret_beside_the_database_that_a_restart_keeps() {
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
        drop(Running::start(home_with(&config), &["--listen", "127.0.0.1:0"]));
        std::fs::read(data.path().join("secret")).unwrap()
    };
    let first = secret_after_a_start();
    assert_eq!(first.len(), 32);
    assert_eq!(secret_after_a_start(), first);
}

#[test]
fn an_open_door_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let said = refusal(&home, &["--listen", "0.0.0.0:0"]);
    assert!(said.contains("there are no keys"), "{said}");
}

#[test]
fn a_port_in_use_is_explained() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = tempfile::tempdir().unwrap();
    let said = refusal(&home, &["--listen", &address]);
    assert!(said.contains(&format!("{address} is in use")) && said.contains("--listen"), "{said}");
}

#[test]
fn a_store_that_cannot_be_opened_is_explained() {
    let home = home_with("listen = \"127.0.0.1:0\"\nstore = \"sqlite:toolgate.toml\"\n");
    let said = refusal(&home, &[]);
    assert!(said.contains("opening the store"), "{said}");
}

#[test]
fn doctor_says_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let said = success(&home, &["doctor", "--listen", "127.0.0.1:0"]);
    for line in
        ["ANTHROPIC_API_KEY is not set", "will be made at the first start", "demo: built in", "claude"]
    {
        assert!(said.contains(line), "{line} is missing:\n{said}");
    }
}

#[test]
fn a_new_key_fits_into_a_config() {
    let home = tempfile::tempdir().unwrap();
    let said = success(&home, &["keys", "new", "alice"]);
    std::fs::write(home.path().join("toolgate.toml"), &said[said.find("[[keys]]").unwrap()..]).unwrap();
    assert!(success(&home, &["check"]).ends_with("1 key\n"));
}

#[test]
fn toolifys_config_is_taken_over_and_passes_the_check() {
    let home = tempfile::tempdir().unwrap();
    let yaml = "upstream_services:\n  - {name: a, base_url: 'http://127.0.0.1:9/v1', api_key: k, models: ['fast:m', n], is_default: true}\nclient_authentication: {allowed_keys: [sk-1]}\n";
    std::fs::write(home.path().join("config.yaml"), yaml).unwrap();
    let printed = success(&home, &["import", "toolify", "config.yaml"]);
    success(&home, &["import", "toolify", "config.yaml", "--output", "toolgate.toml"]);
    assert_eq!(std::fs::read_to_string(home.path().join("toolgate.toml")).unwrap(), printed);
    let checked = success(&home, &["check"]);
    assert!(checked.ends_with("toolgate.toml: good, with 3 models, 1 upstream and 1 key\n"), "{checked}");

    let said = refusal(&home, &["import", "toolify", "config.yaml", "--output", "toolgate.toml"]);
    assert!(said.contains("name a file that does not exist yet"), "{said}");
    std::fs::write(home.path().join("config.yaml"), "server:\n  port: none\n").unwrap();
    let said = refusal(&home, &["import", "toolify", "config.yaml"]);
    assert!(said.contains("config.yaml:2:9: `port` of `server`") && said.contains("2 errors"), "{said}");
}

#[test]
fn help_shows_examples() {
    let home = tempfile::tempdir().unwrap();
    let said = success(&home, &["--help"]);
    assert!(said.contains("Examples:") && said.contains("toolgate doctor"), "{said}");
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
    let said = doctor("http://me:hidden@proxy.lan:3128");
    assert!(said.contains("proxy.lan:3128 for https:// hosts"), "{said}");
    assert!(said.contains("except localhost, .lan"), "{said}");
    assert!(!said.contains("hidden") && !said.contains("me:"), "{said}");

    let said = doctor("socks5://me:hidden@proxy.lan:3128");
    assert!(said.contains("HTTPS_PROXY must begin with http://") && !said.contains("hidden"), "{said}");
}
