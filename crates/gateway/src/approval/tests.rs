//! Rules as text: errors, origins and words.

use serde_json::json;
use toolgate_model::approval::RuleBehavior;

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
    let workdir = Workdir::new(std::path::Path::new("/"));
    let decided = |rules: &Rules| match rules.judge("Bash", &input, &workdir) {
        Ruling::Decided(rule) => rule.origin().clone(),
        other @ (Ruling::Uncertain(_) | Ruling::NotCovered) => panic!("{other:?}"),
    };
    assert_eq!(decided(&rules), origin);
    rules.retain(|rule| *rule.origin() != origin);
    assert_eq!(decided(&rules), RuleOrigin::Config);
    assert_eq!(rules.iter().count(), 1);
}
