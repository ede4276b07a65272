//! A model that behaves as its name says, in three dialects, whole and streamed.
//!
//! It is written by hand after the official SDKs and shares no code with the gateway's dialects, so that a
//! misunderstanding there cannot hide here. The last `/` segment of the model's name chooses:
//!
//! | name | answer |
//! |---|---|
//! | `text-K` | K words, `word0 word1 …` |
//! | `parallel` | a text and two calls of `get_weather`, for Paris and Tokyo; results are answered with their texts, one a line, failed ones after `error: ` |
//! | `reasoning` | reasoning with its seal, then a text |
//! | `echo` | a JSON description of the request (see `heard`) |
//! | `error-S` | an error with HTTP status S; 429 comes with `retry-after: 1` |
//! | `cut` | a text whose connection is cut midway |
//! | `length` | a call whose arguments end midway because the length ran out |
//! | the name of a play | the texts that a test wrote down for it (see `play`) |

mod chat;
mod heard;
mod messages;
mod play;
mod reply;
mod responses;
#[cfg(test)]
mod tests;

use http::Method;
use serde_json::{Value, json};

use crate::{Received, Script, ScriptedUpstream};
use heard::{Delivery, Heard};
use play::Plays;
pub use play::{Line, Pieces, TRIGGER};
use reply::{Ending, Failure, Outcome, Reply};

/// A scripted model behind a port of its own. Dropping it stops it.
#[derive(Debug)]
pub struct ScriptedModel {
    /// What a gateway is configured with: `http://127.0.0.1:PORT/v1`.
    pub base_url: String,
    upstream: ScriptedUpstream,
}

impl ScriptedModel {
    /// Starts the model on a free loopback port.
    pub async fn start() -> Self {
        let upstream = ScriptedUpstream::start().await;
        let plays = Plays::default();
        upstream.always(move |request| answer(request, &plays));
        Self { base_url: upstream.base_url(), upstream }
    }

    /// The requests so far, oldest first. Only the last thousand or so are kept.
    pub fn requests(&self) -> Vec<Received> {
        self.upstream.requests()
    }
}

/// The names `GET /models` lists.
const LISTED_MODELS: [&str; 9] =
    ["text-3", "parallel", "reasoning", "echo", "error-429", "error-400", "error-529", "cut", "length"];

/// What every request counts as, so that tests can tell cached from uncached input.
const INPUT_TOKENS: u64 = 20;
const CACHED_INPUT_TOKENS: u64 = 5;

/// When everything here was made, in seconds of the epoch. Fixed, so that answers are the same in each run.
const CREATED: u64 = 1_700_000_000;

#[derive(Debug, Clone, Copy)]
enum Dialect {
    Messages,
    Chat,
    Responses,
}

impl Dialect {
    fn of_path(path: &str) -> Option<Self> {
        let spoken_at = |(end, dialect)| path.ends_with(end).then_some(dialect);
        let ends = [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
        ];
        ends.into_iter().find_map(spoken_at)
    }

    fn hear(self, body: &Value) -> Heard {
        match self {
            Self::Messages => Heard::from_messages(body),
            Self::Chat => Heard::from_chat(body),
            Self::Responses => Heard::from_responses(body),
        }
    }
}

/// The answer of a model that only knows text, in the dialect and the delivery in which it was asked.
///
/// # Panics
/// When the request is none that a model can answer.
#[expect(clippy::panic, reason = "a test that has a model answer something else has failed")]
pub fn say(request: &Received, line: &Line) -> Script {
    let Some(dialect) = Dialect::of_path(path_of(request)) else {
        panic!("nobody speaks at {}", request.path)
    };
    let heard = dialect.hear(&request.json());
    speak(dialect, &heard, &line.reply_to(&String::from_utf8_lossy(&request.body)))
}

fn path_of(request: &Received) -> &str {
    request.path.split('?').next().unwrap_or_default()
}

fn answer(request: &Received, plays: &Plays) -> Script {
    let path = path_of(request);
    if let Some((_, name)) = path.split_once("/plays/") {
        return about_play(request, name, plays);
    }
    if request.method == Method::GET && path.ends_with("/models") {
        return Script::json(200, list_models(request));
    }
    if path.ends_with("/messages/count_tokens") {
        return Script::json(200, json!({"input_tokens": INPUT_TOKENS + CACHED_INPUT_TOKENS}));
    }
    let Some(dialect) = Dialect::of_path(path) else {
        let failure = Failure { status: 404, message: format!("no endpoint {path}") };
        return fail(Dialect::Messages, &failure);
    };
    let body = match serde_json::from_slice::<Value>(&request.body) {
        Ok(body) => body,
        Err(error) => {
            return fail(
                dialect,
                &Failure { status: 400, message: format!("the body is not JSON: {error}") },
            );
        }
    };
    let heard = dialect.hear(&body);
    let name = heard.model.rsplit('/').next().unwrap_or_default();
    if let Some(line) = plays.line(name, heard.times_spoken(), &body) {
        return speak(dialect, &heard, &line.reply_to(&String::from_utf8_lossy(&request.body)));
    }
    match reply::outcome(&heard) {
        Outcome::Reply(reply) => speak(dialect, &heard, &reply),
        Outcome::Failure(failure) => fail(dialect, &failure),
    }
}

fn about_play(request: &Received, name: &str, plays: &Plays) -> Script {
    if request.method == Method::GET {
        return Script::json(200, plays.heard(name));
    }
    match plays.put(name, &request.body) {
        Ok(()) => Script::json(200, "{}"),
        Err(complaint) => Script::json(400, json!({"error": complaint})),
    }
}

fn speak(dialect: Dialect, heard: &Heard, reply: &Reply) -> Script {
    let script = match (dialect, heard.delivery) {
        (Dialect::Messages, Delivery::Whole) => Script::json(200, messages::whole(heard, reply)),
        (Dialect::Messages, Delivery::Streamed) => messages::stream(heard, reply),
        (Dialect::Chat, Delivery::Whole) => Script::json(200, chat::whole(heard, reply)),
        (Dialect::Chat, Delivery::Streamed) => chat::stream(heard, reply),
        (Dialect::Responses, Delivery::Whole) => Script::json(200, responses::whole(heard, reply)),
        (Dialect::Responses, Delivery::Streamed) => responses::stream(heard, reply),
    };
    match reply.ending {
        Ending::Cut => script.cut_midway(),
        Ending::Stop | Ending::Calls | Ending::Length => script,
    }
}

fn fail(dialect: Dialect, failure: &Failure) -> Script {
    let Failure { status, message } = failure;
    let body = match dialect {
        Dialect::Messages => json!({
            "type": "error",
            "error": {"type": failure.anthropic_type(), "message": message},
            "request_id": "req_scripted",
        }),
        Dialect::Chat | Dialect::Responses => json!({
            "error": {"message": message, "type": failure.openai_type(), "param": null, "code": failure.openai_code()},
        }),
    };
    let script = Script::json(*status, body);
    if *status == 429 { script.header("retry-after", "1") } else { script }
}

fn list_models(request: &Received) -> Value {
    if request.header("anthropic-version").is_none() {
        let model = |id| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "scripted"});
        return json!({"object": "list", "data": LISTED_MODELS.map(model)});
    }
    let model = |id| {
        json!({
            "type": "model", "id": id, "display_name": id, "created_at": "2023-11-14T22:13:20Z", "lifecycle": "active",
        })
    };
    let [first, .., last] = LISTED_MODELS;
    json!({"data": LISTED_MODELS.map(model), "has_more": false, "first_id": first, "last_id": last})
}
