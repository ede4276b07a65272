//! Tests the rules against a real bash: generates command lines from a grammar of dangerous constructs and runs those
//! that the rules allow. No program may run and no file may be written that the rules do not name.
//!
//! The lines are the same in every run. `RULES_LINES=100000 RULES_SEED=7` generates more and others.

mod lines;
mod machine;
mod vocabulary;

use serde_json::json;

use super::super::path::Path;
use super::super::rule::{Rule, RuleAction};
use super::{Rules, Ruling};
use lines::Draw;
use machine::{Happened, Machine, Run};

const LINES: usize = 1_000;
const SEED: u64 = 1;

/// The maximum number of violations shown, each reduced to a minimal line.
const MAX_SHOWN: usize = 40;

/// Programs are allowed by name. Builtins and programs that run others are allowed with any arguments.
const ALLOWING: &[&str] = &[
    "allow Bash(ok:*)",
    "allow Bash(no:*)",
    "allow Bash(two words:*)",
    "allow Bash(shut)",
    "allow Bash(./run:*)",
    "allow Bash(env:*)",
    "allow Bash(xargs:*)",
    "allow Bash(nohup:*)",
    "allow Bash(timeout:*)",
    "allow Bash(nice:*)",
    "allow Bash(find:*)",
    "allow Bash(setsid:*)",
    "allow Bash(bash:*)",
    "allow Bash(sh:*)",
    "allow Bash(command:*)",
    "allow Bash(builtin:*)",
    "allow Bash(exec:*)",
    "allow Bash(echo:*)",
    "allow Bash(printf:*)",
    "allow Bash(test:*)",
    "allow Bash(read:*)",
    "allow Bash(unset:*)",
    "allow Bash(let:*)",
    "allow Bash(wait:*)",
    "allow Bash(jobs:*)",
    "allow Bash(set:*)",
    "allow Bash(cd:*)",
    "allow Bash(true)",
    "allow Bash(break)",
    "allow Edit(out/**)",
    "allow Read(in/**)",
];

/// Allows everything but one program and one file.
const DENYING: &[&str] = &["allow Bash", "deny Bash(bad:*)", "deny Edit(f)"];

/// A set of rules, and what must never happen under it.
struct Regime {
    rules: Rules,
    is_forbidden_run: fn(&Run) -> bool,
    is_forbidden_file: fn(&str) -> bool,
}

impl Regime {
    fn all() -> [Self; 2] {
        let read = |texts: &[&str]| Rules::new(texts.iter().map(|text| Rule::parse(text).unwrap()).collect());
        [
            Self {
                rules: read(ALLOWING),
                is_forbidden_run: |run| match run.program.as_str() {
                    "ok" | "no" | "./run" => false,
                    "two" => run.arguments.first().is_none_or(|word| word != "words"),
                    "shut" => !run.arguments.is_empty(),
                    _ => true,
                },
                is_forbidden_file: |name| !name.starts_with("out/"),
            },
            Self {
                rules: read(DENYING),
                is_forbidden_run: |run| run.program.rsplit('/').next() == Some("bad"),
                is_forbidden_file: |name| name == "f",
            },
        ]
    }

    fn allows(&self, line: &str) -> bool {
        let workdir = Path::read("/srv/project");
        match self.rules.judge("Bash", &json!({ "command": line }), Some(&workdir)) {
            Ruling::Decided(rule) => rule.action == RuleAction::Allow,
            Ruling::Uncertain(_) | Ruling::NotCovered => false,
        }
    }

    fn forbids(&self, happened: &Happened) -> bool {
        happened.ran.iter().any(self.is_forbidden_run)
            || happened.wrote.iter().any(|name| (self.is_forbidden_file)(name))
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a long run is made for its numbers")]
fn nothing_runs_but_what_the_rules_allow() {
    let lines = from_environment("RULES_LINES").unwrap_or(LINES);
    let seed = from_environment("RULES_SEED").unwrap_or(SEED);
    let regimes = Regime::all();
    let mut machine = Machine::new();
    let mut draw = Draw::new(seed);
    let (mut allowed, mut eventful, mut grave) = (0, 0, 0);
    for _ in 0..lines {
        let line = lines::draw(&mut draw);
        let allowing: Vec<&Regime> = regimes.iter().filter(|regime| regime.allows(&line)).collect();
        if allowing.is_empty() {
            continue;
        }
        let happened = machine.run(&line);
        allowed += 1;
        eventful += usize::from(!happened.ran.is_empty());
        if let Some(regime) = allowing.iter().find(|regime| regime.forbids(&happened)) {
            grave += 1;
            if grave <= MAX_SHOWN {
                let short = shortest(&mut machine, regime, line);
                println!("{short:?}: {:?}", machine.run(&short));
            }
        }
    }
    println!("seed {seed}: {lines} lines, {allowed} allowed, {eventful} of them ran something");
    assert_eq!(grave, 0, "allowed lines that did what the rules do not allow");
    // Rules that allow nothing, or a bash that runs nothing, would pass too.
    assert!(allowed > lines / 10 && eventful > lines / 20, "{allowed} allowed, {eventful} ran something");
}

/// Removes characters as long as the line stays allowed and harmful.
fn shortest(machine: &mut Machine, regime: &Regime, mut line: String) -> String {
    // Without a character, a loop may become endless.
    if line.contains("while") || line.contains("until") {
        return line;
    }
    let mut at = 0;
    while at < line.chars().count() {
        let shorter: String =
            line.chars().enumerate().filter(|(place, _)| *place != at).map(|(_, letter)| letter).collect();
        if regime.allows(&shorter) && regime.forbids(&machine.run(&shorter)) {
            line = shorter;
            at = at.saturating_sub(2);
        } else {
            at += 1;
        }
    }
    line
}

fn from_environment<N: std::str::FromStr>(name: &str) -> Option<N> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}
