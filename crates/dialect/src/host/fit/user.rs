//! The id of the end user.

use toolgate_model::Losses;

use super::super::HostProfile;
use crate::names::digest;

/// Hashes an id that is longer than the host accepts: the same user keeps the same id.
pub(super) fn fit(user: &mut Option<String>, profile: &HostProfile, losses: &mut Losses) {
    let Some(id) = user else { return };
    let is_plain = id.chars().all(|c| c.is_ascii_graphic());
    let length = u64::try_from(id.chars().count()).unwrap_or(u64::MAX);
    if profile.max_user == 0 {
        losses.add("user", "the host has no field for it");
        *user = None;
    } else if length > profile.max_user || !is_plain {
        *id = digest(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai_chat;

    #[test]
    fn a_user_id_that_is_too_long_is_hashed() {
        let profile = HostProfile::of_dialect(openai_chat::ID);
        for (id, kept) in [("u-1".to_owned(), true), ("x".repeat(64), true), ("x".repeat(65), false)] {
            let mut user = Some(id.clone());
            fit(&mut user, &profile, &mut Losses::default());
            assert_eq!(user.as_ref() == Some(&id), kept, "{id}");
            assert!(user.is_some_and(|user| user.len() <= 64));
        }
    }
}
