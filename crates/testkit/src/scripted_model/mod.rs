//! A model whose name selects its behaviour, in three dialects, whole and streamed.
//!
//! It is written by hand from the official SDKs and shares no code with the gateway's dialects, so that an error there
//! cannot hide here. The last `/` segment of the model's name selects the reply:
//!
//! | name | reply |
//! |---|---|
//! | `text-K` | K words, `word0 word1 …` |
//! | `parallel` | a text and two calls of `get_weather`, for Paris and Tokyo; results are repeated as text, one per line, failed ones after `error: ` |
//! | `reasoning` | reasoning with its seal, then a text |
//! | `echo` | a JSON description of the request (see `model_request`) |
//! | `error-S` | an error with HTTP status S; 429 comes with `retry-after: 1` |
//! | `cut` | a text whose connection is cut midway |
//! | `length` | a call whose arguments are cut off by the token limit |
//! | the name of a play | the texts that a test defined for it (see `play`) |

mod chat;
mod messages;
mod model_request;
mod play;
mod reply;
mod responses;
#[cfg(test)]
mod tests;

use http::Method;
use serde_json::{Value, json};

use crate::{Received, Script, ScriptedUpstream};
use model_request::{Delivery, ModelRequest};
use play::Plays;
pub use play::{Line, Pieces, TRIGGER};
use reply::{Failure, Outcome, Reply, ReplyEnd};

/// A scripted model behind a port of its own. Dropping it stops it.
#[derive(Debug)]
pub struct ScriptedModel {
    /// The URL that a gateway is configured with: `http://127.0.0.1:PORT/v1`.
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

/// The input tokens of every request, so that tests can tell cached from uncached input.
const INPUT_TOKENS: u64 = 20;
const CACHED_INPUT_TOKENS: u64 = 5;

/// The creation time of everything here, in seconds since the epoch. Fixed, so that replies are reproducible.
const CREATED: u64 = 1_700_000_000;

#[derive(Debug, Clone, Copy)]
enum Dialect {
    Messages,
    Chat,
    Responses,
}

impl Dialect {
    fn of_path(path: &str) -> Option<Self> {
        let at = |(end, dialect)| path.ends_with(end).then_some(dialect);
        let ends = [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
        ];
        ends.into_iter().find_map(at)
    }

    fn parse(self, body: &Value) -> ModelRequest {
        match self {
            Self::Messages => ModelRequest::from_messages(body),
            Self::Chat => ModelRequest::from_chat(body),
            Self::Responses => ModelRequest::from_responses(body),
        }
    }
}

/// The reply of a model without native tools, in the dialect and delivery of the request.
///
/// # Panics
/// When the request is not for a model.
#[expect(clippy::panic, reason = "a test with a request for anything else has failed")]
pub fn say(request: &Received, line: &Line) -> Script {
    let Some(dialect) = Dialect::of_path(path_of(request)) else {
        panic!("no dialect has the path {}", request.path)
    };
    let turn = dialect.parse(&request.json());
    render(dialect, &turn, &line.reply_to(&String::from_utf8_lossy(&request.body)))
}

fn path_of(request: &Received) -> &str {
    request.path.split('?').next().unwrap_or_default()
}

fn answer(request: &Received, plays: &Plays) -> Script {
    let path = path_of(request);
    if let Some((_, name)) = path.split_once("/plays/") {
        return manage_play(request, name, plays);
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
    let turn = dialect.parse(&body);
    let name = turn.model.rsplit('/').next().unwrap_or_default();
    if let Some(line) = plays.line(name, turn.assistant_messages(), &body) {
        return render(dialect, &turn, &line.reply_to(&String::from_utf8_lossy(&request.body)));
    }
    match reply::outcome(&turn) {
        Outcome::Reply(reply) => render(dialect, &turn, &reply),
        Outcome::Failure(failure) => fail(dialect, &failure),
    }
}

fn manage_play(request: &Received, name: &str, plays: &Plays) -> Script {
    if request.method == Method::GET {
        return Script::json(200, plays.requests(name));
    }
    match plays.put(name, &request.body) {
        Ok(()) => Script::json(200, "{}"),
        Err(complaint) => Script::json(400, json!({"error": complaint})),
    }
}

fn render(dialect: Dialect, turn: &ModelRequest, reply: &Reply) -> Script {
    let script = match (dialect, turn.delivery) {
        (Dialect::Messages, Delivery::Whole) => Script::json(200, messages::whole(turn, reply)),
        (Dialect::Messages, Delivery::Streamed) => messages::stream(turn, reply),
        (Dialect::Chat, Delivery::Whole) => Script::json(200, chat::whole(turn, reply)),
        (Dialect::Chat, Delivery::Streamed) => chat::stream(turn, reply),
        (Dialect::Responses, Delivery::Whole) => Script::json(200, responses::whole(turn, reply)),
        (Dialect::Responses, Delivery::Streamed) => responses::stream(turn, reply),
    };
    match reply.end {
        ReplyEnd::Cut => script.cut_midway(),
        ReplyEnd::Stop | ReplyEnd::Calls | ReplyEnd::Length => script,
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
