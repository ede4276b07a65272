//! Questions and their one outcome: by a rule, a person, the time, or withdrawal.

use std::future::Future;

use futures_util::FutureExt;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_model::approval::{PermissionUpdate, UpdateDestination};
use toolgate_state::{Bus, MemoryStore, RuleScope, UnixMillis};

use super::super::answer::{Answer, AnswerError, Answered};
use super::super::grants::{NewRule, ScopeName};
use super::super::{AfterTimeout, Rule, Rules};
use super::*;

/// Follows the runtime's time, which tests pause.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_000_000 + i64::try_from(self.0.elapsed().as_millis()).expect("a time"))
    }
}

struct Stage {
    inbox: Arc<Inbox>,
    store: Arc<MemoryStore>,
    stop: CancellationToken,
}

impl Stage {
    fn new(rules: &[&str]) -> Self {
        Self::over(Arc::new(MemoryStore::new()), rules, AfterTimeout::EndTurn)
    }

    fn over(store: Arc<MemoryStore>, rules: &[&str], after_timeout: AfterTimeout) -> Self {
        let rules = Rules::new(rules.iter().map(|rule| Rule::parse(rule).expect("a rule")).collect());
        let config = ApprovalConfig { after_timeout, rules, ..ApprovalConfig::default() };
        let clock = Arc::new(RuntimeClock(Instant::now()));
        let tls = Tls::load().expect("certificates");
        let (inbox, worker) = Inbox::new(config, Arc::<MemoryStore>::clone(&store), Bus::new(), clock, &tls);
        let stop = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        drop(tokio::task::spawn(worker.run(stop.clone())));
        Self { inbox, store, stop }
    }

    fn ask(&self, tool: &str, input: Value) -> impl Future<Output = Decision> + use<> {
        self.ask_in("s", tool, input)
    }

    fn ask_in(&self, session: &str, tool: &str, input: Value) -> impl Future<Output = Decision> + use<> {
        let accept_edits = PermissionUpdate::SetMode {
            mode: "acceptEdits".to_owned(),
            destination: UpdateDestination::Session,
        };
        let tool_use = ToolUse {
            session: session.to_owned(),
            tool: tool.to_owned(),
            input,
            suggestions: vec![accept_edits],
            ..ToolUse::default()
        };
        Arc::clone(&self.inbox).decide(tool_use, Folder::new("/w".as_ref()))
    }

    fn bash(&self, command: &str) -> impl Future<Output = Decision> + use<> {
        self.ask("Bash", json!({ "command": command }))
    }

    /// The questions that wait.
    async fn waiting(&self) -> Vec<Question> {
        self.inbox.waiting().await.expect("a list")
    }

    async fn the_question(&self) -> QuestionId {
        let mut waiting = self.waiting().await;
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        waiting.remove(0).id
    }

    async fn answer(&self, id: &QuestionId, decision: Decision) -> Result<Answered, AnswerError> {
        let answer = Answer { decision, scope: None, by: "api".to_owned() };
        self.inbox.answer(id, answer).await
    }

    async fn outcome(&self, id: &QuestionId) -> Option<(Outcome, String)> {
        use toolgate_state::QuestionStore;
        let stored = self.store.question(id).await.expect("a question").expect("it is stored");
        stored.resolution.map(|resolution| (resolution.outcome, resolution.by))
    }
}

/// Polls a future until the store's calls are done.
async fn is_pending(future: &mut (impl Future<Output = Decision> + Unpin)) -> bool {
    for _ in 0..20 {
        if future.now_or_never().is_some() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

fn allow_always(text: &str, scope: &str) -> Decision {
    let (tool, content) = text.split_once('(').expect("a rule");
    let destination = match scope {
        "session" => UpdateDestination::Session,
        "project" => UpdateDestination::LocalSettings,
        _ => UpdateDestination::UserSettings,
    };
    let rule = toolgate_model::approval::AgentRule {
        tool_name: tool.to_owned(),
        rule_content: Some(content.trim_end_matches(')').to_owned()),
    };
    let change = toolgate_model::approval::RuleChange {
        rules: vec![rule],
        behavior: toolgate_model::approval::RuleBehavior::Allow,
        destination,
    };
    Decision::Allow { input: None, updates: vec![PermissionUpdate::AddRules(change)] }
}

fn denial(decision: Decision) -> (String, bool) {
    let Decision::Deny { message, interrupt } = decision else { panic!("{decision:?}") };
    (message, interrupt)
}

#[tokio::test(start_paused = true)]
async fn a_rule_decides_at_once_and_echoes_no_suggestion() {
    let stage = Stage::new(&["allow Bash(ls:*)", "deny Bash(rm:*)"]);
    let began = Instant::now();
    assert_eq!(stage.bash("ls -l").await, Decision::ALLOW);
    let (message, _) = denial(stage.bash("ls; rm x").await);
    assert_eq!(message, "Permission denied by the rule `deny Bash(rm:*)`. Do not retry it in another form.");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_has_an_outcome_of_its_own() {
    // C4
    for (after_timeout, ends) in [(AfterTimeout::EndTurn, true), (AfterTimeout::Continue, false)] {
        let stage = Stage::over(Arc::default(), &["ask *"], after_timeout);
        let (began, mut asked) = (Instant::now(), Box::pin(stage.bash("ls")));
        assert!(is_pending(&mut asked).await);
        let id = stage.the_question().await;
        let (message, interrupt) = denial(asked.await);
        assert!(message.contains("within 600s") && message.contains("not a refusal"), "{message}");
        assert_eq!((interrupt, began.elapsed().as_secs()), (ends, 600));
        assert_eq!(stage.outcome(&id).await, Some((Outcome::TimedOut, "timeout".to_owned())));
        let late = stage.answer(&id, Decision::ALLOW).await;
        assert!(matches!(late, Err(AnswerError::Gone(_))), "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_on_hold_waits_for_ever() {
    let stage = Stage::new(&[]);
    let mut asked = Box::pin(stage.bash("ls"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    assert_eq!(stage.inbox.keep_waiting(&id).await.expect("it waits").deadline, None);
    tokio::time::sleep(Duration::from_hours(30)).await;
    assert!(is_pending(&mut asked).await);
    stage.answer(&id, Decision::ALLOW).await.expect("it counts");
    assert_eq!(asked.await, Decision::ALLOW);
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_counts_and_the_second_learns_of_it() {
    let stage = Stage::new(&[]);
    let mut asked = Box::pin(stage.bash("ls"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let deny = Decision::Deny { message: "Not now.".to_owned(), interrupt: false };
    let (first, second) = tokio::join!(stage.answer(&id, deny.clone()), stage.answer(&id, Decision::ALLOW));
    assert_eq!(first.expect("it counts").resolution.outcome, Outcome::Decided(deny.clone()));
    let Err(AnswerError::Lost(winner)) = second else { panic!("{second:?}") };
    assert_eq!(winner.outcome, Outcome::Decided(deny));
    let (message, interrupt) = denial(asked.await);
    assert_eq!(message, "The user denied permission for this tool use and says: Not now.");
    assert!(!interrupt);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_ends_and_makes_room() {
    let stage = Stage::new(&[]);
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(stage.bash("ls"))).collect();
    for asked in &mut waiting {
        assert_eq!(asked.now_or_never(), None);
    }
    let (message, _) = denial(stage.bash("ls").await);
    assert!(message.contains("1000 other questions are already waiting"), "{message}");
    let first = stage.waiting().await.remove(0).id;
    drop(waiting);
    while stage.outcome(&first).await.is_none() || stage.inbox.slots.available_permits() < MAX_WAITING {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.outcome(&first).await, Some((Outcome::Withdrawn, "agent".to_owned())));
    assert_eq!(stage.waiting().await, Vec::new());
    let late = stage.answer(&first, Decision::ALLOW).await;
    assert!(matches!(late, Err(AnswerError::Gone(_))), "{late:?}");
    assert_eq!(Box::pin(stage.bash("ls")).now_or_never(), None, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn the_next_run_ends_what_the_last_one_left() {
    let store: Arc<MemoryStore> = Arc::default();
    let killed = Stage::over(Arc::clone(&store), &[], AfterTimeout::EndTurn);
    killed.stop.cancel();
    let mut asked = Box::pin(killed.bash("ls"));
    assert!(is_pending(&mut asked).await);
    let id = killed.the_question().await;
    // As if the process had been killed: nothing is dropped in order.
    std::mem::forget(asked);
    let next = Stage::over(store, &[], AfterTimeout::EndTurn);
    assert_eq!(next.waiting().await, Vec::new());
    assert_eq!(next.outcome(&id).await, Some((Outcome::Withdrawn, "restart".to_owned())));
    let late = next.answer(&id, Decision::ALLOW).await;
    assert!(matches!(late, Err(AnswerError::Gone(_))), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_deadline_is_too_late_even_if_nobody_noticed_the_deadline() {
    let stage = Stage::new(&[]);
    stage.stop.cancel();
    tokio::task::yield_now().await;
    let mut asked = Box::pin(stage.bash("ls"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    tokio::time::sleep(Duration::from_mins(11)).await;
    let late = stage.answer(&id, Decision::ALLOW).await;
    assert!(matches!(late, Err(AnswerError::Gone(_))), "{late:?}");
    assert_eq!(stage.outcome(&id).await, Some((Outcome::TimedOut, "timeout".to_owned())));
    assert!(denial(asked.await).0.contains("not a refusal"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_instead_of_the_tool_stands_alone() {
    let stage = Stage::new(&[]);
    let mut asked = Box::pin(stage.bash("curl x"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let empty = stage.answer(&id, Decision::Answer { text: " ".to_owned() }).await;
    assert!(matches!(empty, Err(AnswerError::Refused(_))), "{empty:?}");
    stage.answer(&id, Decision::Answer { text: "It is 42.".to_owned() }).await.expect("it counts");
    let Decision::Answer { text } = asked.await else { panic!("an answer") };
    assert!(text.contains("was not run") && text.ends_with("\n\nIt is 42."), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_edited_input_is_checked_again() {
    let stage = Stage::new(&["deny Bash(rm:*)", "ask *"]);
    let mut asked = Box::pin(stage.bash("ls"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let edited = |input| Decision::Allow { input: Some(input), updates: Vec::new() };
    for (input, why) in [
        (json!({ "command": "ls; rm x" }), "the edited input is denied by the rule `deny Bash(rm:*)`"),
        (json!({ "command": 7 }), "`updated_input`: `command` has another type than in the call"),
        (json!("ls"), "`updated_input` must be an object"),
    ] {
        let refused = stage.answer(&id, edited(input)).await;
        let Err(AnswerError::Refused(message)) = refused else { panic!("{refused:?}") };
        assert_eq!(message, why);
    }
    let input = json!({ "command": "ls -l" });
    stage.answer(&id, edited(input.clone())).await.expect("it counts");
    assert_eq!(asked.await, Decision::Allow { input: Some(input), updates: Vec::new() });
}

#[tokio::test(start_paused = true)]
async fn always_allow_applies_under_ask_rules_and_answers_what_waits() {
    let stage = Stage::new(&["deny Bash(rm:*)", "ask *"]);
    let mut first = Box::pin(stage.bash("touch a"));
    let mut covered = Box::pin(stage.bash("touch b"));
    let mut elsewhere = Box::pin(stage.ask_in("other", "Bash", json!({ "command": "touch c" })));
    for asked in [&mut first, &mut covered] {
        assert!(is_pending(asked).await);
    }
    assert!(is_pending(&mut elsewhere).await);
    let id = stage.waiting().await.remove(0).id;
    let answered = stage.answer(&id, allow_always("Bash(touch:*)", "session")).await.expect("it counts");
    assert_eq!(answered.rules.len(), 1);
    assert_eq!(answered.rules[0].question, Some(id));
    assert_eq!(first.await, Decision::ALLOW, "the agent gets no rule of its own");
    assert_eq!(covered.await, Decision::ALLOW, "answered by the new rule");
    assert!(is_pending(&mut elsewhere).await, "another session still asks");
    assert_eq!(stage.bash("touch d").await, Decision::ALLOW, "not asked again");
    let (message, _) = denial(stage.bash("touch e; rm e").await);
    assert!(message.contains("deny Bash(rm:*)"), "a deny rule stays: {message}");
    let rules = stage.inbox.stored_rules().await.expect("rules");
    assert!(rules[0].last_used.is_some());
    assert!(stage.inbox.revoke_rule(&rules[0].id).await.expect("a store"));
    assert!(is_pending(&mut Box::pin(stage.bash("touch f"))).await, "revoked");
}

#[tokio::test(start_paused = true)]
async fn only_the_winner_of_two_answers_makes_rules() {
    let stage = Stage::new(&["ask *"]);
    let mut asked = Box::pin(stage.bash("touch a"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    stage.answer(&id, Decision::deny("no")).await.expect("it counts");
    let late = stage.answer(&id, allow_always("Bash(touch:*)", "all")).await;
    assert!(matches!(late, Err(AnswerError::Lost(_))), "{late:?}");
    assert_eq!(stage.inbox.stored_rules().await.expect("rules"), Vec::new());
}

#[tokio::test(start_paused = true)]
async fn accepted_edits_are_a_rule_for_the_session_and_folders_go_to_the_agent() {
    let stage = Stage::new(&["ask *"]);
    let edit = |path: &str| json!({ "file_path": path, "old_string": "a", "new_string": "b" });
    let mut asked = Box::pin(stage.ask("Edit", edit("/w/a")));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let session = UpdateDestination::Session;
    let directories =
        |destination| PermissionUpdate::AddDirectories { directories: vec!["/x".to_owned()], destination };
    let updates = vec![
        PermissionUpdate::SetMode { mode: "acceptEdits".to_owned(), destination: session },
        directories(UpdateDestination::UserSettings),
    ];
    stage.answer(&id, Decision::Allow { input: None, updates }).await.expect("it counts");
    assert_eq!(asked.await, Decision::Allow { input: None, updates: vec![directories(session)] });
    assert_eq!(stage.ask("Write", json!({ "file_path": "/w/b", "content": "" })).await, Decision::ALLOW);
    assert!(is_pending(&mut Box::pin(stage.ask("Edit", edit("/etc/a")))).await);
    assert!(is_pending(&mut Box::pin(stage.ask_in("other", "Edit", edit("/w/a")))).await);
}

#[tokio::test(start_paused = true)]
async fn a_grant_ends_by_itself() {
    let stage = Stage::new(&["ask *", "deny Read(**/.env)"]);
    let grant = NewRule {
        text: "allow Read(src/**)".to_owned(),
        scope: RuleScope::Project("/w".to_owned()),
        question: None,
        by: "api".to_owned(),
        lifetime: Some(Duration::from_mins(15)),
    };
    let read = |path: &str| stage.ask("Read", json!({ "file_path": path }));
    let mut waiting = Box::pin(read("/w/src/a"));
    assert!(is_pending(&mut waiting).await);
    stage.inbox.add_rules(vec![grant]).await.expect("a rule");
    assert_eq!(waiting.await, Decision::ALLOW);
    assert_eq!(read("/w/src/b").await, Decision::ALLOW);
    assert!(denial(read("/w/src/.env").await).0.contains(".env"));
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(is_pending(&mut Box::pin(read("/w/src/c"))).await);
    assert_eq!(stage.inbox.stored_rules().await.expect("rules"), Vec::new());
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_model_are_for_people_only_and_never_time_out() {
    let stage = Stage::new(&["allow *", "allow AskUserQuestion"]);
    let input = json!({ "questions": [{ "question": "Which?", "options": [{ "label": "A" }] }] });
    let mut asked = Box::pin(stage.ask("AskUserQuestion", input.clone()));
    assert!(is_pending(&mut asked).await);
    tokio::time::sleep(Duration::from_hours(30)).await;
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let answer = |input| Decision::Allow { input, updates: Vec::new() };
    for given in [None, Some(json!({})), Some(json!({ "answers": { "What?": "A" } }))] {
        let refused = stage.answer(&id, answer(given)).await;
        assert!(matches!(refused, Err(AnswerError::Refused(_))), "{refused:?}");
    }
    let answers = json!({ "answers": { "Which?": "A" } });
    stage.answer(&id, answer(Some(answers.clone()))).await.expect("it counts");
    let mut expected = input;
    expected["answers"] = answers["answers"].clone();
    assert_eq!(asked.await, Decision::Allow { input: Some(expected), updates: Vec::new() });
    assert!(is_pending(&mut Box::pin(stage.ask("ExitPlanMode", json!({ "plan": "x" })))).await);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_news_get_them_once() {
    let stage = Stage::new(&[]);
    let longest = Duration::from_mins(1);
    let (began, cursor) = (Instant::now(), stage.inbox.cursor());
    stage.inbox.wait_for_change("of an earlier run", longest).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "what the client knows is out of date");
    stage.inbox.wait_for_change(&cursor, longest).await;
    assert_eq!(began.elapsed(), longest);
    let mut asked = Box::pin(stage.bash("ls"));
    let ((), pending) = tokio::join!(stage.inbox.wait_for_change(&cursor, longest), is_pending(&mut asked));
    assert!(pending);
    assert_eq!(began.elapsed(), longest, "woken at once");
    assert_ne!(stage.inbox.cursor(), cursor);
}

#[tokio::test(start_paused = true)]
async fn a_person_chooses_where_a_rule_applies() {
    let stage = Stage::new(&["ask *"]);
    let mut asked = Box::pin(stage.bash("touch a"));
    assert!(is_pending(&mut asked).await);
    let id = stage.the_question().await;
    let decision = allow_always("Bash(touch:*)", "all");
    let answer = Answer { decision, scope: Some(ScopeName::Project), by: "terminal".to_owned() };
    let answered = stage.inbox.answer(&id, answer).await.expect("it counts");
    assert_eq!(answered.rules[0].scope, RuleScope::Project("/w".to_owned()));
    let elsewhere = stage.ask_in("other", "Bash", json!({ "command": "touch b" }));
    assert_eq!(elsewhere.await, Decision::ALLOW, "another session in the same folder");
}
