//! `[record]`: which conversations are kept, and for how long.

use toolgate_gateway::config::{RecordConfig, RecordedSessions};

use super::lifetime::parse_lifetime;
use super::nearest::suggestion;
use super::problem::ReadContext;
use super::section::Section;

/// Reads the section. A missing key keeps its default.
pub(crate) fn read(root: &Section<'_>, context: &mut ReadContext<'_>) -> RecordConfig {
    let default = RecordConfig::default();
    let Some(section) = root.table("record", context) else { return default };
    section.expect_keys(&["sessions", "keep"], context);
    RecordConfig {
        sessions: read_sessions(&section, context).unwrap_or(default.sessions),
        keep: section.parsed("keep", "30d", parse_lifetime, context).map_or(default.keep, |keep| keep.value),
    }
}

fn read_sessions(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<RecordedSessions> {
    let written = section.text("sessions", "agents", context)?;
    match written.value.as_str() {
        "agents" => Some(RecordedSessions::Agents),
        "all" => Some(RecordedSessions::All),
        "none" => Some(RecordedSessions::None),
        other => {
            let hint = suggestion(other, ["agents", "all", "none"], "values");
            context.error(written.position, format!("unknown value `{other}` of `sessions`{hint}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;
    use crate::config::tests::{check, load_in};

    #[test]
    fn what_is_kept_is_read() {
        let read = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let Ok(loaded) = load_in(folder.path(), text) else { panic!("the config has errors: {text}") };
            loaded.config.record
        };
        let days = |days: u64| Duration::from_hours(days * 24);
        assert_eq!(read(""), RecordConfig { sessions: RecordedSessions::Agents, keep: days(30) });
        for (sessions, expected) in [
            ("agents", RecordedSessions::Agents),
            ("all", RecordedSessions::All),
            ("none", RecordedSessions::None),
        ] {
            let text = format!("[record]\nsessions = \"{sessions}\"\nkeep = \"7d\"\n");
            assert_eq!(read(&text), RecordConfig { sessions: expected, keep: days(7) });
        }
    }

    #[test]
    fn anything_else_is_reported() {
        check(
            "[record]\nsessions = \"agent\"\nkeep = \"5m\"\ndays = 3\n",
            &expect![[r#"
                toolgate.toml:2:12: unknown value `agent` of `sessions`; did you mean `agents`?
                toolgate.toml:3:8: `keep` is "5m": write a whole number of hours or days: "12h" or "30d"
                toolgate.toml:4:1: unknown key `days` in [record]; the keys here are `sessions` and `keep`
                3 errors: nothing was started
            "#]],
        );
    }
}
