//! `cargo xtask corpus PATH`: runs the conformance checks on a folder of recorded exchanges. Broken recordings are listed
//! in `broken_recordings.json` with the reason; a listed one that passes is reported.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolgate_conformance::{Exchange, Verdict, examine};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: cargo xtask corpus PATH   (a folder of recorded exchanges, one JSON file each)");
        return ExitCode::from(2);
    };
    let mut files = Vec::new();
    if let Err(error) = collect(&folder, &mut files) {
        eprintln!("reading {} failed: {error}", folder.display());
        return ExitCode::from(2);
    }
    files.sort();
    let broken: BTreeMap<PathBuf, String> = match serde_json::from_str(BROKEN_RECORDINGS) {
        Ok(broken) => broken,
        Err(error) => {
            eprintln!("reading broken_recordings.json failed: {error}");
            return ExitCode::from(2);
        }
    };
    let (mut passed, mut listed) = (0, 0);
    for file in &files {
        let faults = examine_file(file);
        let name = file.strip_prefix(&folder).unwrap_or(file);
        match (broken.get(name), faults.is_empty()) {
            (Some(_), false) => listed += 1,
            (Some(reason), true) => println!("{}: passes, but is listed: {reason}", name.display()),
            (None, true) => passed += 1,
            (None, false) => faults.iter().for_each(|fault| println!("{}: {fault}", name.display())),
        }
    }
    println!("corpus: {passed} of {} exchanges pass; {listed} are listed as broken", files.len());
    if passed + listed == files.len() && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Names of recordings, each with the reason why no program could pass it.
const BROKEN_RECORDINGS: &str = include_str!("../broken_recordings.json");

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn examine_file(file: &Path) -> Verdict {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return vec![format!("reading the file failed: {error}")],
    };
    match serde_json::from_str::<Exchange>(&text) {
        Ok(exchange) => examine(&exchange),
        Err(error) => vec![format!("not a recorded exchange: {error}")],
    }
}
