//! Against `serde_json`, on JSON of all kinds, JSON that was cut or damaged, and rubbish.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Skim, fields};

/// Holds what a meter skims against what it parses; a text for which they differ is made as small as it can be.
pub(crate) fn on_any_text(check: impl Fn(&[u8])) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 1_000, ..ProptestConfig::default() });
    let checked = runner.run(&texts(), |text| {
        check(&text);
        Ok(())
    });
    checked.unwrap();
}

/// Texts that look like replies of all dialects to one who looks from afar: objects with the names that meters look
/// for, in any order and nesting, twice, escaped, with values of all kinds, and one in three of them damaged.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop_oneof![
        4 => Just(Damage::None),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        1 => (any::<prop::sample::Index>(), damaging_byte()).prop_map(|(at, byte)| Damage::Put(at, byte)),
    ];
    let object = members(value()).prop_map(|members| format!("{{{members}}}"));
    let text = prop_oneof![9 => object, 1 => value()];
    (text, blank(), damage).prop_map(|(text, blank, damage)| {
        let mut text = format!("{blank}{text}{blank}").into_bytes();
        if text.is_empty() {
            return text;
        }
        match damage {
            Damage::None => {}
            Damage::Cut(at) => text.truncate(at.index(text.len())),
            Damage::Put(at, byte) => {
                let at = at.index(text.len());
                text[at] = byte;
            }
        }
        text
    })
}

#[derive(Clone, Debug)]
enum Damage {
    None,
    Cut(prop::sample::Index),
    Put(prop::sample::Index, u8),
}

fn damaging_byte() -> impl Strategy<Value = u8> {
    prop_oneof![prop::sample::select(&b"\"\\{}[],:0-e.nu \n\x00\x1f\x7f\xc3\xff"[..]), any::<u8>()]
}

/// Names that some meter looks for, and some that it must not take for one of them.
const NAMES: [&str; 20] = [
    "usage",
    "usage",
    "error",
    "content",
    "status",
    "choices",
    "choices",
    "x_groq",
    "finish_reason",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    r"us\u0061ge",
    "é",
    r"a\",
];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn blank() -> impl Strategy<Value = String> {
    prop::sample::select(&["", "", "", " ", "\n  ", "\r\n", "\t"][..]).prop_map(str::to_owned)
}

const LEAVES: &str = "null|null|true|false|0|7|12|-1|1.5|1e3|01|1.|-|+1|NaN|nul||[]|{}|[[]]|1e999|\
    18446744073709551615|18446744073709551616|9999999999999999999|\"stop\"|\"\"|\"failed\"|\"completed\"|\
    \"a\\nb\"|\"\\u00e9\\ud83d\"|\"\\x\"|\"\\u12g4\"|\"é\"|\"a\u{1}\"|\"a\nb\"";

fn leaf() -> impl Strategy<Value = String> {
    let leaves: Vec<String> = LEAVES.split('|').map(str::to_owned).collect();
    let text = "[a-z ]{0,80}".prop_map(|text| format!("\"{text}\""));
    prop_oneof![6 => prop::sample::select(leaves), 1 => text, 1 => "[0-9]{1,22}"]
}

fn value() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 40, 5, |inner| {
        let list = prop::collection::vec((inner.clone(), blank()), 0..4).prop_map(|items| {
            items.into_iter().map(|(item, blank)| blank + &item).collect::<Vec<_>>().join(",")
        });
        let object = members(inner);
        prop_oneof![
            list.prop_map(|list| format!("[{list}]")),
            object.prop_map(|members| format!("{{{members}}}"))
        ]
    })
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member =
        (name(), blank(), value).prop_map(|(name, blank, value)| format!("\"{name}\"{blank}:{blank}{value}"));
    prop::collection::vec(member, 0..5).prop_map(|members| members.join(","))
}

fn counts<const N: usize>(text: &str, names: [&str; N]) -> Option<[Option<u64>; N]> {
    let mut skim = Skim { text, at: 0 };
    let counts = skim.counts(names);
    assert!(counts.is_some() || skim.at == 0, "nothing is taken: {text}");
    counts.filter(|_| skim.at == text.len())
}

const WANTED: [&str; 4] = ["usage", "choices", "error", "prompt_tokens"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_is_there(text in texts()) {
        let text = String::from_utf8_lossy(&text);
        let Some(found) = fields(&text, WANTED) else { return Ok(()) };
        let all: HashMap<String, &RawValue> = serde_json::from_str(&text).expect("JSON");
        let there = WANTED.map(|name| all.get(name).map(|value| value.get()).filter(|value| *value != "null"));
        prop_assert_eq!(found, there);
    }

    #[test]
    fn counts_are_those_of_the_text(text in texts()) {
        let names = ["prompt_tokens", "input_tokens"];
        let text = String::from_utf8_lossy(&text);
        let Some(found) = counts(&text, names) else { return Ok(()) };
        let all: HashMap<String, u64> = serde_json::from_str(&text).expect("counts");
        prop_assert_eq!(found, names.map(|name| all.get(name).copied()));
        prop_assert!(all.keys().all(|name| names.contains(&name.as_str())));
    }

    #[test]
    fn rubbish_is_refused(text in prop::collection::vec(damaging_byte(), 0..40)) {
        let text = String::from_utf8_lossy(&text);
        prop_assert!(fields(&text, WANTED).is_none() || serde_json::from_str::<IgnoredAny>(&text).is_ok());
    }
}

#[test]
fn usual_texts_are_not_left_to_others() {
    let check = |text: &str, expect: Option<&str>| {
        let found = fields(text, ["usage"]).unwrap_or_else(|| panic!("refused: {text}"));
        assert_eq!(found, [expect], "{text}");
    };
    check("{}", None);
    check(
        r#"{"usage":{"a":[1,-2.5e3,true,null]},"b":"long \"text\" \u00e9"}"#,
        Some(r#"{"a":[1,-2.5e3,true,null]}"#),
    );
    check("{\r\n\t\"a\" : [ ] ,\n \"usage\" : 0 }\n", Some("0"));
    check(r#"{"b":{"usage":1,"usage":2,"é\n":3}}"#, None);
    assert_eq!(counts(r#"{"a":12,"b":0}"#, ["b", "a", "c"]), Some([Some(0), Some(12), None]));
}

/// Wherever something ends a string, it is found, and nothing before it.
#[test]
fn strings_end_where_they_end() {
    let ends = ["\"", "\\", "\u{0}", "\n", "\u{1f}"];
    for (length, end) in (0..80).flat_map(|length| ends.map(|end| (length, end))) {
        for letter in ["a", " ", "!", "#", "[", "]", "\u{7f}", "é", "€", "\u{10ffff}"] {
            let text = format!("{}{end}{}", letter.repeat(length), "\"a\u{1}".repeat(20));
            assert_eq!(super::plain_letters(text.as_bytes()), letter.len() * length, "{text:?}");
        }
    }
}

#[test]
fn unusual_texts_are() {
    let deep = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(fields(&deep(super::MAX_DEPTH), WANTED).is_some());
    let texts = [
        r#"{"usage":1,"usage":2}"#,
        r#"{"\u0061":1}"#,
        "{\"a\":\"\u{1f}\"}",
        "{\"a\":\"\n\"}",
        r#"{"a":1,}"#,
        r#"{"a":01}"#,
        r#"{"a":1} x"#,
        r#"{"a":"b"#,
        "[]",
        "",
        &deep(super::MAX_DEPTH + 1),
    ];
    for text in texts {
        assert_eq!(fields(text, WANTED), None, "{text}");
    }
    for text in
        [r#"{"a":1.0}"#, r#"{"a":null}"#, r#"{"a":-1}"#, r#"{"a":12345678901234567890}"#, r#"{"b":1}"#]
    {
        assert_eq!(counts(text, ["a"]), None, "{text}");
    }
}
