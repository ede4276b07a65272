//! Parses the value of `store = "…"` in the config.

use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory`: plain memory, lost when the process ends.
    Memory,
    /// `sqlite::memory:`: an SQLite database in memory, lost when the process ends.
    SqliteMemory,
    /// `sqlite:path`: a file; a relative path starts at the working directory.
    SqliteFile(PathBuf),
}

/// Why a text is not a store URL. Never repeats what follows the scheme, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreUrlError {
    /// A Postgres URL.
    #[error("Postgres is not supported; use `sqlite:path/to/file.db`")]
    PostgresUnsupported,
    /// `sqlite:` with nothing after it.
    #[error("`sqlite:` needs a path after it, as in `sqlite:toolgate.db`")]
    NoPath,
    /// `sqlite:path?option=…`.
    #[error("`sqlite:` takes a plain path; remove the `?` and everything after it")]
    OptionsInPath,
    /// An unknown scheme.
    #[error("unknown store `{scheme}:`; use `sqlite:path/to/file.db`, `sqlite::memory:` or `memory`")]
    UnknownScheme {
        /// The text before the colon.
        scheme: String,
    },
    /// No scheme.
    #[error("the store needs a scheme: write `sqlite:path/to/file.db`, `sqlite::memory:` or `memory`")]
    NoScheme,
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        if text == "memory" {
            return Ok(StoreUrl::Memory);
        }
        let (scheme, rest) = text.split_once(':').ok_or(StoreUrlError::NoScheme)?;
        match scheme {
            "sqlite" => parse_sqlite(rest),
            "postgres" | "postgresql" => Err(StoreUrlError::PostgresUnsupported),
            other => Err(StoreUrlError::UnknownScheme { scheme: other.to_owned() }),
        }
    }
}

fn parse_sqlite(rest: &str) -> Result<StoreUrl, StoreUrlError> {
    if rest == ":memory:" {
        return Ok(StoreUrl::SqliteMemory);
    }
    // Other programs write an absolute path as `sqlite:///var/x.db`.
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(StoreUrlError::NoPath);
    }
    if path.contains('?') {
        return Err(StoreUrlError::OptionsInPath);
    }
    Ok(StoreUrl::SqliteFile(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<StoreUrl, StoreUrlError>) {
        assert_eq!(&text.parse::<StoreUrl>(), expected, "{text}");
    }

    #[test]
    fn known_stores_are_parsed() {
        check("memory", &Ok(StoreUrl::Memory));
        check("sqlite::memory:", &Ok(StoreUrl::SqliteMemory));
        for (text, path) in [
            ("sqlite:toolgate.db", "toolgate.db"),
            ("sqlite:../data/toolgate.db", "../data/toolgate.db"),
            ("sqlite:/var/lib/toolgate.db", "/var/lib/toolgate.db"),
            ("sqlite://toolgate.db", "toolgate.db"),
            ("sqlite:///var/lib/toolgate.db", "/var/lib/toolgate.db"),
            ("sqlite:a name: with colons.db", "a name: with colons.db"),
        ] {
            check(text, &Ok(StoreUrl::SqliteFile(path.into())));
        }
    }

    #[test]
    fn anything_else_is_an_error_that_says_what_to_write() {
        check("postgres://me:secret@host/db", &Err(StoreUrlError::PostgresUnsupported));
        check("postgresql://host/db", &Err(StoreUrlError::PostgresUnsupported));
        check("sqlite:", &Err(StoreUrlError::NoPath));
        check("sqlite://", &Err(StoreUrlError::NoPath));
        check("sqlite:x.db?mode=ro", &Err(StoreUrlError::OptionsInPath));
        check("toolgate.db", &Err(StoreUrlError::NoScheme));
        check("", &Err(StoreUrlError::NoScheme));
    }

    #[test]
    fn an_error_never_contains_the_password() {
        let error = "mysql://me:secret@host/db".parse::<StoreUrl>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown store `mysql:`; use `sqlite:path/to/file.db`, `sqlite::memory:` or `memory`"
        );
    }
}
