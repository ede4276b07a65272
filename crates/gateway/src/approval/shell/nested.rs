//! Commands that run other commands: finds the words of the inner command, or the text of the script.

use super::{Reading, Word, variable};

/// What a command runs.
#[derive(Debug)]
pub(super) enum Inside {
    Nothing,
    /// Another command.
    Command(Carried),
    /// A script, to be read like a command line.
    Script(String),
    /// Nothing, but it can change what later commands do.
    Later,
    /// Something that this reader does not support.
    Unknown,
}

/// A command among the words of another one.
#[derive(Debug)]
pub(super) struct Carried {
    /// The index of its first word.
    pub(super) start: usize,
    /// The variables set for it.
    pub(super) assignments: Vec<String>,
    pub(super) words: Vec<Word>,
}

/// A program that runs the command in its arguments.
struct Carrier {
    name: &'static str,
    /// Flags that change neither what runs nor where. All others are unsupported.
    flags: &'static [&'static str],
    /// Such options that take a value in the next word.
    with_value: &'static [&'static str],
    /// The number of own arguments before the command.
    own_words: usize,
    variables: Variables,
}

/// Whether `A=1` before the command sets a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variables {
    NotTaken,
    Taken,
}

impl Carrier {
    const fn new(
        name: &'static str,
        flags: &'static [&'static str],
        with_value: &'static [&'static str],
    ) -> Self {
        Self { name, flags, with_value, own_words: 0, variables: Variables::NotTaken }
    }
}

const CARRIERS: &[Carrier] = &[
    Carrier {
        variables: Variables::Taken,
        ..Carrier::new(
            "sudo",
            &["-n", "-E", "-H", "-S", "-k", "-A", "-b", "-P"],
            &["-u", "-g", "-p", "-C", "-T", "-r", "-t"],
        )
    },
    Carrier::new("doas", &["-n"], &["-u"]),
    Carrier { variables: Variables::Taken, ..Carrier::new("env", &["-i", "-0", "-v"], &["-u"]) },
    Carrier::new("xargs", &["-0", "-r", "-t", "-p", "-x", "-o"], &["-n", "-P", "-L", "-s", "-d", "-E", "-a"]),
    Carrier::new("nohup", &[], &[]),
    Carrier::new("setsid", &["-c", "-f", "-w"], &[]),
    Carrier::new("command", &["-p", "-v", "-V"], &[]),
    Carrier::new("builtin", &[], &[]),
    Carrier::new("exec", &["-c", "-l"], &["-a"]),
    Carrier::new("nice", &[], &["-n"]),
    Carrier::new("ionice", &["-t"], &["-c", "-n"]),
    Carrier::new("stdbuf", &[], &["-i", "-o", "-e"]),
    Carrier { own_words: 1, ..Carrier::new("timeout", &["-v", "-f", "-p"], &["-s", "-k"]) },
    Carrier::new("time", &["-p", "-v"], &["-f"]),
    Carrier::new("busybox", &[], &[]),
    Carrier::new("noglob", &[], &[]),
    Carrier::new("nocorrect", &[], &[]),
    // zsh runs the command after it.
    Carrier::new("-", &[], &[]),
];

/// Shells that take a script with `-c` which this reader understands.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash"];

/// The directories of the real shells. A program with such a name elsewhere may be anything.
const PLACES_OF_SHELLS: &[&str] = &["", "/bin/", "/usr/bin/"];

/// Programs and builtins whose words do not show what they run, or that have too many options to support.
const UNKNOWN: &[&str] = &[
    // These run scripts, some in their own language.
    "source",
    ".",
    "su",
    "runuser",
    "fish",
    "csh",
    "tcsh",
    "emulate",
    "trap",
    "let",
    "print",
    "compgen",
    "complete",
    "bind",
    "fc",
    "mapfile",
    "readarray",
    "sched",
    "vared",
    "integer",
    "float",
    // These redefine names.
    "alias",
    "hash",
    "enable",
    "shopt",
    "setopt",
    "unsetopt",
    "zmodload",
    "autoload",
    // These run other programs.
    "parallel",
    "watch",
    "script",
    "ssh",
    "strace",
    "flock",
    "chpst",
    "chroot",
    "unshare",
    "nsenter",
    "setpriv",
    "pkexec",
    "systemd-run",
];

/// Builtins that set variables for later commands.
const SETTING: &[&str] =
    &["export", "declare", "typeset", "readonly", "local", "read", "unset", "getopts", "set"];

/// Builtins that evaluate arithmetic: the shell runs `$(a)` in an array index even inside single quotes.
const COMPUTING: &[&str] = &["test", "wait", "exit", "return", "shift", "break", "continue"];

/// Determines what a command runs.
pub(super) fn look(words: &[Word]) -> Inside {
    let Some((program, arguments)) = words.split_first() else { return Inside::Nothing };
    if program.reading == Reading::Open {
        return Inside::Unknown;
    }
    // On some systems `BASH` is `bash`.
    let name = program.text.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name.as_str();
    if SHELLS.contains(&name) {
        let is_real = PLACES_OF_SHELLS.iter().any(|place| program.text == format!("{place}{name}"));
        return if is_real { shell(arguments) } else { Inside::Unknown };
    }
    match name {
        "eval" if program.text == "eval" => evaluated(arguments),
        "find" => found(words),
        "printf" => printed(arguments),
        "jobs" if !arguments.is_empty() => Inside::Unknown,
        _ if UNKNOWN.contains(&name) => Inside::Unknown,
        _ if COMPUTING.contains(&name) || SETTING.contains(&name) => {
            let sets =
                SETTING.contains(&name) && !arguments.iter().all(|word| name == "set" && is_strict(word));
            let is_unknown = |word: &Word| {
                may_be_computed(word) || variable::is_evaluated(word) || (sets && gives_a_kind(word))
            };
            if arguments.iter().any(is_unknown) {
                Inside::Unknown
            } else if sets {
                Inside::Later
            } else {
                Inside::Nothing
            }
        }
        _ => CARRIERS
            .iter()
            .find(|carrier| carrier.name == name)
            .map_or(Inside::Nothing, |carrier| carried(carrier, words)),
    }
}

/// `bash -c SCRIPT`, only with options that do not change how the script is parsed.
fn shell(arguments: &[Word]) -> Inside {
    let exact =
        |word: &Word, known: &[&str]| word.reading == Reading::Exact && known.contains(&word.text.as_str());
    let options =
        arguments.iter().take_while(|word| exact(word, &["-e", "-u", "-x", "-l", "--login"])).count();
    match &arguments[options..] {
        [flag, script, ..]
            if exact(flag, &["-c", "-lc", "-ec", "-xc", "-euc", "-uc", "-exc"])
                && script.reading == Reading::Exact
                // More options may follow `-c`.
                && !script.text.starts_with(['-', '+']) =>
        {
            Inside::Script(script.text.clone())
        }
        _ => Inside::Unknown,
    }
}

fn evaluated(arguments: &[Word]) -> Inside {
    let is_unknown = arguments.iter().any(|word| word.reading == Reading::Open)
        || arguments.first().is_some_and(|word| word.text.starts_with('-'));
    if is_unknown {
        return Inside::Unknown;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    Inside::Script(texts.join(" "))
}

/// `printf FORMAT …`: `-v` sets a variable, and zsh evaluates arguments of numeric formats.
fn printed(arguments: &[Word]) -> Inside {
    let Some((format, rest)) = arguments.split_first() else { return Inside::Nothing };
    let is_option = format.reading == Reading::Open || format.text.starts_with('-');
    let prints_texts = format.text.replace("%s", "").replace("%b", "").replace("%q", "");
    let prints_numbers = prints_texts.replace("%%", "").contains('%');
    let is_unknown = is_option || (prints_numbers && rest.iter().any(may_be_computed));
    if is_unknown { Inside::Unknown } else { Inside::Nothing }
}

/// `set -euo pipefail`: options that only make the shell stop or print.
fn is_strict(word: &Word) -> bool {
    let letters = word.text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty());
    word.text == "pipefail"
        || letters.is_some_and(|letters| letters.chars().all(|letter| "euxo".contains(letter)))
}

/// `declare -i`, `declare -n`: values become arithmetic or names of other variables.
fn gives_a_kind(word: &Word) -> bool {
    word.text.starts_with(['-', '+']) && word.text.contains(['i', 'n'])
}

/// True for a word that may be an array element, whose index is evaluated.
fn may_be_computed(word: &Word) -> bool {
    word.reading == Reading::Open || word.text.contains('[')
}

/// `find … -exec COMMAND ;`. More than one command, or open words, are unsupported.
fn found(words: &[Word]) -> Inside {
    if words.iter().any(|word| word.reading == Reading::Open) {
        return Inside::Unknown;
    }
    let is_exec = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut places = words.iter().enumerate().filter(|(_, word)| is_exec(word)).map(|(at, _)| at + 1);
    let (Some(start), None) = (places.next(), places.next()) else {
        return if words.iter().any(is_exec) { Inside::Unknown } else { Inside::Nothing };
    };
    // A `+` ends the command only after `{}`.
    let is_end =
        |at: &usize| words[*at].text == ";" || (words[*at].text == "+" && words[at - 1].text == "{}");
    let end = (start..words.len()).find(is_end).unwrap_or(words.len());
    // `find` replaces `{}` by file names.
    let filled = |word: &Word| if word.text.contains("{}") { Word::open() } else { word.clone() };
    let words = words[start..end].iter().map(filled).collect();
    Inside::Command(Carried { start, assignments: Vec::new(), words })
}

fn carried(carrier: &Carrier, words: &[Word]) -> Inside {
    let Some(mut at) = behind_options(carrier, words) else { return Inside::Unknown };
    let mut assignments = Vec::new();
    let mut own_words = carrier.own_words;
    while let Some(word) = words.get(at) {
        let variable = word.text.split_once('=').filter(|_| carrier.variables == Variables::Taken);
        match variable {
            _ if word.reading == Reading::Open => return Inside::Unknown,
            Some(_) if variable::is_evaluated(word) => return Inside::Unknown,
            Some((name, _)) => assignments.push(name.to_owned()),
            None if own_words > 0 => own_words -= 1,
            None => break,
        }
        at += 1;
    }
    if at >= words.len() {
        return Inside::Nothing;
    }
    let mut inside = words[at..].to_vec();
    if carrier.name == "xargs" {
        // xargs appends what it reads.
        inside.push(Word::open());
    }
    Inside::Command(Carried { start: at, assignments, words: inside })
}

/// The index after a carrier's options, if all of them are supported.
fn behind_options(carrier: &Carrier, words: &[Word]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if text == "--" && word.reading == Reading::Exact {
            return Some(at + 1);
        }
        if !text.starts_with('-') && word.reading == Reading::Exact {
            return Some(at);
        }
        let length = if carrier.with_value.contains(&text) { 2 } else { 1 };
        let is_known = length == 2 || carrier.flags.contains(&text);
        let is_exact = words.iter().skip(at).take(length).all(|word| word.reading == Reading::Exact);
        if !is_known || !is_exact {
            return None;
        }
        at += length;
    }
    Some(at)
}
