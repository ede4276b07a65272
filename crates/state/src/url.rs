//! The value of `store = "…"` in the config, read into what it names.

use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Where a store is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory`: plain memory, gone with the process.
    Memory,
    /// `sqlite::memory:`: an SQLite database in memory, gone with the process.
    SqliteMemory,
    /// `sqlite:path`: a file; a relative path starts at the working directory.
    SqliteFile(PathBuf),
}

/// Why a text names no store. Never repeats what follows the scheme: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreUrlError {
    /// A Postgres URL.
    #[error("Postgres is not built in yet; use `sqlite:path/to/file.db` for now")]
    PostgresNotBuiltIn,
    /// `sqlite:` with nothing after it.
    #[error("`sqlite:` needs a path after it, as in `sqlite:toolgate.db`")]
    NoPath,
    /// `sqlite:path?option=…`.
    #[error("`sqlite:` takes a plain path; leave out the `?` and what follows it")]
    OptionsInPath,
    /// A scheme no store has.
    #[error("no store is called `{scheme}:`; use `sqlite:path/to/file.db`, `sqlite::memory:` or `memory`")]
    UnknownScheme {
        /// What stood before the colon.
        scheme: String,
    },
    /// No scheme at all.
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
            "sqlite" => sqlite_place(rest),
            "postgres" | "postgresql" => Err(StoreUrlError::PostgresNotBuiltIn),
            other => Err(StoreUrlError::UnknownScheme { scheme: other.to_owned() }),
        }
    }
}

fn sqlite_place(rest: &str) -> Result<StoreUrl, StoreUrlError> {
    if rest == ":memory:" {
        return Ok(StoreUrl::SqliteMemory);
    }
    // `sqlite:///var/x.db` is how other programs spell an absolute path.
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
    fn known_places_are_read() {
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
    fn everything_else_is_refused_with_what_to_write_instead() {
        check("postgres://me:secret@host/db", &Err(StoreUrlError::PostgresNotBuiltIn));
        check("postgresql://host/db", &Err(StoreUrlError::PostgresNotBuiltIn));
        check("sqlite:", &Err(StoreUrlError::NoPath));
        check("sqlite://", &Err(StoreUrlError::NoPath));
        check("sqlite:x.db?mode=ro", &Err(StoreUrlError::OptionsInPath));
        check("toolgate.db", &Err(StoreUrlError::NoScheme));
        check("", &Err(StoreUrlError::NoScheme));
    }

    #[test]
    fn a_password_is_never_repeated() {
        let refusal = "mysql://me:secret@host/db".parse::<StoreUrl>().unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "no store is called `mysql:`; use `sqlite:path/to/file.db`, `sqlite::memory:` or `memory`"
        );
    }
}
