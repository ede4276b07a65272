//! Starts the binary with its own home folder and waits until it prints its address.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;

use crate::http_client::{Reply, request};

/// The binary isolated from this machine: only the variable HOME, and an empty working directory.
pub(crate) fn toolgate(home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(arguments).env_clear().current_dir(home.path());
    command.env("HOME", home.path()).env("TOOLGATE_LOG", "warn");
    command
}

/// Runs a command until it ends.
pub(crate) fn run(home: &TempDir, arguments: &[&str]) -> Output {
    toolgate(home, arguments).stdin(Stdio::null()).output().unwrap()
}

/// A running gateway, killed on drop.
pub(crate) struct GatewayProcess {
    pub(crate) address: SocketAddr,
    /// The output so far: up to the address, or up to the curl line after [`GatewayProcess::curl_line`].
    pub(crate) greeting: String,
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    _home: TempDir,
}

impl GatewayProcess {
    /// Starts on a free port, without a config.
    pub(crate) fn without_config() -> Self {
        Self::start(tempfile::tempdir().unwrap(), &["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start(home: TempDir, arguments: &[&str]) -> Self {
        let command = toolgate(&home, arguments);
        Self::spawn(home, command)
    }

    pub(crate) fn spawn(home: TempDir, mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        let address = loop {
            let start = greeting.len();
            assert_ne!(stdout.read_line(&mut greeting).unwrap(), 0, "ended before it was ready:\n{greeting}");
            if let Some((_, address)) = greeting[start..].split_once("http://") {
                break address.trim().parse().unwrap();
            }
        };
        Self { address, greeting, child, stdout, _home: home }
    }

    /// Reads the output until the process ends.
    pub(crate) fn rest_of_output(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Reads the output up to the curl line and returns that line.
    pub(crate) fn curl_line(&mut self) -> String {
        let mut line = String::new();
        while !line.trim_start().starts_with("curl ") {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "no curl line was printed");
            self.greeting.push_str(&line);
        }
        line
    }

    pub(crate) fn post(&self, path: &str, body: &serde_json::Value) -> Reply {
        request(self.address, "POST", path, &[], &body.to_string())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        request(self.address, "GET", path, headers, "")
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        // Some tests have ended the process already.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
