//! Conformance cases for questions.

use futures_util::future::{BoxFuture, try_join_all};
use serde_json::json;
use toolgate_model::approval::{
    Decision, Outcome, PermissionUpdate, Question, QuestionId, Resolution, ToolUse, UpdateDestination,
};

use super::Case;
use crate::{
    MAX_QUESTION_BYTES, MAX_QUESTIONS_PER_PAGE, Resolved, Store, StoreError, StoredQuestion, UnixMillis,
};

pub(super) const CASES: &[Case] = &[
    a_question_is_read_back_unchanged,
    every_resolution_is_read_back_unchanged,
    a_question_is_resolved_once,
    of_many_resolutions_at_once_one_counts_and_all_others_learn_it,
    asking_again_changes_nothing,
    waiting_questions_are_listed_with_the_oldest_first,
    resolved_questions_are_listed_with_the_newest_first,
    a_deadline_changes_only_while_the_question_waits,
    pruning_deletes_only_old_resolved_questions,
    a_question_over_the_limit_is_refused,
];

type CaseFuture<'a> = BoxFuture<'a, Result<(), StoreError>>;

/// A small question, different for each id.
pub(crate) fn question(id: &str, asked_at: i64) -> Question {
    Question {
        id: QuestionId::new(id),
        tool_use: ToolUse {
            agent: "claude".to_owned(),
            caller: "alice".to_owned(),
            session: "s".to_owned(),
            tool: "Bash".to_owned(),
            input: json!({ "command": format!("echo {id}") }),
            ..ToolUse::default()
        },
        why: "no rule covers it".to_owned(),
        asked_at,
        deadline: Some(asked_at + 600),
    }
}

pub(crate) fn resolution(by: &str, at: i64) -> Resolution {
    Resolution { outcome: Outcome::Decided(Decision::ALLOW), by: by.to_owned(), at }
}

fn id(text: &str) -> QuestionId {
    QuestionId::new(text)
}

fn ids(questions: &[Question]) -> Vec<&str> {
    questions.iter().map(|question| question.id.as_str()).collect()
}

fn a_question_is_read_back_unchanged(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        assert_eq!(store.question(&id("q")).await?, None);
        let whole = Question {
            id: id("q ' 🦀"),
            tool_use: ToolUse {
                agent: "claude".to_owned(),
                caller: "alice".to_owned(),
                session: "s".to_owned(),
                turn: Some("t".to_owned()),
                call: Some("toolu_1".to_owned()),
                sub_agent: Some("explorer".to_owned()),
                tool: "Edit".to_owned(),
                input: json!({ "file": "a\u{0}b", "n": 1.5, "list": [null, true, { "deep": "' \\ \"" }] }),
                title: Some("Edit a file".to_owned()),
                description: Some("two\nlines".to_owned()),
                reason: Some("outside".to_owned()),
                blocked_path: Some("/etc/passwd".to_owned()),
                suggestions: vec![PermissionUpdate::SetMode {
                    mode: "acceptEdits".to_owned(),
                    destination: UpdateDestination::Session,
                }],
            },
            why: "no rule covers it".to_owned(),
            asked_at: -1,
            deadline: None,
        };
        store.ask(&whole).await?;
        let expected = StoredQuestion { question: whole.clone(), resolution: None };
        assert_eq!(store.question(&whole.id).await?, Some(expected));
        assert_eq!(store.waiting().await?, [whole]);
        Ok(())
    })
}

fn every_resolution_is_read_back_unchanged(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        let updates = vec![PermissionUpdate::AddDirectories {
            directories: vec!["/srv".to_owned()],
            destination: UpdateDestination::LocalSettings,
        }];
        let outcomes = [
            Outcome::Decided(Decision::ALLOW),
            Outcome::Decided(Decision::Allow { input: Some(json!({ "command": "ls" })), updates }),
            Outcome::Decided(Decision::Deny { message: "no".to_owned(), interrupt: true }),
            Outcome::Decided(Decision::Answer { text: "42".to_owned() }),
            Outcome::TimedOut,
            Outcome::Withdrawn,
        ];
        for (number, outcome) in outcomes.into_iter().enumerate() {
            let asked = question(&format!("q{number}"), 1);
            store.ask(&asked).await?;
            let resolution = Resolution { outcome, by: "api".to_owned(), at: 2 };
            assert_eq!(store.resolve(&asked.id, &resolution).await?, Resolved::Now);
            let expected = StoredQuestion { question: asked.clone(), resolution: Some(resolution) };
            assert_eq!(store.question(&asked.id).await?, Some(expected));
        }
        assert_eq!(store.waiting().await?, []);
        Ok(())
    })
}

fn a_question_is_resolved_once(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        assert_eq!(store.resolve(&id("q"), &resolution("first", 2)).await?, Resolved::Unknown);
        store.ask(&question("q", 1)).await?;
        assert_eq!(store.resolve(&id("q"), &resolution("first", 2)).await?, Resolved::Now);
        let late = Resolution { outcome: Outcome::TimedOut, ..resolution("clock", 3) };
        for _ in 0..2 {
            let learnt = store.resolve(&id("q"), &late).await?;
            assert_eq!(learnt, Resolved::Before(resolution("first", 2)));
        }
        let stored = store.question(&id("q")).await?;
        assert_eq!(stored.and_then(|stored| stored.resolution), Some(resolution("first", 2)));
        Ok(())
    })
}

fn of_many_resolutions_at_once_one_counts_and_all_others_learn_it(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        let question_ids: Vec<QuestionId> = (0..4).map(|number| id(&format!("q{number}"))).collect();
        for question_id in &question_ids {
            store.ask(&question(question_id.as_str(), 1)).await?;
        }
        let approvers: Vec<Resolution> =
            (0..16).map(|number| resolution(&format!("approver {number}"), 2)).collect();
        for question_id in &question_ids {
            let attempts = approvers.iter().map(|resolution| store.resolve(question_id, resolution));
            let results = try_join_all(attempts).await?;
            let winners: Vec<&Resolution> = approvers
                .iter()
                .zip(&results)
                .filter(|(_, result)| **result == Resolved::Now)
                .map(|(resolution, _)| resolution)
                .collect();
            assert_eq!(winners.len(), 1);
            let learnt = results.iter().filter(|result| **result == Resolved::Before(winners[0].clone()));
            assert_eq!(learnt.count(), approvers.len() - 1);
        }
        Ok(())
    })
}

fn asking_again_changes_nothing(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        store.ask(&question("q", 1)).await?;
        store.resolve(&id("q"), &resolution("api", 2)).await?;
        store.ask(&question("q", 9)).await?;
        let expected = StoredQuestion { question: question("q", 1), resolution: Some(resolution("api", 2)) };
        assert_eq!(store.question(&id("q")).await?, Some(expected));
        assert_eq!(store.waiting().await?, []);
        Ok(())
    })
}

fn waiting_questions_are_listed_with_the_oldest_first(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        for (name, at) in [("c", 5), ("a", 7), ("b", 5), ("gone", 1), ("d", -3)] {
            store.ask(&question(name, at)).await?;
        }
        store.resolve(&id("gone"), &resolution("api", 2)).await?;
        assert_eq!(ids(&store.waiting().await?), ["d", "b", "c", "a"]);
        for number in 0..MAX_QUESTIONS_PER_PAGE {
            store.ask(&question(&format!("more {number}"), 6)).await?;
        }
        let page = store.waiting().await?;
        assert_eq!((page.len(), &ids(&page)[..3]), (MAX_QUESTIONS_PER_PAGE, &["d", "b", "c"][..]));
        Ok(())
    })
}

fn resolved_questions_are_listed_with_the_newest_first(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        for (name, at) in [("b", 5), ("c", 9), ("a", 5), ("d", 7)] {
            store.ask(&question(name, 1)).await?;
            store.resolve(&id(name), &resolution("api", at)).await?;
        }
        store.ask(&question("waiting", 1)).await?;
        let listed = async |before: i64, limit: usize| {
            let found = store.resolved(UnixMillis(before), limit).await?;
            let names = found.iter().map(|stored| stored.question.id.as_str().to_owned());
            Ok::<_, StoreError>(names.collect::<Vec<String>>())
        };
        assert_eq!(listed(i64::MAX, usize::MAX).await?, ["c", "d", "a", "b"]);
        assert_eq!(listed(9, 2).await?, ["d", "a"]);
        assert_eq!(listed(5, 9).await?, Vec::<String>::new());
        assert_eq!(listed(9, 0).await?, Vec::<String>::new());
        Ok(())
    })
}

fn a_deadline_changes_only_while_the_question_waits(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        assert!(!store.set_deadline(&id("q"), Some(UnixMillis(5))).await?);
        store.ask(&question("q", 1)).await?;
        for deadline in [Some(5), None, Some(-7)] {
            assert!(store.set_deadline(&id("q"), deadline.map(UnixMillis)).await?);
            let expected = Question { deadline, ..question("q", 1) };
            assert_eq!(store.waiting().await?, std::slice::from_ref(&expected));
            let stored = store.question(&id("q")).await?;
            assert_eq!(stored.map(|stored| stored.question), Some(expected));
        }
        store.resolve(&id("q"), &resolution("api", 2)).await?;
        assert!(!store.set_deadline(&id("q"), Some(UnixMillis(9))).await?);
        let stored = store.question(&id("q")).await?;
        assert_eq!(stored.and_then(|stored| stored.question.deadline), Some(-7));
        Ok(())
    })
}

fn pruning_deletes_only_old_resolved_questions(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        for (name, at) in [("old", 99), ("older", -5), ("new", 100)] {
            store.ask(&question(name, -9)).await?;
            store.resolve(&id(name), &resolution("api", at)).await?;
        }
        store.ask(&question("waiting", -9)).await?;
        assert_eq!(store.prune_questions(UnixMillis(100)).await?, 2);
        assert_eq!(store.prune_questions(UnixMillis(100)).await?, 0);
        assert_eq!(store.question(&id("old")).await?, None);
        assert!(store.question(&id("new")).await?.is_some());
        assert_eq!(ids(&store.waiting().await?), ["waiting"]);
        Ok(())
    })
}

fn a_question_over_the_limit_is_refused(store: &dyn Store) -> CaseFuture<'_> {
    Box::pin(async move {
        let mut large = question("q", 1);
        large.tool_use.title = Some("x".repeat(MAX_QUESTION_BYTES));
        let refused = store.ask(&large).await;
        assert!(matches!(refused, Err(StoreError::QuestionTooLarge { .. })), "{refused:?}");
        assert_eq!(store.question(&id("q")).await?, None);

        store.ask(&question("q", 1)).await?;
        let text = "x".repeat(MAX_QUESTION_BYTES);
        let outcome = Outcome::Decided(Decision::Answer { text });
        let refused = store.resolve(&id("q"), &Resolution { outcome, ..resolution("api", 2) }).await;
        assert!(matches!(refused, Err(StoreError::QuestionTooLarge { .. })), "{refused:?}");
        assert_eq!(store.resolve(&id("q"), &resolution("api", 2)).await?, Resolved::Now);
        Ok(())
    })
}
