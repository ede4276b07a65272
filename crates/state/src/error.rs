//! Errors of stores. Each message tells the operator what to do.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{
    MAX_QUESTION_BYTES, MAX_RECORD_BYTES, MAX_RESPONSE_BYTES, MAX_STORED_RULES, ResponseId, SessionId,
};

/// The error of the database driver, without its type, which stays inside this crate.
type Cause = Box<dyn StdError + Send + Sync>;

/// A failed store operation. `operation` says which one, `location` which database.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A response too large to store. Nothing was stored.
    #[error(
        "storing response {id}: it has {bytes} bytes, the limit is {MAX_RESPONSE_BYTES}; \
         start a new conversation or send `store: false`"
    )]
    ResponseTooLarge {
        /// The response that was refused.
        id: ResponseId,
        /// The length of its body or of all its items.
        bytes: usize,
    },
    /// A record of a turn too large to store. Nothing was stored.
    #[error(
        "storing a turn of session {session}: it has {bytes} bytes, the limit is {MAX_RECORD_BYTES}; the session can only \
         continue if the client sends the whole conversation"
    )]
    RecordTooLarge {
        /// The session whose turn it was.
        session: SessionId,
        /// The length of its steps and reply.
        bytes: usize,
    },
    /// A question or its resolution is too large to store. Nothing was stored.
    #[error("storing a {what}: it has {bytes} bytes, the limit is {MAX_QUESTION_BYTES}")]
    QuestionTooLarge {
        /// Which of the two.
        what: &'static str,
        /// Its length as JSON.
        bytes: usize,
    },
    /// Something that cannot be written as JSON. Nothing was stored.
    #[error("storing a {what}: it cannot be written as JSON; please report this bug")]
    Unwritable {
        /// What it is.
        what: &'static str,
        /// The reason.
        source: Cause,
    },
    /// Too many rules are in force. Nothing was stored.
    #[error("storing a rule: {MAX_STORED_RULES} rules are in force already; revoke some first")]
    TooManyRules,
    /// The database file or its folder cannot be created or opened.
    #[error(
        "opening the store: cannot create or open {}; check that the folder exists and is writable",
        path.display()
    )]
    Unreachable {
        /// The file or folder in question.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not an SQLite database.
    #[error(
        "opening the store: {location} is not an SQLite database; set `store` to another file, or move this one away"
    )]
    NotSqlite {
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// The file is another program's SQLite database. It was not changed.
    #[error("opening the store: {location} is the database of another program; set `store` to another file")]
    Foreign {
        /// The file.
        location: String,
    },
    /// The file was written by a later version of toolgate. It was not changed.
    #[error(
        "opening the store: {location} has schema version {found} but this toolgate supports versions up to {known}; \
         install a newer toolgate, or set `store` to another file"
    )]
    NewerSchema {
        /// The file.
        location: String,
        /// The version the file has.
        found: i64,
        /// The latest version that this program supports.
        known: i64,
    },
    /// The schema migration failed.
    #[error(
        "opening the store: migrating the schema of {location} failed; \
         restore a backup, or move the file away to start with an empty one"
    )]
    Migration {
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// The file is damaged.
    #[error(
        "{operation}: the database {location} is damaged; stop toolgate and restore a backup, \
         or move the file away to start with an empty one"
    )]
    Damaged {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// The disk is full.
    #[error("{operation}: no space left for {location}; free disk space and try again")]
    Full {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// The database is read-only.
    #[error("{operation}: {location} cannot be written; check the permissions of the file and its folder")]
    ReadOnly {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// The database stayed locked for too long.
    #[error(
        "{operation}: {location} stayed locked for too long; try again, and check whether another program holds it"
    )]
    Busy {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
    /// Any other database error.
    #[error("{operation}: the database {location} reported an error")]
    Failed {
        /// The operation that failed.
        operation: &'static str,
        /// The file.
        location: String,
        /// The database's error.
        source: Cause,
    },
}
