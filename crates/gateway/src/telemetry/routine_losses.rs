//! Routine losses are logged once per caller: they occur with every request, and would hide the others.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_model::{Loss, Losses};

/// The most pairs of a caller and a place that are remembered. Past that, all are forgotten and logged again.
const MAX_LOGGED: usize = 4_096;

/// Which routine losses were logged.
#[derive(Debug, Default)]
pub(crate) struct RoutineLosses(Mutex<HashSet<(Arc<str>, Box<str>)>>);

impl RoutineLosses {
    /// The losses to log for this caller: all real ones, then the routine ones that were not logged before.
    pub(crate) fn to_log<'l>(&self, caller: &Arc<str>, losses: &'l Losses) -> Vec<&'l Loss> {
        losses.routine_last().filter(|loss| !loss.is_routine() || self.is_new(caller, &loss.place)).collect()
    }

    fn is_new(&self, caller: &Arc<str>, place: &str) -> bool {
        let mut logged = self.0.lock();
        if logged.len() >= MAX_LOGGED {
            logged.clear();
        }
        logged.insert((Arc::clone(caller), place.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(places: &[&str]) -> Losses {
        let mut losses = Losses::default();
        for place in places {
            losses.add(*place, "test");
        }
        losses
    }

    #[test]
    fn routine_losses_are_logged_once_per_caller_and_real_ones_always_and_first() {
        let logged = RoutineLosses::default();
        let (alice, bob): (Arc<str>, Arc<str>) = ("alice".into(), "bob".into());
        let check = |caller: &Arc<str>, places: &[&str], expect: &[&str]| {
            let losses = losses(places);
            let seen: Vec<&str> =
                logged.to_log(caller, &losses).into_iter().map(|loss| loss.place.as_str()).collect();
            assert_eq!(seen, expect);
        };
        check(&alice, &["metadata", "top_k"], &["top_k", "metadata"]);
        check(&alice, &["metadata", "top_k"], &["top_k"]);
        check(&alice, &["system.cache_control", "metadata"], &["system.cache_control"]);
        check(&bob, &["metadata"], &["metadata"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let logged = RoutineLosses::default();
        for number in 0..2 * MAX_LOGGED {
            logged.to_log(&number.to_string().into(), &losses(&["metadata"]));
        }
        assert!(logged.0.lock().len() <= MAX_LOGGED);
    }
}
