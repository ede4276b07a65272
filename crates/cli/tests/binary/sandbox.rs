//! The sandbox of an agent process, with a shell in place of the agent's program.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway_process::run;

const TOOLGATE: &str = env!("CARGO_BIN_EXE_toolgate");

/// A folder for the program, a folder outside of it, and the settings.
struct Scene {
    work: TempDir,
    outside: TempDir,
    settings: Value,
}

impl Scene {
    fn new() -> Self {
        let (work, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "hunter2").unwrap();
        let settings = json!({
            "mode": "required", "read": ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc"], "write": ["/dev/null"],
            "own": [work.path()], "gateway_port": 1, "connect": { "ports": [] },
        });
        Self { work, outside, settings }
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.settings[key] = value;
        self
    }

    /// Opens the outside folder.
    fn opened(self, key: &str) -> Self {
        let mut list = self.settings[key].clone();
        list.as_array_mut().unwrap().push(json!(self.outside.path()));
        self.with(key, list)
    }

    /// Runs a script in the working directory; `$OUTSIDE` is the other folder.
    fn run(&self, script: &str) -> Output {
        let script = script.replace("$OUTSIDE", self.outside.path().to_str().unwrap());
        Command::new(TOOLGATE)
            .args(["become-agent", "--sandbox", &self.settings.to_string(), &std::process::id().to_string()])
            .args(["/bin/bash", "-c", &script])
            .current_dir(self.work.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    #[track_caller]
    fn allows(&self, script: &str) -> String {
        let Output { status, stdout, stderr } = self.run(script);
        assert!(status.success(), "{script}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }

    #[track_caller]
    fn denies(&self, script: &str) {
        let Output { status, stdout, stderr } = self.run(script);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success(), "{script}: {}", String::from_utf8_lossy(&stdout));
        let is_denied = ["Permission denied", "Operation not permitted", "cross-device"];
        assert!(is_denied.iter().any(|denied| stderr.contains(denied)), "{script}: {stderr}");
    }
}

/// Opens a TCP connection to this port.
fn connect_to(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}")
}

#[test]
fn files_outside_are_neither_read_nor_written() {
    let scene = Scene::new();
    assert_eq!(scene.allows("echo kept > file && mkdir -p a/b && mv file a/b/ && cat a/b/file"), "kept\n");
    symlink(scene.outside.path(), scene.work.path().join("link")).unwrap();
    for script in [
        "cat $OUTSIDE/secret",
        "ls $OUTSIDE",
        "cat link/secret",
        "cat /proc/self/root/$OUTSIDE/secret",
        "touch $OUTSIDE/new",
        "echo x > link/new",
        "echo x >> $OUTSIDE/secret",
        "rm $OUTSIDE/secret",
        "mkdir $OUTSIDE/new",
        "mv $OUTSIDE/secret .",
        "ln $OUTSIDE/secret hard && cat hard",
        "touch file && mv file $OUTSIDE/",
        "touch /usr/new",
        "echo x > /tmp/toolgate-sandbox-test",
    ] {
        scene.denies(script);
    }
    assert_eq!(fs::read_to_string(scene.outside.path().join("secret")).unwrap(), "hunter2");
    assert_eq!(fs::read_dir(scene.outside.path()).unwrap().count(), 1);
}

#[test]
fn a_listed_folder_is_opened_as_far_as_it_is_listed() {
    let readable = Scene::new().opened("read");
    assert_eq!(readable.allows("cat $OUTSIDE/secret"), "hunter2");
    readable.denies("touch $OUTSIDE/new");
    let writable = Scene::new().opened("write");
    assert_eq!(writable.allows("cat $OUTSIDE/secret; echo y > $OUTSIDE/new"), "hunter2");
    let file = Scene::new();
    let secret = file.outside.path().join("secret");
    let file = file.with("read", json!(["/usr", "/lib", "/lib64", "/bin", secret]));
    assert_eq!(file.allows("cat $OUTSIDE/secret"), "hunter2");
    file.denies("ls $OUTSIDE");
    let missing = Scene::new().with("write", json!(["/no/such/folder"]));
    missing.allows("touch file");
}

#[test]
fn a_linked_working_directory_is_the_folder_it_links_to() {
    let scene = Scene::new();
    let link = scene.outside.path().join("link");
    symlink(scene.work.path(), &link).unwrap();
    let scene = scene.with("own", json!([link]));
    scene.allows("touch file");
    scene.denies("touch $OUTSIDE/new");
}

#[test]
fn a_working_directory_of_everything_opens_all_files_but_not_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = Scene::new().with("own", json!(["/"]));
    assert_eq!(scene.allows("cat $OUTSIDE/secret; touch $OUTSIDE/new"), "hunter2");
    scene.denies(&connect_to(listener.local_addr().unwrap().port()));
}

#[test]
fn check_and_doctor_show_what_an_agent_may_reach() {
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let work = work.path().display();
    let config = format!(
        "[models.m]\nagent = \"a\"\n[agents.a]\ncommand = \"/bin/sh\"\nworkdir = \"{work}\"\n\
         sandbox = {{ connect = [443], required = true }}\n"
    );
    fs::write(home.path().join("toolgate.toml"), config).unwrap();
    for command in [&["check"][..], &["doctor", "--listen", "127.0.0.1:0"]] {
        let Output { stdout, stderr, .. } = run(&home, command);
        let (text, problems) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(text.contains("Landlock version"), "{text}{problems}");
        let reach =
            format!("writes {work}; reads these and system folders; connects to this gateway and port 443");
        assert!(text.contains(&reach), "{text}{problems}");
    }
}

#[test]
fn tcp_connects_only_to_the_listed_ports_and_listens_nowhere() {
    let (listed, other) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (port, other_port) = (listed.local_addr().unwrap().port(), other.local_addr().unwrap().port());
    let bind = "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or die $!; \
                  bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die $!'";
    for scene in [
        Scene::new().with("gateway_port", json!(port)),
        Scene::new().with("connect", json!({ "ports": [port] })),
    ] {
        scene.allows(&connect_to(port));
        scene.denies(&connect_to(other_port));
        scene.denies(bind);
    }
    let open = Scene::new().with("connect", json!("any"));
    open.allows(&connect_to(other_port));
    open.allows(bind);
}

/// A script that opens a socket with these arguments and then does something with it.
fn socket(arguments: &str, then: &str) -> String {
    format!("perl -MSocket -e 'socket(S, {arguments}) or die $!; {then} or die $!'")
}

#[test]
fn sockets_that_landlock_does_not_cover_are_denied() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("sockaddr_in({}, INADDR_LOOPBACK)", listener.local_addr().unwrap().port());
    let scene = Scene::new();
    let path = scene.outside.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let connect_unix = format!("connect(S, sockaddr_un(\"{}\"))", path.display());
    let (udp, send) = ("AF_INET, SOCK_DGRAM, 0", format!("send(S, \"x\", 0, {address})"));
    // Multipath TCP has the number 262, and the flag opens a connection in `send`.
    let network = [
        socket("AF_INET, SOCK_STREAM, 262", &format!("connect(S, {address})")),
        socket("AF_INET, SOCK_STREAM, 0", &format!("send(S, \"x\", 0x20000000, {address})")),
        socket("AF_INET6, SOCK_SEQPACKET, 132", "1"),
    ];
    let local = [
        socket("AF_UNIX, SOCK_STREAM, 0", &connect_unix),
        // A virtual machine's host.
        socket("40, SOCK_STREAM, 0", "1"),
        "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die $!'".to_owned(),
    ];
    for script in network.iter().chain(&local).chain([&socket(udp, &send)]) {
        scene.denies(script);
    }
    scene.allows("perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!'");
    // Netlink, with which programs list the network's interfaces.
    scene.allows(&socket("16, SOCK_RAW, 0", "1"));

    // Names are resolved over UDP.
    let with_ports = Scene::new().with("connect", json!({ "ports": [443] }));
    for script in network.iter().chain(&local) {
        with_ports.denies(script);
    }
    with_ports.allows(&socket(udp, &send));

    let open = Scene::new().with("connect", json!("any"));
    for script in &local {
        open.denies(script);
    }
    open.allows(&socket(udp, &send));
    open.allows(&network[1]);
}

#[test]
fn other_processes_are_neither_seen_nor_signalled() {
    let scene = Scene::new();
    let outside = std::process::id();
    scene.denies(&format!("cat /proc/{outside}/environ"));
    scene.denies(&format!("cat /proc/{outside}/mem"));
    scene.denies(&format!("ls /proc/{outside}/root/"));
    scene.denies(&format!("kill -0 {outside}"));
    scene.allows("sleep 100 & kill $!");
}

#[test]
fn abstract_sockets_outside_are_not_reachable() {
    let name = format!("toolgate-sandbox-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let connect = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; connect(S, pack(\"S a*\", AF_UNIX, \
         \"\\0{name}\")) or die $!'"
    );
    Scene::new().denies(&connect);
}

#[test]
fn the_program_has_no_capabilities_and_cannot_get_any() {
    let status = Scene::new().allows("cat /proc/self/status");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(set), "0".repeat(16), "{set}");
    }
    assert_eq!(value("NoNewPrivs:"), "1");
}

#[test]
fn a_program_without_its_folders_or_with_unreadable_settings_is_not_started() {
    let missing = Scene::new().with("own", json!(["/no/such/folder"]));
    let output = missing.run("echo started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(stderr.contains("entering the sandbox failed") && stderr.contains("/no/such/folder"), "{stderr}");
    for settings in [json!({}), json!("x"), json!({ "mode": "none" })] {
        let scene = Scene { settings: settings.clone(), ..Scene::new() };
        let output = scene.run("echo started");
        assert!(!output.status.success() && output.stdout.is_empty(), "{settings}");
    }
}

#[test]
fn the_program_still_dies_with_its_supervisor() {
    let scene = Scene::new();
    let mut supervisor = Command::new(TOOLGATE)
        .args(["keep-agent", "--sandbox", &scene.settings.to_string(), &std::process::id().to_string()])
        .args(["/bin/bash", "-c", "echo $$; sleep 1000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = supervisor.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let id: u32 = line.trim().parse().unwrap();
    let program = Path::new("/proc").join(id.to_string()).join("cmdline");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    while fs::read(&program).is_ok_and(|line| !line.is_empty()) {
        std::thread::yield_now();
    }
}
