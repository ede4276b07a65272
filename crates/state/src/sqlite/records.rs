//! Records of agent turns, in SQL that Postgres accepts as well.

use std::collections::HashMap;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use toolgate_model::{JsonText, PrefixHash};

use super::SqliteStore;
use crate::record::too_large;
use crate::{AgentTurnRecord, CallerScope, RecordStore, SessionId, StoreError, UnixMillis};

const WRITING: &str = "storing a turn of an agent";
const READING: &str = "reading turns of an agent";
const PRUNING: &str = "pruning old turns of agents";

const PUT: &str = "
    INSERT INTO turn_records (caller, request_hash, after_hash, session, steps, reply, at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (caller, request_hash) DO UPDATE SET
        after_hash = excluded.after_hash,
        session = excluded.session,
        steps = excluded.steps,
        reply = excluded.reply,
        at_ms = excluded.at_ms
    WHERE turn_records.after_hash IS NULL OR excluded.after_hash IS NOT NULL";

const SET_HEAD: &str = "
    INSERT INTO session_heads (caller, session, request_hash, at_ms) VALUES ($1, $2, $3, $4)
    ON CONFLICT (caller, session) DO UPDATE SET
        request_hash = excluded.request_hash,
        at_ms = excluded.at_ms";

const DELETE_HEAD: &str = "DELETE FROM session_heads WHERE caller = $1 AND session = $2";

const FIND: &str = "
    SELECT request_hash, after_hash, session, steps, reply, at_ms FROM turn_records
    WHERE caller = $1 AND request_hash = $2";

const FIND_HEAD: &str = "
    SELECT r.request_hash, r.after_hash, r.session, r.steps, r.reply, r.at_ms
    FROM session_heads h JOIN turn_records r ON r.caller = h.caller AND r.request_hash = h.request_hash
    WHERE h.caller = $1 AND h.session = $2";

const PRUNE: &str = "
    DELETE FROM turn_records WHERE (caller, request_hash) IN
        (SELECT caller, request_hash FROM turn_records WHERE at_ms < $1 LIMIT $2)";

const PRUNE_HEADS: &str = "
    DELETE FROM session_heads WHERE (caller, session) IN
        (SELECT caller, session FROM session_heads WHERE at_ms < $1 LIMIT $2)";

/// Hashes per statement: enough for all but very long conversations.
const HASHES_PER_QUERY: usize = 256;

static FIND_AFTER: LazyLock<String> = LazyLock::new(|| {
    let placeholders: Vec<String> = (2..HASHES_PER_QUERY + 2).map(|number| format!("${number}")).collect();
    format!(
        "SELECT request_hash, after_hash, session, steps, reply, at_ms FROM turn_records
        WHERE caller = $1 AND after_hash IN ({})",
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
                if record.is_complete() {
                    self.delete_head(scope, &record.session).await?;
                }
                return Err(error);
            }
            let mut connection = self.writes.acquire().await.map_err(self.failed(WRITING))?;
            let outcome = put(&mut connection, scope, record).await;
            self.release(connection, outcome).map_err(self.failed(WRITING))
        })
    }

    fn record_for_request<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>> {
        Box::pin(async move {
            self.find_one(FIND, scope, request.to_string()).await.map_err(self.failed(READING))
        })
    }

    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { self.after(scope, replies).await.map_err(self.failed(READING)) })
    }

    fn session_head<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>> {
        Box::pin(async move {
            self.find_one(FIND_HEAD, scope, session.to_string()).await.map_err(self.failed(READING))
        })
    }

    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            // A head without its record is not found, so a crash between the two statements does no harm.
            self.prune(PRUNE_HEADS, older_than, PRUNING).await?;
            self.prune(PRUNE, older_than, PRUNING).await
        })
    }
}

impl SqliteStore {
    async fn delete_head(&self, scope: &CallerScope, session: &SessionId) -> Result<(), StoreError> {
        let delete = sqlx::query(DELETE_HEAD).bind(scope.as_str()).bind(session.as_str());
        delete.execute(&self.writes).await.map_err(self.failed(WRITING))?;
        Ok(())
    }

    async fn find_one(
        &self,
        sql: &'static str,
        scope: &CallerScope,
        name: String,
    ) -> Result<Option<AgentTurnRecord>, sqlx::Error> {
        let row = sqlx::query(sql).bind(scope.as_str()).bind(name).fetch_optional(&self.reads).await?;
        row.as_ref().map(read_row).transpose()
    }

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
}

async fn put(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    record: AgentTurnRecord,
) -> Result<(), sqlx::Error> {
    let is_complete = record.is_complete();
    let AgentTurnRecord { key, after, session, steps, reply, at } = record;
    let key = key.to_string();
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(PUT)
        .bind(scope.as_str())
        .bind(&key)
        .bind(after.map(|hash| hash.to_string()))
        .bind(session.as_str())
        .bind(steps.as_str())
        .bind(reply.as_ref().map(JsonText::as_str))
        .bind(at.0)
        .execute(&mut *transaction)
        .await?;
    if is_complete {
        sqlx::query(SET_HEAD)
            .bind(scope.as_str())
            .bind(session.as_str())
            .bind(&key)
            .bind(at.0)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}

fn read_row(row: &SqliteRow) -> Result<AgentTurnRecord, sqlx::Error> {
    let after: Option<String> = row.try_get("after_hash")?;
    let reply: Option<String> = row.try_get("reply")?;
    Ok(AgentTurnRecord {
        key: hash("request_hash", &row.try_get::<String, _>("request_hash")?)?,
        after: after.map(|text| hash("after_hash", &text)).transpose()?,
        session: SessionId::parse(row.try_get("session")?)
            .map_err(|error| undecodable("session", Box::new(error)))?,
        steps: json("steps", row.try_get("steps")?)?,
        reply: reply.map(|text| json("reply", &text)).transpose()?,
        at: UnixMillis(row.try_get("at_ms")?),
    })
}

fn hash(column: &str, text: &str) -> Result<PrefixHash, sqlx::Error> {
    PrefixHash::from_hex(text).ok_or_else(|| undecodable(column, "not a hexadecimal hash".into()))
}

fn json(column: &str, text: &str) -> Result<JsonText, sqlx::Error> {
    JsonText::parse(text).map_err(|error| undecodable(column, Box::new(error)))
}

fn undecodable(column: &str, source: Box<dyn std::error::Error + Send + Sync>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source }
}
