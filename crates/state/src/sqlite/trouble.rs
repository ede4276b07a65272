//! From SQLite's result codes to the few kinds of trouble an operator can do something about.

use std::error::Error as StdError;

use sqlx::error::DatabaseError;

use crate::StoreError;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    NotSqlite,
    Damaged,
    Full,
    ReadOnly,
    Busy,
    Other,
}

impl Trouble {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return Self::Busy;
        }
        let code = error.as_database_error().and_then(DatabaseError::code);
        let Some(code) = code.and_then(|code| code.parse::<i32>().ok()) else { return Self::Other };
        // The low byte is the primary code, the rest says more. https://sqlite.org/rescode.html
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
        doing: &'static str,
        place: &str,
        source: Box<dyn StdError + Send + Sync>,
    ) -> StoreError {
        let place = place.to_owned();
        match self {
            Self::NotSqlite => StoreError::NotSqlite { place, source },
            Self::Damaged => StoreError::Damaged { doing, place, source },
            Self::Full => StoreError::Full { doing, place, source },
            Self::ReadOnly => StoreError::ReadOnly { doing, place, source },
            Self::Busy => StoreError::Busy { doing, place, source },
            Self::Other => StoreError::Failed { doing, place, source },
        }
    }
}
