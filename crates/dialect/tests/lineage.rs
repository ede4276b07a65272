//! A conversation has the same hash in every dialect and in every format of a client, and a different hash as soon as
//! its content differs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_dialect::registry;
use toolgate_model::{Lineage, PrefixHash};

/// One round: a question, an answer with calls, and their results.
#[derive(Clone, Debug)]
struct Round {
    asked: Vec<String>,
    answered: Option<String>,
    calls: Vec<(Value, String)>,
}

/// How a client formats a conversation.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// One message per text instead of one block.
    split: bool,
    /// Results in reverse order.
    backwards: bool,
    /// Reserialized arguments, cache marks, item ids, instructions.
    decorated: bool,
}

fn conversation() -> impl Strategy<Value = Vec<Round>> {
    let words = || "[a-zäé\"\\\\ ]{0,6}[a-z]";
    let arguments = prop_oneof![
        Just(json!({})),
        words().prop_map(|word| json!({ "city": word, "days": 3, "at": { "b": [1.5, null], "a": true } })),
    ];
    let call = (arguments, words());
    let round = (vec(words(), 1..3), option::of(words()), vec(call, 0..3))
        .prop_map(|(asked, answered, calls)| Round { asked, answered, calls });
    vec(round, 1..4)
}

fn format() -> impl Strategy<Value = Format> {
    any::<(bool, bool, bool)>().prop_map(|(split, backwards, decorated)| Format {
        split,
        backwards,
        decorated,
    })
}

impl Format {
    /// The texts of each user message.
    fn cut(self, texts: &[String]) -> Vec<Vec<&str>> {
        if self.split {
            texts.iter().map(|text| vec![text.as_str()]).collect()
        } else {
            vec![texts.iter().map(String::as_str).collect()]
        }
    }

    fn arguments(self, arguments: &Value) -> String {
        if self.decorated { backwards(arguments) } else { arguments.to_string() }
    }

    fn results(self, round: usize, calls: &[(Value, String)]) -> Vec<(String, &str)> {
        let mut results: Vec<(String, &str)> =
            calls.iter().enumerate().map(|(at, (_, text))| (call_id(round, at), text.as_str())).collect();
        if self.backwards {
            results.reverse();
        }
        results
    }
}

/// The same JSON with reversed fields, other spacing and other number formats.
fn backwards(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .rev()
                .map(|(name, value)| format!(" {} : {}", json!(name), backwards(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Number(number) if number.is_u64() => format!("{number}.0"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value.to_string()
        }
    }
}

fn call_id(round: usize, call: usize) -> String {
    format!("call_{round}_{call}")
}

fn anthropic(rounds: &[Round], format: Format) -> Value {
    let mut messages = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        for texts in format.cut(&round.asked) {
            messages.push(match texts.as_slice() {
                [text] if !format.decorated => json!({ "role": "user", "content": text }),
                texts => json!({ "role": "user", "content": texts.iter().map(|text| {
                    json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } })
                }).collect::<Vec<_>>() }),
            });
        }
        let text = round.answered.iter().map(|text| json!({ "type": "text", "text": text }));
        let reasoning = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
        let calls = round.calls.iter().enumerate().map(|(call, (arguments, _))| {
            let input: Value = serde_json::from_str(&format.arguments(arguments)).unwrap();
            json!({ "type": "tool_use", "id": call_id(at, call), "name": "weather", "input": input })
        });
        let content: Vec<Value> =
            format.decorated.then_some(reasoning).into_iter().chain(text).chain(calls).collect();
        if !content.is_empty() {
            messages.push(json!({ "role": "assistant", "content": content }));
        }
        let results: Vec<Value> = format
            .results(at, &round.calls)
            .into_iter()
            .map(|(id, text)| json!({ "type": "tool_result", "tool_use_id": id, "content": text }))
            .collect();
        if !results.is_empty() {
            messages.push(json!({ "role": "user", "content": results }));
        }
    }
    let mut body = json!({ "model": "m", "max_tokens": 9, "messages": messages });
    if format.decorated {
        body["system"] = json!("be brief");
    }
    body
}

fn chat(rounds: &[Round], format: Format) -> Value {
    let mut messages = Vec::new();
    if format.decorated {
        messages.push(json!({ "role": "system", "content": "be kind" }));
    }
    for (at, round) in rounds.iter().enumerate() {
        for texts in format.cut(&round.asked) {
            let parts: Vec<Value> =
                texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
            messages.push(json!({ "role": "user", "content": parts }));
        }
        let calls: Vec<Value> = round
            .calls
            .iter()
            .enumerate()
            .map(|(call, (arguments, _))| {
                let function = json!({ "name": "weather", "arguments": format.arguments(arguments) });
                json!({ "id": call_id(at, call), "type": "function", "function": function })
            })
            .collect();
        let mut message = json!({ "role": "assistant", "content": round.answered });
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        } else if round.answered.is_none() {
            message["content"] = json!("");
        }
        messages.push(message);
        for (id, text) in format.results(at, &round.calls) {
            messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        }
    }
    json!({ "model": "m", "messages": messages })
}

fn responses(rounds: &[Round], format: Format) -> Value {
    let mut input = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        for texts in format.cut(&round.asked) {
            let parts: Vec<Value> =
                texts.iter().map(|text| json!({ "type": "input_text", "text": text })).collect();
            input.push(json!({ "type": "message", "role": "user", "content": parts }));
        }
        if format.decorated {
            let summary = json!([{ "type": "summary_text", "text": "hm" }]);
            input.push(json!({ "type": "reasoning", "id": "rs_1", "summary": summary }));
        }
        if let Some(text) = &round.answered {
            let part = json!({ "type": "output_text", "text": text, "annotations": [] });
            let mut item = json!({ "type": "message", "role": "assistant", "content": [part] });
            if format.decorated {
                item["id"] = json!(format!("msg_{at}"));
            }
            input.push(item);
        }
        for (call, (arguments, _)) in round.calls.iter().enumerate() {
            let arguments = format.arguments(arguments);
            let id = call_id(at, call);
            input.push(
                json!({ "type": "function_call", "call_id": id, "name": "weather", "arguments": arguments }),
            );
        }
        for (id, text) in format.results(at, &round.calls) {
            input.push(json!({ "type": "function_call_output", "call_id": id, "output": text }));
        }
    }
    json!({ "model": "m", "instructions": "be quick", "input": input })
}

fn lineage(dialect: &str, body: &Value) -> PrefixHash {
    let dialect = registry::find(dialect).unwrap();
    let request = dialect.client.read_request(body.to_string().as_bytes()).unwrap().value;
    Lineage::of("alice", &request.messages).whole()
}

fn in_every_dialect(rounds: &[Round], format: Format) -> [PrefixHash; 3] {
    [
        lineage("anthropic-messages", &anthropic(rounds, format)),
        lineage("openai-chat", &chat(rounds, format)),
        lineage("openai-responses", &responses(rounds, format)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_is_the_same_in_every_dialect_and_manner(rounds in conversation(), format in format()) {
        let plain = Format { split: false, backwards: false, decorated: false };
        let hash = lineage("anthropic-messages", &anthropic(&rounds, plain));
        prop_assert_eq!(in_every_dialect(&rounds, format), [hash; 3]);
    }

    #[test]
    fn another_word_makes_another_conversation(rounds in conversation(), format in format(), place in any::<prop::sample::Index>()) {
        let before = in_every_dialect(&rounds, format);
        let mut changed = rounds.clone();
        let round = place.get(&rounds);
        let round = rounds.iter().position(|other| std::ptr::eq(other, round)).unwrap();
        let round = &mut changed[round];
        match (place.index(3), round.calls.last_mut()) {
            (0, Some((arguments, _))) => *arguments = json!({ "city": "elsewhere" }),
            (1, Some((_, result))) => result.push('!'),
            (2, _) if round.answered.is_some() => round.answered.as_mut().unwrap().push('!'),
            _ => round.asked[0].push('!'),
        }
        for (before, after) in before.iter().zip(in_every_dialect(&changed, format)) {
            prop_assert_ne!(before, &after);
        }
    }
}
