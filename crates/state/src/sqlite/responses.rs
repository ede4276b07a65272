//! Stored responses, in SQL that Postgres accepts as well.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use super::{ROWS_PER_PRUNE, SqliteStore};
use crate::response::refuse_oversized;
use crate::{
    CallerScope, Deletion, ItemId, ResponseId, ResponseStore, StoreError, StoredItem, StoredResponse,
    UnixMillis,
};

const PUT: &str = "
    INSERT INTO responses (caller, id, previous_id, created_at_ms, model, body)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (caller, id) DO UPDATE SET
        previous_id = excluded.previous_id,
        created_at_ms = excluded.created_at_ms,
        model = excluded.model,
        body = excluded.body";

const PUT_ITEM: &str = "
    INSERT INTO response_items (caller, id, response_id, created_at_ms, body)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (caller, id) DO UPDATE SET
        response_id = excluded.response_id,
        created_at_ms = excluded.created_at_ms,
        body = excluded.body";

const FIND: &str = "
    SELECT id, previous_id, created_at_ms, model, body FROM responses WHERE caller = $1 AND id = $2";

const FIND_ITEM: &str = "SELECT body FROM response_items WHERE caller = $1 AND id = $2";

const DELETE: &str = "DELETE FROM responses WHERE caller = $1 AND id = $2";

const DELETE_ITEMS: &str = "DELETE FROM response_items WHERE caller = $1 AND response_id = $2";

const PRUNE: &str = "
    DELETE FROM responses WHERE (caller, id) IN
        (SELECT caller, id FROM responses WHERE created_at_ms < $1 LIMIT $2)";

const PRUNE_ITEMS: &str = "
    DELETE FROM response_items WHERE (caller, id) IN
        (SELECT caller, id FROM response_items WHERE created_at_ms < $1 LIMIT $2)";

const WRITING: &str = "storing a response";
const READING: &str = "reading a stored response";
const DELETING: &str = "deleting a stored response";
const PRUNING: &str = "pruning old responses";

impl ResponseStore for SqliteStore {
    fn put_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        response: StoredResponse,
        items: &'a [StoredItem],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            refuse_oversized(&response, items)?;
            let mut connection = self.writes.acquire().await.map_err(self.failed(WRITING))?;
            let outcome = put(&mut connection, scope, &response, items).await;
            self.release(connection, outcome).map_err(self.failed(WRITING))
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
                .map_err(self.failed(READING))?;
            row.as_ref().map(read_row).transpose().map_err(self.failed(READING))
        })
    }

    fn response_items<'a>(
        &'a self,
        scope: &'a CallerScope,
        ids: &'a BTreeSet<ItemId>,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>> {
        Box::pin(async move {
            let mut items = Vec::new();
            for id in ids {
                let found = sqlx::query_scalar(FIND_ITEM).bind(scope.as_str()).bind(id.as_str());
                let body = found.fetch_optional(&self.reads).await.map_err(self.failed(READING))?;
                items.extend(body.map(|body| StoredItem { id: id.clone(), body }));
            }
            Ok(items)
        })
    }

    fn delete_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>> {
        Box::pin(async move {
            let mut connection = self.writes.acquire().await.map_err(self.failed(DELETING))?;
            let outcome = delete(&mut connection, scope, id).await;
            self.release(connection, outcome).map_err(self.failed(DELETING))
        })
    }

    fn prune_responses(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            self.prune(PRUNE_ITEMS, older_than, PRUNING).await?;
            self.prune(PRUNE, older_than, PRUNING).await
        })
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

async fn put(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    response: &StoredResponse,
    items: &[StoredItem],
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(PUT)
        .bind(scope.as_str())
        .bind(response.id.as_str())
        .bind(response.previous.as_ref().map(ResponseId::as_str))
        .bind(response.created_at.0)
        .bind(response.model.as_str())
        .bind(response.body.as_str())
        .execute(&mut *transaction)
        .await?;
    delete_items(&mut transaction, scope, &response.id).await?;
    for item in items {
        sqlx::query(PUT_ITEM)
            .bind(scope.as_str())
            .bind(item.id.as_str())
            .bind(response.id.as_str())
            .bind(response.created_at.0)
            .bind(item.body.as_str())
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}

async fn delete(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    id: &ResponseId,
) -> Result<Deletion, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    delete_items(&mut transaction, scope, id).await?;
    let done = sqlx::query(DELETE).bind(scope.as_str()).bind(id.as_str()).execute(&mut *transaction).await?;
    transaction.commit().await?;
    match done.rows_affected() {
        0 => Ok(Deletion::NotFound),
        _ => Ok(Deletion::Deleted),
    }
}

async fn delete_items(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    id: &ResponseId,
) -> Result<(), sqlx::Error> {
    sqlx::query(DELETE_ITEMS).bind(scope.as_str()).bind(id.as_str()).execute(connection).await.map(drop)
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
