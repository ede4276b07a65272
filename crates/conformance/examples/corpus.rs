//! `cargo xtask corpus PATH`: runs the conformance checks on a folder of recorded exchanges.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

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
    let mut passed = 0;
    for file in &files {
        let faults = examine_file(file);
        let name = file.strip_prefix(&folder).unwrap_or(file).display();
        passed += usize::from(faults.is_empty());
        for fault in faults {
            println!("{name}: {fault}");
        }
    }
    println!("corpus: {passed} of {} exchanges pass", files.len());
    if passed == files.len() && !files.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

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
