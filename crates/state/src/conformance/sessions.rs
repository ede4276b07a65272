//! Conformance cases for sessions.

use futures_util::future::{BoxFuture, try_join_all};
use toolgate_model::observed::SessionState;

use super::{Case, json, session, turn_record};
use crate::{
    AgentTurnRecord, CallerScope, Callers, Deletion, Label, MAX_PAGE_ROWS, SessionChange, SessionCursor,
    SessionPage, SessionRecord, Store, StoreError, TurnCursor, UnixMillis,
};

pub(super) const CASES: &[Case] = &[
    a_session_is_created_by_its_first_change,
    a_change_keeps_what_it_does_not_name,
    a_title_is_suggested_once_and_replaced_by_renaming,
    sessions_are_listed_in_pages_with_the_last_updated_first,
    callers_do_not_see_each_others_sessions,
    turns_are_listed_in_the_order_of_writing,
    a_page_of_large_turns_is_short,
    a_deleted_session_has_no_turns,
    concurrent_changes_are_all_applied,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

fn alice() -> CallerScope {
    CallerScope::new("alice")
}

fn change(at: i64) -> SessionChange {
    SessionChange::at(UnixMillis(at))
}

fn a_session_is_created_by_its_first_change(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.session(&alice(), &session("s")).await?, None);
        let first = SessionChange {
            suggested_title: Some(Label::new("Quote ' and emoji 🦀")),
            model: Some(Label::new("sonnet")),
            agent: Some(Label::new("claude")),
            state: Some(SessionState::Running),
            at: UnixMillis(7),
        };
        store.update_session(&alice(), &session("s"), first).await?;
        let expected = SessionRecord {
            caller: alice(),
            id: session("s"),
            title: Label::new("Quote ' and emoji 🦀"),
            model: Label::new("sonnet"),
            agent: Label::new("claude"),
            state: SessionState::Running,
            created: UnixMillis(7),
            updated: UnixMillis(7),
        };
        assert_eq!(store.session(&alice(), &session("s")).await?, Some(expected));

        store.update_session(&alice(), &session("bare"), change(8)).await?;
        let expected = SessionRecord {
            caller: alice(),
            id: session("bare"),
            title: Label::new(""),
            model: Label::new(""),
            agent: Label::new(""),
            state: SessionState::Idle,
            created: UnixMillis(8),
            updated: UnixMillis(8),
        };
        assert_eq!(store.session(&alice(), &session("bare")).await?, Some(expected));
        Ok(())
    })
}

fn a_change_keeps_what_it_does_not_name(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let first = SessionChange { model: Some(Label::new("a")), agent: Some(Label::new("b")), ..change(7) };
        store.update_session(&alice(), &session("s"), first).await?;
        let created = store.session(&alice(), &session("s")).await?;
        for state in [
            SessionState::Starting,
            SessionState::Failed,
            SessionState::Waiting,
            SessionState::Interrupted,
            SessionState::Running,
            SessionState::Idle,
        ] {
            // A late change does not move the session back.
            let late = SessionChange { state: Some(state), ..change(3) };
            store.update_session(&alice(), &session("s"), late).await?;
            let expected = created.clone().map(|session| SessionRecord { state, ..session });
            assert_eq!(store.session(&alice(), &session("s")).await?, expected);
        }
        store.update_session(&alice(), &session("s"), change(9)).await?;
        let expected = created.map(|session| SessionRecord { updated: UnixMillis(9), ..session });
        assert_eq!(store.session(&alice(), &session("s")).await?, expected);
        Ok(())
    })
}

fn a_title_is_suggested_once_and_replaced_by_renaming(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert!(!store.rename_session(&alice(), &session("s"), Label::new("new")).await?);
        let title = async || {
            let found = store.session(&alice(), &session("s")).await?;
            Ok::<_, StoreError>(found.map(|session| session.title.as_str().to_owned()))
        };
        store.update_session(&alice(), &session("s"), change(1)).await?;
        for suggested in ["first", "second"] {
            let suggestion = SessionChange { suggested_title: Some(Label::new(suggested)), ..change(2) };
            store.update_session(&alice(), &session("s"), suggestion).await?;
            assert_eq!(title().await?.as_deref(), Some("first"));
        }
        assert!(store.rename_session(&alice(), &session("s"), Label::new("new")).await?);
        assert!(!store.rename_session(&CallerScope::new("bob"), &session("s"), Label::new("his")).await?);
        assert_eq!(title().await?.as_deref(), Some("new"));
        Ok(())
    })
}

fn ids(page: &SessionPage) -> Vec<&str> {
    page.sessions.iter().map(|session| session.id.as_str()).collect()
}

fn sessions_are_listed_in_pages_with_the_last_updated_first(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = alice();
        assert_eq!(store.sessions(Callers::All, None, 10).await?, SessionPage::default());
        // Several with the same time.
        for (id, at) in [("a", 5), ("e", 9), ("c", 5), ("b", 5), ("d", -1)] {
            store.update_session(&alice, &session(id), change(at)).await?;
        }
        store.update_session(&CallerScope::new("bob"), &session("b"), change(5)).await?;
        for (callers, expected) in [
            (Callers::One(&alice), vec!["e", "c", "b", "a", "d"]),
            (Callers::All, vec!["e", "b", "c", "b", "a", "d"]),
        ] {
            let whole = store.sessions(callers, None, 6).await?;
            assert_eq!((ids(&whole), &whole.next), (expected.clone(), &None));
            for limit in 1..=3 {
                let mut listed = Vec::new();
                let mut after: Option<SessionCursor> = None;
                loop {
                    let page = store.sessions(callers, after.as_ref(), limit).await?;
                    assert!(page.sessions.len() <= limit);
                    listed.extend(page.sessions);
                    // As a client sends it back.
                    after = page.next.and_then(|next| next.to_string().parse().ok());
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(listed, whole.sessions);
            }
        }

        for number in 0..MAX_PAGE_ROWS {
            store.update_session(&alice, &session(&format!("more-{number}")), change(1)).await?;
        }
        let page = store.sessions(Callers::All, None, usize::MAX).await?;
        assert_eq!((page.sessions.len(), page.next.is_some()), (MAX_PAGE_ROWS, true));
        Ok(())
    })
}

fn callers_do_not_see_each_others_sessions(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let bob = CallerScope::new("bob");
        store.update_session(&alice(), &session("s"), change(1)).await?;
        store.put_record(&alice(), turn_record(1, "s", 1)).await?;
        assert_eq!(store.session(&bob, &session("s")).await?, None);
        assert_eq!(store.sessions(Callers::One(&bob), None, 10).await?, SessionPage::default());
        assert_eq!(store.session_turns(&bob, &session("s"), None, 10).await?.turns, []);
        assert_eq!(store.delete_session(&bob, &session("s")).await?, Deletion::NotFound);
        assert_eq!(store.session_turns(&alice(), &session("s"), None, 10).await?.turns.len(), 1);

        // Bob's session of the same name is another one.
        store.update_session(&bob, &session("s"), change(2)).await?;
        assert_eq!(store.delete_session(&bob, &session("s")).await?, Deletion::Deleted);
        assert!(store.session(&alice(), &session("s")).await?.is_some());
        Ok(())
    })
}

fn turns_are_listed_in_the_order_of_writing(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in [3, 1, 2, 4, 1] {
            store.put_record(&alice(), turn_record(number, "s", 5)).await?;
            store.put_record(&alice(), turn_record(number + 10, "other", 5)).await?;
        }
        let expected: Vec<AgentTurnRecord> = [3, 2, 4, 1].map(|number| turn_record(number, "s", 5)).into();
        for limit in 1..=5 {
            let mut listed = Vec::new();
            let mut after: Option<TurnCursor> = None;
            loop {
                let page = store.session_turns(&alice(), &session("s"), after, limit).await?;
                assert!(page.turns.len() <= limit);
                listed.extend(page.turns);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(listed, expected);
        }
        Ok(())
    })
}

fn a_page_of_large_turns_is_short(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let large = json(&format!("\"{}\"", "x".repeat(5 << 20)));
        for number in 1..=4 {
            let turn = AgentTurnRecord { steps: large.clone(), ..turn_record(number, "s", 1) };
            store.put_record(&alice(), turn).await?;
        }
        let first = store.session_turns(&alice(), &session("s"), None, 10).await?;
        assert_eq!((first.turns.len(), first.next.is_some()), (2, true));
        let second = store.session_turns(&alice(), &session("s"), first.next, 10).await?;
        assert_eq!((second.turns.len(), second.next), (2, None));
        Ok(())
    })
}

fn a_deleted_session_has_no_turns(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.delete_session(&alice(), &session("s")).await?, Deletion::NotFound);
        store.update_session(&alice(), &session("s"), change(1)).await?;
        store.put_record(&alice(), turn_record(1, "s", 1)).await?;
        store.put_record(&alice(), turn_record(2, "other", 1)).await?;
        assert_eq!(store.delete_session(&alice(), &session("s")).await?, Deletion::Deleted);
        assert_eq!(store.session(&alice(), &session("s")).await?, None);
        assert_eq!(store.record_for_request(&alice(), turn_record(1, "s", 1).key).await?, None);
        assert!(store.record_for_request(&alice(), turn_record(2, "s", 1).key).await?.is_some());
        Ok(())
    })
}

fn concurrent_changes_are_all_applied(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, id) = (alice(), session("s"));
        try_join_all((0..32).map(|at| store.update_session(&alice, &id, change(at)))).await?;
        let found = store.session(&alice, &id).await?;
        assert_eq!(found.map(|session| session.updated), Some(UnixMillis(31)));
        Ok(())
    })
}
