//! `[limits]`: sizes and times of the service.

use std::time::Duration;

use toolgate_gateway::config::Limits;

use super::problem::ReadContext;
use super::section::Section;

/// Reads the section. A missing key keeps its default.
pub(crate) fn read(root: &Section<'_>, context: &mut ReadContext<'_>) -> Limits {
    let mut limits = Limits::default();
    let Some(section) = root.table("limits", context) else { return limits };
    let mut keys = Keys { section: &section, known: Vec::new(), context };
    keys.size("body", &mut limits.body_bytes);
    keys.duration("ping", &mut limits.ping_every);
    keys.duration("commit", &mut limits.commit_after);
    keys.duration("shutdown_grace", &mut limits.shutdown_grace);
    keys.count("connections", &mut limits.connections);
    keys.duration("head", &mut limits.deadlines.head);
    keys.duration("idle", &mut limits.deadlines.idle);
    keys.size("body_rate", &mut limits.deadlines.body_rate);
    keys.duration("stalled", &mut limits.deadlines.stalled);
    if limits.deadlines.stalled <= limits.ping_every {
        keys.context.error(
            section.key_position("stalled").unwrap_or(section.position()),
            "`stalled` must be longer than `ping`: a client is stalled if it does not take the pings",
        );
    }
    keys.refuse_others();
    limits
}

/// Reads keys one by one and collects their names.
struct Keys<'a, 't, 'r> {
    section: &'a Section<'t>,
    known: Vec<&'static str>,
    context: &'a mut ReadContext<'r>,
}

impl Keys<'_, '_, '_> {
    fn size(&mut self, key: &'static str, limit: &mut usize) {
        self.known.push(key);
        if let Some(written) = self.section.size(key, self.context) {
            *limit = written.value;
        }
    }

    fn count(&mut self, key: &'static str, limit: &mut usize) {
        const MAX: u32 = 1_000_000;
        self.known.push(key);
        if let Some(written) = self.section.count(key, MAX, self.context) {
            *limit = written.value as usize;
        }
    }

    fn duration(&mut self, key: &'static str, limit: &mut Duration) {
        self.known.push(key);
        if let Some(written) = self.section.duration(key, self.context) {
            *limit = written.value;
        }
    }

    fn refuse_others(self) {
        self.section.expect_keys(&self.known, self.context);
    }
}
