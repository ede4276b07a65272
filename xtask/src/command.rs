//! Parses the command line.

use std::path::PathBuf;

/// A task.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Test(TestExtent),
    Tidy,
    Bench(BenchExtent),
    BenchAgent(AgentProgram, BenchExtent),
    Corpus(PathBuf),
    Bfcl,
    Kills,
    Llamacpp,
    /// Generates the schemas of the test kit.
    Schemas,
    /// With the arguments of the benchmark program.
    Storm(Vec<String>),
    Help,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TestExtent {
    Full,
    Quick,
}

/// The `claude` binaries to measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentProgram {
    /// The versions that tests use.
    Pinned,
    Named(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BenchExtent {
    Full,
    Smoke,
}

const NAMES: &[&str] =
    &["test", "tidy", "bench", "corpus", "bfcl", "kills", "llamacpp", "schemas", "storm", "help"];

impl Command {
    /// Parses the arguments after `cargo xtask`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] | ["help" | "--help" | "-h"] => Ok(Self::Help),
            ["test"] => Ok(Self::Test(TestExtent::Full)),
            ["test", "--quick"] => Ok(Self::Test(TestExtent::Quick)),
            ["tidy"] => Ok(Self::Tidy),
            ["bench"] => Ok(Self::Bench(BenchExtent::Full)),
            ["bench", "--smoke"] => Ok(Self::Bench(BenchExtent::Smoke)),
            ["bfcl"] => Ok(Self::Bfcl),
            ["kills"] => Ok(Self::Kills),
            ["llamacpp"] => Ok(Self::Llamacpp),
            ["schemas"] => Ok(Self::Schemas),
            ["storm", ..] => Ok(Self::Storm(arguments[1..].to_vec())),
            ["bench", "agent"] => Ok(Self::BenchAgent(AgentProgram::Pinned, BenchExtent::Full)),
            ["bench", "agent", "--smoke"] => Ok(Self::BenchAgent(AgentProgram::Pinned, BenchExtent::Smoke)),
            ["bench", "agent", program] => {
                Ok(Self::BenchAgent(AgentProgram::Named(PathBuf::from(program)), BenchExtent::Full))
            }
            ["bench", "agent", program, "--smoke"] => {
                Ok(Self::BenchAgent(AgentProgram::Named(PathBuf::from(program)), BenchExtent::Smoke))
            }
            ["corpus", folder] => Ok(Self::Corpus(PathBuf::from(folder))),
            ["corpus"] => Err("`cargo xtask corpus` needs the folder of the recorded exchanges".to_owned()),
            [name, rest @ ..] if NAMES.contains(name) => {
                Err(format!("`cargo xtask {name}` does not accept `{}`", rest.join(" ")))
            }
            [name, ..] => Err(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> String {
    let nearest = NAMES.iter().find(|known| known.starts_with(name) || name.starts_with(**known));
    match nearest {
        Some(known) => format!("unknown command `{name}`: did you mean `{known}`?"),
        None => format!("unknown command `{name}`: the commands are {}", NAMES.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &Result<Command, &str>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parsed = Command::parse(&arguments);
        match (&parsed, expected) {
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (Ok(command), Ok(expected)) => assert_eq!(command, expected),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("{line}: {parsed:?}"),
        }
    }

    #[test]
    fn every_command_is_parsed() {
        check("", &Ok(Command::Help));
        check("test", &Ok(Command::Test(TestExtent::Full)));
        check("test --quick", &Ok(Command::Test(TestExtent::Quick)));
        check("tidy", &Ok(Command::Tidy));
        check("bench --smoke", &Ok(Command::Bench(BenchExtent::Smoke)));
        check("bfcl", &Ok(Command::Bfcl));
        check("kills", &Ok(Command::Kills));
        check("llamacpp", &Ok(Command::Llamacpp));
        check("schemas", &Ok(Command::Schemas));
        check("storm --seed 7", &Ok(Command::Storm(vec!["--seed".to_owned(), "7".to_owned()])));
        check("bench agent", &Ok(Command::BenchAgent(AgentProgram::Pinned, BenchExtent::Full)));
        check(
            "bench agent /opt/claude --smoke",
            &Ok(Command::BenchAgent(AgentProgram::Named(PathBuf::from("/opt/claude")), BenchExtent::Smoke)),
        );
        check("corpus some/where", &Ok(Command::Corpus(PathBuf::from("some/where"))));
    }

    #[test]
    fn an_error_says_what_to_write() {
        check("tests", &Err("did you mean `test`"));
        check("fuzz", &Err("the commands are test, tidy"));
        check("test --fast", &Err("does not accept `--fast`"));
        check("corpus", &Err("needs the folder"));
    }
}
