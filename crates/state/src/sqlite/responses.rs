//! Stored responses, in SQL that Postgres accepts as well.

use futures_util::future::BoxFuture;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{ROWS_PER_PRUNE, SqliteStore};
use crate::response::refuse_oversized;
use crate::{CallerScope, Deletion, ResponseId, ResponseStore, StoreError, StoredResponse, UnixMillis};

const PUT: &str = "
    INSERT INTO responses (caller, id, previous_id, created_at_ms, model, body)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (caller, id) DO UPDATE SET
        previous_id = excluded.previous_id,
        created_at_ms = excluded.created_at_ms,
        model = excluded.model,
        body = excluded.body";

const FIND: &str = "
    SELECT id, previous_id, created_at_ms, model, body FROM responses WHERE caller = $1 AND id = $2";

const DELETE: &str = "DELETE FROM responses WHERE caller = $1 AND id = $2";

const PRUNE: &str = "
    DELETE FROM responses WHERE (caller, id) IN
        (SELECT caller, id FROM responses WHERE created_at_ms < $1 LIMIT $2)";

impl ResponseStore for SqliteStore {
    fn put_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        response: StoredResponse,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            refuse_oversized(&response)?;
            let StoredResponse { id, previous, created_at, model, body } = response;
            sqlx::query(PUT)
                .bind(scope.as_str())
                .bind(id.as_str())
                .bind(previous.as_ref().map(ResponseId::as_str))
                .bind(created_at.0)
                .bind(model)
                .bind(body)
                .execute(&self.writes)
                .await
                .map_err(self.failed("storing a response"))?;
            Ok(())
        })
    }

    fn response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>> {
        Box::pin(async move {
            let row = sqlx::query(FIND)
                .bind(scope.as_str())
                .bind(id.as_str())
                .fetch_optional(&self.reads)
                .await
                .map_err(self.failed("reading a stored response"))?;
            row.as_ref().map(read_row).transpose().map_err(self.failed("reading a stored response"))
        })
    }

    fn delete_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>> {
        Box::pin(async move {
            let done = sqlx::query(DELETE)
                .bind(scope.as_str())
                .bind(id.as_str())
                .execute(&self.writes)
                .await
                .map_err(self.failed("deleting a stored response"))?;
            match done.rows_affected() {
                0 => Ok(Deletion::NotFound),
                _ => Ok(Deletion::Deleted),
            }
        })
    }

    fn prune_responses(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.prune(PRUNE, older_than, "pruning old responses"))
    }
}

impl SqliteStore {
    /// Repeats a statement that deletes up to [`ROWS_PER_PRUNE`] rows until none is left.
    pub(super) async fn prune(
        &self,
        sql: &'static str,
        older_than: UnixMillis,
        operation: &'static str,
    ) -> Result<u64, StoreError> {
        let mut pruned = 0;
        loop {
            let done = sqlx::query(sql)
                .bind(older_than.0)
                .bind(ROWS_PER_PRUNE)
                .execute(&self.writes)
                .await
                .map_err(self.failed(operation))?;
            match done.rows_affected() {
                0 => return Ok(pruned),
                some => pruned += some,
            }
        }
    }
}

fn read_row(row: &SqliteRow) -> Result<StoredResponse, sqlx::Error> {
    Ok(StoredResponse {
        id: ResponseId::new(row.try_get::<String, _>("id")?),
        previous: row.try_get::<Option<String>, _>("previous_id")?.map(ResponseId::new),
        created_at: UnixMillis(row.try_get("created_at_ms")?),
        model: row.try_get("model")?,
        body: row.try_get("body")?,
    })
}
