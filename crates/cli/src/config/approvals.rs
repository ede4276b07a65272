//! `[approvals]`: rules for the tools that agents run, how long a question waits for an answer, and the webhook.

use std::time::Duration;

use http::Uri;
use toolgate_gateway::approval::{AfterTimeout, ApprovalConfig, Rule, Rules, WebhookConfig};

use super::nearest::suggestion;
use super::problem::ReadContext;
use super::secret;
use super::section::{ListForm, Section};

/// Every rule is tried for every question, so their number is bounded.
const MAX_RULES: usize = 1_000;

/// The values of `on_timeout`.
const AFTER_TIMEOUT: [(&str, AfterTimeout); 2] =
    [("stop", AfterTimeout::EndTurn), ("continue", AfterTimeout::Continue)];

/// Reads the section. A missing key keeps its default.
pub(crate) fn read(root: &Section<'_>, context: &mut ReadContext<'_>) -> ApprovalConfig {
    let default = ApprovalConfig::default();
    let Some(section) = root.table("approvals", context) else { return default };
    section.expect_keys(&["timeout", "on_timeout", "rules", "webhook"], context);
    ApprovalConfig {
        timeout: read_timeout(&section, default.timeout, context),
        after_timeout: read_after_timeout(&section, context).unwrap_or(default.after_timeout),
        rules: read_rules(&section, context),
        webhook: read_webhook(&section, context),
    }
}

/// A duration, or `never`.
fn read_timeout(
    section: &Section<'_>,
    default: Option<Duration>,
    context: &mut ReadContext<'_>,
) -> Option<Duration> {
    match section.text("timeout", "10m", context) {
        Some(written) if written.value == "never" => None,
        Some(_) => section.duration("timeout", context).map_or(default, |timeout| Some(timeout.value)),
        None => default,
    }
}

fn read_after_timeout(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<AfterTimeout> {
    let written = section.text("on_timeout", "stop", context)?;
    let known = AFTER_TIMEOUT.into_iter().find(|(name, _)| *name == written.value);
    if known.is_none() {
        let hint = suggestion(&written.value, AFTER_TIMEOUT.map(|(name, _)| name), "values");
        context.error(written.position, format!("`on_timeout` is \"{}\"{hint}", written.value));
    }
    known.map(|(_, after)| after)
}

fn read_rules(section: &Section<'_>, context: &mut ReadContext<'_>) -> Rules {
    let written = section.texts("rules", ListForm::Many, context).unwrap_or_default();
    if let Some(first_too_many) = written.get(MAX_RULES) {
        context.error(
            first_too_many.position,
            format!("at most {MAX_RULES} rules are allowed: combine some with `*`"),
        );
    }
    let mut rules = Vec::new();
    for rule in written.iter().take(MAX_RULES) {
        match Rule::parse(&rule.value) {
            Ok(parsed) => rules.push(parsed),
            Err(why) => context.error(rule.position, format!("the rule \"{}\": {why}", rule.value)),
        }
    }
    Rules::new(rules)
}

fn read_webhook(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<WebhookConfig> {
    let section = section.table("webhook", context)?;
    section.expect_keys(&["url", "secret"], context);
    for (key, line) in
        [("url", "url = \"https://example.com/hook\""), ("secret", "secret = \"env:WEBHOOK_SECRET\"")]
    {
        if section.key_position(key).is_none() {
            section.missing(line, context);
        }
    }
    let url = section.text("url", "https://example.com/hook", context).and_then(|written| {
        // The message does not contain the URL, which may include a secret.
        let url = written.value.parse::<Uri>().ok().filter(is_web_address);
        if url.is_none() {
            context.error(written.position, "`url` must be an address that begins with http:// or https://");
        }
        url
    });
    let written = section.text("secret", "env:WEBHOOK_SECRET", context)?;
    let secret = secret::fetch("secret", &written, context);
    Some(WebhookConfig { url: url?, secret: secret? })
}

fn is_web_address(url: &Uri) -> bool {
    matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some_and(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use secrecy::ExposeSecret;

    use super::super::tests::{check, load_in};
    use super::*;

    fn approvals(section: &str) -> ApprovalConfig {
        let text = format!("store = \"memory\"\n[approvals]\n{section}\n");
        match load_in(tempfile::tempdir().unwrap().path(), &text) {
            Ok(loaded) => loaded.config.approvals,
            Err(errors) => panic!("{errors}"),
        }
    }

    #[test]
    fn the_end_of_a_question_is_configurable() {
        let never = approvals("timeout = \"never\"\non_timeout = \"continue\"");
        assert_eq!((never.timeout, never.after_timeout), (None, AfterTimeout::Continue));
        let default = approvals("");
        let ten_minutes = Some(Duration::from_mins(10));
        assert_eq!((default.timeout, default.after_timeout), (ten_minutes, AfterTimeout::EndTurn));
    }

    #[test]
    fn a_webhook_has_a_url_and_a_secret() {
        let webhook =
            approvals("webhook = { url = \"https://x.example/h\", secret = \"env:A_KEY\" }").webhook;
        let webhook = webhook.expect("a webhook");
        assert_eq!(
            (webhook.url.to_string().as_str(), webhook.secret.expose_secret()),
            ("https://x.example/h", "sk-from-env")
        );
    }

    #[test]
    fn mistakes_are_reported_without_secrets() {
        check(
            "store = \"memory\"\n[approvals]\ntimeout = \"soon\"\non_timeout = \"stopp\"\nwebhook = { url = \"ftp://secret\", secret = \"env:MISSING\", x = 1 }\n",
            &expect![[r#"
                toolgate.toml:3:11: `timeout` is "soon": write a whole number and a unit: "500ms", "30s", "2m" or "1h"
                toolgate.toml:4:14: `on_timeout` is "stopp"; did you mean `stop`?
                toolgate.toml:5:19: `url` must be an address that begins with http:// or https://
                toolgate.toml:5:44: `secret`: the environment variable MISSING is not set: export it before starting, or use "file:PATH"
                toolgate.toml:5:59: unknown key `x` in [approvals.webhook]; the keys here are `url` and `secret`
                5 errors: nothing was started
            "#]],
        );
        check(
            "store = \"memory\"\n[approvals]\nwebhook = { url = \"http://x\" }\n",
            &expect![[r#"
            toolgate.toml:3:1: [approvals.webhook] lacks a required key: add `secret = "env:WEBHOOK_SECRET"`
            1 error: nothing was started
        "#]],
        );
    }
}
