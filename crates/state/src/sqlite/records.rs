//! Agent turns, in SQL that Postgres accepts as well.

use std::collections::HashMap;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use toolgate_model::{JsonText, PrefixHash};
use uuid::Uuid;

use super::SqliteStore;
use super::columns::{hash, invalid, json, optional};
use crate::record::{ThreadLink, branch, too_large};
use crate::{
    AgentTurnRecord, CallerScope, Label, RecordStore, SessionChange, SessionId, StoreError, ThreadPart,
    UnixMillis,
};

const WRITING: &str = "storing a turn of an agent";
pub(super) const READING: &str = "reading turns of an agent";
const PRUNING: &str = "pruning old turns of agents";

const PUT: &str = "
    INSERT INTO turns (number, caller, run, session, request_hash, after_hash, agent, thread_hash, continues_hash,
        messages, steps, reply, at_ms, delivered_ms)
    SELECT COALESCE(MAX(number), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM turns
    WHERE TRUE
    ON CONFLICT (caller, run) DO UPDATE SET
        number = excluded.number,
        session = excluded.session,
        request_hash = excluded.request_hash,
        after_hash = excluded.after_hash,
        agent = excluded.agent,
        thread_hash = excluded.thread_hash,
        continues_hash = excluded.continues_hash,
        messages = excluded.messages,
        steps = excluded.steps,
        reply = excluded.reply,
        at_ms = excluded.at_ms,
        delivered_ms = COALESCE(turns.delivered_ms, excluded.delivered_ms)
    WHERE turns.after_hash IS NULL OR excluded.after_hash IS NOT NULL";

const MARK_DELIVERED: &str =
    "UPDATE turns SET delivered_ms = $3 WHERE caller = $1 AND run = $2 AND delivered_ms IS NULL";

const FIND: &str = "SELECT * FROM turns WHERE caller = $1 AND request_hash = $2 ORDER BY number DESC LIMIT 1";

const FIND_NUMBER: &str = "SELECT * FROM turns WHERE number = $1";

const LINKS: &str = "
    SELECT number, after_hash, continues_hash FROM turns
    WHERE caller = $1 AND session = $2 AND thread_hash = $3 ORDER BY number";

const LAST_THREAD: &str = "
    SELECT thread_hash FROM turns WHERE caller = $1 AND session = $2 AND agent = $3
    GROUP BY thread_hash ORDER BY MIN(number) DESC LIMIT 1";

const PRUNE_SESSIONS: &str = "
    DELETE FROM sessions WHERE (caller, id) IN
        (SELECT caller, id FROM sessions WHERE updated_ms < $1 LIMIT $2)";

const PRUNE: &str = "
    DELETE FROM turns WHERE number IN
        (SELECT number FROM turns WHERE at_ms < $1 AND NOT EXISTS
            (SELECT 1 FROM sessions WHERE sessions.caller = turns.caller AND sessions.id = turns.session)
        LIMIT $2)";

/// Hashes per statement: enough for all but very long conversations.
const HASHES_PER_QUERY: usize = 256;

static FIND_AFTER: LazyLock<String> = LazyLock::new(|| {
    let placeholders: Vec<String> = (2..HASHES_PER_QUERY + 2).map(|number| format!("${number}")).collect();
    format!(
        "SELECT * FROM turns WHERE caller = $1 AND after_hash IN ({}) ORDER BY number",
        placeholders.join(", ")
    )
});

impl RecordStore for SqliteStore {
    fn put_record<'a>(
        &'a self,
        scope: &'a CallerScope,
        record: AgentTurnRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if let Some(error) = too_large(&record) {
                return Err(error);
            }
            let mut connection = self.writes.acquire().await.map_err(self.failed(WRITING))?;
            let outcome = put(&mut connection, scope, &record).await;
            self.release(connection, outcome).map_err(self.failed(WRITING))
        })
    }

    fn mark_delivered<'a>(
        &'a self,
        scope: &'a CallerScope,
        run: Uuid,
        at: UnixMillis,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mark =
                sqlx::query(MARK_DELIVERED).bind(scope.as_str()).bind(run.simple().to_string()).bind(at.0);
            mark.execute(&self.writes).await.map(drop).map_err(self.failed(WRITING))
        })
    }

    fn record_for_request<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>> {
        Box::pin(async move {
            let find = sqlx::query(FIND).bind(scope.as_str()).bind(request.to_string());
            let row = find.fetch_optional(&self.reads).await.map_err(self.failed(READING))?;
            row.as_ref().map(read_row).transpose().map_err(self.failed(READING))
        })
    }

    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { self.after(scope, replies).await.map_err(self.failed(READING)) })
    }

    fn turns_of_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        thread: PrefixHash,
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { self.branch(scope, session, thread).await.map_err(self.failed(READING)) })
    }

    fn last_thread<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        agent: &'a Label,
    ) -> BoxFuture<'a, Result<Option<PrefixHash>, StoreError>> {
        Box::pin(async move {
            let find = sqlx::query_scalar::<_, String>(LAST_THREAD)
                .bind(scope.as_str())
                .bind(session.as_str())
                .bind(agent.as_str());
            let found = find.fetch_optional(&self.reads).await.map_err(self.failed(READING))?;
            let thread = found.map(|text| hash("thread_hash", &text)).transpose();
            thread.map_err(self.failed(READING))
        })
    }

    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            // After a crash between the two statements, the next prune deletes the turns.
            self.prune(PRUNE_SESSIONS, older_than, PRUNING).await?;
            self.prune(PRUNE, older_than, PRUNING).await
        })
    }
}

impl SqliteStore {
    async fn after(
        &self,
        scope: &CallerScope,
        replies: &[PrefixHash],
    ) -> Result<Vec<AgentTurnRecord>, sqlx::Error> {
        let mut found: HashMap<PrefixHash, AgentTurnRecord> = HashMap::new();
        for chunk in replies.chunks(HASHES_PER_QUERY) {
            // One prepared statement for any number of hashes: unused parameters repeat the last hash.
            let last = chunk.last().into_iter().cycle();
            let hashes = chunk.iter().chain(last).take(HASHES_PER_QUERY);
            let query = hashes.fold(sqlx::query(FIND_AFTER.as_str()).bind(scope.as_str()), |query, hash| {
                query.bind(hash.to_string())
            });
            for row in &query.fetch_all(&self.reads).await? {
                let record = read_row(row)?;
                found.extend(record.after.map(|after| (after, record)));
            }
        }
        Ok(replies.iter().filter_map(|hash| found.remove(hash)).collect())
    }

    async fn branch(
        &self,
        scope: &CallerScope,
        session: &SessionId,
        thread: PrefixHash,
    ) -> Result<Vec<AgentTurnRecord>, sqlx::Error> {
        // One transaction, so that all statements see the same turns.
        let mut connection = self.reads.acquire().await?;
        let mut snapshot = connection.begin().await?;
        let links = sqlx::query(LINKS).bind(scope.as_str()).bind(session.as_str()).bind(thread.to_string());
        let links = links.fetch_all(&mut *snapshot).await?;
        let links: Vec<ThreadLink> = links.iter().map(read_link).collect::<Result<_, _>>()?;
        let mut turns = Vec::new();
        for number in branch(&links) {
            let row = sqlx::query(FIND_NUMBER).bind(number).fetch_one(&mut *snapshot).await?;
            turns.push(read_row(&row)?);
        }
        snapshot.rollback().await?;
        Ok(turns)
    }
}

async fn put(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    record: &AgentTurnRecord,
) -> Result<(), sqlx::Error> {
    let AgentTurnRecord { run, key, after, session, thread, steps, reply, at, delivered } = record;
    let part = thread.as_ref();
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(PUT)
        .bind(scope.as_str())
        .bind(run.simple().to_string())
        .bind(session.as_str())
        .bind(key.to_string())
        .bind(after.map(|hash| hash.to_string()))
        .bind(part.map(|part| part.agent.as_str()))
        .bind(part.map(|part| part.thread.to_string()))
        .bind(part.and_then(|part| part.continues).map(|hash| hash.to_string()))
        .bind(part.map(|part| part.messages.as_str()))
        .bind(steps.as_str())
        .bind(reply.as_ref().map(JsonText::as_str))
        .bind(at.0)
        .bind(delivered.map(|at| at.0))
        .execute(&mut *transaction)
        .await?;
    if thread.is_some() {
        super::sessions::update(&mut transaction, scope, session, &SessionChange::at(*at)).await?;
    }
    transaction.commit().await
}

fn read_link(row: &SqliteRow) -> Result<ThreadLink, sqlx::Error> {
    Ok(ThreadLink {
        number: row.try_get("number")?,
        after: optional(row, "after_hash", hash)?,
        continues: optional(row, "continues_hash", hash)?,
    })
}

pub(super) fn read_row(row: &SqliteRow) -> Result<AgentTurnRecord, sqlx::Error> {
    Ok(AgentTurnRecord {
        run: Uuid::parse_str(row.try_get("run")?).map_err(invalid("run"))?,
        key: hash("request_hash", row.try_get("request_hash")?)?,
        after: optional(row, "after_hash", hash)?,
        session: SessionId::parse(row.try_get("session")?).map_err(invalid("session"))?,
        thread: read_thread(row)?,
        steps: json("steps", row.try_get("steps")?)?,
        reply: optional(row, "reply", json)?,
        at: UnixMillis(row.try_get("at_ms")?),
        delivered: row.try_get::<Option<i64>, _>("delivered_ms")?.map(UnixMillis),
    })
}

fn read_thread(row: &SqliteRow) -> Result<Option<ThreadPart>, sqlx::Error> {
    let Some(thread) = optional(row, "thread_hash", hash)? else { return Ok(None) };
    Ok(Some(ThreadPart {
        agent: Label::new(row.try_get::<String, _>("agent")?),
        thread,
        continues: optional(row, "continues_hash", hash)?,
        messages: json("messages", row.try_get("messages")?)?,
    }))
}
