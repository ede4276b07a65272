//! Questions, in SQL that Postgres accepts as well.

use futures_util::future::BoxFuture;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use toolgate_model::approval::{Outcome, Question, QuestionId, Resolution};

use super::SqliteStore;
use super::columns::invalid;
use crate::question::{write_question, write_resolution};
use crate::{MAX_QUESTIONS_PER_PAGE, QuestionStore, Resolved, StoreError, StoredQuestion, UnixMillis};

const ASKING: &str = "storing a question";
const RESOLVING: &str = "resolving a question";
const READING: &str = "reading questions";
const PRUNING: &str = "pruning old questions";

const ASK: &str = "
    INSERT INTO questions (id, caller, session, agent, state, asked_ms, deadline_ms, question)
    VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7)
    ON CONFLICT (id) DO NOTHING";

const RESOLVE: &str = "
    UPDATE questions SET state = $2, resolved_ms = $3, resolution = $4
    WHERE id = $1 AND resolution IS NULL";

const SET_DEADLINE: &str = "UPDATE questions SET deadline_ms = $2 WHERE id = $1 AND resolution IS NULL";

const FIND: &str = "SELECT * FROM questions WHERE id = $1";

const WAITING: &str = "SELECT * FROM questions WHERE state = 'waiting' ORDER BY asked_ms, id LIMIT $1";

const RESOLVED: &str = "
    SELECT * FROM questions WHERE resolved_ms < $1 ORDER BY resolved_ms DESC, id LIMIT $2";

const PRUNE: &str = "
    DELETE FROM questions WHERE id IN
        (SELECT id FROM questions WHERE resolved_ms < $1 LIMIT $2)";

impl QuestionStore for SqliteStore {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let written = write_question(question)?;
            let Question { id, tool_use, why: _, asked_at, deadline } = question;
            sqlx::query(ASK)
                .bind(id.as_str())
                .bind(tool_use.caller.as_str())
                .bind(tool_use.session.as_str())
                .bind(tool_use.agent.as_str())
                .bind(asked_at)
                .bind(deadline)
                .bind(written)
                .execute(&self.writes)
                .await
                .map(drop)
                .map_err(self.failed(ASKING))
        })
    }

    fn resolve<'a>(
        &'a self,
        id: &'a QuestionId,
        resolution: &'a Resolution,
    ) -> BoxFuture<'a, Result<Resolved, StoreError>> {
        Box::pin(async move {
            let written = write_resolution(resolution)?;
            let resolve = sqlx::query(RESOLVE)
                .bind(id.as_str())
                .bind(state(&resolution.outcome))
                .bind(resolution.at)
                .bind(written);
            // One statement, so that of two resolutions at the same time only one changes the row.
            let done = resolve.execute(&self.writes).await.map_err(self.failed(RESOLVING))?;
            if done.rows_affected() > 0 {
                return Ok(Resolved::Now);
            }
            let found = self.question(id).await?;
            Ok(found.and_then(|stored| stored.resolution).map_or(Resolved::Unknown, Resolved::Before))
        })
    }

    fn set_deadline<'a>(
        &'a self,
        id: &'a QuestionId,
        deadline: Option<UnixMillis>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let change = sqlx::query(SET_DEADLINE).bind(id.as_str()).bind(deadline.map(|at| at.0));
            let done = change.execute(&self.writes).await.map_err(self.failed(ASKING))?;
            Ok(done.rows_affected() > 0)
        })
    }

    fn question<'a>(
        &'a self,
        id: &'a QuestionId,
    ) -> BoxFuture<'a, Result<Option<StoredQuestion>, StoreError>> {
        Box::pin(async move {
            let find = sqlx::query(FIND).bind(id.as_str());
            let row = find.fetch_optional(&self.reads).await.map_err(self.failed(READING))?;
            row.as_ref().map(read_row).transpose().map_err(self.failed(READING))
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, StoreError>> {
        Box::pin(async move {
            let list = sqlx::query(WAITING).bind(page(MAX_QUESTIONS_PER_PAGE));
            let rows = list.fetch_all(&self.reads).await.map_err(self.failed(READING))?;
            rows.iter().map(read_question).collect::<Result<_, _>>().map_err(self.failed(READING))
        })
    }

    fn resolved(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredQuestion>, StoreError>> {
        Box::pin(async move {
            let list = sqlx::query(RESOLVED).bind(before.0).bind(page(limit));
            let rows = list.fetch_all(&self.reads).await.map_err(self.failed(READING))?;
            rows.iter().map(read_row).collect::<Result<_, _>>().map_err(self.failed(READING))
        })
    }

    fn prune_questions(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.prune(PRUNE, older_than, PRUNING))
    }
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_QUESTIONS_PER_PAGE)).unwrap_or(i64::MAX)
}

fn state(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Decided(_) => "decided",
        Outcome::TimedOut => "timed_out",
        Outcome::Withdrawn => "withdrawn",
    }
}

fn read_row(row: &SqliteRow) -> Result<StoredQuestion, sqlx::Error> {
    let resolution = row.try_get::<Option<&str>, _>("resolution")?;
    let resolution = resolution.map(serde_json::from_str).transpose().map_err(invalid("resolution"))?;
    Ok(StoredQuestion { question: read_question(row)?, resolution })
}

fn read_question(row: &SqliteRow) -> Result<Question, sqlx::Error> {
    let question: Question = serde_json::from_str(row.try_get("question")?).map_err(invalid("question"))?;
    Ok(Question { deadline: row.try_get("deadline_ms")?, ..question })
}
