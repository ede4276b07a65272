//! Reads typed values from text columns. A text that cannot be read means that the file is damaged.

use std::error::Error as StdError;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use toolgate_model::{JsonText, PrefixHash};

pub(super) fn hash(column: &str, text: &str) -> Result<PrefixHash, sqlx::Error> {
    PrefixHash::from_hex(text).ok_or_else(|| invalid(column)("not a hexadecimal hash"))
}

pub(super) fn json(column: &str, text: &str) -> Result<JsonText, sqlx::Error> {
    JsonText::parse(text).map_err(invalid(column))
}

/// The value of a column that may be null.
pub(super) fn optional<T>(
    row: &SqliteRow,
    column: &str,
    read: impl Fn(&str, &str) -> Result<T, sqlx::Error>,
) -> Result<Option<T>, sqlx::Error> {
    row.try_get::<Option<&str>, _>(column)?.map(|text| read(column, text)).transpose()
}

/// The error for a column whose text cannot be read.
pub(super) fn invalid<E: Into<Box<dyn StdError + Send + Sync>>>(column: &str) -> impl Fn(E) -> sqlx::Error {
    move |source| sqlx::Error::ColumnDecode { index: column.to_owned(), source: source.into() }
}
