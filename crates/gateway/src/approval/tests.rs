//! The errors of invalid rules, and how a request gets its decision.

use serde_json::json;
use toolgate_model::approval::{PermissionUpdate, RuleBehavior, UpdateDestination};

use super::*;

fn check_rejected(text: &str, expected: &str) {
    let parsed = Rule::parse(text).map(|rule| rule.to_string()).map_err(|error| error.to_string());
    assert_eq!(parsed, Err(expected.to_owned()), "{text}");
}

#[test]
fn an_invalid_rule_is_rejected_with_what_to_write() {
    check_rejected("", "it must start with `allow`, `ask` or `deny`, as in `ask Bash`");
    check_rejected("Bash(ls)", "it must start with `allow`, `ask` or `deny`, as in `ask Bash`");
    check_rejected("alow Bash", "it starts with `alow`; did you mean `allow`?");
    check_rejected("Deny Bash", "it starts with `Deny`; did you mean `deny`?");
    check_rejected("allow", "a tool is missing: write `allow Bash` or `allow *`");
    check_rejected("allow bash(ls)", "unknown tool `bash`; did you mean `Bash`?");
    check_rejected("allow Bash(ls", "the parenthesis is not closed: write `allow Bash(ls)`");
    check_rejected(
        "allow Bash (ls)",
        "`Bash ` is not a tool name: write it as in `Bash(git status:*)`, `mcp__server__tool` or `*`",
    );
    check_rejected(
        "allow Bash(ls && pwd)",
        "`ls && pwd` of `Bash`: expected a single command: write one rule per command",
    );
    check_rejected(
        "allow Bash(echo $HOME)",
        "`echo $HOME` of `Bash`: expected plain words, without variables, redirections or other shell syntax",
    );
    check_rejected(
        "allow Bash()",
        "`` of `Bash`: expected plain words, without variables, redirections or other shell syntax",
    );
    check_rejected("allow Bash(ls\u{1b})", "it contains a control character");
    check_rejected(
        "deny Read(~root/x)",
        "`~root/x` of `Read`: expected a path, as in `src/**` or `~/.ssh/**`",
    );
    check_rejected(
        "deny Read(../x)",
        "`../x` of `Read`: a rule's path must not contain `..`: write the folder it leads to",
    );
    check_rejected(
        "deny Read(src/**.rs)",
        "`src/**.rs` of `Read`: `**` must be a whole path segment, as in `src/**/*.rs`",
    );
    check_rejected(
        "allow WebFetch(example.com)",
        "`example.com` of `WebFetch`: expected a host, as in `domain:example.com` or `domain:*.example.com`",
    );
    check_rejected("allow Reed(src/**)", "unknown tool `Reed`; did you mean `Read(src/**)`?");
    check_rejected(
        "allow mcp__git__log(x)",
        "a rule for `mcp__git__log` takes no argument: write `mcp__git__log`",
    );
}

#[test]
fn a_rule_is_displayed_as_written() {
    for text in
        ["allow Bash(git status:*)", "deny Read(**/.env)", "ask *", "allow mcp__server", "allow Bash(*)"]
    {
        assert_eq!(Rule::parse(text).map(|rule| rule.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn an_agents_permission_updates_become_rules() {
    use RuleBehavior::{Allow, Ask, Deny};
    for (tool, content, behavior, expected) in [
        ("Bash", Some("npm test:*"), Allow, "allow Bash(npm test:*)"),
        ("Bash", None, Ask, "ask Bash"),
        ("Read", Some("//srv/x/**"), Allow, "allow Read(/srv/x/**)"),
        ("Read", Some("~/x"), Deny, "deny Read(~/x)"),
        ("Edit", Some("src/**"), Allow, "allow Edit(src/**)"),
        ("Edit", Some("/src/**"), Allow, "allow Edit(src/**)"),
        ("WebFetch", Some("domain:docs.rs"), Allow, "allow WebFetch(domain:docs.rs)"),
        ("mcp__git__log", None, Allow, "allow mcp__git__log"),
    ] {
        let rule = Rule::from_update(tool, content, behavior).map(|rule| rule.to_string());
        assert_eq!(rule, Ok(expected.to_owned()));
    }
    for (tool, content) in
        [("Bash", "echo $HOME"), ("Bash", "a && b"), ("Task", "x"), ("Bash(x", "y"), ("B b", "x")]
    {
        assert!(Rule::from_update(tool, Some(content), Allow).is_err(), "{tool} {content}");
    }
}

#[test]
fn a_rule_is_explained_in_words() {
    for (text, words) in [
        ("allow Bash(npm test:*)", "Allow the command `npm test` with any further arguments"),
        ("allow Bash(npm test *)", "Allow the command `npm test` with any further arguments"),
        ("allow Bash(npm test)", "Allow exactly the command `npm test`"),
        ("deny Bash", "Deny every command"),
        ("deny Read(**/.env)", "Deny reading files that match `**/.env`"),
        ("ask Write(src/**)", "Ask about editing files that match `src/**`"),
        ("allow Read", "Allow reading any file"),
        ("allow WebFetch(domain:docs.rs)", "Allow fetching pages from `docs.rs`"),
        ("allow mcp__git", "Allow every tool of the MCP server `git`"),
        ("allow mcp__git__log", "Allow every use of mcp__git__log"),
        ("allow TodoWrite", "Allow every use of TodoWrite"),
        ("ask *", "Ask about everything that no other rule covers"),
    ] {
        assert_eq!(Rule::parse(text).map(|rule| rule.in_words()), Ok(words.to_owned()));
    }
}

#[test]
fn rules_can_be_added_and_removed_by_their_origin() {
    let mut rules = Rules::new(vec![Rule::parse("ask *").unwrap()]);
    let origin = RuleOrigin::Stored { id: "r1".to_owned() };
    rules.add(Rule::parse("allow Bash(ls:*)").unwrap().with_origin(origin.clone()));
    let input = json!({ "command": "ls" });
    let workdir = Workdir::new(Path::new("/"));
    let decided = |rules: &Rules| match rules.judge("Bash", &input, &workdir) {
        Ruling::Decided(rule) => rule.origin().clone(),
        other @ (Ruling::Uncertain(_) | Ruling::NotCovered) => panic!("{other:?}"),
    };
    assert_eq!(decided(&rules), origin);
    rules.retain(|rule| *rule.origin() != origin);
    assert_eq!(decided(&rules), RuleOrigin::Config);
    assert_eq!(rules.iter().count(), 1);
}

fn approvals(rules: &[&str]) -> Approvals {
    let rules = Rules::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect());
    Approvals::new(ApprovalConfig { timeout: Duration::from_mins(10), rules })
}

fn request(tool: &str, input: serde_json::Value) -> ToolUse {
    let accept_edits =
        PermissionUpdate::SetMode { mode: "acceptEdits".to_owned(), destination: UpdateDestination::Session };
    ToolUse {
        session: "s".to_owned(),
        tool: tool.to_owned(),
        input,
        suggestions: vec![accept_edits],
        ..ToolUse::default()
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
    let allowed = approvals.decide(request("Bash", json!({ "command": "ls -l" }))).await;
    assert_eq!(allowed, Decision::ALLOW);
    let denied = approvals.decide(request("Bash", json!({ "command": "ls; rm x" }))).await;
    assert_eq!(
        message(denied),
        "Permission denied by the operator's rule `deny Bash(rm:*)`. Do not retry it in another form."
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_request_is_denied_after_the_timeout() {
    // C4
    let approvals = approvals(&["ask WebFetch", "deny Bash(rm:*)", "allow Bash"]);
    for (request, why) in [
        (request("WebFetch", json!({})), "the operator's rule `ask WebFetch` requires a person's approval"),
        (request("Task", json!({})), "no rule of the operator covers this use of Task"),
        (
            request("Bash", json!({ "command": "$X" })),
            "the operator's rule `deny Bash(rm:*)` may forbid it, which cannot be determined before it runs",
        ),
    ] {
        let began = tokio::time::Instant::now();
        let text = message(approvals.decide(request).await);
        assert!(
            text.starts_with(&format!("Permission denied: {why}, and nobody answered within 600s.")),
            "{text}"
        );
        assert_eq!(began.elapsed(), Duration::from_mins(10));
    }
}

#[tokio::test(start_paused = true)]
async fn excess_requests_are_denied_at_once_and_a_withdrawn_one_makes_room() {
    let approvals = approvals(&[]);
    let ask = || approvals.decide(request("Task", json!({})));
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| ask()).collect();
    for request in &mut waiting {
        assert!(futures_util::poll!(request).is_pending());
    }
    let began = tokio::time::Instant::now();
    assert!(message(ask().await).contains("1000 other requests are already waiting"));
    assert_eq!(began.elapsed(), Duration::ZERO);
    waiting.pop();
    assert!(futures_util::poll!(ask()).is_pending());
}

#[test]
fn relative_paths_start_at_the_agents_working_directory() {
    let approvals = approvals(&["allow Edit(src/**)"]);
    let input = json!({ "file_path": "/a/src/x" });
    let ruling = |approvals: &Approvals| {
        matches!(approvals.config.rules.judge("Write", &input, &approvals.workdir), Ruling::Decided(_))
    };
    assert!(ruling(&approvals.in_folder(Path::new("/a"))));
    assert!(!ruling(&approvals.in_folder(Path::new("/b"))));
    assert!(!ruling(&approvals));
}
