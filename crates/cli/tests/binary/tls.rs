//! Hosts with TLS, whose authority is only in `SSL_CERT_FILE`.

use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_testkit::{Offer, Script, ScriptedUpstream};

use crate::gateway_process::{GatewayProcess, toolgate};
use crate::http_client::Reply;

/// A scripted host on its own thread, because these tests block.
fn host(offer: Offer) -> ScriptedUpstream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = runtime.block_on(ScriptedUpstream::start_tls(offer));
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    host
}

/// A gateway in front of the host at this address that trusts the authority of `trusted`.
fn gateway(base_url: &str, trusted: &ScriptedUpstream) -> GatewayProcess {
    let home = tempfile::tempdir().unwrap();
    write(&home, "authority.pem", trusted.authority());
    let config = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"memory\"\n\
         [upstreams.host]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\nretries = 0\n\
         [models.m]\nupstream = \"host\"\n"
    );
    let config = write(&home, "gate.toml", &config);
    let mut command = toolgate(&home, &["--config", &config]);
    command.env("SSL_CERT_FILE", home.path().join("authority.pem"));
    GatewayProcess::spawn(home, command)
}

fn write(home: &TempDir, name: &str, text: &str) -> String {
    let path: &Path = &home.path().join(name);
    std::fs::write(path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn ask(gateway: &GatewayProcess, stream: bool) -> Reply {
    let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]});
    gateway.post("/v1/chat/completions", &body)
}

fn whole() -> Script {
    let message = json!({"role": "assistant", "content": "hello"});
    Script::json(
        200,
        json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
               "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
    )
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn first_chunk() -> Script {
    Script::sse().frame("", chunk(&json!({"role": "assistant", "content": "hello"}), &Value::Null))
}

fn check_version(offer: Offer, version: &str) {
    let host = host(offer);
    let gateway = gateway(&host.base_url(), &host);
    host.on(whole());
    let reply = ask(&gateway, false);
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "hello");
    host.on(first_chunk().frame("", chunk(&json!({}), &json!("stop"))).frame("", "[DONE]"));
    let reply = ask(&gateway, true);
    assert_eq!(reply.frames().last().map(|frame| frame.data.as_str()), Some("[DONE]"));
    host.on(first_chunk().cut());
    let reply = ask(&gateway, true);
    let last = &reply.frames()[1].data;
    assert!(last.contains("error") && last.contains("incomplete"), "{last}");
    let versions: Vec<String> =
        host.requests().iter().map(|request| format!("{:?}", request.version)).collect();
    assert_eq!(versions, [version; 3]);
}

#[test]
fn http2_is_used_if_the_host_offers_it() {
    check_version(Offer::Http2, "HTTP/2.0");
}

#[test]
fn http1_is_used_if_the_host_does_not_offer_http2() {
    check_version(Offer::Http1, "HTTP/1.1");
    check_version(Offer::NoAlpn, "HTTP/1.1");
}

#[test]
fn an_untrusted_certificate_is_an_error_with_advice() {
    let (host, other) = (host(Offer::Http2), host(Offer::Http2));
    let right = host.base_url();
    let cases = [
        (right.clone(), &other, "SSL_CERT_FILE"),
        (right.replace("127.0.0.1", "localhost"), &host, "another name"),
        (right.replace("https", "http"), &host, "closed the connection"),
    ];
    for (base_url, trusted, expected) in cases {
        let reply = ask(&gateway(&base_url, trusted), false);
        assert_eq!(reply.status, 502, "{}", reply.body);
        let message = reply.json()["error"]["message"].to_string();
        assert!(message.contains(expected), "{base_url}: {message}");
    }
    assert!(host.requests().is_empty() && other.requests().is_empty(), "the hosts got no request");
}
