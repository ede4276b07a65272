//! `/console/api/approvals`: lists questions, waits for them and takes answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_model::approval::{Decision, PermissionUpdate, Question, QuestionId, Resolution};
use toolgate_model::{ErrorKind, TurnError};
use toolgate_state::{StoreError, UnixMillis};

use super::console::{answer_json, read_json, refuse};
use super::query::Query;
use super::rules;
use crate::approval::{Answer, AnswerError, Answered, ScopeName};
use crate::service::Worker;

/// The longest wait for news.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// How many decided questions are listed.
const DEFAULT_DECIDED: usize = 50;
const MAX_DECIDED: usize = 500;

pub(super) fn routes() -> Router<Arc<Worker>> {
    Router::new()
        .route("/approvals", get(list))
        .route("/approvals/wait", get(wait))
        .route("/approvals/{id}", get(show).post(decide))
        .route("/approvals/{id}/hold", post(hold))
        .merge(rules::routes())
}

async fn list(State(worker): State<Arc<Worker>>, uri: Uri) -> Response {
    respond(async {
        let query = Query::read(&uri, &["state", "limit", "before"])?;
        match query.text("state").unwrap_or("waiting") {
            "waiting" => waiting(&worker).await,
            "decided" => decided(&worker, &query).await,
            other => Err(TurnError::invalid_param(
                "state",
                format!("state: `{other}`; use `waiting` or `decided`"),
            )),
        }
    })
    .await
}

async fn wait(State(worker): State<Arc<Worker>>, uri: Uri) -> Response {
    respond(async {
        let query = Query::read(&uri, &["after"])?;
        let since = query.text("after").unwrap_or_default();
        tokio::select! {
            () = worker.shared.inbox.wait_for_change(since, MAX_WAIT) => {}
            // A client that waits must not keep the gateway from stopping.
            () = worker.tasks.stopping().cancelled() => {}
        }
        waiting(&worker).await
    })
    .await
}

async fn waiting(worker: &Worker) -> Result<Value, TurnError> {
    // Before the list is read: a question that comes in between is reported twice rather than never.
    let cursor = worker.shared.inbox.cursor();
    let questions = worker.shared.inbox.waiting().await.map_err(store_failed)?;
    let approvals: Vec<Value> = questions.iter().map(|question| entry(worker, question, None)).collect();
    Ok(json!({ "now": worker.shared.clock.now().0, "cursor": cursor, "approvals": approvals }))
}

async fn decided(worker: &Worker, query: &Query<'_>) -> Result<Value, TurnError> {
    let limit = query.number("limit", 1..=MAX_DECIDED)?.unwrap_or(DEFAULT_DECIDED);
    let before = query.number("before", 0..=i64::MAX)?.unwrap_or(i64::MAX);
    let stored = worker.shared.store.resolved(UnixMillis(before), limit).await.map_err(store_failed)?;
    let approvals: Vec<Value> =
        stored.iter().map(|stored| entry(worker, &stored.question, stored.resolution.as_ref())).collect();
    let next = stored.last().filter(|_| stored.len() == limit);
    let next = next.and_then(|stored| stored.resolution.as_ref()).map(|resolution| resolution.at);
    Ok(json!({ "now": worker.shared.clock.now().0, "approvals": approvals, "next_before": next }))
}

async fn show(State(worker): State<Arc<Worker>>, Path(id): Path<String>) -> Response {
    respond(async {
        let stored = worker.shared.store.question(&QuestionId::new(id)).await.map_err(store_failed)?;
        let stored = stored.ok_or_else(unknown)?;
        Ok(entry(&worker, &stored.question, stored.resolution.as_ref()))
    })
    .await
}

/// A question with its state, as the API shows it.
fn entry(worker: &Worker, question: &Question, resolution: Option<&Resolution>) -> Value {
    let mut entry = json!(question);
    entry["state"] = json!(if resolution.is_some() { "decided" } else { "waiting" });
    entry["resolution"] = json!(resolution);
    if let Some(folder) = worker.shared.inbox.folder_text(&question.id) {
        entry["folder"] = json!(folder);
    }
    entry
}

/// The body of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    decision: DecisionName,
    message: Option<String>,
    interrupt: Option<bool>,
    updated_input: Option<Value>,
    permissions: Option<Vec<PermissionUpdate>>,
    text: Option<String>,
    scope: Option<ScopeName>,
    by: Option<AnsweredBy>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DecisionName {
    Allow,
    Deny,
    Answer,
}

/// The way an answer came.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnsweredBy {
    Api,
    Console,
    Terminal,
}

impl AnsweredBy {
    pub(super) fn text(by: Option<Self>) -> String {
        match by.unwrap_or(Self::Api) {
            Self::Api => "api",
            Self::Console => "console",
            Self::Terminal => "terminal",
        }
        .to_owned()
    }
}

impl AnswerBody {
    /// The answer, if every field belongs to this decision.
    fn answer(self) -> Result<Answer, TurnError> {
        let Self { decision, message, interrupt, updated_input, permissions, text, scope, by } = self;
        let unexpected = match decision {
            DecisionName::Allow => first(&[
                ("message", message.is_some()),
                ("interrupt", interrupt.is_some()),
                ("text", text.is_some()),
            ]),
            DecisionName::Deny => first(&[
                ("updated_input", updated_input.is_some()),
                ("permissions", permissions.is_some()),
                ("scope", scope.is_some()),
                ("text", text.is_some()),
            ]),
            DecisionName::Answer => first(&[
                ("message", message.is_some()),
                ("interrupt", interrupt.is_some()),
                ("updated_input", updated_input.is_some()),
                ("permissions", permissions.is_some()),
                ("scope", scope.is_some()),
            ]),
        };
        if let Some(field) = unexpected {
            return Err(TurnError::invalid_param(field, format!("{field}: this decision does not take it")));
        }
        let decision = match decision {
            DecisionName::Allow => {
                Decision::Allow { input: updated_input, updates: permissions.unwrap_or_default() }
            }
            DecisionName::Deny => Decision::Deny {
                message: message.unwrap_or_default(),
                interrupt: interrupt.unwrap_or_default(),
            },
            DecisionName::Answer => Decision::Answer { text: text.unwrap_or_default() },
        };
        Ok(Answer { decision, scope, by: AnsweredBy::text(by) })
    }
}

fn first(fields: &[(&'static str, bool)]) -> Option<&'static str> {
    fields.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
}

async fn decide(State(worker): State<Arc<Worker>>, Path(id): Path<String>, request: Request) -> Response {
    let answer = read_json::<AnswerBody>(request, &worker).await.and_then(AnswerBody::answer);
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return refuse(&error),
    };
    let id = QuestionId::new(id);
    let shown = id.clone();
    let inbox = Arc::clone(&worker.shared.inbox);
    let answered = to_the_end(&worker, async move { inbox.answer(&id, answer).await }).await;
    match answered {
        Some(Ok(Answered { resolution, rules, warning })) => {
            let mut body = json!(resolution);
            body["id"] = json!(shown.as_str());
            body["rules"] = rules.iter().map(rules::stored).collect();
            if let Some(warning) = warning {
                body["warning"] = json!(warning);
            }
            answer_json(StatusCode::OK, &body)
        }
        Some(Err(error)) => answer_error(&error),
        None => {
            refuse(&TurnError::new(ErrorKind::Internal, "the answer was lost; look at the question again"))
        }
    }
}

async fn hold(State(worker): State<Arc<Worker>>, Path(id): Path<String>, request: Request) -> Response {
    if let Err(error) = read_json::<Empty>(request, &worker).await {
        return refuse(&error);
    }
    match worker.shared.inbox.keep_waiting(&QuestionId::new(id)).await {
        Ok(question) => answer_json(StatusCode::OK, &entry(&worker, &question, None)),
        Err(error) => answer_error(&error),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// Runs a decision to its end even if the client leaves: once it counts, its agent must hear of it.
pub(super) async fn to_the_end<T: Send + 'static>(
    worker: &Worker,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (done, result) = oneshot::channel();
    worker.tasks.spawn(async move {
        // The client may have left.
        drop(done.send(work.await));
    });
    result.await.ok()
}

fn answer_error(error: &AnswerError) -> Response {
    let (status, resolution) = match error {
        AnswerError::Unknown => return refuse(&unknown()),
        AnswerError::Store(_) => {
            return refuse(&TurnError::new(ErrorKind::Internal, "the store failed; try again"));
        }
        AnswerError::Refused(why) => {
            let mut error = TurnError::invalid(why.clone());
            error.status = Some(StatusCode::UNPROCESSABLE_ENTITY.as_u16());
            return refuse(&error);
        }
        AnswerError::Lost(resolution) => (StatusCode::CONFLICT, resolution),
        AnswerError::Gone(resolution) => (StatusCode::GONE, resolution),
    };
    let message = format!("{error}: see `resolution`");
    answer_json(status, &json!({ "error": { "message": message }, "resolution": resolution }))
}

fn unknown() -> TurnError {
    TurnError::new(ErrorKind::NotFound, "there is no such question")
}

pub(super) fn store_failed(error: StoreError) -> TurnError {
    TurnError::new(ErrorKind::Internal, "the store failed; try again").caused_by(error)
}

/// A value as JSON, or the error.
pub(super) async fn respond(value: impl Future<Output = Result<Value, TurnError>>) -> Response {
    match value.await {
        Ok(value) => answer_json(StatusCode::OK, &value),
        Err(error) => refuse(&error),
    }
}
