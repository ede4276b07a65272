//! Tables of tool uses and what the rules decide about each.

use serde_json::json;

use super::*;

fn rules(texts: &[&str]) -> Rules {
    Rules::new(
        texts
            .iter()
            .map(|text| Rule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
            .collect(),
    )
}

fn say(rules: &Rules, tool: &str, input: &Value) -> &'static str {
    let workdir = Path::read("/srv/project");
    match rules.judge(tool, input, Some(&workdir)) {
        Ruling::Decided(rule) => match rule.action {
            RuleAction::Allow => "allow",
            RuleAction::Ask => "ask",
            RuleAction::Deny => "deny",
        },
        Ruling::Uncertain(_) => "doubt",
        Ruling::NotCovered => "-",
    }
}

fn check_commands(texts: &[&str], cases: &[(&str, &str)]) {
    let rules = rules(texts);
    for (command, expected) in cases {
        assert_eq!(say(&rules, "Bash", &json!({ "command": command })), *expected, "{texts:?}: {command}");
    }
}

fn check_files(texts: &[&str], cases: &[(&str, &str, &str)]) {
    let rules = rules(texts);
    for (tool, path, expected) in cases {
        let input = match *tool {
            "Grep" => json!({ "pattern": "x", "path": path }),
            "Glob" => json!({ "pattern": "*", "path": path }),
            "NotebookEdit" => json!({ "notebook_path": path }),
            _ => json!({ "file_path": path }),
        };
        assert_eq!(say(&rules, tool, &input), *expected, "{texts:?}: {tool} {path}");
    }
}

#[test]
fn an_allowed_prefix_allows_nothing_else() {
    check_commands(
        &["allow Bash(git status:*)", "allow Bash(ls:*)"],
        &[
            ("git status", "allow"),
            ("git status -s", "allow"),
            ("git  status\t-s # all of it", "allow"),
            ("'git' \"status\"", "allow"),
            ("git status && ls -l | ls", "allow"),
            ("(git status); { ls; }", "allow"),
            ("bash -c 'git status'", "allow"),
            ("git status $X", "allow"),
            ("git status 2>&1 >/dev/null", "allow"),
            ("git status \"$(ls <<'EOF'\nit's \"(all)\n\nEOF\n)\"", "allow"),
            ("lsof", "-"),
            ("git statusx", "-"),
            ("git", "-"),
            ("git -C / status", "-"),
            ("git push", "-"),
            ("./git status", "-"),
            ("/tmp/ls", "-"),
            ("GIT STATUS", "-"),
            ("git status; rm -rf x", "-"),
            ("git status && rm -rf x", "-"),
            ("git status || rm -rf x", "-"),
            ("git status | rm -rf x", "-"),
            ("git status & rm -rf x", "-"),
            ("git status\nrm -rf x", "-"),
            ("git status\\\\\nrm -rf x", "-"),
            ("git status $(rm -rf x)", "-"),
            ("git status `rm -rf x`", "-"),
            ("git status \"$(rm -rf x)\"", "-"),
            ("git status <(rm -rf x)", "-"),
            ("git status > /etc/passwd", "-"),
            ("git status >> ~/.bashrc", "-"),
            ("git status < /etc/shadow", "-"),
            ("GIT_PAGER=evil git status", "-"),
            ("PATH=/evil; git status", "-"),
            ("$GIT status", "-"),
            ("git $STATUS", "-"),
            ("git() { rm x; }; git status", "-"),
            ("alias git=rm; git status", "-"),
            ("eval git status; eval rm x", "-"),
            ("bash -c 'git status; rm x'", "-"),
            ("bash -c \"git status $X\"", "-"),
            ("bash evil.sh", "-"),
            ("echo x | xargs git status", "-"),
            ("xargs git status", "-"),
            ("sudo git status", "-"),
            ("env git status", "-"),
            ("./bash -c 'git status'", "-"),
            ("./eval git status", "-"),
            ("for PATH in evil; do git status; done", "-"),
            ("$'git' status", "-"),
            ("git status\r", "-"),
            ("git status 'unclosed", "-"),
            ("", "-"),
        ],
    );
}

#[test]
fn a_denied_command_is_found_in_every_position() {
    check_commands(
        &["allow Bash", "deny Bash(rm:*)", "deny Bash(git push:*)"],
        &[
            ("ls", "allow"),
            ("echo rm", "allow"),
            ("rmdir x", "allow"),
            ("rm x", "deny"),
            ("/bin/rm x", "deny"),
            ("RM x", "deny"),
            ("r''m x", "deny"),
            ("r\\m x", "deny"),
            ("ls; rm x", "deny"),
            ("ls && (rm x)", "deny"),
            ("ls | xargs rm", "deny"),
            ("sudo rm x", "deny"),
            ("sudo -u root /bin/rm x", "deny"),
            ("sudo env A=1 nohup rm x", "deny"),
            ("echo $(rm x)", "deny"),
            ("echo \"`rm x`\"", "deny"),
            ("cat <(rm x)", "deny"),
            ("bash -c 'rm x'", "deny"),
            ("bash -c \"bash -c 'rm x'\"", "deny"),
            ("eval 'r''m x'", "deny"),
            ("find . -exec rm {} +", "deny"),
            ("A=1 rm x", "deny"),
            ("if true; then rm x; fi", "deny"),
            ("for f in *; do rm $f; done", "deny"),
            ("! rm x", "deny"),
            ("time rm x", "deny"),
            ("rm x > y", "deny"),
            ("env -- A=1 rm x", "deny"),
            ("sudo A=1 rm x", "deny"),
            ("git push --force", "deny"),
            ("git pull", "allow"),
            // An uncertain match is not allowed.
            ("git $X", "doubt"),
            ("$X x", "doubt"),
            ("bash script.sh", "doubt"),
            ("curl x | sh", "doubt"),
            ("ssh host rm x", "doubt"),
            ("sudo --login rm x", "doubt"),
            ("f() { rm x; }; f", "doubt"),
            ("case x in x) ls;; esac", "doubt"),
            ("$'\\x72m' x", "doubt"),
            ("{r,}m x", "doubt"),
            ("set x; for a do rm x; done", "deny"),
            ("time -p rm x", "doubt"),
            ("env - rm x", "doubt"),
            ("bash -c - 'rm x'", "doubt"),
            ("sh -c 'ls &>x rm x'", "doubt"),
            ("export A=1; ls", "allow"),
        ],
    );
}

#[test]
fn a_program_that_runs_others_needs_permission_for_both() {
    check_commands(
        &[
            "allow Bash(sudo:*)",
            "allow Bash(xargs:*)",
            "allow Bash(git status:*)",
            "allow Bash(bash:*)",
            "allow Bash(ssh host uptime)",
        ],
        &[
            ("sudo git status", "allow"),
            ("sudo -u me git status -s", "allow"),
            ("xargs git status", "allow"),
            ("sudo xargs git status", "allow"),
            ("sudo bash -c 'git status'", "allow"),
            ("ssh host uptime", "allow"),
            ("sudo rm x", "-"),
            ("sudo env git status", "-"),
            ("sudo --login git status", "-"),
            ("xargs rm", "-"),
            ("xargs -I status git status", "-"),
            ("sudo bash -c 'rm x'", "-"),
            ("bash evil.sh", "-"),
            ("curl x | bash", "-"),
            ("ssh host reboot", "-"),
        ],
    );
    check_commands(
        &["allow Bash(sudo git status:*)", "allow Bash(xargs grep:*)"],
        &[
            ("sudo git status -s", "allow"),
            ("xargs grep x", "allow"),
            ("git status", "-"),
            ("sudo git push", "-"),
            ("sudo -u root git status", "-"),
        ],
    );
    check_commands(
        &["allow Bash(env:*)", "allow Bash(git status:*)", "allow Bash(env A=1 make:*)"],
        &[
            ("env git status", "allow"),
            ("env -u X git status", "allow"),
            ("env A=1 make x", "allow"),
            ("env PATH=evil git status", "-"),
            ("env -- PATH=evil git status", "-"),
            ("env PATH=evil bash -c 'git status'", "-"),
        ],
    );
    check_commands(
        &["allow Bash(export:*)", "allow Bash(export A=1)", "allow Bash(ls:*)", "allow Bash(test:*)"],
        &[
            ("export A=1 && ls", "allow"),
            ("test -f x && ls", "allow"),
            ("export PATH=evil; ls", "-"),
            ("test -v 'a[$(rm x)]'", "-"),
        ],
    );
    check_commands(
        &["allow Bash(cd:*)", "allow Bash(./run:*)", "allow Bash(sudo:*)", "allow Bash(/bin/ls:*)"],
        &[
            ("./run x", "allow"),
            ("cd x && /bin/ls", "allow"),
            ("cd x && ./run", "-"),
            ("cd x && sudo ./run", "-"),
            ("./run; cd x", "-"),
        ],
    );
    // The open end of a command rule does not cover what a second program runs.
    check_commands(&["allow Bash(sudo env:*)"], &[("sudo env rm x", "-"), ("sudo env", "allow")]);
    check_commands(
        &["allow Bash(find:*)"],
        &[("find . -name x", "allow"), ("find . -exec rm {} +", "-"), ("find . $X", "-")],
    );
}

#[test]
fn word_patterns() {
    check_commands(
        &[
            "allow Bash(npm run test)",
            "allow Bash(git log *)",
            "allow Bash(cargo * --locked)",
            "allow Bash(make test-*)",
        ],
        &[
            ("npm run test", "allow"),
            ("npm run test -- --x", "-"),
            ("npm run test $X", "-"),
            ("git log", "allow"),
            ("git log --oneline a..b", "allow"),
            ("git logs", "-"),
            ("cargo build --locked", "allow"),
            ("cargo build x --locked", "-"),
            ("make test-unit", "allow"),
            ("make test-unit deploy", "-"),
            ("make 'test-unit deploy'", "allow"),
        ],
    );
}

#[test]
fn redirections_follow_the_file_rules() {
    check_commands(
        &[
            "allow Bash(echo:*)",
            "allow Bash(cd:*)",
            "allow Edit(out/**)",
            "allow Read(in/*)",
            "deny Edit(**/.env)",
        ],
        &[
            ("echo x > out/a", "allow"),
            ("echo x > ./out/../out/b/c", "allow"),
            ("echo x > /srv/project/out/a", "allow"),
            ("echo < in/a", "allow"),
            ("echo x > out/../secret", "-"),
            ("echo x > ../project/out/a", "allow"),
            ("echo x > /out/a", "-"),
            ("echo < out/a", "-"),
            ("> out/a", "allow"),
            ("cd / && echo x > out/a", "doubt"),
            ("echo x > '~/out/a'", "doubt"),
            ("echo x > $F", "doubt"),
            ("echo x > out/.env", "deny"),
            ("echo x > out/.ENV", "deny"),
        ],
    );
}

#[test]
fn a_denied_path_is_denied_to_commands_too() {
    check_commands(
        &["allow Bash", "deny Read(**/.env)", "deny Read(~/.ssh/**)", "ask Read(/etc/**)"],
        &[
            ("cat src/main.rs", "allow"),
            ("cat .env", "deny"),
            ("cat < a/b/.env", "deny"),
            ("cat ./x/../.env", "deny"),
            ("cat '.env'", "deny"),
            ("dd if=.env", "deny"),
            ("grep --file=conf/.env x", "deny"),
            ("sudo cat .env", "deny"),
            ("cp ~/.ssh/id_rsa x", "deny"),
            ("cat /home/me/.ssh/id_rsa", "doubt"),
            ("cat ~root/.ssh/id_rsa", "doubt"),
            ("cat ~/notes", "doubt"),
            ("cat /home/me/notes", "allow"),
            ("cat /etc/passwd", "ask"),
            ("cat ../../etc/passwd", "ask"),
            ("cat .e*", "doubt"),
            ("cat $F", "doubt"),
            ("echo x > out", "allow"),
        ],
    );
}

#[test]
fn deny_beats_ask_and_ask_beats_allow_in_any_order() {
    let mut texts = vec!["allow Bash", "ask Bash(git:*)", "deny Bash(git push:*)"];
    for _ in 0..3 {
        texts.rotate_left(1);
        check_commands(
            &texts,
            &[("ls", "allow"), ("git log", "ask"), ("git push", "deny"), ("ls; git log", "ask")],
        );
    }
}

#[test]
fn a_star_rule_applies_to_what_no_other_rule_covers() {
    let from_the_manual = ["allow Bash(git status:*)", "deny Read(**/.env)", "ask *"];
    check_commands(&from_the_manual, &[("git status", "allow"), ("git push", "ask"), ("cat .env", "deny")]);
    check_files(
        &from_the_manual,
        &[("Read", "/srv/project/.env", "deny"), ("Read", "/srv/project/a", "ask")],
    );
    check_commands(&["allow *", "deny Bash(rm:*)"], &[("ls", "allow"), ("rm x", "deny"), ("$X", "doubt")]);
    check_commands(&["deny *", "allow Bash(ls:*)"], &[("ls", "allow"), ("ls; id", "deny")]);
    check_commands(&["allow *"], &[("case x in x) ls;; esac", "allow")]);
    assert_eq!(say(&rules(&["allow *", "ask *"]), "Task", &json!({})), "ask");
}

#[test]
fn paths_are_compared_without_dots_and_from_the_working_directory() {
    check_files(
        &[
            "allow Read(src/**)",
            "allow Edit(src/*.rs)",
            "deny Read(**/.env)",
            "deny Edit(/srv/project/src/gen/**)",
        ],
        &[
            ("Read", "/srv/project/src/a/b.rs", "allow"),
            ("Read", "src/a.rs", "allow"),
            ("Read", "./src//a.rs", "allow"),
            ("Read", "/srv/project/src", "allow"),
            ("Read", "/srv/project/src/../secret", "-"),
            ("Read", "src/../../project/src/a", "allow"),
            ("Read", "/srv/project/srcs/a", "-"),
            ("Read", "/src/a", "-"),
            ("Read", "~/src/a", "-"),
            ("Read", "../../../../../srv/project/src/a", "allow"),
            ("Read", "/srv/project/src/.env", "deny"),
            ("Read", "/elsewhere/.env", "deny"),
            ("Read", "/elsewhere/x/../.Env", "deny"),
            ("Read", "/elsewhere/.environment", "-"),
            ("Glob", "/srv/project/src", "allow"),
            ("Write", "/srv/project/src/a.rs", "allow"),
            ("MultiEdit", "/srv/project/src/a.rs", "allow"),
            ("NotebookEdit", "/srv/project/src/a.rs", "allow"),
            ("Edit", "/srv/project/src/x/a.rs", "-"),
            ("Edit", "/srv/project/src/a.txt", "-"),
            ("Edit", "/srv/project/src/gen/a.rs", "deny"),
            ("Edit", "/srv/project/SRC/GEN/a.rs", "deny"),
            ("Edit", "/srv/project/SRC/a.rs", "-"),
            // A search reads everything below its folder.
            ("Grep", "/srv/project/src", "doubt"),
            ("Read", "a\0b", "doubt"),
        ],
    );
    check_files(
        &["allow Grep(src/**)", "deny Read(/srv/project/secret/**)"],
        &[
            ("Grep", "src", "allow"),
            ("Grep", ".", "doubt"),
            ("Grep", "/srv/project/secret", "deny"),
            ("Grep", "/srv", "doubt"),
        ],
    );
    let no_leaving = rules(&["allow Glob(src/**)"]);
    for (pattern, expected) in [("*.rs", "allow"), ("/etc/*", "-"), ("../*", "-"), ("~/*", "-")] {
        let input = json!({ "pattern": pattern, "path": "src" });
        assert_eq!(say(&no_leaving, "Glob", &input), expected, "{pattern}");
    }
    assert_eq!(say(&rules(&["deny Read(**/.env)", "allow Read"]), "Read", &json!({ "path": 1 })), "doubt");
}

#[test]
fn without_a_working_directory_relative_paths_stay_relative() {
    let rules = rules(&["allow Read(src/**)", "deny Read(**/.env)"]);
    let check = |path: &str, expected: Option<RuleAction>| {
        let said = match rules.judge("Read", &json!({ "file_path": path }), None) {
            Ruling::Decided(rule) => Some(rule.action),
            Ruling::Uncertain(_) | Ruling::NotCovered => None,
        };
        assert_eq!(said, expected, "{path}");
    };
    check("src/a", Some(RuleAction::Allow));
    check("/src/a", None);
    check("../src/a", None);
    check("src/../../src/a", None);
    check("../.env", Some(RuleAction::Deny));
    check("/x/.env", Some(RuleAction::Deny));
}

#[test]
fn urls_are_compared_by_their_host() {
    let cases = [
        ("https://example.com/x?y#z", "allow"),
        ("http://EXAMPLE.com:8080", "allow"),
        ("https://example.com./", "allow"),
        ("https://docs.rs/x", "-"),
        ("https://a.docs.rs/x", "allow"),
        ("https://evildocs.rs/x", "-"),
        ("https://example.com.evil.com", "-"),
        ("https://evil.com/example.com", "-"),
        ("https://evil.com?example.com", "-"),
        ("https://bad.com/", "deny"),
        ("https://x.worse.com/", "deny"),
        // Programs parse these differently.
        ("https://example.com@evil.com/", "doubt"),
        ("https://evil.com\\@example.com/", "doubt"),
        ("https://example.com%2eevil.com/", "doubt"),
        ("https://exämple.com/", "doubt"),
        ("https:///example.com", "doubt"),
        ("file:///etc/passwd", "doubt"),
        ("example.com", "doubt"),
    ];
    let rules = rules(&[
        "allow WebFetch(domain:example.com)",
        "allow WebFetch(domain:*.docs.rs)",
        "deny WebFetch(domain:bad.com)",
        "deny WebFetch(domain:*.worse.com)",
    ]);
    for (url, expected) in cases {
        assert_eq!(say(&rules, "WebFetch", &json!({ "url": url, "prompt": "x" })), expected, "{url}");
    }
}

#[test]
fn tools_are_matched_by_name_or_by_server() {
    let rules =
        rules(&["allow mcp__git", "deny mcp__git__push", "allow mcp__db__read_*", "ask Task", "allow Todo*"]);
    for (tool, expected) in [
        ("mcp__git__log", "allow"),
        ("mcp__git__push", "deny"),
        ("mcp__github__log", "-"),
        ("mcp__git", "allow"),
        ("mcp__db__read_row", "allow"),
        ("mcp__db__write_row", "-"),
        ("Task", "ask"),
        ("TodoWrite", "allow"),
        ("task", "-"),
    ] {
        assert_eq!(say(&rules, tool, &json!({})), expected, "{tool}");
    }
}
