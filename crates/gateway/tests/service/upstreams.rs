//! Hosts that are slow, fail, send garbage or vanish.

use std::time::Duration;

use crate::gate::{Gate, ask, ask_messages, backends, config, error_message, host, route};
use crate::replies;
use serde_json::json;
use toolgate_backend::config::{HostDeadlines, UpstreamName, Via};
use toolgate_testkit::{Script, ScriptedUpstream};

#[tokio::test]
async fn pings_keep_a_silent_stream_alive_before_the_first_byte_and_between_frames() {
    // T19
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::tail(replies::head(Script::sse().gate_before_head("head")).gate("rest")));
    let mut config = config();
    config.limits.commit_after = Duration::from_millis(20);
    let gate = Gate::start(&config, backends(&upstream));
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    assert_eq!(answer.status(), 200);
    let before = answer.until("event: ping").await;
    assert!(!before.contains("message_start"), "{before}");
    upstream.open("head");
    answer.until("hi there").await;
    answer.until("event: ping").await;
    upstream.open("rest");
    assert!(answer.text().await.contains("message_stop"));
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_turn_at_the_host() {
    // T20
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).stall());
    let gate = Gate::before(&upstream);
    let mut answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    answer.until("hi there").await;
    drop(answer);
    upstream.disconnected().await;
    let metrics = loop {
        let metrics = gate.get("/metrics").await.text().await;
        if metrics.contains("499") {
            break metrics;
        }
    };
    assert!(metrics.contains(r#"kind="input""#), "what was used until then is counted: {metrics}");
}

#[tokio::test]
async fn a_busy_host_is_retried_before_the_first_event() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(
        529,
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } }),
    ));
    upstream.on(Script::json(429, "{}").header("retry-after-ms", "1"));
    upstream.on(replies::stream());
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.contains("message_stop"));
    assert_eq!(upstream.requests().len(), 3);
}

#[tokio::test]
async fn retries_are_bounded_and_the_last_error_reaches_the_client() {
    let upstream = ScriptedUpstream::start().await;
    let busy = || {
        Script::json(
            529,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } }),
        )
    };
    upstream.always(move |_| busy());
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    assert_eq!(answer.status(), 529);
    assert_eq!(error_message("/v1/messages", &answer.json().await), "busy");
    assert_eq!(upstream.requests().len(), 3);
}

#[tokio::test]
async fn a_long_retry_after_is_passed_on_to_the_client() {
    let upstream = ScriptedUpstream::start().await;
    let limited = json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "slow" } });
    upstream.on(Script::json(429, limited).header("retry-after", "60"));
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", false)).await;
    assert_eq!((answer.status(), answer.header("retry-after")), (429, "60"));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn an_invalid_request_is_not_retried_and_keeps_its_status() {
    // T38
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(
        422,
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no such tool" } }),
    ));
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", false)).await;
    assert_eq!(answer.status(), 422);
    assert_eq!(error_message("/v1/messages", &answer.json().await), "no such tool");
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn other_fields_of_an_error_are_relayed_or_reported_as_lost() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let error = json!({ "type": "error", "request_id": "req_1",
                       "error": { "type": "invalid_request_error", "message": "odd", "hint": "less" } });
    upstream.on(Script::json(400, &error));
    let answer = gate.post("/v1/messages", &ask_messages("claude", false)).await;
    assert_eq!(answer.header("x-toolgate-loss"), "");
    assert_eq!(answer.json().await, error);
    upstream.on(Script::json(400, &error));
    let [_, (path, body), _] = ask("claude", false);
    let answer = gate.post(path, &body).await;
    assert_eq!(answer.header("x-toolgate-loss"), "error.hint");
    assert_eq!(error_message(path, &answer.json().await), "odd");
}

#[tokio::test]
async fn the_next_target_answers_when_one_fails_before_its_first_event() {
    let (first, second) = (ScriptedUpstream::start().await, ScriptedUpstream::start().await);
    let refused =
        json!({ "type": "error", "error": { "type": "authentication_error", "message": "bad key" } });
    first.on(Script::json(401, refused));
    second.on(replies::stream());
    let mut backends = backends(&first);
    backends.upstreams.push(host("other", "anthropic-messages", &second));
    let both = ["claude", "other"].map(|name| Via::Upstream(UpstreamName::new(name)));
    backends.models.push(route("both", &both));
    let gate = Gate::start(&config(), backends);
    let answer = gate.post("/v1/messages", &ask_messages("both", true)).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-upstream")), (200, "other"));
    assert!(answer.text().await.contains("message_stop"));
}

#[tokio::test]
async fn an_error_in_the_first_frames_still_has_its_status() {
    let upstream = ScriptedUpstream::start().await;
    let error =
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "too long" } });
    upstream.on(Script::sse().frame("error", error));
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(error_message("/v1/messages", &answer.json().await), "too long");
}

/// A host's response, and the error that the client gets.
async fn check_failure(
    script: impl Fn() -> Script + Send + Sync + 'static,
    stream: bool,
    status: u16,
    part: &str,
) {
    check_failure_within(HostDeadlines::default(), script, stream, (status, part)).await;
}

/// The same with these deadlines. Short ones are only for hosts that never respond: any other may take longer on a busy
/// machine.
async fn check_failure_within(
    timeouts: HostDeadlines,
    script: impl Fn() -> Script + Send + Sync + 'static,
    stream: bool,
    (status, part): (u16, &str),
) {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(move |_| script());
    let mut backends = backends(&upstream);
    backends.upstreams[0].timeouts = timeouts;
    let gate = Gate::start(&config(), backends);
    let answer = gate.post("/v1/messages", &ask_messages("claude", stream)).await;
    assert_eq!(answer.status(), status, "{part}");
    let message = error_message("/v1/messages", &answer.json().await);
    assert!(message.contains(part), "{message}");
    assert!(gate.get("/healthz").await.text().await.contains("ok"));
}

#[tokio::test]
async fn a_page_instead_of_a_reply_says_to_check_the_url() {
    check_failure(|| Script::html(200, "<html>Welcome to nginx</html>"), false, 502, "base_url").await;
    check_failure(|| Script::html(502, "<html>Bad Gateway</html>"), true, 502, "").await;
}

#[tokio::test]
async fn garbage_instead_of_json_is_a_host_error() {
    check_failure(|| Script::json(200, "not json"), false, 502, "").await;
    check_failure(|| Script::json(200, "[1,2"), false, 502, "").await;
}

#[tokio::test]
async fn a_silent_host_is_given_up() {
    let timeouts = HostDeadlines {
        first_byte: Duration::from_millis(100),
        idle: Duration::from_millis(50),
        ..HostDeadlines::default()
    };
    let never_answers = || Script::status(200).gate_before_head("never");
    check_failure_within(timeouts, never_answers, true, (504, "said nothing")).await;
    let stalls = || Script::status(200).header("content-type", "application/json").stall();
    check_failure_within(timeouts, stalls, false, (504, "")).await;
}

#[tokio::test]
async fn a_whole_reply_that_breaks_off_is_an_error() {
    let cut = || Script::status(200).header("content-type", "application/json").bytes("{\"id\":").cut();
    check_failure(cut, false, 502, "incomplete").await;
}

#[tokio::test]
async fn a_stall_in_the_middle_of_a_stream_ends_in_an_error_event() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()).in_one_write().stall());
    let mut backends = backends(&upstream);
    backends.upstreams[0].timeouts.idle = Duration::from_millis(30);
    let gate = Gate::start(&config(), backends);
    let text = gate.post("/v1/messages", &ask_messages("claude", true)).await.text().await;
    assert!(text.contains("event: error\n") && text.contains("said nothing"), "{text}");
}

#[tokio::test]
async fn a_host_that_is_not_there_says_so() {
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    drop(upstream);
    backends.upstreams[0].retry.retries = 0;
    let gate = Gate::start(&config(), backends);
    let answer = gate.post("/v1/messages", &ask_messages("claude", false)).await;
    assert_eq!(answer.status(), 502);
    let message = error_message("/v1/messages", &answer.json().await);
    assert!(message.contains("cannot be reached"), "{message}");
}
