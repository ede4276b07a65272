//! Generates command lines: valid ones that hide `bad` where it must not run, damaged versions of them, and random
//! mixtures of operators.

use super::vocabulary::{
    ASSIGNMENTS, BEGINNINGS, BUILTINS, ELSEWHERE, FRAGMENTS, HIDDEN, MARKS, NOT_FOLLOWED, ODD_STARTING,
    ODD_WORDS, REDIRECTIONS, SEPARATORS, SHELLS, SIGNS, STARTING, STARTING_BUILTINS, WITH_ENV,
};

/// The maximum nesting depth of commands.
const DEPTH: usize = 3;

/// A pseudo-random number generator.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// Generates one line.
pub(super) fn draw(draw: &mut Draw) -> String {
    match draw.below(10) {
        0..=2 => script(draw, DEPTH),
        3..=7 => {
            let line = script(draw, DEPTH);
            damaged(draw, &line)
        }
        _ => mixture(draw),
    }
}

fn script(draw: &mut Draw, depth: usize) -> String {
    let mut text = command(draw, depth);
    while draw.percent(35) {
        text += draw.one(SEPARATORS);
        text += &command(draw, depth);
    }
    text
}

fn command(draw: &mut Draw, depth: usize) -> String {
    if depth == 0 || draw.percent(75) {
        return simple(draw, depth);
    }
    let mut inner = || script(draw, depth - 1);
    let (one, other) = (inner(), inner());
    match draw.below(24) {
        0..=2 => format!("({one})"),
        3 | 4 => format!("{{ {one}; }}"),
        5 => format!("! {one}"),
        6 => format!("time {one}"),
        7 => format!("time -p {one}"),
        8 | 9 => format!("if {one}; then {other}; fi"),
        10 => format!("if no; then {one}; else {other}; fi"),
        11 => format!("while {one}; do {other}; break; done"),
        12 => format!("until no; do {one}; break; done"),
        13 | 14 => format!("for {} in {}; do {one}; done", name(draw), words(draw, depth - 1)),
        15 => format!("for {} do {one}; done", name(draw)),
        16 => format!("for x {{ {one}; }}"),
        17 => format!("bash -c {} x y", quoted(&one)),
        18 => format!("sh -c {}", quoted(&one)),
        19 => format!("eval {}", quoted(&one)),
        20 => format!("case x in x) {one};; esac"),
        21 => format!("ok() {{ {one}; }}; ok"),
        22 => {
            format!("{} {one}", draw.one(&["coproc", "function ok {", "[[ x ]] &&", "((1)) &&", "time --"]))
        }
        _ => format!("set a b; for x do {one}; done"),
    }
}

fn name(draw: &mut Draw) -> &'static str {
    draw.one(&["x", "x", "x", "PATH", "IFS", "_", "path", "HOME", "in", "do"])
}

fn simple(draw: &mut Draw, depth: usize) -> String {
    let mut text = String::new();
    if draw.percent(6) {
        text += draw.one(ASSIGNMENTS);
    }
    if draw.percent(6) {
        text += &redirection(draw, depth);
        text.push(' ');
    }
    text += program(draw);
    while draw.percent(55) {
        text += draw.one(&[" ", " ", " ", "\t", "  ", " \\\n", "\\\n "]);
        text += &word(draw, depth);
    }
    if draw.percent(30) {
        text += draw.one(&[" ", " ", ""]);
        text += &redirection(draw, depth);
    }
    if draw.percent(8) {
        text += &here_document(draw);
    }
    text
}

fn program(draw: &mut Draw) -> &'static str {
    match draw.below(20) {
        0..=10 => "ok",
        11 => draw.one(&["no", "two words", "two words", "two", "shut", "bad", "bad2", "words"]),
        12 => draw
            .one(&["o''k", "\"ok\"", "\\ok", "o\\k", "'ok'", "o\\\nk", "$x", "ok*", "~", "{ok,bad}", "!ok"]),
        13 => draw.one(ELSEWHERE),
        14 => draw.one(WITH_ENV),
        15 => draw.one(STARTING),
        16 => draw.one(STARTING_BUILTINS),
        17 => draw.one(SHELLS),
        18 => draw.one(BUILTINS),
        _ => draw.one(ODD_STARTING),
    }
}

fn words(draw: &mut Draw, depth: usize) -> String {
    let mut text = word(draw, depth);
    while draw.percent(50) {
        text.push(' ');
        text += &word(draw, depth);
    }
    text
}

fn word(draw: &mut Draw, depth: usize) -> String {
    let mut text = piece(draw, depth);
    while draw.percent(20) {
        text += &piece(draw, depth);
    }
    text
}

fn piece(draw: &mut Draw, depth: usize) -> String {
    if depth > 0 && draw.percent(15) {
        let inner = script(draw, depth - 1);
        return match draw.below(9) {
            0 | 1 => format!("$({inner})"),
            2 => format!("\"$({inner})\""),
            3 => format!("`{}`", inner.replace('\\', "\\\\").replace('`', "\\`")),
            4 => format!("\"`{}`\"", inner.replace('`', "\\`")),
            5 => format!("<({inner})"),
            6 => format!(">({inner})"),
            7 => format!("${{x:-$({inner})}}"),
            _ => format!("$(\n{inner}\n)"),
        };
    }
    match draw.below(12) {
        0..=3 => {
            draw.one(&["a", "bad", "-x", "2", "words", "a=b", "--", "./bad", "-v", "a.b", "x-1"]).to_owned()
        }
        4 => {
            let text = hidden(draw).replace('\'', "");
            format!("'{text}'")
        }
        5 | 6 => {
            let text = hidden(draw);
            if draw.percent(70) {
                format!("\"{}\"", text.replace(['"', '`', '$'], ""))
            } else {
                format!("\"{}\"", text.replace('"', "\\\""))
            }
        }
        7 => format!(
            "\\{}",
            draw.one(&[";", "&", "|", "\n", "$", "`", "'", "\"", "\\", "(", "#", " ", "a", "<"])
        ),
        8 => draw.one(&["$x", "${x}", "$1", "$@", "$?", "$", "\"$x\"", "\"$@\"", "$-", "$_"]).to_owned(),
        9 => draw
            .one(&["*", "?", "[a]", "{a,bad}", "{", "}", "{}", "~", "!", "!!", "!bad", "=bad", "^", "%"])
            .to_owned(),
        10 => draw.one(ODD_WORDS).to_owned(),
        _ => draw.one(NOT_FOLLOWED).to_owned(),
    }
}

/// Text that must stay inside its quotes.
fn hidden(draw: &mut Draw) -> String {
    let mut text = String::new();
    for _ in 0..=draw.below(4) {
        text += draw.one(HIDDEN);
    }
    text
}

fn redirection(draw: &mut Draw, depth: usize) -> String {
    let number = draw.one(&["", "", "", "2", "1", "3", "12", "{x}"]);
    let plain = draw.one(REDIRECTIONS);
    if depth > 0 && draw.percent(8) {
        return format!("{number}{} >({})", draw.one(&[">", "<<<"]), script(draw, depth - 1));
    }
    format!("{number}{plain}")
}

fn here_document(draw: &mut Draw) -> String {
    let (mark, end) = MARKS[draw.below(MARKS.len())];
    let tail = draw
        .one(&["", "", "", "; ok", " | ok", " && ok", " & ok", " # bad", " \\\n", ")", " <<'F'", " $(ok\n)"]);
    let mut text = format!(" <<{mark}{tail}\n");
    for _ in 0..draw.below(4) {
        text += draw.one(&[
            "bad", "a", "E)", "E ", " E", "\tE", "EF", "$(bad)", "`bad`", "\\", "E\\", "'", "\"", ")", "F",
            "", "-E", "E;bad",
        ]);
        text.push('\n');
    }
    text + end + draw.one(&["\n", "\n", "\n", "", ")\n", ")\nbad\nE\n"])
}

/// Removes, inserts, doubles or replaces characters.
fn damaged(draw: &mut Draw, line: &str) -> String {
    // A damaged loop may be endless.
    if line.contains("while") || line.contains("until") {
        return line.to_owned();
    }
    let mut letters: Vec<char> = line.chars().collect();
    for _ in 0..=draw.below(3) {
        let at = draw.below(letters.len().max(1)).min(letters.len());
        let sign = sign(draw);
        match draw.below(4) {
            0 if at < letters.len() => {
                letters.remove(at);
            }
            1 if at < letters.len() => {
                letters.splice(at..=at, sign.chars());
            }
            2 if at < letters.len() => letters.insert(at, letters[at]),
            _ => {
                letters.splice(at..at, sign.chars());
            }
        }
    }
    letters.into_iter().collect()
}

fn sign(draw: &mut Draw) -> &'static str {
    draw.one(SIGNS)
}

fn mixture(draw: &mut Draw) -> String {
    let mut text = draw.one(&["ok ", "ok ", "ok ", ""]).to_owned();
    for _ in 0..2 + draw.below(14) {
        text += match draw.below(3) {
            0 => sign(draw),
            1 => draw.one(FRAGMENTS),
            _ => draw.one(BEGINNINGS),
        };
    }
    text
}

/// Quotes a text as one shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
