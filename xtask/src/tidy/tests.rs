//! Each rule finds violations and nothing else.

use super::{SourceFile, check};

/// Checks one file in a tree with two dialects and compares the findings.
fn check_one(path: &str, text: &str, expected: &[&str]) {
    let wire = |name: &str| SourceFile {
        path: format!("crates/dialect/src/{name}/wire.rs"),
        text: "//! Wire types.\n".to_owned(),
    };
    let cases = SourceFile {
        path: "docs/cases.md".to_owned(),
        text: "| case | what must hold | test |\n| T1 | x | `crates/dialect/src/openai_chat/wire.rs` |\n| agent 2 | y | `crates/dialect/src/openai_chat/wire.rs` |\n".to_owned(),
    };
    let input = SourceFile { path: path.to_owned(), text: text.to_owned() };
    let mut files = vec![wire("openai_chat"), wire("anthropic_messages"), cases];
    files.retain(|file| file.path != input.path);
    files.push(input);
    let findings = check(&files);
    let messages: Vec<String> =
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect();
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.contains(expected), "expected `{expected}` in `{message}`");
    }
}

fn lines(count: usize) -> String {
    format!("//! Long.\n{}", "const _: () = ();\n".repeat(count - 1))
}

#[test]
fn a_file_over_400_lines_is_found() {
    check_one("crates/model/src/event.rs", &lines(400), &[]);
    check_one("crates/model/src/event.rs", &lines(401), &["401: 401 lines, the limit is 400"]);
}

#[test]
fn a_test_file_may_have_600_lines() {
    check_one("crates/model/src/event/tests.rs", &lines(600), &[]);
    check_one("crates/gateway/tests/matrix.rs", &lines(601), &["the limit is 600"]);
}

#[test]
fn a_file_without_module_docs_is_found() {
    check_one("crates/cli/src/args.rs", "use std::fmt;\n", &["1: start the file"]);
    check_one("crates/cli/src/args.rs", "", &["1: start the file"]);
}

#[test]
fn a_meaningless_name_of_a_file_or_folder_is_found() {
    check_one("crates/cli/src/utils.rs", "//! Things.\n", &["`utils` is meaningless"]);
    check_one("crates/cli/src/common/args.rs", "//! Things.\n", &["`common` is meaningless"]);
    check_one("crates/cli/src/commonplace.rs", "//! Things.\n", &[]);
}

#[test]
fn a_dialect_that_uses_another_is_found() {
    let text = "//! Reads.\nuse crate::anthropic_messages::wire::Block;\n";
    check_one(
        "crates/dialect/src/openai_chat/request.rs",
        text,
        &["2: the dialect `openai_chat` must not use"],
    );
    check_one("crates/dialect/src/registry.rs", text, &[]);
    check_one(
        "crates/dialect/src/openai_chat/request.rs",
        "//! Not anthropic_messages.\nuse crate::openai_chat;\n",
        &[],
    );
}

#[test]
fn io_in_a_codec_is_found() {
    let path = "crates/dialect/src/frame/sse.rs";
    check_one(path, "//! Frames.\nuse std::fs::File;\n", &["2: `std::fs`"]);
    check_one(path, "//! Frames.\nuse std::{fmt, net};\n", &["2: `net`"]);
    check_one(path, "//! Frames.\nlet now = std::time::SystemTime::now();\n", &["2: `SystemTime`"]);
    check_one(path, "//! Frames, not tokio.\nuse std::fmt; // no std::fs\n", &[]);
    check_one(path, "//! Frames.\n#[cfg(test)]\nmod tests {\n    use std::fs::File;\n}\n", &[]);
    check_one(path, "//! Frames.\n#[cfg(test)]\nmod tests;\nuse std::fs::File;\n", &["4: `std::fs`"]);
    check_one("crates/cli/src/main.rs", "//! Starts.\nuse std::fs::File;\n", &[]);
}

#[test]
fn a_codec_may_use_an_io_crate_in_tests_only() {
    let path = "crates/dialect/Cargo.toml";
    check_one(path, "[dependencies]\ntokio.workspace = true\n", &["2: `tokio` does I/O"]);
    check_one(path, "[dependencies]\nhyper = \"1\"\n", &["2: `hyper` does I/O"]);
    check_one(path, "[dev-dependencies]\ntokio.workspace = true\n", &[]);
}

#[test]
fn a_registry_is_found_in_any_file() {
    let host = concat!("https://registry.", "npmjs.org/x");
    check_one("README.md", host, &["1: `registry."]);
    check_one(
        "tests/sdk/requirements.txt",
        concat!("--index", "-url=http://x"),
        &["refers to a package registry"],
    );
    check_one(
        "package-lock.json",
        concat!("\"resolved\": ", "\"http://mirror/x\""),
        &["refers to a package registry"],
    );
}

#[test]
fn unfinished_work_is_found_outside_recorded_data() {
    let note = concat!("# TO", "DO later\n");
    check_one(".ci/run", note, &["finish it"]);
    check_one("crates/dialect/fixtures/a.json", note, &[]);
    check_one("README.md", "The tool TodoWrite\n", &[]);
}

#[test]
fn a_case_number_that_is_not_explained_is_found() {
    let path = "crates/model/src/event.rs";
    check_one(path, "//! T1 and (T2).\n", &["1: `T2` is not in docs/cases.md"]);
    check_one(path, "//! Events.\nlet x = 1; // T1, P30: why\n", &["2: `P30`"]);
    check_one(path, "//! agent 2, 3, M5\n", &["`M5`", "`agent 3`"]);
    check_one(path, "//! agent 2: one agent, 7 tools.\n", &[]);
    check_one(path, "//! U+E000, T100, x-T5, `T6`, BT7.\nlet x = \"http://T8\"; let T9 = 1;\n", &[]);
    check_one("xtask/src/main.rs", "//! T2.\n", &[]);
}

#[test]
fn a_case_without_its_test_is_found() {
    let path = "docs/cases.md";
    let wire = "crates/dialect/src/openai_chat/wire.rs";
    check_one(path, &format!("| T1 | x | `{wire}` |\n"), &[]);
    check_one(path, "| T1 | x | `crates/none.rs` |\n", &["1: there is no test `crates/none.rs` for `T1`"]);
    check_one(path, &format!("| T1 | x | `{wire}::reads` |\n"), &["1: there is no test"]);
}

#[test]
fn a_phrase_that_is_not_plain_english_is_found() {
    let phrase = concat!("// Who", "ever reads this\n");
    check_one("docs/usage.md", phrase, &["1: `who"]);
    check_one("crates/dialect/fixtures/a.md", phrase, &[]);
    check_one("docs/usage.txt", phrase, &[]);
    check_one("docs/usage.md", concat!("who", "everyone\n"), &[]);
}
