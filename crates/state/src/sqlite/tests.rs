//! SQLite files. Everything else is in the conformance suite.

use std::error::Error as StdError;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{try_join, try_join_all};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;
use toolgate_model::approval::Question;

use super::*;
use crate::conformance::{self, record, response};
use crate::{
    CallerScope, Deletion, MAX_RESPONSE_BYTES, QuestionStore, RecordStore, Resolved, ResponseId,
    ResponseStore, RuleStore, SessionStore, StoreUrl, StoredResponse, UnixMillis, UsageGroup, UsageStore,
    open,
};

pub(super) struct TestFolder(TempDir);

impl TestFolder {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn file(&self) -> PathBuf {
        self.0.path().join("toolgate.db")
    }
}

/// A connection without toolgate's settings, as another program would open it.
pub(super) async fn plain_connection(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

async fn open_error(path: &Path) -> StoreError {
    SqliteStore::at(path).await.unwrap_err()
}

fn alice() -> CallerScope {
    CallerScope::new("alice")
}

#[tokio::test]
async fn the_conformance_suite_passes_in_a_file() {
    let folder = TestFolder::new();
    let files = std::cell::Cell::new(0);
    conformance::run(|| {
        files.set(files.get() + 1);
        let url = StoreUrl::SqliteFile(folder.0.path().join(format!("{}.db", files.get())));
        async move { open(&url).await }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_conformance_suite_passes_in_memory() {
    conformance::run(|| open(&StoreUrl::SqliteMemory)).await.unwrap();
}

#[tokio::test]
async fn data_survives_closing_and_reopening() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();
    store.record_usage(&[record(1, 1)]).await.unwrap();
    let turn = conformance::turn_record(1, "s", 1);
    store.put_record(&alice(), turn.clone()).await.unwrap();
    store.mark_delivered(&alice(), turn.run, UnixMillis(2)).await.unwrap();
    let sums = store.usage_summary(UnixMillis(0), UsageGroup::Caller).await.unwrap();
    store.close().await;

    let again = SqliteStore::at(&folder.file()).await.unwrap();
    let stored = again.response(&alice(), &ResponseId::new("resp_1")).await.unwrap();
    assert_eq!(stored, Some(response("resp_1", 1)));
    assert_eq!(again.usage_summary(UnixMillis(0), UsageGroup::Caller).await.unwrap(), sums);
    let found = again.record_for_request(&alice(), turn.key).await.unwrap();
    assert_eq!(found, Some(crate::AgentTurnRecord { delivered: Some(UnixMillis(2)), ..turn }));
}

#[tokio::test]
async fn acknowledged_writes_survive_a_crash() {
    // A copy of the open files is what a killed process would leave behind.
    let (folder, copy) = (TestFolder::new(), TestFolder::new());
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();
    for entry in fs::read_dir(folder.0.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.0.path().join(path.file_name().unwrap())).unwrap();
    }
    let after_the_crash = SqliteStore::at(&copy.file()).await.unwrap();
    let stored = after_the_crash.response(&alice(), &ResponseId::new("resp_1")).await.unwrap();
    assert_eq!(stored, Some(response("resp_1", 1)));
}

#[tokio::test]
async fn questions_and_rules_survive_closing_and_reopening() {
    use crate::conformance::questions::{question, resolution};
    use crate::conformance::rules::rule;
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    for id in ["waiting", "resolved"] {
        store.ask(&question(id, 1)).await.unwrap();
    }
    store.set_deadline(&question("waiting", 1).id, None).await.unwrap();
    store.resolve(&question("resolved", 1).id, &resolution("api", 2)).await.unwrap();
    for id in ["kept", "revoked"] {
        store.add_rule(&rule(id, 1)).await.unwrap();
    }
    store.revoke_rule("revoked").await.unwrap();
    store.close().await;

    let again = SqliteStore::at(&folder.file()).await.unwrap();
    let waiting = Question { deadline: None, ..question("waiting", 1) };
    assert_eq!(again.waiting().await.unwrap(), std::slice::from_ref(&waiting));
    let late = again.resolve(&question("resolved", 1).id, &resolution("late", 3)).await.unwrap();
    assert_eq!(late, Resolved::Before(resolution("api", 2)));
    assert_eq!(again.resolve(&waiting.id, &resolution("late", 3)).await.unwrap(), Resolved::Now);
    assert_eq!(again.rules(UnixMillis(1)).await.unwrap(), [rule("kept", 1)]);
}

#[tokio::test]
async fn of_two_gateways_on_one_file_one_resolves_a_question() {
    use crate::conformance::questions::{question, resolution};
    let folder = TestFolder::new();
    let path = folder.file();
    let (one, two) = try_join(SqliteStore::at(&path), SqliteStore::at(&path)).await.unwrap();
    for number in 0..20 {
        let asked = question(&format!("q{number}"), 1);
        one.ask(&asked).await.unwrap();
        let (first, second) = (resolution("one", 2), resolution("two", 2));
        let results =
            try_join(one.resolve(&asked.id, &first), two.resolve(&asked.id, &second)).await.unwrap();
        let expected = [(Resolved::Now, Resolved::Before(first)), (Resolved::Before(second), Resolved::Now)];
        assert!(expected.contains(&results), "{results:?}");
    }
}

#[tokio::test]
async fn two_stores_can_open_and_write_one_file() {
    let folder = TestFolder::new();
    let path = folder.file();
    let (one, two) = try_join(SqliteStore::at(&path), SqliteStore::at(&path)).await.unwrap();
    let handles = [Arc::new(one), Arc::new(two)];
    let writes = (0..60_u8).map(|number| {
        let store = &handles[usize::from(number % 2)];
        async move {
            store.put_response(&alice(), response(&format!("resp_{number}"), 1), &[]).await?;
            store.record_usage(&[record(number.into(), 1)]).await
        }
    });
    try_join_all(writes).await.unwrap();
    for store in &handles {
        let sums = store.usage_summary(UnixMillis(0), UsageGroup::Caller).await.unwrap();
        assert_eq!(sums[0].turns, 60);
        for number in 0..60 {
            let id = ResponseId::new(format!("resp_{number}"));
            assert!(store.response(&alice(), &id).await.unwrap().is_some(), "{id}");
        }
    }
}

#[tokio::test]
async fn the_file_is_in_wal_mode_with_one_writing_and_one_reading_connection() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let batches: Vec<_> = (0..20).map(|number| [record(number, 1)]).collect();
    try_join_all(batches.iter().map(|batch| store.record_usage(batch))).await.unwrap();
    try_join_all((0..20).map(|_| store.usage_summary(UnixMillis(0), UsageGroup::Caller))).await.unwrap();
    assert_eq!((store.writes.size(), store.reads.size()), (1, 1));
    for pool in [&store.writes, &store.reads] {
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(pool).await.unwrap();
        assert_eq!(journal, "wal");
    }
}

#[tokio::test]
async fn the_reading_connection_rejects_writes() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let error = sqlx::query("DELETE FROM responses").execute(&store.reads).await.unwrap_err();
    assert_eq!(FailureKind::of(&error), FailureKind::ReadOnly, "{error:?}");
}

#[tokio::test]
async fn a_read_sees_every_completed_write() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    for number in 0..50 {
        let id = format!("resp_{number}");
        store.put_response(&alice(), response(&id, 1), &[]).await.unwrap();
        let stored = store.response(&alice(), &ResponseId::new(id.as_str())).await.unwrap();
        assert_eq!(stored, Some(response(&id, 1)));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn new_files_and_folders_are_accessible_by_the_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let folder = TestFolder::new();
    let path = folder.0.path().join("new/deep/toolgate.db");
    let store = SqliteStore::at(&path).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();
    assert_eq!(mode(&folder.0.path().join("new")), 0o700);
    assert_eq!(mode(&folder.0.path().join("new/deep")), 0o700);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused_and_not_changed() {
    let folder = TestFolder::new();
    for text in ["dear diary", &"dear diary\n".repeat(1_000)] {
        fs::write(folder.file(), text).unwrap();
        let error = open_error(&folder.file()).await;
        assert!(matches!(error, StoreError::NotSqlite { .. }), "{error:?}");
        assert!(
            error.to_string().contains("is not an SQLite database; set `store` to another file"),
            "{error}"
        );
        assert!(error.source().is_some());
        assert_eq!(fs::read_to_string(folder.file()).unwrap(), text);
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_not_changed() {
    let folder = TestFolder::new();
    for theirs in ["CREATE TABLE bookmarks (url TEXT)", "PRAGMA application_id = 7"] {
        let mut connection = plain_connection(&folder.file()).await;
        sqlx::query(theirs).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let before = fs::read(folder.file()).unwrap();

        let error = open_error(&folder.file()).await;
        assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
        assert_eq!(fs::read(folder.file()).unwrap(), before);
        fs::remove_file(folder.file()).unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = TestFolder::new();
    SqliteStore::at(&folder.file()).await.unwrap().close().await;
    let mut connection = plain_connection(&folder.file()).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (9000, 'from the future', TRUE, x'00', 1)",
    )
    .execute(&mut connection)
    .await
    .unwrap();

    let error = open_error(&folder.file()).await;
    assert!(matches!(error, StoreError::NewerSchema { found: 9000, known: 7, .. }), "{error:?}");
    assert!(error.to_string().contains("install a newer toolgate"), "{error}");
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_migrated_with_its_data() {
    let folder = TestFolder::new();
    let mut earlier = plain_connection(&folder.file()).await;
    let first =
        sqlx::migrate::Migrator::with_migrations(schema::MIGRATIONS.iter().take(1).cloned().collect());
    sqlx::query(schema::SET_APPLICATION_ID).execute(&mut earlier).await.unwrap();
    first.run_direct(None, &mut earlier, false).await.unwrap();
    sqlx::query(
        "INSERT INTO responses VALUES ('alice', 'resp_1', NULL, 1, 'demo', '{\"reply\":\"resp_1\"}')",
    )
    .execute(&mut earlier)
    .await
    .unwrap();
    earlier.close().await.unwrap();

    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let stored = store.response(&alice(), &ResponseId::new("resp_1")).await.unwrap();
    assert_eq!(stored, Some(response("resp_1", 1)));
    assert_eq!(store.prune_records(UnixMillis(i64::MAX)).await.unwrap(), 0);
}

#[tokio::test]
async fn agent_turns_of_an_earlier_version_are_found_after_the_migration() {
    let folder = TestFolder::new();
    let mut earlier = plain_connection(&folder.file()).await;
    let five = sqlx::migrate::Migrator::with_migrations(schema::MIGRATIONS.iter().take(5).cloned().collect());
    sqlx::query(schema::SET_APPLICATION_ID).execute(&mut earlier).await.unwrap();
    five.run_direct(None, &mut earlier, false).await.unwrap();
    let migrated = |number, at| {
        let turn = conformance::turn_record(number, "s", at);
        let run = uuid::Uuid::parse_str(&turn.key.to_string()[..32]).unwrap();
        crate::AgentTurnRecord { run, ..turn }
    };
    let turns = [migrated(2, 1), migrated(1, 2)];
    for turn in &turns {
        sqlx::query("INSERT INTO turn_records VALUES ('alice', $1, $2, 's', $3, '{}', $4)")
            .bind(turn.key.to_string())
            .bind(turn.after.unwrap().to_string())
            .bind(turn.steps.as_str())
            .bind(turn.at.0)
            .execute(&mut earlier)
            .await
            .unwrap();
    }
    earlier.close().await.unwrap();

    let store = SqliteStore::at(&folder.file()).await.unwrap();
    for turn in &turns {
        let found = store.record_for_request(&alice(), turn.key).await.unwrap();
        assert_eq!(found.as_ref(), Some(turn));
    }
    let session = crate::SessionId::parse("s").unwrap();
    let page = store.session_turns(&alice(), &session, None, 10).await.unwrap();
    assert_eq!(page.turns, turns);
    // New turns come after the migrated ones.
    store.put_record(&alice(), conformance::turn_record(3, "s", 0)).await.unwrap();
    let page = store.session_turns(&alice(), &session, None, 10).await.unwrap();
    assert_eq!(page.turns.last(), Some(&conformance::turn_record(3, "s", 0)));
}

#[tokio::test]
async fn a_schema_with_a_wrong_checksum_is_refused() {
    let folder = TestFolder::new();
    SqliteStore::at(&folder.file()).await.unwrap().close().await;
    let mut connection = plain_connection(&folder.file()).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = x'00'").execute(&mut connection).await.unwrap();

    let error = open_error(&folder.file()).await;
    assert!(matches!(error, StoreError::Migration { .. }), "{error:?}");
}

#[tokio::test]
async fn a_damaged_file_is_reported_as_damaged() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    for number in 0..200 {
        store.put_response(&alice(), response(&format!("resp_{number}"), number), &[]).await.unwrap();
    }
    store.close().await;
    // Overwrite every page but the first, which contains the schema.
    let mut bytes = fs::read(folder.file()).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(folder.file(), bytes).unwrap();

    let error = match SqliteStore::at(&folder.file()).await {
        Ok(store) => store.response(&alice(), &ResponseId::new("resp_1")).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_full_disk_is_an_error_that_loses_no_data_and_is_temporary() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.close().await;
    let options = connection_options().filename(folder.file()).pragma("max_page_count", "64");
    let store = SqliteStore::connect(options, Medium::File, "a small disk".to_owned()).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();

    let large = StoredResponse { body: "x".repeat(1 << 20), ..response("large", 1) };
    let error = store.put_response(&alice(), large.clone(), &[]).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "storing a response: no space left for a small disk; free disk space and try again"
    );
    let many: Vec<_> = (0..10_000).map(|turn| record(turn, 1)).collect();
    let error = store.record_usage(&many).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");

    // The failed writes left nothing behind, and the store works again.
    assert_eq!(store.usage_summary(UnixMillis(0), UsageGroup::Caller).await.unwrap(), []);
    assert_eq!(store.response(&alice(), &large.id).await.unwrap(), None);
    assert_eq!(store.delete_response(&alice(), &ResponseId::new("resp_1")).await.unwrap(), Deletion::Deleted);
    store.record_usage(&[record(1, 1)]).await.unwrap();
}

#[tokio::test]
async fn transactions_work_after_sqlite_rolled_one_back_by_itself() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let mut other = plain_connection(&folder.file()).await;
    // Rolls back as a full disk does.
    for (table, number) in [("usage_records", 1), ("turns", 2)] {
        let trap = format!(
            "CREATE TRIGGER trap{number} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
        );
        sqlx::query(sqlx::AssertSqlSafe(trap)).execute(&mut other).await.unwrap();
    }
    let turn = || conformance::turn_record(1, "s", 1);
    for _ in 0..3 {
        store.record_usage(&[record(1, 1)]).await.unwrap_err();
        store.put_record(&alice(), turn()).await.unwrap_err();
    }
    for trap in ["DROP TRIGGER trap1", "DROP TRIGGER trap2"] {
        sqlx::query(trap).execute(&mut other).await.unwrap();
    }
    for _ in 0..3 {
        store.record_usage(&[record(1, 1)]).await.unwrap();
        store.put_record(&alice(), turn()).await.unwrap();
    }
}

#[tokio::test]
async fn a_database_that_stays_locked_is_reported_as_busy() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();
    let mut other = plain_connection(&folder.file()).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

    let impatient = connection_options().filename(folder.file()).busy_timeout(Duration::ZERO);
    let error = SqliteStore::connect(impatient, Medium::File, "a locked file".to_owned()).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    // Reads do not wait for the write lock.
    assert!(store.response(&alice(), &ResponseId::new("resp_1")).await.unwrap().is_some());
    lock.rollback().await.unwrap();
    store.put_response(&alice(), response("resp_2", 1), &[]).await.unwrap();
}

#[tokio::test]
async fn a_path_that_cannot_be_created_is_named() {
    let folder = TestFolder::new();
    fs::write(folder.file(), "a file, not a folder").unwrap();
    let error = open_error(&folder.file().join("toolgate.db")).await;
    assert!(matches!(&error, StoreError::Unreachable { path, .. } if *path == folder.file()), "{error:?}");

    let error = open_error(folder.0.path()).await;
    assert!(matches!(&error, StoreError::Unreachable { path, .. } if path == folder.0.path()), "{error:?}");
}

#[tokio::test]
async fn a_closed_store_returns_errors() {
    let store = SqliteStore::in_memory().await.unwrap();
    store.close().await;
    let error = store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed { operation: "storing a response", .. }), "{error:?}");
}

#[tokio::test]
async fn check_writable_fails_for_a_read_only_and_for_a_closed_store() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.check_writable().await.unwrap();
    let options = connection_options().filename(folder.file()).read_only(true);
    let (writes, reads) = (one_connection(options.clone()), one_connection(options));
    let read_only =
        SqliteStore { writes, reads, medium: Medium::File, location: "a read-only file".to_owned() };
    let error = read_only.check_writable().await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");

    store.close().await;
    let error = store.check_writable().await.unwrap_err();
    assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
}

#[tokio::test]
async fn check_writable_changes_nothing() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.put_response(&alice(), response("resp_1", 1), &[]).await.unwrap();
    for _ in 0..3 {
        store.check_writable().await.unwrap();
    }
    store.close().await;
    let again = SqliteStore::at(&folder.file()).await.unwrap();
    assert!(again.response(&alice(), &ResponseId::new("resp_1")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_write_ahead_file_shrinks_after_a_large_write() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let large = StoredResponse { body: "x".repeat(MAX_RESPONSE_BYTES), ..response("large", 1) };
    store.put_response(&alice(), large, &[]).await.unwrap();
    // The file is truncated when writing restarts at its beginning, which the second write after this one does.
    for number in 0..3 {
        store.put_response(&alice(), response(&format!("resp_{number}"), 1), &[]).await.unwrap();
    }
    let bytes = fs::metadata(folder.file().with_extension("db-wal")).unwrap().len();
    assert!(bytes <= MAX_WAL_BYTES.parse().unwrap(), "{bytes}");
}
