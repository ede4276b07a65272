//! A real bash that can do no harm: its `PATH` has only programs that record how they were started, and a few that
//! start others. Afterwards the records and the written files are read.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Programs that only record their arguments. `no` fails, the others succeed.
const RECORDED: &[&str] = &["ok", "no", "two", "shut", "bad", "bad2", "words"];

/// Programs that start others.
const CARRIERS: &[&str] = &["bash", "sh", "env", "xargs", "nohup", "timeout", "nice", "find", "setsid"];

/// Where they are installed.
const SYSTEM: &[&str] = &["/bin", "/usr/bin"];

/// Keeps descriptor 9 open in every descendant, so that it closes when all of them have ended. An endless line runs out
/// of CPU time.
const WRAPPER: &str = "exec 9>&1; ulimit -t 1; exec bash --norc --noprofile -c \"$1\"";

/// What a line did.
#[derive(Debug, Default)]
pub(super) struct Happened {
    /// The programs that ran.
    pub(super) ran: Vec<Run>,
    /// Created or changed files, relative to the working directory.
    pub(super) wrote: Vec<String>,
}

/// One start of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its name, with a directory if it is not the one in `PATH`.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

pub(super) struct Machine {
    folder: TempDir,
    untouched: Vec<(String, u64)>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mut machine = Self { folder, untouched: Vec::new() };
        fs::create_dir(machine.programs()).unwrap();
        for name in RECORDED {
            machine.recorder(&machine.programs().join(name), name);
        }
        for name in CARRIERS {
            let places = SYSTEM.iter().map(|place| Path::new(place).join(name));
            let real = places.into_iter().find(|path| path.exists());
            let real = real.unwrap_or_else(|| panic!("this test needs `{name}` installed"));
            symlink(real, machine.programs().join(name)).unwrap();
        }
        machine.tidy_up();
        machine
    }

    /// Runs a line and everything it starts to the end.
    pub(super) fn run(&mut self, line: &str) -> Happened {
        fs::write(self.notes(), "").unwrap();
        let mut child = Command::new("/bin/sh")
            .args(["-c", WRAPPER, "sh", line])
            .current_dir(self.work())
            .env_clear()
            .env("PATH", self.programs())
            .env("HOME", self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        child.wait().unwrap();
        let found = listing(&self.work(), "");
        let is_new = |entry: &&(String, u64)| !self.untouched.contains(entry);
        let wrote: Vec<String> = found.iter().filter(is_new).map(|(name, _)| name.clone()).collect();
        if found != self.untouched {
            self.tidy_up();
        }
        Happened { ran: self.noted(), wrote }
    }

    fn programs(&self) -> PathBuf {
        self.folder.path().join("programs")
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    /// Recreates the working directory, with programs in it that are not in `PATH`.
    fn tidy_up(&mut self) {
        let work = self.work();
        if work.exists() {
            fs::remove_dir_all(&work).unwrap();
        }
        for folder in ["in", "out", "evil"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        for name in ["run", "ok", "bad", "sh", "bash", "eval", "evil/run", "evil/ok", "evil/two"] {
            self.recorder(&work.join(name), &format!("./{name}"));
        }
        fs::write(work.join("in/f"), "bad\n").unwrap();
        self.untouched = listing(&work, "");
    }

    /// Installs a program that records this name, however it is started.
    fn recorder(&self, path: &Path, name: &str) {
        let notes = self.notes();
        let status = i32::from(name == "no");
        let script = format!(
            "#!/bin/sh\nprintf '%s\\0' \"$#\" '{name}' \"$@\" >> '{}'\nexit {status}\n",
            notes.display()
        );
        fs::write(path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Each record is the number of arguments, the program and the arguments.
    fn noted(&self) -> Vec<Run> {
        let notes = fs::read(self.notes()).unwrap();
        let text = String::from_utf8_lossy(&notes);
        let mut fields = text.split_terminator('\0');
        let mut ran = Vec::new();
        while let Some(count) = fields.next() {
            let count: usize = count.parse().unwrap();
            let program = fields.next().unwrap().to_owned();
            ran.push(Run { program, arguments: fields.by_ref().take(count).map(str::to_owned).collect() });
        }
        ran
    }
}

/// Files and folders below a folder, with their sizes.
fn listing(folder: &Path, before: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        let about = entry.metadata().unwrap();
        if about.is_dir() {
            found.extend(listing(&entry.path(), &format!("{name}/")));
            found.push((name, 0));
        } else {
            found.push((name, about.len()));
        }
    }
    found.sort();
    found
}
