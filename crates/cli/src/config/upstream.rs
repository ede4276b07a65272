//! `[upstreams.NAME]`: a host, its dialect, its key and how patiently to wait for it.

use http::{HeaderName, HeaderValue, Uri};
use secrecy::ExposeSecret;
use toolgate_backend::config::{HostDeadlines, Retry, UpstreamConfig};

use super::nearest::suggestion;
use super::problem::{Place, Placed, Reading};
use super::secret;
use super::section::Section;

/// The names `dialect` may have.
const DIALECTS: [&str; 3] = ["anthropic-messages", "openai-chat", "openai-responses"];

/// More tries would only keep a client waiting for a host that is down.
const MOST_RETRIES: u32 = 10;

/// The last parts of a URL that the dialects add themselves.
const ENDPOINTS: [&str; 3] = ["/messages", "/chat/completions", "/responses"];

/// Headers that describe one connection or body; a fixed value would break every request.
const RESERVED_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// The keys of `timeouts`.
const TIMEOUT_KEYS: [&str; 6] =
    ["connect", "write", "first_byte", "idle", "count_tokens", "http2_keep_alive"];

/// Reads one host; None after reporting why not.
pub(crate) fn read(
    name: &Placed<String>,
    section: &Section<'_>,
    reading: &mut Reading<'_>,
) -> Option<UpstreamConfig> {
    section.expect_keys(&["dialect", "base_url", "api_key", "timeouts", "retries", "headers"], reading);
    let dialect = read_dialect(section, reading);
    let base_url = read_base_url(section, reading);
    let api_key = section.text("api_key", "env:OPENAI_API_KEY", reading);
    let api_key = api_key.and_then(|value| {
        warn_about_a_readable_literal(&value, reading);
        secret::fetch("api_key", &value, reading)
    });
    let timeouts = read_timeouts(section, reading);
    let retries = section.count("retries", MOST_RETRIES, reading);
    let headers = read_headers(section, reading);

    let mut upstream = UpstreamConfig::new(name.value.clone(), dialect?, base_url?);
    upstream.api_key = api_key;
    upstream.timeouts = timeouts;
    upstream.headers = headers;
    if let Some(retries) = retries {
        upstream.retry = Retry { retries: retries.value, ..Retry::default() };
    }
    Some(upstream)
}

fn read_dialect(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<&'static str> {
    if section.key_place("dialect").is_none() {
        section.missing("dialect = \"openai-chat\"", reading);
    }
    let written = section.text("dialect", "openai-chat", reading)?;
    let known = DIALECTS.into_iter().find(|dialect| *dialect == written.value);
    if known.is_none() {
        let hint = suggestion(&written.value, DIALECTS, "dialects");
        reading.error(written.place, format!("no dialect is called `{}`{hint}", written.value));
    }
    known
}

fn read_base_url(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<Uri> {
    if section.key_place("base_url").is_none() {
        section.missing("base_url = \"https://api.openai.com/v1\"", reading);
    }
    let written = section.text("base_url", "https://api.openai.com/v1", reading)?;
    match parse_base_url(&written.value) {
        Ok(url) => Some(url),
        Err(why) => {
            reading.error(written.place, format!("`base_url` {why}"));
            None
        }
    }
}

/// Reads the address of a host; the error goes on where the key's name stops.
// The text is not repeated in the message: somebody may have written a password into it.
pub(crate) fn parse_base_url(text: &str) -> Result<Uri, String> {
    let trimmed = text.trim_end_matches('/');
    let url: Uri = trimmed
        .parse()
        .map_err(|_| "is not a URL: write it as in \"https://api.openai.com/v1\"".to_owned())?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http:// or https://, as in \"https://api.openai.com/v1\"".to_owned());
    }
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("holds a user name or password: put the key into `api_key` instead".to_owned());
    }
    if url.query().is_some() || text.contains('#') {
        return Err("must end before any `?` or `#`".to_owned());
    }
    if let Some(endpoint) = ENDPOINTS.into_iter().find(|endpoint| url.path().ends_with(endpoint)) {
        return Err(format!("is everything before `{endpoint}`: leave that part off"));
    }
    Ok(url)
}

fn warn_about_a_readable_literal(value: &Placed<String>, reading: &mut Reading<'_>) {
    let literal = !value.value.starts_with("env:") && !value.value.starts_with("file:");
    if literal && secret::everybody_reads(reading.file()) {
        let shown = reading.file().display().to_string();
        reading.warning(
            value.place,
            format!("every user of this machine can read the key in this file: run `chmod 600 {shown}`, or use \"env:NAME\""),
        );
    }
}

fn read_timeouts(section: &Section<'_>, reading: &mut Reading<'_>) -> HostDeadlines {
    let usual = HostDeadlines::default();
    let Some(section) = section.table("timeouts", reading) else { return usual };
    section.expect_keys(&TIMEOUT_KEYS, reading);
    let mut read = |key, usual| section.duration(key, reading).map_or(usual, |written| written.value);
    HostDeadlines {
        connect: read("connect", usual.connect),
        write: read("write", usual.write),
        first_byte: read("first_byte", usual.first_byte),
        idle: read("idle", usual.idle),
        count_tokens: read("count_tokens", usual.count_tokens),
        http2_keep_alive: read("http2_keep_alive", usual.http2_keep_alive),
    }
}

fn read_headers(section: &Section<'_>, reading: &mut Reading<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(section) = section.table("headers", reading) else { return Vec::new() };
    let mut headers = Vec::new();
    for field in section.fields() {
        let name = read_header_name(field.key, field.place, reading);
        let value = field.text("a value", reading);
        let value = value.and_then(|value| secret::fetch(field.key, &value, reading));
        let (Some(name), Some(value)) = (name, value) else { continue };
        match HeaderValue::from_str(value.expose_secret()) {
            Ok(mut value) => {
                // Headers may carry keys, so they are kept out of every log.
                value.set_sensitive(true);
                headers.push((name, value));
            }
            Err(_) => {
                reading
                    .error(field.place, format!("the value of `{}` cannot be sent as a header", field.key));
            }
        }
    }
    headers
}

fn read_header_name(text: &str, place: Place, reading: &mut Reading<'_>) -> Option<HeaderName> {
    let Ok(name) = text.parse::<HeaderName>() else {
        reading.error(place, format!("`{text}` is no header name: use letters, digits and `-`"));
        return None;
    };
    if RESERVED_HEADERS.contains(&name.as_str()) {
        reading.error(place, format!("`{text}` is set for each request and cannot be fixed: take it out"));
        return None;
    }
    Some(name)
}
