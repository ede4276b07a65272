//! Sessions, in SQL that Postgres accepts as well.

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::SqliteStore;
use super::columns::invalid;
use super::records;
use crate::session::{MAX_PAGE_BYTES, state_name, state_named};
use crate::{
    CallerScope, Callers, Deletion, Label, MAX_PAGE_ROWS, SessionChange, SessionCursor, SessionId,
    SessionPage, SessionRecord, SessionStore, StoreError, TurnCursor, TurnPage, UnixMillis,
};

const WRITING: &str = "storing a session";
const READING: &str = "reading sessions";
const DELETING: &str = "deleting a session";

/// A null keeps the value.
const UPDATE: &str = "
    INSERT INTO sessions (caller, id, title, model, agent, state, created_ms, updated_ms)
    VALUES ($1, $2, COALESCE($3, ''), COALESCE($4, ''), COALESCE($5, ''), COALESCE($6, 'idle'), $7, $7)
    ON CONFLICT (caller, id) DO UPDATE SET
        title = CASE WHEN sessions.title = '' THEN excluded.title ELSE sessions.title END,
        model = COALESCE($4, sessions.model),
        agent = COALESCE($5, sessions.agent),
        state = COALESCE($6, sessions.state),
        updated_ms = CASE
            WHEN excluded.updated_ms > sessions.updated_ms THEN excluded.updated_ms
            ELSE sessions.updated_ms
        END";

const RENAME: &str = "UPDATE sessions SET title = $3 WHERE caller = $1 AND id = $2";

const FIND: &str = "SELECT * FROM sessions WHERE caller = $1 AND id = $2";

const LIST_ALL: &str = "
    SELECT * FROM sessions WHERE (updated_ms, caller, id) < ($1, $2, $3)
    ORDER BY updated_ms DESC, caller DESC, id DESC LIMIT $4";

const LIST: &str = "
    SELECT * FROM sessions WHERE caller = $5 AND (updated_ms, caller, id) < ($1, $2, $3)
    ORDER BY updated_ms DESC, id DESC LIMIT $4";

const LIST_ALL_FIRST: &str = "SELECT * FROM sessions ORDER BY updated_ms DESC, caller DESC, id DESC LIMIT $1";

const LIST_FIRST: &str =
    "SELECT * FROM sessions WHERE caller = $2 ORDER BY updated_ms DESC, id DESC LIMIT $1";

const TURNS: &str = "
    SELECT * FROM turns WHERE caller = $1 AND session = $2 AND number > $3 ORDER BY number LIMIT $4";

const DELETE: &str = "DELETE FROM sessions WHERE caller = $1 AND id = $2";

const DELETE_TURNS: &str = "DELETE FROM turns WHERE caller = $1 AND session = $2";

impl SessionStore for SqliteStore {
    fn update_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        change: SessionChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut connection = self.writes.acquire().await.map_err(self.failed(WRITING))?;
            update(&mut connection, scope, id, &change).await.map_err(self.failed(WRITING))
        })
    }

    fn rename_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        title: Label,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let rename = sqlx::query(RENAME).bind(scope.as_str()).bind(id.as_str()).bind(title.as_str());
            let done = rename.execute(&self.writes).await.map_err(self.failed(WRITING))?;
            Ok(done.rows_affected() > 0)
        })
    }

    fn session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let find = sqlx::query(FIND).bind(scope.as_str()).bind(id.as_str());
            let row = find.fetch_optional(&self.reads).await.map_err(self.failed(READING))?;
            row.as_ref().map(read_row).transpose().map_err(self.failed(READING))
        })
    }

    fn sessions<'a>(
        &'a self,
        callers: Callers<'a>,
        after: Option<&'a SessionCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<SessionPage, StoreError>> {
        Box::pin(async move {
            let limit = limit.min(MAX_PAGE_ROWS);
            let sessions = self.list(callers, after, limit).await.map_err(self.failed(READING))?;
            Ok(SessionPage::of(sessions, limit))
        })
    }

    fn session_turns<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        after: Option<TurnCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TurnPage, StoreError>> {
        Box::pin(async move {
            let limit = limit.min(MAX_PAGE_ROWS);
            self.turns(scope, id, after, limit).await.map_err(self.failed(records::READING))
        })
    }

    fn delete_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>> {
        Box::pin(async move {
            let mut connection = self.writes.acquire().await.map_err(self.failed(DELETING))?;
            let outcome = delete(&mut connection, scope, id).await;
            self.release(connection, outcome).map_err(self.failed(DELETING))
        })
    }
}

impl SqliteStore {
    /// Up to one session more than `limit`, which shows that there is a next page.
    async fn list(
        &self,
        callers: Callers<'_>,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRecord>, sqlx::Error> {
        let rows = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let query = match (after, callers) {
            (None, Callers::All) => sqlx::query(LIST_ALL_FIRST).bind(rows),
            (None, Callers::One(scope)) => sqlx::query(LIST_FIRST).bind(rows).bind(scope.as_str()),
            (Some(after), Callers::All) => bind_cursor(LIST_ALL, after).bind(rows),
            (Some(after), Callers::One(scope)) => bind_cursor(LIST, after).bind(rows).bind(scope.as_str()),
        };
        query.fetch_all(&self.reads).await?.iter().map(read_row).collect()
    }

    async fn turns(
        &self,
        scope: &CallerScope,
        id: &SessionId,
        after: Option<TurnCursor>,
        limit: usize,
    ) -> Result<TurnPage, sqlx::Error> {
        let mut rows = sqlx::query(TURNS)
            .bind(scope.as_str())
            .bind(id.as_str())
            .bind(after.map_or(i64::MIN, |after| after.0))
            .bind(i64::try_from(limit + 1).unwrap_or(i64::MAX))
            .fetch(&self.reads);
        let mut page = TurnPage::default();
        let mut bytes = 0;
        while let Some(row) = rows.try_next().await? {
            if page.turns.len() >= limit || bytes > MAX_PAGE_BYTES {
                return Ok(page);
            }
            let turn = records::read_row(&row)?;
            bytes += turn.bytes();
            page.turns.push(turn);
            page.next = Some(TurnCursor(row.try_get("number")?));
        }
        page.next = None;
        Ok(page)
    }
}

type Query = sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn bind_cursor(sql: &'static str, cursor: &SessionCursor) -> Query {
    sqlx::query(sql)
        .bind(cursor.updated.0)
        .bind(cursor.caller.as_str().to_owned())
        .bind(cursor.id.as_str().to_owned())
}

/// Changes a session, and creates it if it is new.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    id: &SessionId,
    change: &SessionChange,
) -> Result<(), sqlx::Error> {
    let SessionChange { suggested_title, model, agent, state, at } = change;
    sqlx::query(UPDATE)
        .bind(scope.as_str())
        .bind(id.as_str())
        .bind(suggested_title.as_ref().map(Label::as_str))
        .bind(model.as_ref().map(Label::as_str))
        .bind(agent.as_ref().map(Label::as_str))
        .bind(state.map(state_name))
        .bind(at.0)
        .execute(connection)
        .await
        .map(drop)
}

async fn delete(
    connection: &mut SqliteConnection,
    scope: &CallerScope,
    id: &SessionId,
) -> Result<Deletion, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let turns = sqlx::query(DELETE_TURNS).bind(scope.as_str()).bind(id.as_str());
    turns.execute(&mut *transaction).await?;
    let done = sqlx::query(DELETE).bind(scope.as_str()).bind(id.as_str()).execute(&mut *transaction).await?;
    transaction.commit().await?;
    match done.rows_affected() {
        0 => Ok(Deletion::NotFound),
        _ => Ok(Deletion::Deleted),
    }
}

fn read_row(row: &SqliteRow) -> Result<SessionRecord, sqlx::Error> {
    let label = |column: &str| row.try_get::<String, _>(column).map(Label::new);
    let state = state_named(row.try_get("state")?);
    Ok(SessionRecord {
        caller: CallerScope::new(row.try_get::<String, _>("caller")?),
        id: SessionId::parse(row.try_get("id")?).map_err(invalid("id"))?,
        title: label("title")?,
        model: label("model")?,
        agent: label("agent")?,
        state: state.ok_or_else(|| invalid("state")("not a state of a session"))?,
        created: UnixMillis(row.try_get("created_ms")?),
        updated: UnixMillis(row.try_get("updated_ms")?),
    })
}
