//! Classifies SQLite's result codes by what an operator can do about them.

use std::error::Error as StdError;

use sqlx::error::DatabaseError;

use crate::StoreError;

/// The kind of a database error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    NotSqlite,
    Damaged,
    Full,
    ReadOnly,
    Busy,
    Other,
}

impl FailureKind {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return Self::Busy;
        }
        let code = error.as_database_error().and_then(DatabaseError::code);
        let Some(code) = code.and_then(|code| code.parse::<i32>().ok()) else { return Self::Other };
        // The low byte is the primary result code. https://sqlite.org/rescode.html
        match code & 0xff {
            5 | 6 => Self::Busy,      // SQLITE_BUSY, SQLITE_LOCKED
            8 | 14 => Self::ReadOnly, // SQLITE_READONLY, SQLITE_CANTOPEN
            11 => Self::Damaged,      // SQLITE_CORRUPT
            13 => Self::Full,         // SQLITE_FULL
            26 => Self::NotSqlite,    // SQLITE_NOTADB
            _ => Self::Other,
        }
    }

    pub(super) fn into_error(
        self,
        operation: &'static str,
        location: &str,
        source: Box<dyn StdError + Send + Sync>,
    ) -> StoreError {
        let location = location.to_owned();
        match self {
            Self::NotSqlite => StoreError::NotSqlite { location, source },
            Self::Damaged => StoreError::Damaged { operation, location, source },
            Self::Full => StoreError::Full { operation, location, source },
            Self::ReadOnly => StoreError::ReadOnly { operation, location, source },
            Self::Busy => StoreError::Busy { operation, location, source },
            Self::Other => StoreError::Failed { operation, location, source },
        }
    }
}
