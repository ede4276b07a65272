//! Rules on the tools that read and change files.

use super::*;

#[test]
fn paths_are_compared_without_dots_and_from_the_working_directory() {
    check_files(
        &[
            "allow Read(src/**)",
            "allow Edit(src/*.rs)",
            "deny Read(**/.env)",
            "deny Edit(PROJECT/src/gen/**)",
            "deny Read(secret)",
        ],
        &[
            ("Read", "PROJECT/src/a/b.rs", "allow"),
            ("Read", "src/a.rs", "allow"),
            ("Read", "./src//a.rs", "allow"),
            ("Read", "src/[id]/*.tsx", "allow"),
            ("Read", "PROJECT/src", "allow"),
            ("Read", "PROJECT/src/../x", "-"),
            ("Read", "src/../../project/src/a", "allow"),
            ("Read", "PROJECT/srcs/a", "-"),
            ("Read", "/src/a", "-"),
            ("Read", "~/src/a", "doubt"),
            ("Read", "PROJECT/src/.env", "deny"),
            ("Read", "/elsewhere/.env", "deny"),
            ("Read", "/elsewhere/x/../.Env", "deny"),
            ("Read", "/elsewhere/.environment", "-"),
            ("Read", "PROJECT/secret/key", "deny"),
            ("Glob", "PROJECT/src", "allow"),
            ("LS", "PROJECT/src", "allow"),
            ("Write", "PROJECT/src/a.rs", "allow"),
            ("MultiEdit", "PROJECT/src/a.rs", "allow"),
            ("NotebookEdit", "PROJECT/src/a.rs", "allow"),
            ("Edit", "PROJECT/src/x/a.rs", "-"),
            ("Edit", "PROJECT/src/gen/a.rs", "deny"),
            ("Edit", "PROJECT/SRC/GEN/a.rs", "deny"),
            ("Edit", "PROJECT/SRC/a.rs", "-"),
            // A search reads everything below its folder.
            ("Grep", "PROJECT/src", "doubt"),
            ("Read", "a\0b", "doubt"),
            ("Read", " PROJECT/src/a", "doubt"),
            ("Read", "", "doubt"),
        ],
    );
    check_files(
        &["allow Grep(src/**)", "deny Read(PROJECT/secret/**)"],
        &[
            ("Grep", "src", "allow"),
            ("Grep", ".", "doubt"),
            ("Grep", "PROJECT/secret", "deny"),
            ("Grep", "PROJECT/..", "doubt"),
        ],
    );
}

#[test]
fn links_are_followed() {
    check_files(
        &[
            "allow Edit(out/**)",
            "allow Edit(link/**)",
            "allow Edit(dangling)",
            "allow Read(**)",
            "deny Read(secret/**)",
        ],
        &[
            ("Write", "PROJECT/out/a", "allow"),
            ("Write", "PROJECT/out/new/folder/a", "allow"),
            ("Write", "PROJECT/out/away/a", "-"),
            ("Write", "PROJECT/out/away/../outside/a", "-"),
            ("Write", "PROJECT/out/away/../project/out/a", "allow"),
            ("Write", "PROJECT/link/a", "-"),
            ("Write", "PROJECT/dangling", "-"),
            ("Write", "/proc/self/cwd/out/a", "-"),
            ("Read", "PROJECT/named/key", "deny"),
            ("Read", "PROJECT/named", "deny"),
            ("Read", "/proc/self/rootPROJECT/secret/key", "deny"),
            ("Read", "/proc/1/root/x", "doubt"),
            ("Read", "PROJECT/src/main.rs", "allow"),
        ],
    );
    // A denied path is also recognised without the link in the rule.
    check_files(&["allow Read", "deny Read(named/**)"], &[("Read", "PROJECT/secret/key", "deny")]);
}

#[test]
fn a_loop_of_links_leads_nowhere() {
    let project = Project::new();
    for (target, link) in [("b", "a"), ("a", "b")] {
        symlink(target, project.path().join(link)).unwrap();
    }
    let rules = project.rules(&["allow Read(**)", "deny Read(**/.env)", "allow Edit(**)"]);
    for tool in ["Read", "Write"] {
        let input = json!({ "file_path": project.fill("PROJECT/a") });
        assert_ne!(say(&rules, tool, &input, &project.workdir()), "allow", "{tool}");
    }
}

#[test]
fn a_file_that_runs_later_is_edited_only_if_a_rule_names_it() {
    for general in ["allow Edit", "allow Edit(**)", "allow Edit(PROJECT/**)", "allow Write"] {
        check_files(
            &[general],
            &[
                ("Write", "PROJECT/src/main.rs", "allow"),
                ("Write", "PROJECT/.git/hooks/pre-commit", "-"),
                ("Write", "PROJECT/sub/.git/config", "-"),
                ("Write", "PROJECT/.envrc", "-"),
                ("Write", "PROJECT/.bashrc", "-"),
                ("Write", "PROJECT/.claude/settings.json", "-"),
                ("Write", "PROJECT/.claude/worktrees/a/src/main.rs", "allow"),
                ("Write", "PROJECT/.claude/worktrees/a/.claude/settings.json", "-"),
            ],
        );
    }
    check_files(
        &["allow Edit(.git/**)", "allow Edit(**/.envrc)", "allow Read(**)"],
        &[
            ("Write", "PROJECT/.git/hooks/pre-commit", "allow"),
            ("Write", "PROJECT/sub/.envrc", "allow"),
            ("Read", "PROJECT/.git/config", "allow"),
        ],
    );
}

#[test]
fn a_glob_that_leads_away_is_not_allowed() {
    let project = Project::new();
    let rules = project.rules(&["allow Glob(src/**)"]);
    for (pattern, expected) in [("*.rs", "allow"), ("/etc/*", "-"), ("../*", "-"), ("~/*", "-")] {
        let input = json!({ "pattern": pattern, "path": "src" });
        assert_eq!(say(&rules, "Glob", &input, &project.workdir()), expected, "{pattern}");
    }
}

#[test]
fn the_home_directory_is_used_if_it_is_known() {
    let project = Project::new();
    let rules = project.rules(&["allow Read(~/notes/**)", "deny Read(~/.ssh/**)"]);
    let check = |workdir: &Workdir, path: &str, expected: &str| {
        assert_eq!(say(&rules, "Read", &json!({ "file_path": path }), workdir), expected, "{path}");
    };
    let workdir = project.workdir().with_home(std::path::Path::new("/home/agent"));
    check(&workdir, "~/notes/a", "allow");
    check(&workdir, "/home/agent/notes/a", "allow");
    check(&workdir, "~/.ssh/id_rsa", "deny");
    check(&workdir, "/root/.ssh/id_rsa", "deny");
    check(&workdir, "~root/.ssh/id_rsa", "doubt");
    check(&project.workdir(), "~/notes/a", "doubt");
    check(&project.workdir(), "/home/agent/notes/a", "-");
}
