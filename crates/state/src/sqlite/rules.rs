//! Rules made while the gateway runs, in SQL that Postgres accepts as well.

use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use toolgate_model::approval::QuestionId;

use super::SqliteStore;
use super::columns::invalid;
use crate::{MAX_STORED_RULES, RuleScope, RuleStore, StoreError, StoredRule, UnixMillis};

const WRITING: &str = "storing a rule";
const READING: &str = "reading rules";
const PRUNING: &str = "pruning old rules";

const COUNT: &str =
    "SELECT COUNT(*) FROM rules WHERE NOT revoked AND (expires_ms IS NULL OR expires_ms > $1)";

const ADD: &str = "
    INSERT INTO rules (id, text, scope, scope_name, question, made_by, created_ms, expires_ms, last_used_ms, revoked)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, FALSE)
    ON CONFLICT (id) DO NOTHING";

const IN_FORCE: &str = "
    SELECT * FROM rules WHERE NOT revoked AND (expires_ms IS NULL OR expires_ms > $1)
    ORDER BY created_ms, id";

const REVOKE: &str = "UPDATE rules SET revoked = TRUE WHERE id = $1 AND NOT revoked";

const NOTE_USE: &str = "
    UPDATE rules SET last_used_ms = $2 WHERE id = $1 AND (last_used_ms IS NULL OR last_used_ms < $2)";

/// The time of a revocation is not stored, so a revoked rule is as old as it is.
const PRUNE: &str = "
    DELETE FROM rules WHERE id IN
        (SELECT id FROM rules WHERE expires_ms < $1 OR (revoked AND created_ms < $1) LIMIT $2)";

impl RuleStore for SqliteStore {
    fn add_rule<'a>(&'a self, rule: &'a StoredRule) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut connection = self.writes.acquire().await.map_err(self.failed(WRITING))?;
            let outcome = add(&mut connection, rule).await;
            match self.release(connection, outcome).map_err(self.failed(WRITING))? {
                Addition::Added => Ok(()),
                Addition::TooMany => Err(StoreError::TooManyRules),
            }
        })
    }

    fn rules(&self, now: UnixMillis) -> BoxFuture<'_, Result<Vec<StoredRule>, StoreError>> {
        Box::pin(async move {
            let list = sqlx::query(IN_FORCE).bind(now.0);
            let rows = list.fetch_all(&self.reads).await.map_err(self.failed(READING))?;
            rows.iter().map(read_row).collect::<Result<_, _>>().map_err(self.failed(READING))
        })
    }

    fn revoke_rule<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let done = sqlx::query(REVOKE).bind(id).execute(&self.writes).await;
            Ok(done.map_err(self.failed(WRITING))?.rows_affected() > 0)
        })
    }

    fn note_rule_use<'a>(&'a self, id: &'a str, at: UnixMillis) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let noted = sqlx::query(NOTE_USE).bind(id).bind(at.0).execute(&self.writes).await;
            noted.map(drop).map_err(self.failed(WRITING))
        })
    }

    fn prune_rules(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.prune(PRUNE, older_than, PRUNING))
    }
}

enum Addition {
    Added,
    TooMany,
}

async fn add(connection: &mut SqliteConnection, rule: &StoredRule) -> Result<Addition, sqlx::Error> {
    let StoredRule { id, text, scope, question, by, created, expires, last_used } = rule;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let in_force: i64 = sqlx::query_scalar(COUNT).bind(created.0).fetch_one(&mut *transaction).await?;
    if usize::try_from(in_force).is_ok_and(|count| count >= MAX_STORED_RULES) {
        transaction.rollback().await?;
        return Ok(Addition::TooMany);
    }
    let (scope, scope_name) = match scope {
        RuleScope::Session(session) => (SESSION, session.as_str()),
        RuleScope::Project(folder) => (PROJECT, folder.as_str()),
        RuleScope::All => (ALL, ""),
    };
    sqlx::query(ADD)
        .bind(id)
        .bind(text)
        .bind(scope)
        .bind(scope_name)
        .bind(question.as_ref().map(QuestionId::as_str))
        .bind(by)
        .bind(created.0)
        .bind(expires.map(|at| at.0))
        .bind(last_used.map(|at| at.0))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Addition::Added)
}

const SESSION: &str = "session";
const PROJECT: &str = "project";
const ALL: &str = "all";

fn read_row(row: &SqliteRow) -> Result<StoredRule, sqlx::Error> {
    let time = |column: &str| row.try_get::<Option<i64>, _>(column).map(|at| at.map(UnixMillis));
    let name: String = row.try_get("scope_name")?;
    let scope = match row.try_get("scope")? {
        SESSION => RuleScope::Session(name),
        PROJECT => RuleScope::Project(name),
        ALL => RuleScope::All,
        _ => return Err(invalid("scope")("not the scope of a rule")),
    };
    Ok(StoredRule {
        id: row.try_get("id")?,
        text: row.try_get("text")?,
        scope,
        question: row.try_get::<Option<&str>, _>("question")?.map(QuestionId::new),
        by: row.try_get("made_by")?,
        created: UnixMillis(row.try_get("created_ms")?),
        expires: time("expires_ms")?,
        last_used: time("last_used_ms")?,
    })
}
