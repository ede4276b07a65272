//! Config files, good and bad, and exactly what is said about each.
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

fn load_text(text: &str) -> Result<Loaded, Refused> {
    load_in(tempfile::tempdir().unwrap().path(), text)
}

pub(super) fn load_in(folder: &Path, text: &str) -> Result<Loaded, Refused> {
    let path = folder.join(FILE_NAME);
    std::fs::write(&path, text).unwrap();
    load(Some(&path), None, &environment())
}

/// What is said about a file, with its folder left out.
pub(super) fn check(text: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let said = match load_in(folder.path(), text) {
        Ok(loaded) => loaded.warnings.iter().map(|warning| warning.to_string() + "\n").collect(),
        Err(refused) => format!("{refused}\n"),
    };
    expected.assert_eq(&said.replace(&format!("{}/", folder.path().display()), ""));
}

pub(super) const OPENAI: &str = r#"
[upstreams.openai]
dialect = "openai-chat"
base_url = "https://api.openai.com/v1"
api_key = "env:A_KEY"
"#;

#[test]
fn the_ten_line_config_is_read_whole() {
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
    let Ok(Loaded { config, warnings, .. }) = load_text(&text) else { panic!("refused") };
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
fn the_example_config_is_good() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../toolgate.example.toml");
    let variables = [("HOME", "/h"), (ANTHROPIC_KEY, "a"), (OPENAI_KEY, "b")];
    let loaded = load(Some(&path), None, &fixed(&variables)).map_err(|refused| refused.to_string()).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(loaded.config.backend.models.len(), 5);
}

#[test]
fn a_file_that_names_no_back_end_finds_them_itself() {
    let loaded = load_text("listen = \"127.0.0.1:1\"").map_err(|refused| refused.to_string()).unwrap();
    assert_eq!(loaded.config.backend.models[0].pattern.as_str(), "demo");
    assert_eq!(
        loaded.config.store,
        StoreUrl::SqliteFile("/home/me/.local/share/toolgate/toolgate.db".into())
    );
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    check(
        &format!("lisen = 1\nport = 1\n{}", OPENAI.replace("base_url", "base_ulr")),
        &expect![[r#"
            toolgate.toml:1:1: unknown key `lisen`; did you mean `listen`?
            toolgate.toml:2:1: unknown key `port`; the keys known here are `listen`, `store`, `hosts`, `limits`, `upstreams`, `agents`, `models`, `mcp`, `approvals` and `keys`
            toolgate.toml:4:12: [upstreams.openai] lacks a key: add `base_url = "https://api.openai.com/v1"`
            toolgate.toml:6:1: unknown key `base_ulr` in [upstreams.openai]; did you mean `base_url`?
            4 errors: nothing was started
        "#]],
    );
}

#[test]
fn wrong_types_say_what_is_wanted() {
    check(
        "listen = 8787\nhosts = \"x\"\nkeys = 1\nstore = true\n[upstreams]\nopenai = \"x\"\n[models.x]\nupstream = [1]\ndemo = 1\n[models.y]\ndemo = 1",
        &expect![[r#"
            toolgate.toml:1:10: `listen` must be a string, such as "127.0.0.1:8787", not a number
            toolgate.toml:2:9: `hosts` must be a list of strings, not a string
            toolgate.toml:3:8: `keys` must be a list of tables, each written [[keys]], not a number
            toolgate.toml:4:9: `store` must be a string, such as "sqlite:toolgate.db", not true or false
            toolgate.toml:6:10: `openai` must be a table, written [upstreams.openai], not a string
            toolgate.toml:7:9: [models.x] has `upstream` and `demo`: keep one of them
            toolgate.toml:11:8: `demo` must be true or false, not a number
            7 errors: nothing was started
        "#]],
    );
}

#[test]
fn values_that_make_no_sense_are_refused() {
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
            toolgate.toml:2:10: "8787" is no address to listen on: write an IP address and a port, such as "127.0.0.1:8787"
            toolgate.toml:3:9: `store`: Postgres is not built in yet; use `sqlite:path/to/file.db` for now
            toolgate.toml:4:10: "https://gate.lan/" is no host name: write it as in "gate.example.com", without https:// or a path
            toolgate.toml:6:11: no dialect is called `openai`; did you mean `openai-chat`?
            toolgate.toml:7:12: `base_url` is not a URL: write it as in "https://api.openai.com/v1"
            toolgate.toml:9:11: no dialect is called `openai-caht`; did you mean `openai-chat`?
            toolgate.toml:10:12: `base_url` holds a user name or password: put the key into `api_key` instead
            toolgate.toml:11:11: `retries` must be a whole number from 0 to 10, not 11
            toolgate.toml:14:12: `base_url` is everything before `/chat/completions`: leave that part off
            toolgate.toml:15:24: `connect` is "3": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:15:29: unknown key `idel` in [upstreams.c.timeouts]; did you mean `idle`?
            toolgate.toml:16:13: `host` is set for each request and cannot be fixed: take it out
            toolgate.toml:16:25: `a b` is no header name: use letters, digits and `-`
            toolgate.toml:17:12: [upstreams.d] lacks a key: add `dialect = "openai-chat"`
            toolgate.toml:17:12: [upstreams.d] lacks a key: add `base_url = "https://api.openai.com/v1"`
            15 errors: nothing was started
        "#]],
    );
}

#[test]
fn secrets_that_cannot_be_fetched_are_named_and_never_shown() {
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
            toolgate.toml:5:11: `api_key`: the environment variable MISSING is not set or empty: export it before starting, or use "file:PATH"
            toolgate.toml:9:11: `api_key`: `env:` must be followed by a variable's name, as in "env:OPENAI_API_KEY"
            toolgate.toml:13:11: `api_key`: cannot read the file /nowhere/key (No such file or directory (os error 2)): check the path and its permissions
            toolgate.toml:17:11: `api_key`: the value has a line break or a letter that HTTP headers cannot carry: check that it was copied whole
            toolgate.toml:21:11: `api_key`: the environment variable EMPTY is not set or empty: export it before starting, or use "file:PATH"
            toolgate.toml:26:10: `sha256` must be 64 hexadecimal digits, the hash and not the key: `toolgate keys new NAME` prints it
            6 errors: nothing was started
        "#]],
    );
}

#[test]
fn models_must_name_who_answers() {
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
            toolgate.toml:7:9: [models.a] says nobody answers: add `upstream = "NAME"` or `demo = true`
            toolgate.toml:9:12: no upstream is called `openia`: add [upstreams.openia]; did you mean `openai`?
            toolgate.toml:10:9: [models.c] has `upstream` and `demo`: keep one of them
            toolgate.toml:14:8: `demo = false` says nothing: write `demo = true`, or take the model out
            toolgate.toml:17:9: the demo model has no other name: take `model` out
            toolgate.toml:18:9: `upstream` of [models.f] is an empty list: name at least one
            toolgate.toml:21:9: no agent is called `nobody`: add [agents.nobody]; there are no agents
            toolgate.toml:24:9: `tools` cannot be `promptd`; did you mean `prompted`?
            8 errors: nothing was started
        "#]],
    );
}

#[test]
fn what_is_not_built_yet_is_understood_and_refused() {
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
            toolgate.toml:7:6: [mcp.everything] is not in this version yet: take it out to start
            1 error: nothing was started
        "#]],
    );
}

#[test]
fn rules_of_approvals_are_read() {
    let text = r#"
store = "memory"
[approvals]
timeout = "2m"
rules = ["allow Bash(git status:*)", "deny Read(**/.env)", "ask *"]
"#;
    let Ok(Loaded { config, warnings, .. }) = load_text(text) else { panic!("refused") };
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((config.approvals.timeout, config.approvals.rules.len()), (Duration::from_mins(2), 3));
    let Ok(Loaded { config, .. }) = load_text("store = \"memory\"\n") else { panic!("refused") };
    assert_eq!((config.approvals.timeout, config.approvals.rules.len()), (Duration::from_mins(10), 0));
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
"#;
    let Ok(Loaded { config, warnings, .. }) = load_text(text) else { panic!("refused") };
    assert!(warnings.is_empty(), "{warnings:?}");
    let limits = config.limits;
    assert_eq!(limits.body_bytes, 1024 * 1024);
    assert_eq!(
        (limits.ping_every, limits.commit_after, limits.shutdown_grace),
        (Duration::from_millis(500), Duration::from_secs(1), Duration::from_mins(2))
    );
    let Ok(Loaded { config, .. }) = load_text("store = \"memory\"\n[limits]\n") else { panic!("refused") };
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn mistakes_in_limits_are_reported_with_line_and_nearest_key() {
    check(
        "[limits]\nbody = \"32MB\"\nping = 15\ncommit = \"0s\"\nshutdown = \"20s\"\nport = 1\n",
        &expect![[r#"
            toolgate.toml:2:8: `body` is "32MB": write a whole number and a unit: "512KiB", "32MiB" or "1GiB"
            toolgate.toml:3:8: `ping` must be a string, such as "30s", not a number
            toolgate.toml:4:10: `commit` is "0s": it must be longer than zero
            toolgate.toml:5:1: unknown key `shutdown` in [limits]; did you mean `shutdown_grace`?
            toolgate.toml:6:1: unknown key `port` in [limits]; the keys known here are `body`, `ping`, `commit` and `shutdown_grace`
            5 errors: nothing was started
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
fn mistakes_in_rules_are_found_where_they_stand() {
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
            toolgate.toml:14:3: `rules` must hold strings only, not a number
            11 errors: nothing was started
        "#]],
    );
}

#[test]
fn mistakes_of_agents_are_told_with_their_lines() {
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
            toolgate.toml:4:9: `claude-code` is answered by an agent: an agent needs a model to think with
            toolgate.toml:5:9: `tools` is a list, "default" or []: write ["Read"]
            toolgate.toml:6:10: `system` is "replace" or "append", not "instead"
            toolgate.toml:7:11: `workdir`: there is no folder /no/such/folder: make it, or name another
            toolgate.toml:8:8: `warm` is more than `max`, which is 2: lower one or raise the other
            toolgate.toml:10:8: `hold` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:11:1: unknown key `prompt` in [agents.claude]; the keys known here are `command`, `env`, `model`, `tools`, `system`, `max_turns`, `max_budget_usd`, `workdir`, `warm`, `max` and `hold`
            toolgate.toml:14:9: no model is called `missing`: add [models."missing"]; the models are `claude-code` and `x`
            toolgate.toml:15:7: `max = 0` lets no agent process live: write 1 or more
            toolgate.toml:16:18: `max_budget_usd` must be a number above 0, not -0.5
            toolgate.toml:19:18: `max_budget_usd` must be a number above 0, not a string
            toolgate.toml:23:9: no agent is called `claud`: add [agents.claud]; did you mean `claude`?
            12 errors: nothing was started
        "#]],
    );
}

#[test]
fn mistakes_in_sections_of_later_are_found_too() {
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
            toolgate.toml:2:9: [agents.claude] lacks a key: add `command = "claude"`
            toolgate.toml:3:9: `tools` is a list, "default" or []: write ["Read"]
            toolgate.toml:4:8: `hold` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
            toolgate.toml:5:6: [mcp.a] is not in this version yet: take it out to start
            toolgate.toml:6:13: no transport is called `http`; the transports are `stdio`, `streamable-http` and `sse`
            toolgate.toml:7:6: [mcp.b] lacks a key: add `url = "https://tools.example.com/mcp"`
            toolgate.toml:7:6: [mcp.b] is not in this version yet: take it out to start
            7 errors: nothing was started
        "#]],
    );
}

#[test]
fn the_same_thing_twice_is_an_error() {
    let hash = "ab".repeat(32);
    check(
        "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"",
        &expect![[r#"
            toolgate.toml:2:1: `listen` is written twice: keep one of the two
            1 error: nothing was started
        "#]],
    );
    check(
        &format!("{OPENAI}{OPENAI}"),
        &expect![[r#"
            toolgate.toml:7:12: `openai` is written twice: keep one of the two
            toolgate.toml:8:1: `dialect` is written twice: keep one of the two
            toolgate.toml:9:1: `base_url` is written twice: keep one of the two
            toolgate.toml:10:1: `api_key` is written twice: keep one of the two
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
            toolgate.toml:10:1: [[keys]] lacks a key: add `name = "alice"`
            toolgate.toml:10:1: [[keys]] lacks a key: add `sha256 = "…"`
            4 errors: nothing was started
        "#]],
    );
}

#[test]
fn what_is_no_toml_is_pointed_at() {
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
fn an_open_door_is_refused() {
    check(
        "listen = \"0.0.0.0:8787\"",
        &expect![[r#"
        toolgate.toml:1:10: 0.0.0.0:8787 can be reached from other machines and there are no keys, so anybody could use your models: listen on 127.0.0.1, or make a key with `toolgate keys new NAME` and add it to the config
        1 error: nothing was started
    "#]],
    );
    check(
        &format!("listen = \"0.0.0.0:8787\"\n[[keys]]\nname = \"a\"\nsha256 = \"{}\"", "ab".repeat(32)),
        &expect![[r#"
            toolgate.toml:1:10: warning: other machines can call this one by its addresses only: to let them use a name, add `hosts = ["gate.example.com"]`
        "#]],
    );
    let everywhere = Some("0.0.0.0:1".parse().unwrap());
    let refused = load(None, everywhere, &environment()).err().unwrap().to_string();
    assert!(refused.starts_with("--listen: 0.0.0.0:1 can be reached from other machines"), "{refused}");
}

#[test]
fn an_upstream_no_model_uses_is_worth_a_warning() {
    check(
        OPENAI,
        &expect![[r#"
        toolgate.toml:2:12: warning: no model uses [upstreams.openai]: add [models."…"] with `upstream = "openai"`
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn a_key_file_everybody_can_read_is_worth_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join(FILE_NAME);
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-from-file\n").unwrap();
    std::fs::write(&config, OPENAI.replace("env:A_KEY", "file:key") + "[models.x]\nupstream = \"openai\"")
        .unwrap();
    let warnings_with_mode = |mode| {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        let loaded =
            load(Some(&config), None, &environment()).map_err(|refused| refused.to_string()).unwrap();
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
fn a_named_file_that_is_not_there_is_an_error() {
    let refused = load(Some(Path::new("/nowhere/x.toml")), None, &environment()).err().unwrap().to_string();
    assert!(refused.starts_with("/nowhere/x.toml: cannot read the config"), "{refused}");
}

#[test]
fn keys_in_the_environment_become_hosts() {
    let variables = [("HOME", "/h"), (ANTHROPIC_KEY, "sk-a\n"), (OPENAI_KEY, "not a\nkey")];
    let (config, warnings) = discover::config(&fixed(&variables)).map_err(|why| why.to_string()).unwrap();
    let models: Vec<&str> = config.backend.models.iter().map(|route| route.pattern.as_str()).collect();
    assert_eq!(models, ["demo", "claude-*"]);
    assert_eq!(
        warnings[0].to_string(),
        "environment: warning: OPENAI_API_KEY is not a key: check that it was copied whole"
    );
}
