//! P28: a text-only model's answer that ends anywhere, even inside a trigger, a tag or a value. Each reply is
//! exact, reported as truncated, or an error; none is finished with something missing.

use serde_json::{Value, json};
use toolgate_prompted::PromptedOptions;
use toolgate_testkit::{Line, Pieces, Script, ScriptedUpstream, say};

use crate::gate::Gate;
use crate::prompting_bad_input::{note, parts, question};
use crate::text_host::{frames, gate_before, trigger_in};

/// Prose, a call that omits a parameter, and a call with all parameters.
struct Answer {
    /// The text, with the trigger of the conversation.
    text: String,
    prose: &'static str,
    inputs: [Value; 2],
    /// Where each call is complete: the first at its closing tag, the second once its last parameter is closed.
    complete: [usize; 2],
    /// Where the trigger line becomes recognisable: a text that ends before is prose.
    announced: usize,
}

impl Answer {
    fn new(trigger: &str) -> Self {
        let calls = [
            note(&[("text", "a <b> & </parameter> c")]),
            note(&[("text", "two\nlines"), ("list", "[1, {\"x\": 2}]")]),
        ];
        let inputs = [
            json!({ "text": "a <b> & </parameter> c" }),
            json!({ "text": "two\nlines", "list": [1, { "x": 2 }] }),
        ];
        let prose = "Well.";
        let text = format!("{prose}\n{trigger}\n{}{}", calls[0], calls[1]);
        let first = text.find("</invoke>").expect("a first call") + "</invoke>".len();
        let second = text.rfind("</parameter>").expect("a last parameter") + "</parameter>".len();
        let announced = prose.len() + "\n<<CALL_".len();
        Self { text, prose, inputs, complete: [first, second], announced }
    }

    /// Every position at which the text can be cut.
    fn cuts(&self) -> impl Iterator<Item = usize> {
        self.text.char_indices().map(|(at, _)| at).skip(1)
    }

    /// Checks a reply to the text up to `cut` whose stop reason is not a truncation.
    fn check_finished(&self, cut: usize, made: &[Value], said: &str, stop: &str) {
        let begun = self.text[..cut].matches("<invoke name=\"note\">").count();
        let whole = self.complete.iter().filter(|complete| **complete <= cut).count();
        match stop {
            // No call was started, so the text is complete.
            "end_turn" => {
                assert!(cut < self.announced, "cut at {cut}: a started call is not reported: {said}");
                assert_eq!((made, said), (&[][..], self.text[..cut].trim_end()), "cut at {cut}");
            }
            "tool_use" => {
                assert_eq!((made, said), (&self.inputs[..whole], self.prose), "cut at {cut}");
                assert_eq!(begun, whole, "cut at {cut}: a started call is not reported");
                let rest = self.text[..cut].rsplit("</invoke>").next().unwrap_or_default();
                let between = rest.trim_start();
                assert!(whole == 2 || between.is_empty(), "cut at {cut}: {between} is not reported");
            }
            other => panic!("cut at {cut}: no reply ends with {other}"),
        }
    }

    /// Checks a reply that is reported as truncated: all calls are exact, except that the last may be partial.
    fn check_cut(&self, cut: usize, made: &[Value], said: &str) {
        let exact = made.iter().zip(&self.inputs).take_while(|(made, input)| made == input).count();
        assert!(made.len() <= exact + 1, "cut at {cut}: {made:?}");
        let begun = self.text[..cut].matches("<invoke name=\"note\">").count();
        assert!(made.len() <= begun, "cut at {cut}: {made:?}");
        // The next call shows that the one before it was complete.
        assert!(exact + 1 >= begun, "cut at {cut}: a complete call is lost: {made:?}");
        let prose = &self.text[..cut.min(self.prose.len())];
        let is_prose = cut < self.announced && said == self.text[..cut].trim_end();
        assert!(said == prose || is_prose, "cut at {cut}: {said}");
    }
}

async fn start() -> (ScriptedUpstream, Gate, Answer) {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate_before(
        &upstream,
        "openai-chat",
        PromptedOptions { continuations: 0, retries: 0, ..PromptedOptions::default() },
    );
    upstream.always(|received| say(received, &Line::new("hello", Pieces::Whole)));
    gate.post("/v1/messages", &question(false)).await.text().await;
    let answer = Answer::new(&trigger_in(&upstream.next_request().await));
    (upstream, gate, answer)
}

/// The contents of a streamed Messages reply, as in `parts`.
fn streamed(stream: &str) -> (Vec<Value>, String, String) {
    let mut calls: Vec<String> = Vec::new();
    let mut said = String::new();
    let mut stop = String::new();
    for frame in frames(stream) {
        if frame["content_block"]["type"] == "tool_use" {
            calls.push(String::new());
        }
        if let (Some(json), Some(call)) = (frame["delta"]["partial_json"].as_str(), calls.last_mut()) {
            call.push_str(json);
        }
        said.push_str(frame["delta"]["text"].as_str().unwrap_or_default());
        stop.push_str(frame["delta"]["stop_reason"].as_str().unwrap_or_default());
    }
    assert!(stream.contains("message_stop"), "{stream}");
    let made = calls.iter().map(|call| serde_json::from_str(call).unwrap_or_default());
    (made.collect(), said, stop)
}

async fn asked(gate: &Gate, is_streamed: bool) -> (Vec<Value>, String, String) {
    let answer = gate.post("/v1/messages", &question(is_streamed)).await;
    assert_eq!(answer.status(), 200);
    if is_streamed { streamed(&answer.text().await) } else { parts(&answer.json().await) }
}

#[tokio::test]
async fn an_answer_that_stops_anywhere_is_exact_or_reported_as_truncated() {
    let (upstream, gate, answer) = start().await;
    for cut in answer.cuts() {
        let pieces = if cut % 2 == 0 { Pieces::Whole } else { Pieces::Of(3) };
        let line = Line::new(&answer.text[..cut], pieces);
        upstream.always(move |received| say(received, &line));
        for is_streamed in [false, true] {
            let (made, said, stop) = asked(&gate, is_streamed).await;
            let said = said.trim_end();
            match stop.as_str() {
                "max_tokens" => answer.check_cut(cut, &made, said),
                stop => answer.check_finished(cut, &made, said, stop),
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_reaches_the_token_limit_anywhere_is_reported_as_truncated() {
    let (upstream, gate, answer) = start().await;
    for cut in answer.cuts() {
        let pieces = if cut % 2 == 0 { Pieces::Whole } else { Pieces::Of(3) };
        let line = Line::new(&answer.text[..cut], pieces).out_of_tokens();
        upstream.always(move |received| say(received, &line));
        let (made, said, stop) = asked(&gate, cut % 3 == 0).await;
        assert_eq!(stop, "max_tokens", "cut at {cut}: {made:?} {said}");
        answer.check_cut(cut, &made, said.trim_end());
    }
}

#[tokio::test]
async fn a_connection_that_breaks_anywhere_is_an_error() {
    let (upstream, gate, answer) = start().await;
    for cut in answer.cuts() {
        let text = answer.text[..cut].to_owned();
        upstream.always(move |_| {
            let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
            Script::sse().frame("", delta.to_string()).cut()
        });
        let stream = gate.post("/v1/messages", &question(true)).await.text().await;
        assert!(
            stream.contains("event: error") && !stream.contains("message_stop"),
            "cut at {cut}: {stream}"
        );
    }
}
