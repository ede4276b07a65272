//! Keys: from the command that creates one to the request that uses it.

use crate::gateway_process::{GatewayProcess, run};

#[test]
fn only_requests_with_the_created_key_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let printed = String::from_utf8(run(&home, &["keys", "new", "alice"]).stdout).unwrap();
    let key = printed.lines().find(|line| line.starts_with("tg-")).unwrap();
    let lines = &printed[printed.find("[[keys]]").unwrap()..];
    std::fs::write(home.path().join("toolgate.toml"), format!("listen = \"127.0.0.1:0\"\n{lines}")).unwrap();

    let mut gateway = GatewayProcess::start(home, &[]);
    assert!(gateway.curl_line().contains("-H 'x-api-key: YOUR-KEY'"));
    let bearer = format!("Bearer {key}");
    for (headers, status) in [
        (&[][..], 401),
        (&[("x-api-key", "tg-wrong")], 401),
        (&[("x-api-key", key)], 200),
        (&[("authorization", bearer.as_str())], 200),
    ] {
        assert_eq!(gateway.get_with("/v1/models", headers).status, status);
    }
}
