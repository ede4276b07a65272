//! Why a store could not do what it was asked, in words that tell the operator what to do.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{MAX_RECORD_BYTES, MAX_RESPONSE_BYTES, ResponseId, SessionId};

/// What a database driver reported. Its type stays inside this crate.
type Cause = Box<dyn StdError + Send + Sync>;

/// A store operation that failed. `doing` says which one, `place` where the store is kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A response too large to keep. Nothing was stored.
    #[error(
        "storing response {id}: it has {bytes} bytes and at most {MAX_RESPONSE_BYTES} are kept; \
         start a new conversation or send `store: false`"
    )]
    ResponseTooLarge {
        /// The response that was refused.
        id: ResponseId,
        /// The length of its body.
        bytes: usize,
    },
    /// A record of a turn too large to keep. Nothing was stored.
    #[error(
        "keeping the record of a turn of session {session}: it has {bytes} bytes and at most {MAX_RECORD_BYTES} are \
         kept; the session goes on if the client sends the whole conversation"
    )]
    RecordTooLarge {
        /// The session whose turn it was.
        session: SessionId,
        /// The length of steps and reply.
        bytes: usize,
    },
    /// The database file or its folder cannot be made or read.
    #[error(
        "opening the store: cannot create or open {}; check that the folder exists and is yours to write",
        path.display()
    )]
    Unreachable {
        /// The file or folder in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something other than an SQLite database.
    #[error(
        "opening the store: {place} is not an SQLite database; name another file in `store`, or move this one away"
    )]
    NotSqlite {
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// The file is another program's SQLite database. It was left as it was.
    #[error("opening the store: {place} is the database of another program; name another file in `store`")]
    Foreign {
        /// The file.
        place: String,
    },
    /// The file was written by a later version of toolgate. It was left as it was.
    #[error(
        "opening the store: {place} has schema version {found} and this toolgate knows versions up to {known}; \
         install a newer toolgate, or name another file in `store`"
    )]
    NewerSchema {
        /// The file.
        place: String,
        /// The version the file has.
        found: i64,
        /// The latest version this program has.
        known: i64,
    },
    /// The tables could not be made or brought up to date.
    #[error(
        "opening the store: the schema of {place} cannot be brought up to date; \
         restore a backup, or move the file away and a new one is made"
    )]
    Migration {
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// The file is damaged.
    #[error(
        "{doing}: the database {place} is damaged; stop toolgate and restore a backup, \
         or move the file away and a new one is made"
    )]
    Damaged {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// There is no room left.
    #[error("{doing}: no space is left for {place}; free some on that disk and try again")]
    Full {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// The database may not be written.
    #[error("{doing}: {place} cannot be written; check the permissions of the file and its folder")]
    ReadOnly {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// Somebody else held the database for too long.
    #[error(
        "{doing}: {place} stayed locked or busy for too long; try again, and check that no other program holds it"
    )]
    Busy {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
    /// Anything else the database reported.
    #[error("{doing}: the database {place} failed; the cause below says why")]
    Failed {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        place: String,
        /// What the database said.
        source: Cause,
    },
}
