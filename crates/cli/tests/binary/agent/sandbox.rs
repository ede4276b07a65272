//! The sandbox around the real program: what its shell can reach, and what is left of it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_testkit::{Script, ScriptedUpstream};

use super::{END_TIMEOUT, programs};
use crate::gateway_process::{GatewayProcess, toolgate};

/// A gateway whose agent has a shell, and the scripted model that uses it.
struct Scene {
    gateway: GatewayProcess,
    model: ScriptedUpstream,
    replies: Arc<Mutex<VecDeque<Script>>>,
    home: TempDir,
    work: TempDir,
    outside: TempDir,
}

impl Scene {
    /// `settings` are lines of the agent's section; `OUTSIDE` in them is a folder outside of the working directory.
    fn new(program: &str, settings: &str) -> Self {
        let [home, work, outside] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        for folder in [&home, &outside] {
            fs::write(folder.path().join("secret"), "hunter2").unwrap();
        }
        let (model, replies) = scripted_model();
        let settings = settings.replace("OUTSIDE", outside.path().to_str().unwrap());
        let config = format!(
            "store = \"memory\"\n\
             [upstreams.scripted]\ndialect = \"anthropic-messages\"\nbase_url = \"{}\"\n\
             [models.scripted]\nupstream = \"scripted\"\n[models.agent]\nagent = \"claude\"\n\
             [approvals]\nrules = [\"allow *\"]\n\
             [agents.claude]\ncommand = \"{program}\"\nmodel = \"scripted\"\ntools = [\"Bash\"]\n\
             workdir = \"{}\"\nwarm = 0\n{settings}\n",
            model.base_url(),
            work.path().display()
        );
        fs::write(home.path().join("toolgate.toml"), config).unwrap();
        let gateway = start(&home);
        Self { gateway, model, replies, home, work, outside }
    }

    /// Lets the agent run a script in its working directory, and returns the output.
    fn run(&self, script: &str) -> String {
        fs::write(self.work.path().join("script"), script).unwrap();
        let call = json!({ "command": "bash ./script", "description": "d" });
        self.replies.lock().unwrap().extend([message(Some(&call)), message(None)]);
        let words = format!("Run it, number {}.", self.model.requests().len());
        let body = json!({
            "model": "agent", "max_tokens": 100, "messages": [{ "role": "user", "content": words }],
        });
        let reply = self.gateway.post("/v1/messages", &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        let request = self.model.requests().pop().unwrap().json();
        let result = request["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"].clone();
        let text =
            result.as_str().map(str::to_owned).or_else(|| Some(result[0]["text"].as_str()?.to_owned()));
        text.unwrap_or_else(|| panic!("no result in {request}"))
    }

    /// Runs each command and returns the names of those that succeed.
    fn successes(&self, probes: &BTreeMap<&str, String>) -> Vec<String> {
        let lines = probes.iter().map(|(name, probe)| format!("( {probe} ) >/dev/null 2>&1 && echo {name}"));
        let output = self.run(&(lines.collect::<Vec<_>>().join("\n") + "\ntrue\n"));
        output.lines().map(str::to_owned).collect()
    }

    /// The folders of the agent's processes.
    fn process_folders(&self) -> Vec<PathBuf> {
        let run = self.home.path().join(".local/share/toolgate/agents/claude/run");
        fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Stops the gateway with this signal.
    fn stop(&mut self, signal: &str) {
        let id = self.gateway.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        self.gateway.child.wait().unwrap();
    }
}

fn start(home: &TempDir) -> GatewayProcess {
    let command = toolgate(home, &["--listen", "127.0.0.1:0"]);
    GatewayProcess::spawn(tempfile::tempdir().unwrap(), command)
}

/// A model that answers with the queued replies, on its own thread, because these tests block.
fn scripted_model() -> (ScriptedUpstream, Arc<Mutex<VecDeque<Script>>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let model = runtime.block_on(ScriptedUpstream::start());
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let replies: Arc<Mutex<VecDeque<Script>>> = Arc::default();
    let queue = Arc::clone(&replies);
    model.always(move |_| {
        let next = queue.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Script::json(400, json!({ "error": { "message": "no reply is queued" } })))
    });
    (model, replies)
}

/// A message that calls Bash with this input, or says that it is done.
fn message(call: Option<&Value>) -> Script {
    let (block, delta, stop) = match call {
        Some(input) => (
            json!({ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        None => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "Done." }),
            "end_turn",
        ),
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    let delta_of_message = json!({ "stop_reason": stop, "stop_sequence": null });
    [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": delta_of_message, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
    .iter()
    .fold(Script::sse(), |script, event| script.frame(event["type"].as_str().unwrap(), event))
}

/// What an agent may always do, and what it may do only if it is allowed to.
fn probes(scene: &Scene, other_port: u16) -> BTreeMap<&'static str, String> {
    let (outside, home) = (scene.outside.path().display(), scene.home.path().display());
    let (gateway, port) = (scene.gateway.child.id(), scene.gateway.address.port());
    BTreeMap::from([
        ("always-gateway", "exec 3<>/dev/tcp/127.0.0.1/${ANTHROPIC_BASE_URL##*:}".to_owned()),
        ("always-git", "git init -q repo && cd repo && echo x > f && git add f && git status".to_owned()),
        ("always-home", "[ \"$(stat -c %a \"$HOME\")\" = 700 ] && touch \"$HOME/x\"".to_owned()),
        (
            "always-node",
            "! which node || node -e 'require(\"fs\").writeFileSync(\"by-node\", \"x\")'".to_owned(),
        ),
        ("always-perl", "perl -e 'print 1'".to_owned()),
        ("always-temp", "[ \"$(stat -c %a \"$TMPDIR\")\" = 700 ] && mktemp".to_owned()),
        ("always-work", "touch made && mkdir -p a/b && mv made a/b/".to_owned()),
        ("clients-port", format!("exec 3<>/dev/tcp/127.0.0.1/{port}")),
        ("connect", format!("exec 3<>/dev/tcp/127.0.0.1/{other_port}")),
        ("environ", format!("cat /proc/{gateway}/environ")),
        ("operator-home", format!("cat {home}/secret")),
        ("read", format!("cat {outside}/secret")),
        ("signal", format!("kill -0 {gateway}")),
        ("write", format!("touch {outside}/new")),
        ("write-temp", "f=/tmp/toolgate-agent-$$ && touch $f && rm $f".to_owned()),
    ])
}

#[track_caller]
fn check(program: &str, settings: &str, allowed: &[&str]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let scene = Scene::new(program, &settings.replace("PORT", &port.to_string()));
    let probes = probes(&scene, port);
    let expected: Vec<&str> =
        probes.keys().copied().filter(|name| name.starts_with("always") || allowed.contains(name)).collect();
    assert_eq!(scene.successes(&probes), expected, "{program} with {settings}");
}

#[test]
fn a_shell_reaches_only_its_own_folders_and_the_gateway() {
    for program in programs() {
        check(&program, "", &[]);
        check(&program, "sandbox = \"required\"", &[]);
    }
}

#[test]
fn a_shell_reaches_exactly_what_is_opened_for_it() {
    for program in programs() {
        check(&program, "sandbox = { read = [\"OUTSIDE\"] }", &["read"]);
        check(&program, "sandbox = { write = [\"OUTSIDE\"] }", &["read", "write"]);
        check(&program, "sandbox = { connect = [PORT] }", &["connect"]);
        check(&program, "sandbox = { connect = \"any\" }", &["clients-port", "connect"]);
    }
}

#[test]
fn a_shell_without_a_sandbox_reaches_everything() {
    let all =
        ["clients-port", "connect", "environ", "operator-home", "read", "signal", "write", "write-temp"];
    for program in programs() {
        check(&program, "sandbox = false", &all);
    }
}

#[test]
fn neither_the_supervisor_nor_the_program_inherits_the_gateways_environment() {
    for program in programs() {
        let scene = Scene::new(&program, "");
        scene.run("true");
        let home = format!("HOME={}", scene.process_folders()[0].display());
        let environments = fs::read_dir("/proc").unwrap().flatten().filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            Some(String::from_utf8_lossy(&environment).into_owned()).filter(|text| text.contains(&home))
        });
        let environments: Vec<String> = environments.collect();
        assert!(environments.len() >= 2, "the supervisor and the program");
        // The gateway has this variable.
        assert!(environments.iter().all(|environment| !environment.contains("TOOLGATE_LOG")));
    }
}

#[test]
fn the_model_is_told_the_limits_of_its_sandbox() {
    for program in programs() {
        for (settings, told) in [("sandbox = true", true), ("sandbox = false", false)] {
            let scene = Scene::new(&program, settings);
            scene.run("true");
            let prompt = scene.model.requests()[0].json()["system"].to_string();
            let notice = format!("You can write only below {}", scene.work.path().display());
            assert_eq!(prompt.contains(&notice), told, "{settings}: {prompt}");
        }
    }
}

#[test]
fn the_folders_of_a_process_are_deleted_when_it_ends() {
    for program in programs() {
        let mut scene = Scene::new(&program, "");
        let [home, temp] =
            ["HOME", "TMPDIR"].map(|name| scene.run(&format!("touch ${name}/x; echo ${name}")));
        // Two conversations have nothing in common.
        assert_ne!(Path::new(&home).parent(), Path::new(&temp).parent());
        assert!(Path::new(home.trim()).join("x").exists() && Path::new(temp.trim()).join("x").exists());
        assert_eq!(scene.process_folders().len(), 2);
        scene.stop("-TERM");
        assert_eq!(scene.process_folders(), Vec::<PathBuf>::new());
    }
}

#[test]
fn the_folders_of_a_killed_gateway_are_deleted_at_the_next_start() {
    for program in programs() {
        let mut scene = Scene::new(&program, "");
        scene.run("touch \"$HOME/x\"");
        let leftovers = scene.process_folders();
        assert_eq!(leftovers.len(), 1);
        scene.stop("-KILL");
        assert_eq!(scene.process_folders(), leftovers);
        scene.gateway = start(&scene.home);
        let began = Instant::now();
        while scene.process_folders().iter().any(|folder| leftovers.contains(folder)) {
            assert!(began.elapsed() < END_TIMEOUT, "a leftover was not deleted");
            thread::yield_now();
        }
    }
}

#[test]
fn nothing_in_the_working_directory_is_executed_at_start() {
    let sprung = |program: &str, settings: &str| -> Vec<String> {
        let scene = Scene::new(program, settings);
        set_traps(scene.work.path());
        scene.run("true");
        let sprung = fs::read_dir(scene.work.path().join("sprung")).unwrap();
        sprung.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let programs = programs();
    for program in &programs {
        assert_eq!(sprung(program, ""), Vec::<String>::new(), "{program}");
    }
    // Without toolgate's settings for git, the older version would execute one: the traps work.
    assert_eq!(sprung(&programs[0], "env = { GIT_CONFIG_COUNT = \"0\" }"), ["core.fsmonitor"]);
}

#[test]
fn git_executes_nothing_of_a_folder_that_only_looks_like_a_repository() {
    let sprung = |program: &str, settings: &str| -> bool {
        let scene = Scene::new(program, settings);
        let work = scene.work.path();
        for folder in ["objects", "refs"] {
            fs::create_dir(work.join(folder)).unwrap();
        }
        for (name, text) in [
            ("HEAD", "ref: refs/heads/main\n"),
            ("config", "[core]\nbare = false\nworktree = .\n[diff]\nexternal = ./trap\n"),
            ("trap", "#!/bin/sh\ntouch sprung\n"),
            ("a", "1\n"),
            ("b", "2\n"),
        ] {
            fs::write(work.join(name), text).unwrap();
        }
        fs::set_permissions(work.join("trap"), fs::Permissions::from_mode(0o755)).unwrap();
        scene.run("git diff --no-index a b || true");
        work.join("sprung").exists()
    };
    let programs = programs();
    for program in &programs {
        assert!(!sprung(program, ""), "{program}");
    }
    assert!(sprung(&programs[0], "env = { GIT_CONFIG_COUNT = \"0\" }"), "the trap works");
}

/// Makes the folder a repository whose configuration names a program wherever git can run one. Each leaves a file.
fn set_traps(work: &Path) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(work).env("HOME", work);
        command
            .env("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z");
        assert!(command.status().unwrap().success(), "git {arguments:?}");
    };
    let sprung = work.join("sprung");
    fs::create_dir(&sprung).unwrap();
    let trap = |name: &str| {
        let path = work.join(format!("trap-{name}"));
        fs::write(&path, format!("#!/bin/sh\ntouch {}/{name}\n", sprung.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    git(&["init", "-q"]);
    for (key, value) in [("user.name", "n"), ("user.email", "e@example.com"), ("commit.gpgSign", "false")] {
        git(&["config", key, value]);
    }
    fs::write(work.join("tracked"), "1").unwrap();
    git(&["add", "tracked"]);
    git(&["commit", "-q", "-m", "c"]);
    fs::write(work.join("tracked"), "2").unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "diff.external",
        "gpg.program",
        "interactive.diffFilter",
        "pager.status",
        "pager.log",
    ] {
        git(&["config", key, &trap(&key.to_lowercase())]);
    }
    git(&["config", "log.showSignature", "true"]);
    for hook in ["post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"] {
        fs::copy(trap(hook), work.join(".git/hooks").join(hook)).unwrap();
    }
    let hook = json!([{ "hooks": [{ "type": "command", "command": trap("settings") }] }]);
    let settings = json!({ "hooks": { "SessionStart": hook, "PreToolUse": hook, "Stop": hook } });
    fs::create_dir(work.join(".claude")).unwrap();
    fs::write(work.join(".claude/settings.json"), settings.to_string()).unwrap();
    let servers = json!({ "mcpServers": { "x": { "command": trap("server") } } });
    fs::write(work.join(".mcp.json"), servers.to_string()).unwrap();
}
