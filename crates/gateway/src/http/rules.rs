//! `/console/api/rules` and `/console/api/grants`: the rules in force, new ones, and which of them would decide.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{delete, get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_model::approval::{QuestionId, ToolUse};
use toolgate_model::{ErrorKind, TurnError};
use toolgate_state::{RuleScope, StoredRule};

use super::approvals::{AnsweredBy, respond, store_failed, to_the_end};
use super::console::{answer_json, read_json, refuse};
use crate::approval::{Folder, NewRule, Rule, RuleAction, RuleRefused, ScopeName};
use crate::service::Worker;

/// The longest grant. What is needed for longer is a rule.
const MAX_GRANT_MINUTES: u64 = 7 * 24 * 60;

pub(super) fn routes() -> Router<Arc<Worker>> {
    Router::new()
        .route("/rules", get(list).post(add))
        .route("/rules/try", post(try_rules))
        .route("/rules/{id}", delete(revoke))
        .route("/grants", post(grant))
}

async fn list(State(worker): State<Arc<Worker>>) -> Response {
    respond(async {
        let operator = worker.shared.inbox.operator_rules();
        let mut rules: Vec<Value> = operator
            .map(|rule| json!({ "rule": rule.to_string(), "in_words": rule.in_words(), "origin": "config" }))
            .collect();
        rules.extend(worker.shared.inbox.stored_rules().await.map_err(store_failed)?.iter().map(stored));
        Ok(json!({ "now": worker.shared.clock.now().0, "rules": rules }))
    })
    .await
}

/// A rule that a person made, as the API shows it.
pub(super) fn stored(rule: &StoredRule) -> Value {
    let StoredRule { id, text, scope, question, by, created, expires, last_used } = rule;
    let (scope, session, folder) = match scope {
        RuleScope::Session(session) => ("session", Some(session), None),
        RuleScope::Project(folder) => ("project", None, Some(folder)),
        RuleScope::All => ("all", None, None),
    };
    json!({
        "id": id, "rule": text, "in_words": Rule::parse(text).ok().map(|rule| rule.in_words()), "origin": "person", "scope": scope, "session": session, "folder": folder,
        "question": question.as_ref().map(QuestionId::as_str), "by": by, "created_at": created.0,
        "expires_at": expires.map(|at| at.0), "last_used_at": last_used.map(|at| at.0),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleBody {
    rule: String,
    scope: ScopeName,
    session: Option<String>,
    folder: Option<String>,
    by: Option<AnsweredBy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantBody {
    rule: String,
    minutes: u64,
    scope: ScopeName,
    session: Option<String>,
    folder: Option<String>,
    by: Option<AnsweredBy>,
}

async fn add(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    let body = match read_json(request, &worker).await {
        Ok(body) => body,
        Err(error) => return refuse(&error),
    };
    add_rule(&worker, body, None).await
}

async fn grant(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    let GrantBody { rule, minutes, scope, session, folder, by } = match read_json(request, &worker).await {
        Ok(body) => body,
        Err(error) => return refuse(&error),
    };
    if !(1..=MAX_GRANT_MINUTES).contains(&minutes) {
        let message = format!("minutes: use a number from 1 to {MAX_GRANT_MINUTES}");
        return refuse(&TurnError::invalid_param("minutes", message));
    }
    let is_grant = Rule::parse(&rule).is_ok_and(|rule| rule.action() == RuleAction::Allow);
    if !is_grant {
        let message = "rule: a grant is a valid `allow` rule, as in `allow Read(src/**)`";
        return refuse(&TurnError::invalid_param("rule", message));
    }
    let lifetime = Duration::from_secs(minutes * 60);
    add_rule(&worker, RuleBody { rule, scope, session, folder, by }, Some(lifetime)).await
}

async fn add_rule(worker: &Arc<Worker>, body: RuleBody, lifetime: Option<Duration>) -> Response {
    let RuleBody { rule: text, scope, session, folder, by } = body;
    let scope = match scope.scope(session.as_deref(), folder.as_deref()) {
        Ok(scope) => scope,
        Err(why) => return refuse(&TurnError::invalid(why)),
    };
    let rule = NewRule { text, scope, question: None, by: AnsweredBy::text(by), lifetime };
    let inbox = Arc::clone(&worker.shared.inbox);
    let added = to_the_end(worker, async move { inbox.add_rules(vec![rule]).await }).await;
    match added {
        Some(Ok(rules)) => answer_json(StatusCode::OK, &rules.iter().map(stored).next().unwrap_or_default()),
        Some(Err(RuleRefused::Invalid { text, why })) => {
            refuse(&TurnError::invalid_param("rule", format!("rule: `{text}`: {why}")))
        }
        Some(Err(RuleRefused::Store(error))) => refuse(&store_failed(error)),
        None => refuse(&TurnError::new(ErrorKind::Internal, "the rule was lost; look at the rules again")),
    }
}

async fn revoke(State(worker): State<Arc<Worker>>, Path(id): Path<String>) -> Response {
    respond(async {
        if worker.shared.inbox.revoke_rule(&id).await.map_err(store_failed)? {
            return Ok(json!({ "id": id, "revoked": true }));
        }
        Err(TurnError::new(
            ErrorKind::NotFound,
            "there is no such rule; rules of the config are changed in its file",
        ))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TryBody {
    tool: String,
    input: Value,
    session: Option<String>,
    folder: Option<String>,
}

/// Which rule would decide, and why.
async fn try_rules(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    respond(async {
        let TryBody { tool, input, session, folder } = read_json(request, &worker).await?;
        let session = session.unwrap_or_default();
        let tool_use = ToolUse { tool, input, session, ..ToolUse::default() };
        let folder = Folder::new(folder.as_deref().unwrap_or("/").as_ref());
        worker.shared.inbox.try_rules(&tool_use, &folder).await.map_err(store_failed)
    })
    .await
}
