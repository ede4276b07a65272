//! Access to the process's environment: variables, the PATH and the platform's folders. No other module reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Authority;
use toolgate_backend::config::ProxyConfig;

/// The source of variables.
#[derive(Clone)]
pub(crate) enum Environment {
    /// The environment of this process.
    Process,
    /// Fixed variables, for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests must not depend on the machine's variables"))]
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    /// The value of a variable; an empty or non-Unicode value counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = match self {
            Self::Process => process_variable(name),
            Self::Fixed(variables) => variables.get(name).cloned(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The proxies set by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. The error names the variable and never
    /// contains its value, which may include a password.
    pub(crate) fn proxies(&self) -> Result<ProxyConfig, String> {
        let all = self.proxy("ALL_PROXY")?;
        Ok(ProxyConfig {
            https: self.proxy("HTTPS_PROXY")?.or_else(|| all.clone()),
            http: self.proxy("HTTP_PROXY")?.or(all),
            no_proxy: self.either_case("NO_PROXY").map(|(_, hosts)| split_list(&hosts)).unwrap_or_default(),
        })
    }

    fn proxy(&self, name: &str) -> Result<Option<Uri>, String> {
        let Some((name, written)) = self.either_case(name) else { return Ok(None) };
        parse_proxy(&written).map(Some).map_err(|why| format!("{name} {why}"))
    }

    /// The lower-case variable of this name, as curl prefers, else the upper-case one; with the name that is set.
    fn either_case(&self, name: &str) -> Option<(String, String)> {
        let names = [name.to_ascii_lowercase(), name.to_owned()];
        names.into_iter().find_map(|name| self.variable(&name).map(|value| (name, value)))
    }

    /// The first program of this name on the PATH.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable("PATH")?;
        let file_names = if cfg!(windows) {
            vec![format!("{name}.exe"), format!("{name}.cmd")]
        } else {
            vec![name.to_owned()]
        };
        std::env::split_paths(&path)
            .flat_map(|folder| file_names.iter().map(move |file| folder.join(file)).collect::<Vec<_>>())
            .find(|candidate| is_program(candidate))
    }

    /// The user's home directory.
    pub(crate) fn home_folder(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    /// The platform's folder for a program's data, such as `~/.local/share/toolgate`.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        self.platform_folder("XDG_DATA_HOME", ".local/share")
    }

    /// The platform's folder for a program's settings, such as `~/.config/toolgate`.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.platform_folder("XDG_CONFIG_HOME", ".config")
    }

    fn platform_folder(&self, xdg_variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = if cfg!(windows) {
            self.variable("LOCALAPPDATA").map(PathBuf::from)
        } else if cfg!(target_os = "macos") {
            self.variable("HOME").map(|home| Path::new(&home).join("Library/Application Support"))
        } else {
            let named = self.variable(xdg_variable).map(PathBuf::from);
            // The XDG specification requires that relative paths are ignored.
            named
                .filter(|folder| folder.is_absolute())
                .or_else(|| self.variable("HOME").map(|home| Path::new(&home).join(below_home)))
        };
        base.map(|folder| folder.join("toolgate"))
    }
}

/// Parses `http://host:3128` or `host:3128`. The error continues a sentence that begins with the variable's name.
fn parse_proxy(written: &str) -> Result<Uri, &'static str> {
    let url = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let url: Uri = url.parse().map_err(|_| "is not a URL: write it as in http://proxy.example.com:3128")?;
    if url.scheme_str() != Some("http") {
        return Err("must begin with http://: other kinds of proxy are not supported");
    }
    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
    if url.port().is_none() && !authority.ends_with(url.host().unwrap_or_default()) {
        return Err("has a port that is not a number from 0 to 65535");
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() {
        return Err("must end after the port, as in http://proxy.example.com:3128");
    }
    Ok(url)
}

/// Splits a list at commas and spaces.
fn split_list(text: &str) -> Vec<String> {
    let entries = text.split(|letter: char| letter == ',' || letter.is_whitespace());
    entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

#[expect(clippy::disallowed_methods, reason = "only this module reads the environment")]
fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<ProxyConfig, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Environment::Fixed(variables.iter().map(owned).collect()).proxies()
    }

    fn check(variables: &[(&str, &str)], https: Option<&str>, http: Option<&str>, no_proxy: &[&str]) {
        let url = |url: Option<&str>| url.map(|url| url.parse().unwrap());
        let no_proxy = no_proxy.iter().map(|&host| host.to_owned()).collect();
        let expected = ProxyConfig { https: url(https), http: url(http), no_proxy };
        assert_eq!(proxies(variables), Ok(expected), "{variables:?}");
    }

    #[test]
    fn proxies_are_read_from_upper_and_lower_case_variables() {
        check(&[], None, None, &[]);
        check(&[("HTTPS_PROXY", "http://a:1"), ("HTTP_PROXY", "")], Some("http://a:1"), None, &[]);
        check(&[("http_proxy", "b:2"), ("HTTP_PROXY", "http://c:3")], None, Some("http://b:2"), &[]);
        let both = &[("all_proxy", "http://d:4/"), ("https_proxy", "http://e:5")];
        check(both, Some("http://e:5"), Some("http://d:4/"), &[]);
        check(&[("ALL_PROXY", "http://u:p@f:6")], Some("http://u:p@f:6"), Some("http://u:p@f:6"), &[]);
        check(
            &[("NO_PROXY", "localhost, .lan 10.0.0.0/8,,")],
            None,
            None,
            &["localhost", ".lan", "10.0.0.0/8"],
        );
    }

    #[test]
    fn an_error_names_the_variable_and_not_its_value() {
        for (name, value) in [
            ("HTTPS_PROXY", "https://me:secret@proxy:1"),
            ("http_proxy", "socks5://me:secret@proxy:1"),
            ("ALL_PROXY", "http://me:secret@proxy:port"),
            ("all_proxy", "http://me:secret@proxy:1/path"),
            ("HTTP_PROXY", "http://"),
        ] {
            let why = proxies(&[(name, value)]).unwrap_err();
            assert!(why.starts_with(name) && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn debug_output_hides_the_password() {
        let shown = format!("{:?}", proxies(&[("ALL_PROXY", "http://me:secret@proxy:1")]).unwrap());
        assert!(shown.contains("proxy") && !shown.contains("secret") && !shown.contains("me:"), "{shown}");
    }
}
