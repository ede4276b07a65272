//! Runs clear lines in a real bash. Its programs only record their arguments, so what bash ran can be compared with what
//! the reader read.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tempfile::TempDir;

use super::read;

/// The lines are the same in every run.
const LINES: u32 = 3_000;

/// `no` fails, the others succeed.
const PROGRAMS: &[&str] = &["ok", "no", "bad"];

/// The pieces of lines. Most are clear; the others damage the line in a way that must not be taken for clear.
const PIECES: &[&str] = &[
    "ok ",
    "ok ",
    "ok",
    "no ",
    "bad ",
    "; ",
    ";",
    " && ",
    "&&",
    " || ",
    " | ",
    "|",
    "\n",
    "\nok ",
    " ok ",
    "a",
    "-x",
    "--y=z",
    "'a b'",
    "\"c d\"",
    "''",
    "\"\"",
    "\\ ",
    "\\;",
    "\\$x",
    "'$x'",
    "\"\\$x\"",
    "'; bad '",
    "\"; bad \"",
    "'\n'",
    "\"\nbad\n\"",
    "a~b",
    "^",
    "@",
    "%",
    ":",
    ",",
    "x=y",
    "*",
    "?",
    "[a]",
    "é",
    " 2>&1",
    " >/dev/null",
    " &>/dev/null ",
    " </dev/null",
    "# bad\n",
    " # bad\n",
    "\t",
    "  ",
    "'",
    "\"",
    "\\",
    "\\\n",
    "#",
    "&",
    ";;",
    "(",
    ")",
    "{",
    "}",
    "{a,b}",
    "!",
    "~",
    "=",
    "$",
    "$x",
    "`bad`",
    "$(bad)",
    "<(bad)",
    ">",
    "<",
    "2>",
    ">&",
    "<<<",
    "<<E",
    "\u{a0}",
    "\r",
    "time ",
    "if ",
    "A=1 ",
];

struct Bash {
    folder: TempDir,
}

impl Bash {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["programs", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let notes = folder.path().join("notes");
        for name in PROGRAMS {
            // Every argument and every run ends with a separator that no line contains.
            let script = format!(
                "#!/bin/sh\nprintf '%s\\001' '{name}' \"$@\" >> '{0}'\nprintf '\\002' >> '{0}'\nexit {1}\n",
                notes.display(),
                u8::from(*name == "no")
            );
            let program = folder.path().join("programs").join(name);
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    /// The words of every program that the line runs. Its working directory is empty, so a glob stays as it is.
    fn run(&self, line: &str) -> Vec<Vec<String>> {
        let notes = self.folder.path().join("notes");
        fs::write(&notes, "").unwrap();
        let status = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", line])
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", self.folder.path().join("programs"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.expect("bash runs");
        let left = fs::read_dir(self.folder.path().join("work")).unwrap().count();
        assert_eq!(left, 0, "a file was written: {line:?}");
        let text = fs::read_to_string(&notes).unwrap();
        let words = |run: &str| run.split_terminator('\u{1}').map(str::to_owned).collect();
        text.split_terminator('\u{2}').map(words).collect()
    }
}

#[test]
fn bash_runs_the_commands_and_words_that_were_read() {
    let bash = Bash::new();
    let (clear, ran) = (Cell::new(0), Cell::new(0));
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 1..12);
    let config = Config { cases: LINES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&pieces, |pieces| {
        let line = format!("ok {}", pieces.concat());
        let Ok(commands) = read(&line) else { return Ok(()) };
        clear.set(clear.get() + 1);
        let read: Vec<Vec<String>> =
            commands.iter().map(|words| words.iter().map(|word| word.text.clone()).collect()).collect();
        let happened = bash.run(&line);
        ran.set(ran.get() + happened.len());
        for run in &happened {
            prop_assert!(read.contains(run), "{line:?} was read as {read:?}, but bash ran {run:?}");
        }
        // Without conditions, every command runs.
        if !line.contains("&&") && !line.contains("||") {
            let known = read.iter().filter(|words| PROGRAMS.contains(&words[0].as_str())).count();
            prop_assert_eq!(happened.len(), known, "{:?}", line);
        }
        Ok(())
    });
    outcome.unwrap();
    // A reader that finds everything unclear would pass too.
    assert!(clear.get() > 300 && ran.get() > 300, "{clear:?} lines were clear, {ran:?} programs ran");
}
