//! Every case T1 to T39 has a fixture, or is listed here with the gateway test that covers it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How many cases there are.
const CASES: u32 = 39;

/// Cases that need a running gateway, with the file and name of their test.
const SHOWN_BY_THE_GATEWAY: [(&str, &str, &str); 4] = [
    ("T17", "relaying.rs", "half_a_frame_never_reaches_the_client_and_a_cut_ends_in_an_error_event"),
    ("T19", "upstreams.rs", "pings_keep_a_silent_stream_alive_before_the_first_byte_and_between_frames"),
    ("T20", "upstreams.rs", "a_client_that_leaves_cancels_the_turn_at_the_host"),
    ("T35", "demo.rs", "tokens_are_estimated_where_no_host_can_count_and_the_reply_says_so"),
];

#[test]
fn every_case_has_a_fixture_under_its_number() {
    let mut covered: BTreeSet<String> =
        SHOWN_BY_THE_GATEWAY.iter().map(|(case, _, _)| (*case).to_owned()).collect();
    for file in fixture_files() {
        let fixture: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let case = fixture["case"].as_str().unwrap().to_owned();
        let number: u32 = case.strip_prefix('T').unwrap().parse().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(
            name.starts_with(&format!("T{number:02}-")),
            "{name} is filed under another number than {case}"
        );
        covered.insert(case);
    }
    let missing: Vec<String> =
        (1..=CASES).map(|n| format!("T{n}")).filter(|case| !covered.contains(case)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_gateways_tests_are_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/tests/service");
    for (case, file, test) in SHOWN_BY_THE_GATEWAY {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{case}: {file} has no test `{test}`");
    }
}

fn fixture_files() -> impl Iterator<Item = std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let kinds = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    kinds
        .filter(|path| path.is_dir())
        .flat_map(|kind| fs::read_dir(kind).into_iter().flatten().flatten().map(|entry| entry.path()))
}
