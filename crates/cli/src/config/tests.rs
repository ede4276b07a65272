//! Config files, valid and invalid, with the exact messages about each.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it records a message")]

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use secrecy::ExposeSecret;
use toolgate_backend::config::Via;

use super::*;

fn environment() -> Environment {
    fixed(&[("HOME", "/home/me"), ("A_KEY", "sk-from-env"), ("EMPTY", "")])
}

fn fixed(variables: &[(&str, &str)]) -> Environment {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Environment::Fixed(variables.iter().map(owned).collect())
}

fn load_text(text: &str) -> Result<Loaded, ConfigErrors> {
    load_in(tempfile::tempdir().unwrap().path(), text)
}

pub(super) fn load_in(folder: &Path, text: &str) -> Result<Loaded, ConfigErrors> {
    let path = folder.join(FILE_NAME);
    std::fs::write(&path, text).unwrap();
    load(Some(&path), None, &environment())
}

/// Compares the messages about a file, without the path of its folder.
pub(super) fn check(text: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let messages = match load_in(folder.path(), text) {
        Ok(loaded) => loaded.warnings.iter().map(|warning| warning.to_string() + "\n").collect(),
        Err(errors) => format!("{errors}\n"),
    };
    expected.assert_eq(&messages.replace(&format!("{}/", folder.path().display()), ""));
}

pub(super) const OPENAI: &str = r#"
[upstreams.openai]
dialect = "openai-chat"
base_url = "https://api.openai.com/v1"
api_key = "env:A_KEY"
"#;

#[test]
fn every_basic_section_is_read() {
    let text = format!(
        r#"
listen = "127.0.0.1:0"
store = "sqlite:data/gate.db"
hosts = ["gate.lan", "gate.lan:8080"]
{OPENAI}
timeouts = {{ connect = "3s", first_byte = "2m", idle = "500ms" }}
retries = 0
headers = {{ x-team = "blue" }}

[upstreams.spare]
dialect = "openai-responses"
base_url = "http://127.0.0.1:9000/v1/"

[models."claude-*"]
upstream = ["openai", "spare"]
model = "gpt-4o-mini"
tools = "native"

[models.demo]
demo = true

[[keys]]
name = "alice"
sha256 = "{}"
"#,
        "ab".repeat(32)
    );
    let Ok(Loaded { config, warnings, .. }) = load_text(&text) else { panic!("the config has errors") };
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(config.listen.to_string(), "127.0.0.1:0");
    assert_eq!(config.hosts, ["gate.lan", "gate.lan:8080"]);
    let StoreUrl::SqliteFile(store) = &config.store else { panic!("{:?}", config.store) };
    assert!(store.is_absolute() && store.ends_with("data/gate.db"), "{store:?} must lie beside the config");

    let [openai, spare] = &config.backend.upstreams[..] else { panic!("two upstreams") };
    assert_eq!(openai.api_key.as_ref().unwrap().expose_secret(), "sk-from-env");
    assert_eq!(openai.timeouts.idle.as_millis(), 500);
    assert_eq!(openai.timeouts.first_byte.as_secs(), 120);
    assert_eq!(openai.retry.retries, 0);
    assert_eq!(openai.headers[0].0, "x-team");
    assert_eq!(spare.base_url, "http://127.0.0.1:9000/v1");

    let [claude, demo] = &config.backend.models[..] else { panic!("two models") };
    assert_eq!(claude.pattern.as_str(), "claude-*");
    assert_eq!(claude.targets.len(), 2);
    assert_eq!(claude.targets[1].model.as_deref(), Some("gpt-4o-mini"));
    assert_eq!(demo.targets[0].via, Via::Demo);
    assert_eq!(config.keys[0].sha256, [0xab; 32]);
    assert_eq!(config.keys[0].models[0].as_str(), "*");
}

#[test]
fn the_example_config_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../toolgate.example.toml");
    let variables = [("HOME", "/h"), (ANTHROPIC_KEY, "a"), (OPENAI_KEY, "b")];
    let loaded = load(Some(&path), None, &fixed(&variables)).map_err(|errors| errors.to_string()).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(loaded.config.backend.models.len(), 5);
}

#[test]
fn a_file_without_back_ends_uses_the_built_in_ones() {
    let loaded = load_text("listen = \"127.0.0.1:1\"").map_err(|errors| errors.to_string()).unwrap();
    assert_eq!(loaded.config.backend.models[0].pattern.as_str(), "demo");
    assert_eq!(
        loaded.config.store,
        StoreUrl::SqliteFile("/home/me/.local/share/toolgate/toolgate.db".into())
    );
}

#[test]
fn unknown_keys_are_reported_with_the_nearest_known_key() {
    check(
        &format!("lisen = 1\nport = 1\n{}", OPENAI.replace("base_url", "base_ulr")),
        &expect![[r#"
            toolgate.toml:1:1: unknown key `lisen`; did you mean `listen`?
            toolgate.toml:2:1: unknown key `port`; the keys here are `listen`, `store`, `hosts`, `limits`, `upstreams`, `agents`, `models`, `mcp`, `approvals`, `record` and `keys`
            toolgate.toml:4:12: [upstreams.openai] lacks a required key: add `base_url = "https://api.openai.com/v1"`
            toolgate.toml:6:1: unknown key `base_ulr` in [upstreams.openai]; did you mean `base_url`?
            4 errors: nothing was started
        "#]],
    );
}

#[test]
fn wrong_types_are_reported_with_the_expected_type() {
    check(
        "listen = 8787\nhosts = \"x\"\nkeys = 1\nstore = true\n[upstreams]\nopenai = \"x\"\n[models.x]\nupstream = [1]\ndemo = 1\n[models.y]\ndemo = 1",
        &expect![[r#"
            toolgate.toml:1:10: `listen` must be a string, such as "127.0.0.1:8787", not a number
            toolgate.toml:2:9: `hosts` must be a list of strings, not a string
            toolgate.toml:3:8: `keys` must be a list of tables, each written [[keys]], not a number
            toolgate.toml:4:9: `store` must be a string, such as "sqlite:toolgate.db", not true or false
            toolgate.toml:6:10: `openai` must be a table, written [upstreams.openai], not a string
            toolgate.toml:7:9: [models.x] has `upstream` and `demo`: remove all but one
            toolgate.toml:11:8: `demo` must be true or false, not a number
            7 errors: nothing was started
        "#]],
    );
}

#[test]
fn invalid_values_are_reported() {
    check(
        r#"
listen = "8787"
store = "postgres://me:pw@db/x"
hosts = ["https://gate.lan/"]
[upstreams.a]
dialect = "openai"
base_url = "api.openai.com/v1"
[upstreams.b]
dialect = "openai-caht"
base_url = "https://me:pw@host/v1"
retries = 11
[upstreams.c]
dialect = "openai-chat"
base_url = "https://host/v1/chat/completions"
timeouts = { connect = "3", idel = "1s" }
headers = { host = "x", "a b" = "x" }
[upstreams.d]
"#,
        &expect![[r#"
            toolgate.toml:2:10: "8787" is not an address to listen on: write an IP address and a port, such as "127.0.0.1:8787"
            toolgate.toml:3:9: `store`: Postgres is not supported; use `sqlite:path/to/file.db`
            toolgate.toml:4:10: "https://gate.lan/" is not a host name: write "gate.example.com", without https:// or a path
            toolgate.toml:6:11: unknown dialect `openai`; did you mean `openai-chat`?
            toolgate.toml:7:12: `base_url` is not a URL: write it like "https://api.openai.com/v1"
            toolgate.toml:9:11: unknown dialect `openai-caht`; did you mean `openai-chat`?
            toolgate.toml:10:12: `base_url` contains a user name or password: write the key to `api_key` instead
            toolgate.toml:11:11: `retries` must be a whole number from 0 to 10, not 11
            toolgate.toml:14:12: `base_url` must not include `/chat/completions`: remove it
            toolgate.toml:15:24: `connect` is "3": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:15:29: unknown key `idel` in [upstreams.c.timeouts]; did you mean `idle`?
            toolgate.toml:16:13: `host` is different for each request: remove it
            toolgate.toml:16:25: `a b` is not a header name: use letters, digits and `-`
            toolgate.toml:17:12: [upstreams.d] lacks a required key: add `dialect = "openai-chat"`
            toolgate.toml:17:12: [upstreams.d] lacks a required key: add `base_url = "https://api.openai.com/v1"`
            15 errors: nothing was started
        "#]],
    );
}

#[test]
fn secrets_that_cannot_be_read_are_reported_and_never_shown() {
    check(
        r#"
[upstreams.a]
dialect = "openai-chat"
base_url = "http://h/v1"
api_key = "env:MISSING"
[upstreams.b]
dialect = "openai-chat"
base_url = "http://h/v1"
api_key = "env:sk-secret"
[upstreams.c]
dialect = "openai-chat"
base_url = "http://h/v1"
api_key = "file:/nowhere/key"
[upstreams.d]
dialect = "openai-chat"
base_url = "http://h/v1"
api_key = "sk-secret\n"
[upstreams.e]
dialect = "openai-chat"
base_url = "http://h/v1"
api_key = "env:EMPTY"
[models."*"]
upstream = ["a", "b", "c", "d", "e"]
[[keys]]
name = "alice"
sha256 = "sk-secret"
"#,
        &expect![[r#"
            toolgate.toml:5:11: `api_key`: the environment variable MISSING is not set: export it before starting, or use "file:PATH"
            toolgate.toml:9:11: `api_key`: `env:` must be followed by the name of a variable, as in "env:OPENAI_API_KEY"
            toolgate.toml:13:11: `api_key`: cannot read the file /nowhere/key (No such file or directory (os error 2)): check the path and its permissions
            toolgate.toml:17:11: `api_key`: the value contains a character that HTTP headers cannot carry, such as a line break: check that it was copied correctly
            toolgate.toml:21:11: `api_key`: the environment variable EMPTY is not set: export it before starting, or use "file:PATH"
            toolgate.toml:26:10: `sha256` must be 64 hexadecimal digits: the hash that `toolgate keys new NAME` prints, not the key
            6 errors: nothing was started
        "#]],
    );
}

#[test]
fn models_need_exactly_one_back_end() {
    check(
        &format!(
            r#"{OPENAI}
[models.a]
[models.b]
upstream = "openia"
[models.c]
upstream = ["openai", "other-thing"]
demo = true
[models.d]
demo = false
[models.e]
demo = true
model = "x"
[models.f]
upstream = []
[models.g]
agent = "nobody"
[models.h]
upstream = "openai"
tools = "promptd"
"#
        ),
        &expect![[r#"
            toolgate.toml:7:9: [models.a] has no back end: add `upstream = "NAME"`, `agent = "NAME"` or `demo = true`
            toolgate.toml:9:12: unknown upstream `openia`: add [upstreams.openia]; did you mean `openai`?
            toolgate.toml:10:9: [models.c] has `upstream` and `demo`: remove all but one
            toolgate.toml:14:8: `demo = false` has no meaning: write `demo = true`, or remove the model
            toolgate.toml:17:9: the demo model has no other name: remove `model`
            toolgate.toml:18:9: `upstream` of [models.f] is an empty list: add at least one name
            toolgate.toml:21:9: unknown agent `nobody`: add [agents.nobody]; there are no agents
            toolgate.toml:24:9: unknown value `promptd` of `tools`; did you mean `prompted`?
            8 errors: nothing was started
        "#]],
    );
}

#[test]
fn unsupported_sections_are_checked_and_refused() {
    check(
        &format!(
            r#"{OPENAI}
[mcp.everything]
transport = "stdio"
command = ["npx", "-y", "server"]
models = ["gpt-4o-mini"]
"#
        ),
        &expect![[r#"
            toolgate.toml:7:6: [mcp.everything] is not supported by this version: remove it
            1 error: nothing was started
        "#]],
    );
}

#[test]
fn approval_rules_are_read() {
    let text = r#"
store = "memory"
[approvals]
timeout = "2m"
rules = ["allow Bash(git status:*)", "deny Read(**/.env)", "ask *"]
"#;
    let Ok(Loaded { config, warnings, .. }) = load_text(text) else { panic!("the config has errors") };
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((config.approvals.timeout, config.approvals.rules.len()), (Some(Duration::from_mins(2)), 3));
    let Ok(Loaded { config, .. }) = load_text("store = \"memory\"\n") else {
        panic!("the config has errors")
    };
    assert_eq!((config.approvals.timeout, config.approvals.rules.len()), (Some(Duration::from_mins(10)), 0));
}

#[test]
fn limits_are_read_and_default_to_those_of_the_gateway() {
    let text = r#"
store = "memory"
[limits]
body = "1MiB"
ping = "500ms"
commit = "1s"
shutdown_grace = "2m"
connections = 7
head = "2s"
idle = "3s"
body_rate = "2KiB"
stalled = "4s"
"#;
    let Ok(Loaded { config, warnings, .. }) = load_text(text) else { panic!("the config has errors") };
    assert!(warnings.is_empty(), "{warnings:?}");
    let limits = config.limits;
    assert_eq!(limits.body_bytes, 1024 * 1024);
    assert_eq!(
        (limits.ping_every, limits.commit_after, limits.shutdown_grace),
        (Duration::from_millis(500), Duration::from_secs(1), Duration::from_mins(2))
    );
    let deadlines = limits.deadlines;
    assert_eq!((limits.connections, deadlines.body_rate), (7, 2048));
    assert_eq!([deadlines.head, deadlines.idle, deadlines.stalled], [2, 3, 4].map(Duration::from_secs));
    let Ok(Loaded { config, .. }) = load_text("store = \"memory\"\n[limits]\n") else {
        panic!("the config has errors")
    };
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn errors_in_limits_are_reported_with_line_and_nearest_key() {
    check(
        "[limits]\nbody = \"32MB\"\nping = 15\ncommit = \"0s\"\nshutdown = \"20s\"\nport = 1\n",
        &expect![[r#"
            toolgate.toml:2:8: `body` is "32MB": write a whole number and a unit: "128B", "512KiB", "32MiB" or "1GiB"
            toolgate.toml:3:8: `ping` must be a string, such as "30s", not a number
            toolgate.toml:4:10: `commit` is "0s": it must be greater than zero
            toolgate.toml:5:1: unknown key `shutdown` in [limits]; did you mean `shutdown_grace`?
            toolgate.toml:6:1: unknown key `port` in [limits]; the keys here are `body`, `ping`, `commit`, `shutdown_grace`, `connections`, `head`, `idle`, `body_rate` and `stalled`
            5 errors: nothing was started
        "#]],
    );
    check(
        "[limits]\nping = \"5s\"\nstalled = \"5s\"\n",
        &expect![[r#"
        toolgate.toml:3:1: `stalled` must be longer than `ping`: a client is stalled if it does not take the pings
        1 error: nothing was started
    "#]],
    );
    check(
        "limits = \"none\"\n",
        &expect![[r#"
        toolgate.toml:1:10: `limits` must be a table, written [limits], not a string
        1 error: nothing was started
    "#]],
    );
}

#[test]
fn errors_in_approval_rules_are_reported() {
    check(
        r#"
[approvals]
timeout = "soon"
rule = []
rules = [
  "allow",
  "permit *",
  "alow Bash",
  "allow bash(ls:*)",
  "allow Bash(ls && pwd)",
  "deny Read(../x)",
  "allow WebFetch(example.com)",
  "allow Bash(ls",
  3,
]
"#,
        &expect![[r#"
            toolgate.toml:3:11: `timeout` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:4:1: unknown key `rule` in [approvals]; did you mean `rules`?
            toolgate.toml:6:3: the rule "allow": a tool is missing: write `allow Bash` or `allow *`
            toolgate.toml:7:3: the rule "permit *": it must start with `allow`, `ask` or `deny`, as in `ask Bash`
            toolgate.toml:8:3: the rule "alow Bash": it starts with `alow`; did you mean `allow`?
            toolgate.toml:9:3: the rule "allow bash(ls:*)": unknown tool `bash`; did you mean `Bash`?
            toolgate.toml:10:3: the rule "allow Bash(ls && pwd)": `ls && pwd` of `Bash`: expected a single command: write one rule per command
            toolgate.toml:11:3: the rule "deny Read(../x)": `../x` of `Read`: a rule's path must not contain `..`: write the folder it leads to
            toolgate.toml:12:3: the rule "allow WebFetch(example.com)": `example.com` of `WebFetch`: expected a host, as in `domain:example.com` or `domain:*.example.com`
            toolgate.toml:13:3: the rule "allow Bash(ls": the parenthesis is not closed: write `allow Bash(ls)`
            toolgate.toml:14:3: `rules` must contain only strings, not a number
            11 errors: nothing was started
        "#]],
    );
}

#[test]
fn errors_in_agents_are_reported() {
    check(
        r#"
[agents.claude]
command = "claude"
model = "claude-code"
tools = "Read"
system = "instead"
workdir = "/no/such/folder"
warm = 3
max = 2
hold = "soon"
prompt = "x"
[agents.other]
command = "claude"
model = "missing"
max = 0
max_budget_usd = -0.5
[agents.third]
command = "claude"
max_budget_usd = "2"
[models."claude-code"]
agent = "claude"
[models.x]
agent = "claud"
"#,
        &expect![[r#"
            toolgate.toml:4:9: `claude-code` is served by an agent: an agent cannot use another agent as its model
            toolgate.toml:5:9: `tools` must be a list, "default" or []: write ["Read"]
            toolgate.toml:6:10: `system` must be "replace" or "append", not "instead"
            toolgate.toml:7:11: `workdir`: there is no folder /no/such/folder: create it, or choose another
            toolgate.toml:8:8: `warm` is greater than `max` (2): lower `warm` or raise `max`
            toolgate.toml:10:8: `hold` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:11:1: unknown key `prompt` in [agents.claude]; the keys here are `command`, `env`, `model`, `tools`, `system`, `max_turns`, `max_budget_usd`, `workdir`, `sandbox`, `warm`, `max` and `hold`
            toolgate.toml:14:9: unknown model `missing`: add [models."missing"]; the models are `claude-code` and `x`
            toolgate.toml:15:7: `max = 0` allows no agent process: write 1 or more
            toolgate.toml:16:18: `max_budget_usd` must be a number above 0, not -0.5
            toolgate.toml:19:18: `max_budget_usd` must be a number above 0, not a string
            toolgate.toml:23:9: unknown agent `claud`: add [agents.claud]; did you mean `claude`?
            12 errors: nothing was started
        "#]],
    );
}

#[test]
fn errors_in_unsupported_sections_are_reported() {
    check(
        r#"
[agents.claude]
tools = "Read"
hold = "soon"
[mcp.a]
transport = "http"
[mcp.b]
transport = "sse"
"#,
        &expect![[r#"
            toolgate.toml:2:9: [agents.claude] lacks a required key: add `command = "claude"`
            toolgate.toml:3:9: `tools` must be a list, "default" or []: write ["Read"]
            toolgate.toml:4:8: `hold` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:5:6: [mcp.a] is not supported by this version: remove it
            toolgate.toml:6:13: unknown transport `http`; the transports are `stdio`, `streamable-http` and `sse`
            toolgate.toml:7:6: [mcp.b] lacks a required key: add `url = "https://tools.example.com/mcp"`
            toolgate.toml:7:6: [mcp.b] is not supported by this version: remove it
            7 errors: nothing was started
        "#]],
    );
}

#[test]
fn duplicates_are_errors() {
    let hash = "ab".repeat(32);
    check(
        "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"",
        &expect![[r#"
            toolgate.toml:2:1: `listen` is defined twice: remove one
            1 error: nothing was started
        "#]],
    );
    check(
        &format!("{OPENAI}{OPENAI}"),
        &expect![[r#"
            toolgate.toml:7:12: `openai` is defined twice: remove one
            toolgate.toml:8:1: `dialect` is defined twice: remove one
            toolgate.toml:9:1: `base_url` is defined twice: remove one
            toolgate.toml:10:1: `api_key` is defined twice: remove one
            4 errors: nothing was started
        "#]],
    );
    check(
        &format!(
            "[[keys]]\nname = \"a\"\nsha256 = \"{hash}\"\n[[keys]]\nname = \"b\"\nsha256 = \"{hash}\"\n[[keys]]\nname = \"a\"\nsha256 = \"{}\"\n[[keys]]",
            "cd".repeat(32)
        ),
        &expect![[r#"
            toolgate.toml:6:1: two [[keys]] have the same sha256 (`a`): change or remove one
            toolgate.toml:8:1: two [[keys]] have the same name (`a`): change or remove one
            toolgate.toml:10:1: [[keys]] lacks a required key: add `name = "alice"`
            toolgate.toml:10:1: [[keys]] lacks a required key: add `sha256 = "…"`
            4 errors: nothing was started
        "#]],
    );
}

#[test]
fn toml_syntax_errors_are_reported() {
    check(
        "listen = \n[upstreams",
        &expect![[r#"
        toolgate.toml:1:10: this is not TOML: string values must be quoted, expected literal string
        toolgate.toml:2:11: this is not TOML: unclosed table, expected `]`
        2 errors: nothing was started
    "#]],
    );
}

#[test]
fn a_public_address_without_keys_is_refused() {
    check(
        "listen = \"0.0.0.0:8787\"",
        &expect![[r#"
            toolgate.toml:1:10: 0.0.0.0:8787 is reachable from other machines and there are no keys, so anybody could use your models: listen on 127.0.0.1, or create a key with `toolgate keys new NAME` and add it to the config
            1 error: nothing was started
        "#]],
    );
    check(
        &format!("listen = \"0.0.0.0:8787\"\n[[keys]]\nname = \"a\"\nsha256 = \"{}\"", "ab".repeat(32)),
        &expect![[r#"
            toolgate.toml:1:10: warning: other machines can only use this machine's IP addresses: to allow a name, add `hosts = ["gate.example.com"]`
        "#]],
    );
    check(
        "hosts = [\"gate.example.com\"]",
        &expect![[r#"
            toolgate.toml:1:10: warning: there are no keys: behind a proxy on this machine, anybody could use your models; create a key with `toolgate keys new NAME` and add it to the config
        "#]],
    );
    let errors = load(None, Some("0.0.0.0:1".parse().unwrap()), &environment()).err().unwrap().to_string();
    assert!(errors.starts_with("--listen: 0.0.0.0:1 is reachable from other machines"), "{errors}");
}

#[test]
fn an_unused_upstream_is_a_warning() {
    check(
        OPENAI,
        &expect![[r#"
        toolgate.toml:2:12: warning: no model uses [upstreams.openai]: add [models."…"] with `upstream = "openai"`
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn a_world_readable_key_file_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join(FILE_NAME);
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-from-file\n").unwrap();
    std::fs::write(&config, OPENAI.replace("env:A_KEY", "file:key") + "[models.x]\nupstream = \"openai\"")
        .unwrap();
    let warnings_with_mode = |mode| {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        let loaded = load(Some(&config), None, &environment()).map_err(|errors| errors.to_string()).unwrap();
        assert_eq!(
            loaded.config.backend.upstreams[0].api_key.as_ref().unwrap().expose_secret(),
            "sk-from-file"
        );
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(warnings_with_mode(0o600).is_empty());
    let [warning] = &warnings_with_mode(0o644)[..] else { panic!("one warning") };
    assert!(warning.contains("every user of this machine can read"), "{warning}");
}

#[test]
fn a_missing_config_file_is_an_error() {
    let errors = load(Some(Path::new("/nowhere/x.toml")), None, &environment()).err().unwrap().to_string();
    assert!(errors.starts_with("/nowhere/x.toml: cannot read the config"), "{errors}");
}

#[test]
fn hosts_with_a_key_in_the_environment_are_used() {
    let variables = [("HOME", "/h"), (ANTHROPIC_KEY, "sk-a\n"), (OPENAI_KEY, "not a\nkey")];
    let (config, warnings) = discover::config(&fixed(&variables)).map_err(|why| why.to_string()).unwrap();
    let models: Vec<&str> = config.backend.models.iter().map(|route| route.pattern.as_str()).collect();
    assert_eq!(models, ["demo", "claude-*"]);
    assert_eq!(
        warnings[0].to_string(),
        "environment: warning: OPENAI_API_KEY is not a valid key: check that it was copied completely"
    );
}
