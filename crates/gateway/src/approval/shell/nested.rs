//! Commands that run other commands: which words are the other command, or which text is another script.

use super::{Reading, Word};

/// What a command runs beside itself.
#[derive(Debug)]
pub(super) enum Inside {
    Nothing,
    /// These words, the first of which stands at this place.
    Words(usize, Vec<Word>),
    /// A script to be read like a line of its own.
    Script(String),
    /// Something that is not followed.
    Unknown,
}

/// A program that runs what its arguments say.
struct Carrier {
    name: &'static str,
    /// Options that take the next word as their value.
    with_value: &'static [&'static str],
    /// Options that put other words in the place of the command's.
    rewriting: &'static [&'static str],
    /// Words of its own before the command.
    own_words: usize,
}

impl Carrier {
    const fn new(name: &'static str, with_value: &'static [&'static str]) -> Self {
        Self { name, with_value, rewriting: &[], own_words: 0 }
    }
}

const CARRIERS: &[Carrier] = &[
    Carrier::new("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-D", "-R"]),
    Carrier::new("doas", &["-u", "-C"]),
    Carrier { rewriting: &["-S"], ..Carrier::new("env", &["-u", "-C"]) },
    Carrier {
        rewriting: &["-I", "-i", "-J"],
        ..Carrier::new("xargs", &["-n", "-P", "-L", "-s", "-d", "-E", "-a"])
    },
    Carrier::new("nohup", &[]),
    Carrier::new("setsid", &[]),
    Carrier::new("command", &[]),
    Carrier::new("builtin", &[]),
    Carrier::new("exec", &["-a"]),
    Carrier::new("nice", &["-n"]),
    Carrier::new("ionice", &["-c", "-n"]),
    Carrier::new("stdbuf", &["-i", "-o", "-e"]),
    Carrier { own_words: 1, ..Carrier::new("timeout", &["-s", "-k"]) },
    Carrier::new("time", &["-f", "-o"]),
    Carrier { own_words: 1, ..Carrier::new("chroot", &[]) },
    Carrier::new("busybox", &[]),
    Carrier::new("noglob", &[]),
    Carrier::new("nocorrect", &[]),
];

/// Programs that run a script given with `-c`.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "su", "csh", "tcsh"];

/// Programs that run what no one sees in their words, or leave how to find it to their many options.
const UNKNOWN: &[&str] =
    &["source", ".", "parallel", "watch", "script", "ssh", "strace", "trap", "flock", "chpst"];

/// Looks at what a command runs.
pub(super) fn look(words: &[Word]) -> Inside {
    let Some((program, arguments)) = words.split_first() else { return Inside::Nothing };
    if program.reading == Reading::Open {
        return Inside::Unknown;
    }
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if SHELLS.contains(&name) {
        return shell(arguments);
    }
    match name {
        "eval" => evaluated(arguments),
        "find" => found(words),
        _ if UNKNOWN.contains(&name) => Inside::Unknown,
        _ => CARRIERS
            .iter()
            .find(|carrier| carrier.name == name)
            .map_or(Inside::Nothing, |carrier| carried(carrier, words)),
    }
}

/// `bash -c SCRIPT`: only with options that change nothing in how the script is read.
fn shell(arguments: &[Word]) -> Inside {
    let exact =
        |word: &Word, known: &[&str]| word.reading == Reading::Exact && known.contains(&word.text.as_str());
    let options =
        arguments.iter().take_while(|word| exact(word, &["-e", "-u", "-x", "-l", "--login"])).count();
    match &arguments[options..] {
        [flag, script, ..]
            if exact(flag, &["-c", "-lc", "-ec", "-xc", "-euc", "-uc", "-exc"])
                && script.reading == Reading::Exact =>
        {
            Inside::Script(script.text.clone())
        }
        _ => Inside::Unknown,
    }
}

fn evaluated(arguments: &[Word]) -> Inside {
    if arguments.iter().any(|word| word.reading == Reading::Open) {
        return Inside::Unknown;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    Inside::Script(texts.join(" "))
}

/// `find … -exec COMMAND ;`. More than one command, or words that may hide one, are not followed.
fn found(words: &[Word]) -> Inside {
    if words.iter().any(|word| word.reading == Reading::Open) {
        return Inside::Unknown;
    }
    let is_exec = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut places = words.iter().enumerate().filter(|(_, word)| is_exec(word)).map(|(at, _)| at + 1);
    let (Some(start), None) = (places.next(), places.next()) else {
        return if words.iter().any(is_exec) { Inside::Unknown } else { Inside::Nothing };
    };
    let is_end = |word: &Word| matches!(word.text.as_str(), ";" | "+");
    let end = words[start..].iter().position(is_end).map_or(words.len(), |length| start + length);
    // The names that are found stand in the place of `{}`.
    let filled = |word: &Word| if word.text.contains("{}") { Word::open() } else { word.clone() };
    Inside::Words(start, words[start..end].iter().map(filled).collect())
}

fn carried(carrier: &Carrier, words: &[Word]) -> Inside {
    let mut at = 1;
    let mut own_words = carrier.own_words;
    while let Some(word) = words.get(at) {
        if word.reading == Reading::Open {
            return Inside::Unknown;
        }
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if text.starts_with('-') && text != "-" {
            // A long option or several letters at once: what they take is not followed.
            let is_followed = text.len() == 2 && !carrier.rewriting.contains(&text);
            if !is_followed {
                return Inside::Unknown;
            }
            at += if carrier.with_value.contains(&text) { 2 } else { 1 };
        } else if carrier.name == "env" && text.contains('=') {
            at += 1;
        } else if own_words > 0 {
            own_words -= 1;
            at += 1;
        } else {
            break;
        }
    }
    if at >= words.len() {
        return Inside::Nothing;
    }
    let mut inside = words[at..].to_vec();
    if carrier.name == "xargs" {
        // It adds what it reads.
        inside.push(Word::open());
    }
    Inside::Words(at, inside)
}
