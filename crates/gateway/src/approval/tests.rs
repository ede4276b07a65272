//! What is said about wrong rules, and how a question comes to its decision.

use serde_json::json;
use uuid::Uuid;

use super::*;

fn check_refused(text: &str, expected: &str) {
    let said = Rule::parse(text).map(|rule| rule.to_string()).map_err(|error| error.to_string());
    assert_eq!(said, Err(expected.to_owned()), "{text}");
}

#[test]
fn a_wrong_rule_is_refused_with_what_to_write() {
    check_refused("", "it must begin with `allow`, `ask` or `deny`, as in `ask Bash`");
    check_refused("Bash(ls)", "it must begin with `allow`, `ask` or `deny`, as in `ask Bash`");
    check_refused("alow Bash", "it begins with `alow`; did you mean `allow`?");
    check_refused("Deny Bash", "it begins with `Deny`; did you mean `deny`?");
    check_refused("allow", "a tool is missing: write `allow Bash` or `allow *`");
    check_refused("allow bash(ls)", "no tool is called `bash`; did you mean `Bash`?");
    check_refused("allow Bash(ls", "the parenthesis is not closed: write `allow Bash(ls)`");
    check_refused(
        "allow Bash (ls)",
        "`Bash ` is no tool's name: write it as in `Bash(git status:*)`, `mcp__server__tool` or `*`",
    );
    check_refused(
        "allow Bash(ls && pwd)",
        "`ls && pwd` of `Bash`: it takes the words of one command: write a rule for each command",
    );
    check_refused(
        "allow Bash(echo $HOME)",
        "`echo $HOME` of `Bash`: it takes plain words, without variables, redirections or other signs of the shell",
    );
    check_refused(
        "allow Bash()",
        "`` of `Bash`: it takes the words of one command: write a rule for each command",
    );
    check_refused(
        "deny Read(../x)",
        "`../x` of `Read`: a path in a rule has no `..`: write the folder that is meant",
    );
    check_refused(
        "deny Read(src/**.rs)",
        "`src/**.rs` of `Read`: `**` stands alone between slashes, as in `src/**/*.rs`",
    );
    check_refused(
        "allow WebFetch(example.com)",
        "`example.com` of `WebFetch`: it takes a host, as in `domain:example.com` or `domain:*.example.com`",
    );
    check_refused("allow Reed(src/**)", "no tool is called `Reed`; did you mean `Read(src/**)`?");
    check_refused(
        "allow mcp__git__log(x)",
        "a rule on `mcp__git__log` takes nothing in parentheses: write `mcp__git__log`",
    );
}

#[test]
fn a_rule_is_shown_as_it_was_written() {
    for text in
        ["allow Bash(git status:*)", "deny Read(**/.env)", "ask *", "allow mcp__server", "allow Bash(*)"]
    {
        assert_eq!(Rule::parse(text).map(|rule| rule.to_string()), Ok(text.to_owned()));
    }
}

fn approvals(rules: &[&str]) -> Approvals {
    let rules = Rules::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect());
    Approvals::new(ApprovalConfig { timeout: Duration::from_mins(10), rules })
}

fn question(tool: &str, input: serde_json::Value) -> ApprovalRequest {
    let suggestions = vec![json!({ "type": "setMode", "mode": "acceptEdits" })];
    ApprovalRequest {
        turn: Uuid::from_u128(1),
        session: "s".to_owned(),
        tool: tool.to_owned(),
        input,
        suggestions,
        reason: None,
    }
}

fn message(decision: Decision) -> String {
    let Decision::Deny { message, interrupt: false } = decision else { panic!("{decision:?}") };
    message
}

#[tokio::test(start_paused = true)]
async fn a_rule_decides_at_once_and_echoes_no_suggestion() {
    let approvals = approvals(&["allow Bash(ls:*)", "deny Bash(rm:*)"]);
    let began = tokio::time::Instant::now();
    let allowed = approvals.decide(question("Bash", json!({ "command": "ls -l" }))).await;
    assert_eq!(allowed, Decision::Allow { input: None, updates: Vec::new() });
    let denied = approvals.decide(question("Bash", json!({ "command": "ls; rm x" }))).await;
    assert_eq!(
        message(denied),
        "Denied by the operator's rule `deny Bash(rm:*)`. Do not try it again in another form."
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_answers_is_denied_after_the_time_limit() {
    // C4
    let approvals = approvals(&["ask WebFetch", "deny Bash(rm:*)", "allow Bash"]);
    for (question, why) in [
        (question("WebFetch", json!({})), "the operator's rule `ask WebFetch` asks a person first"),
        (question("Task", json!({})), "no rule of the operator covers this use of Task"),
        (
            question("Bash", json!({ "command": "$X" })),
            "it cannot be told beforehand whether the operator's rule `deny Bash(rm:*)` forbids it",
        ),
    ] {
        let began = tokio::time::Instant::now();
        let said = message(approvals.decide(question).await);
        assert!(said.starts_with(&format!("Denied: {why}, and nobody answered within 600s.")), "{said}");
        assert_eq!(began.elapsed(), Duration::from_mins(10));
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_are_denied_at_once_and_a_withdrawn_one_makes_room() {
    let approvals = approvals(&[]);
    let ask = || approvals.decide(question("Task", json!({})));
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| ask()).collect();
    for question in &mut waiting {
        assert!(futures_util::poll!(question).is_pending());
    }
    let began = tokio::time::Instant::now();
    assert!(message(ask().await).contains("1000 other questions wait"));
    assert_eq!(began.elapsed(), Duration::ZERO);
    waiting.pop();
    assert!(futures_util::poll!(ask()).is_pending());
}

#[test]
fn an_agents_folder_is_where_relative_paths_start() {
    let approvals = approvals(&["allow Edit(src/**)"]);
    let input = json!({ "file_path": "/a/src/x" });
    let ruling = |approvals: &Approvals| {
        matches!(
            approvals.config.rules.judge("Write", &input, approvals.workdir.as_ref()),
            Ruling::Decided(_)
        )
    };
    assert!(ruling(&approvals.in_folder(std::path::Path::new("/a"))));
    assert!(!ruling(&approvals.in_folder(std::path::Path::new("/b"))));
    assert!(!ruling(&approvals));
}
