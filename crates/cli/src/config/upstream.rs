//! `[upstreams.NAME]`: a host, its dialect, key, timeouts and retries.

use http::{HeaderName, HeaderValue, Uri};
use secrecy::ExposeSecret;
use toolgate_backend::config::{HostDeadlines, Retry, UpstreamConfig};

use super::nearest::suggestion;
use super::problem::{Located, Position, ReadContext};
use super::profile;
use super::secret;
use super::section::Section;

/// The values of `dialect`.
const DIALECTS: [&str; 3] = ["anthropic-messages", "openai-chat", "openai-responses"];

/// More retries would only make clients wait for a host that is down.
const MAX_RETRIES: u32 = 10;

/// Paths that the dialects append to the base URL.
const ENDPOINTS: [&str; 3] = ["/messages", "/chat/completions", "/responses"];

/// Headers of one connection or body; a fixed value would break every request.
const RESERVED_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// The keys of a host.
const KEYS: [&str; 9] =
    ["dialect", "base_url", "api_key", "profile", "family", "facts", "timeouts", "retries", "headers"];

/// The keys of `timeouts`.
const TIMEOUT_KEYS: [&str; 6] =
    ["connect", "write", "first_byte", "idle", "count_tokens", "http2_keep_alive"];

/// Reads one host; `None` after reporting a problem.
pub(crate) fn read(
    name: &Located<String>,
    section: &Section<'_>,
    context: &mut ReadContext<'_>,
) -> Option<UpstreamConfig> {
    section.expect_keys(&KEYS, context);
    let dialect = read_dialect(section, context);
    let base_url = read_base_url(section, context);
    let api_key = section.text("api_key", "env:OPENAI_API_KEY", context);
    let api_key = api_key.and_then(|value| {
        warn_about_world_readable_literal(&value, context);
        secret::fetch("api_key", &value, context)
    });
    let timeouts = read_timeouts(section, context);
    let retries = section.count("retries", MAX_RETRIES, context);
    let headers = read_headers(section, context);

    let mut upstream = UpstreamConfig::new(name.value.clone(), dialect?, base_url?);
    upstream.api_key = api_key;
    upstream.timeouts = timeouts;
    upstream.headers = headers;
    profile::read(section, &mut upstream, context);
    if let Some(retries) = retries {
        upstream.retry = Retry { retries: retries.value, ..Retry::default() };
    }
    Some(upstream)
}

fn read_dialect(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<&'static str> {
    if section.key_position("dialect").is_none() {
        section.missing("dialect = \"openai-chat\"", context);
    }
    let written = section.text("dialect", "openai-chat", context)?;
    let known = DIALECTS.into_iter().find(|dialect| *dialect == written.value);
    if known.is_none() {
        let hint = suggestion(&written.value, DIALECTS, "dialects");
        context.error(written.position, format!("unknown dialect `{}`{hint}", written.value));
    }
    known
}

fn read_base_url(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<Uri> {
    if section.key_position("base_url").is_none() {
        section.missing("base_url = \"https://api.openai.com/v1\"", context);
    }
    let written = section.text("base_url", "https://api.openai.com/v1", context)?;
    match parse_base_url(&written.value) {
        Ok(url) => Some(url),
        Err(why) => {
            context.error(written.position, format!("`base_url` {why}"));
            None
        }
    }
}

/// Parses the URL of a host. The error continues a sentence that begins with the key's name; it never contains the URL,
/// which may include a password.
pub(crate) fn parse_base_url(text: &str) -> Result<Uri, String> {
    let trimmed = text.trim_end_matches('/');
    let url: Uri = trimmed
        .parse()
        .map_err(|_| "is not a URL: write it like \"https://api.openai.com/v1\"".to_owned())?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http:// or https://, such as \"https://api.openai.com/v1\"".to_owned());
    }
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("contains a user name or password: write the key to `api_key` instead".to_owned());
    }
    if text.contains('#') {
        return Err("must not contain `#`".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    if let Some(endpoint) = ENDPOINTS.into_iter().find(|endpoint| path.ends_with(endpoint)) {
        return Err(format!("must not include `{endpoint}`: remove it"));
    }
    Ok(url)
}

fn warn_about_world_readable_literal(value: &Located<String>, context: &mut ReadContext<'_>) {
    let literal = !value.value.starts_with("env:") && !value.value.starts_with("file:");
    if literal && secret::is_world_readable(context.file()) {
        let shown = context.file().display().to_string();
        context.warning(
            value.position,
            format!("every user of this machine can read the key in this file: run `chmod 600 {shown}`, or use \"env:NAME\""),
        );
    }
}

fn read_timeouts(section: &Section<'_>, context: &mut ReadContext<'_>) -> HostDeadlines {
    let default = HostDeadlines::default();
    let Some(section) = section.table("timeouts", context) else { return default };
    section.expect_keys(&TIMEOUT_KEYS, context);
    let mut read = |key, default| section.duration(key, context).map_or(default, |written| written.value);
    HostDeadlines {
        connect: read("connect", default.connect),
        write: read("write", default.write),
        first_byte: read("first_byte", default.first_byte),
        idle: read("idle", default.idle),
        count_tokens: read("count_tokens", default.count_tokens),
        http2_keep_alive: read("http2_keep_alive", default.http2_keep_alive),
    }
}

fn read_headers(section: &Section<'_>, context: &mut ReadContext<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(section) = section.table("headers", context) else { return Vec::new() };
    let mut headers = Vec::new();
    for field in section.fields() {
        let name = read_header_name(field.key, field.position, context);
        let value = field.text("a value", context);
        let value = value.and_then(|value| secret::fetch(field.key, &value, context));
        let (Some(name), Some(value)) = (name, value) else { continue };
        match HeaderValue::from_str(value.expose_secret()) {
            Ok(mut value) => {
                // Headers may carry keys, so they must not be logged.
                value.set_sensitive(true);
                headers.push((name, value));
            }
            Err(_) => {
                context.error(
                    field.position,
                    format!("the value of `{}` is not a valid header value", field.key),
                );
            }
        }
    }
    headers
}

fn read_header_name(text: &str, position: Position, context: &mut ReadContext<'_>) -> Option<HeaderName> {
    let Ok(name) = text.parse::<HeaderName>() else {
        context.error(position, format!("`{text}` is not a header name: use letters, digits and `-`"));
        return None;
    };
    if RESERVED_HEADERS.contains(&name.as_str()) {
        context.error(position, format!("`{text}` is different for each request: remove it"));
        return None;
    }
    Some(name)
}
