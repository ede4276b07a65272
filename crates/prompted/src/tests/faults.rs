//! Injects faults into well-formed calls at random positions. Each result must be exact or visibly rejected,
//! never silently wrong.

use super::*;
use crate::options::Repair;

/// Each seed produces one text with one fault.
const SITES: u64 = 4_000;

#[derive(Clone, Debug, PartialEq)]
struct Made {
    name: &'static str,
    parameters: Vec<(&'static str, serde_json::Value)>,
}

impl Made {
    fn arguments(&self) -> serde_json::Value {
        self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// The call as a careful model writes it: raw strings, no CDATA.
    fn written(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = if text.contains('\n') { format!("\n{text}\n") } else { text };
            format!("<parameter name=\"{name}\">{text}</parameter>\n")
        });
        format!("<invoke name=\"{}\">\n{}</invoke>", self.name, parameters.collect::<String>())
    }
}

const LINES: [&str; 16] = [
    "fn main() {",
    "    println!(\"{}\", 1 < 2);",
    "}",
    "",
    "echo \"</parameter>\" x",
    "# Heading",
    "a <b>bold</b> word",
    "`<invoke name=\"x\">` is a tag",
    "if a</invoke>b then",
    "</div>",
    "2022",
    "null",
    "é 漢 🚀",
    "]]> and <![CDATA[",
    "```rust",
    "\ttabbed  ",
];

fn made(random: &mut Random) -> Made {
    let mut text = |lines: usize| {
        let count = 1 + random.below(lines);
        (0..count).map(|_| LINES[random.below(LINES.len())]).collect::<Vec<_>>().join("\n")
    };
    let (one, many, query) = (text(1), text(8), text(2));
    match random.below(4) {
        0 => Made { name: "Ping", parameters: Vec::new() },
        1 => Made {
            name: "Bash",
            parameters: vec![("command", json!(query)), ("timeout", json!(random.below(100)))],
        },
        2 => Made {
            name: "Search",
            parameters: vec![
                ("query", json!(query)),
                ("filters", json!({"a": [1, {"b": one}], "c": random.below(9)})),
                ("unit", json!("celsius")),
            ],
        },
        _ => {
            let mut parameters = vec![("file_path", json!(one)), ("content", json!(many))];
            if random.below(2) == 0 {
                parameters.push(("meta", json!("m")));
            }
            Made { name: "Write", parameters }
        }
    }
}

/// Positions of `needle`.
fn sites(text: &str, needle: &str) -> Vec<usize> {
    text.match_indices(needle).map(|(at, _)| at).collect()
}

/// Replaces one random occurrence; `None` if there is none.
fn replace_one(text: &str, needle: &str, with: &str, random: &mut Random) -> Option<String> {
    let sites = sites(text, needle);
    let at = *sites.get(random.below(sites.len().max(1)))?;
    Some(format!("{}{with}{}", &text[..at], &text[at + needle.len()..]))
}

const FAULTS: usize = 18;
/// The fault that adds [`unoffered`].
const UNOFFERED: usize = 16;

/// A call to a tool that was not offered. The client gets it, and rejects it.
fn unoffered() -> Made {
    Made { name: "Shell", parameters: vec![("command", json!("ls")), ("timeout", json!(5))] }
}

/// Injects one fault at a random position. Returns the text and the upstream's stop reason.
fn fault(kind: usize, text: &str, calls: &[Made], random: &mut Random) -> Option<(String, StopReason)> {
    let parameter = calls.iter().flat_map(|call| &call.parameters).map(|(name, _)| *name).next();
    let boundary = |random: &mut Random| {
        let at = 1 + random.below(text.chars().count() - 1);
        text.char_indices().nth(at).map_or(text.len(), |(at, _)| at)
    };
    let mut stop = StopReason::EndTurn;
    let faulty = match kind {
        0 => replace_one(text, "</parameter>\n</invoke>", "\n</invoke>", random)?
            .replace("\n\n</invoke>", "\n</invoke>"),
        1 => replace_one(text, "</parameter>\n<parameter", "\n<parameter", random)?
            .replace("\n\n<parameter", "\n<parameter"),
        2 => {
            let name = parameter?;
            let open = text.find(&format!("<parameter name=\"{name}\">"))?;
            let close = open + text[open..].find("</parameter>\n")?;
            format!("{}</{name}>\n{}", &text[..close], &text[close + "</parameter>\n".len()..])
        }
        3 => replace_one(text, "</parameter>\n", "</parameter>\n</parameter>\n", random)?,
        4 => replace_one(text, "\n</invoke>", "\n", random)?,
        5 => {
            stop = StopReason::MaxTokens;
            text[..boundary(random)].to_owned()
        }
        6 => text[..boundary(random)].to_owned(),
        7 => text
            .replace("name=\"Bash\"", "name=\"functions.bash\"")
            .replace("name=\"Write\"", "name=\"write\""),
        8 => text
            .replace("name=\"file_path\"", "name=\"filePath\"")
            .replace("name=\"query\"", "name=\"Query\""),
        9 => text.replace("§\n", "§\n<function_calls>\n") + "\n</function_calls>",
        10 => text.replace("§\n", "§\n```xml\n") + "\n```",
        11 => text.to_owned() + "\n\nI will wait for the results.\n",
        12 => text.replace("§\n", "§\nI call it now.\n"),
        13 => replace_one(text, "</invoke>\n", "</invoke>\n§\n", random)?,
        14 => replace_one(text, "\n<parameter", "\nrubbish\n<parameter", random)?,
        15 => replace_one(text, "<parameter name=\"", "<parameter name=", random)?,
        UNOFFERED => format!("{text}\n{}", unoffered().written()),
        _ => {
            // One character of the markup is missing.
            let misspellings = [
                ("\n<parameter", "\n<paramete"),
                ("</parameter>\n", "</parameter\n"),
                ("</parameter>\n", "</paramete>\n"),
                ("</parameter>\n", "<parameter>\n"),
                ("\n<invoke name=", "\n<invok name="),
                ("\n</invoke>", "\n</invoke"),
                ("\n</invoke>", "\n</invok>"),
                ("\n</invoke>", "\n<invoke>"),
                ("<parameter name=", "<parameter name"),
                ("<parameter name=", "<parametername="),
                ("\n<parameter name=", "\nparameter name="),
            ];
            let (mark, misspelling) = misspellings[random.below(misspellings.len())];
            replace_one(text, mark, misspelling, random)?
        }
    };
    Some((faulty, stop))
}

#[derive(Debug, PartialEq, Eq)]
enum Score {
    Exact,
    Refused,
    SilentlyWrong,
}

fn score(outcome: &Outcome, calls: &[Made]) -> Score {
    let complete: Vec<(String, serde_json::Value)> = outcome
        .blocks
        .iter()
        .filter_map(|block| block.strip_prefix("call ")?.split_once(' '))
        .filter_map(|(name, json)| Some((name.to_owned(), serde_json::from_str(json).ok()?)))
        .collect();
    let expect: Vec<_> = calls.iter().map(|call| (call.name.to_owned(), call.arguments())).collect();
    if complete == expect && outcome.truncation.is_none() {
        return Score::Exact;
    }
    // Visible to the client: the reply is reported as truncated, no call is made at all, the text shows the
    // rest, or text after complete calls is reported as dropped.
    let prefix = expect.starts_with(&complete);
    let cut = outcome.stop == StopReason::MaxTokens;
    let shown = outcome.blocks.iter().any(|block| block.starts_with("text") && block.contains("<invoke"));
    let noted = outcome.recoveries.contains(&Recovery::TailDropped);
    if prefix && (cut || shown || noted || complete.is_empty()) {
        Score::Refused
    } else {
        Score::SilentlyWrong
    }
}

#[test]
fn no_fault_is_silently_misread() {
    let options = PromptedOptions { repair: Repair::Off, continuations: 0, ..PromptedOptions::default() };
    let prepared = prepared(&request(), &options);
    let trigger = prepared.plan.trigger().unwrap();
    let mut scores = vec![[0_usize; 2]; FAULTS];
    for seed in 0..SITES {
        let mut random = Random(seed);
        let kind = usize::try_from(seed).unwrap() % FAULTS;
        let mut calls: Vec<Made> = (0..=random.below(3)).map(|_| made(&mut random)).collect();
        let written = calls.iter().map(Made::written).collect::<Vec<_>>().join("\n");
        let text = format!("I look.\n§\n{written}");
        let Some((faulty, stop)) = fault(kind, &text, &calls, &mut random) else { continue };
        let faulty = faulty.replace(MARK, trigger);
        if kind == UNOFFERED {
            calls.push(unoffered());
        }
        let outcome = interpret(&prepared, text_events(&faulty, Split::Random(seed), stop.clone()));
        let whole_calls = kind == 6 && cut_between_calls(&faulty, &written, trigger);
        match score(&outcome, &calls) {
            Score::Exact => scores[kind][0] += 1,
            Score::Refused => scores[kind][1] += 1,
            Score::SilentlyWrong if whole_calls => scores[kind][0] += 1,
            Score::SilentlyWrong => {
                panic!("fault {kind}, seed {seed}, {stop:?}:\n{faulty}\n{outcome:#?}\n{calls:#?}")
            }
        }
    }
    let tried: usize = scores.iter().flatten().sum();
    assert!(tried >= 2_000, "{scores:?}");
    // A heuristic must succeed more often than it fails. (A missing end of the last call is rejected here,
    // because the answer would be continued.)
    for kind in [0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 15, UNOFFERED] {
        assert!(scores[kind][0] > scores[kind][1], "fault {kind}: {scores:?}");
    }
}

/// An answer that ends after all parameters of a call is a shorter answer, not a faulty one.
fn cut_between_calls(faulty: &str, written: &str, trigger: &str) -> bool {
    let Some((_, calls)) = faulty.split_once(&format!("{trigger}\n")) else { return false };
    let rest = written[calls.len().min(written.len())..].trim_start();
    let rest = rest.strip_prefix("</invoke>").unwrap_or(rest).trim_start();
    rest.is_empty() || rest.starts_with("<invoke name")
}
