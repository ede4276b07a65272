//! A text-only host whose reply never ends: the gateway's memory stays constant, and it disconnects when the reply can no
//! longer become valid.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};

use crate::gateway_process::GatewayProcess;
use crate::http_client::connect;

/// How much the client reads of the endless stream, and after how much the memory is measured first.
const READ_BYTES: usize = 9 * 1024 * 1024;
const WARM_BYTES: usize = 3 * 1024 * 1024;

/// How much the memory may grow in between; buffering the stream would take twice as much.
const MAX_GROWTH_KIB: u64 = 3 * 1024;

/// A value that must be parsed as a whole is buffered up to 8 MiB, and copied when it is abandoned.
const MAX_HELD_GROWTH_KIB: u64 = 64 * 1024;

/// The host's reply: a start and an endlessly repeated text, in which `§` is replaced by the trigger.
struct EndlessReply {
    start: String,
    repeated: String,
}

const CALL: &str = "§\n<invoke name=\"note\">\n";

#[test]
fn memory_is_flat_while_a_host_never_stops() {
    let replies = [
        ("a text", "Well, ", "so it goes on and on, ".repeat(40)),
        ("a value", "<parameter name=\"text\">", "x < y && \"z\" </parameter> \n".repeat(20)),
        ("thoughts", "<think>", "hm, \n".repeat(50)),
        ("fences", "", "```\n§\n".repeat(20)),
    ];
    for (what, start, repeated) in replies {
        let start = if what == "a value" { [CALL, start].concat() } else { start.to_owned() };
        let (host, _aborts) = start_host(EndlessReply { start, repeated });
        let gateway = start_gateway(host);
        let mut stream = ask(gateway.address);
        read_some(&mut stream, WARM_BYTES);
        let warm = memory_kib(&gateway);
        read_some(&mut stream, READ_BYTES - WARM_BYTES);
        let grown = memory_kib(&gateway).saturating_sub(warm);
        assert!(grown < MAX_GROWTH_KIB, "{what}: {grown} KiB more after {READ_BYTES} bytes");
    }
}

#[test]
fn a_reply_that_cannot_become_valid_is_aborted() {
    let replies = [
        ("a list", [CALL, "<parameter name=\"list\">["].concat(), "\"x\", ".repeat(2_000)),
        (
            "calls that are no calls",
            "§\n<tool_call>{\"name\":\"note\",\"arguments\":{\"text\":\"".to_owned(),
            "y".repeat(10_000),
        ),
    ];
    for (what, start, repeated) in replies {
        let (host, aborts) = start_host(EndlessReply { start, repeated });
        let gateway = start_gateway(host);
        let cold = memory_kib(&gateway);
        let mut reply = String::new();
        ask(gateway.address).read_to_string(&mut reply).unwrap();
        assert!(
            reply.contains("\"max_tokens\"") && reply.contains("message_stop"),
            "{what}: {}",
            tail(&reply)
        );
        aborts.recv().unwrap();
        let grown = memory_kib(&gateway).saturating_sub(cold);
        assert!(grown < MAX_HELD_GROWTH_KIB, "{what}: {grown} KiB more");
    }
}

#[test]
fn an_endless_answer_to_a_repair_request_is_aborted() {
    // P26: the gateway requests the missing value of `text`, and that reply never ends.
    let start = [CALL, "<parameter name=\"list\">[]</parameter>\n</invoke>\n"].concat();
    let (host, aborts) = start_host(EndlessReply { start, repeated: "and so on ".repeat(1_000) });
    let gateway = start_gateway(host);
    let mut reply = String::new();
    ask(gateway.address).read_to_string(&mut reply).unwrap();
    assert!(reply.contains("\"tool_use\"") && reply.contains("message_stop"), "{}", tail(&reply));
    assert!(!reply.contains("and so on"), "{}", tail(&reply));
    // The repair request first, then the reply itself.
    aborts.recv().unwrap();
    aborts.recv().unwrap();
}

fn tail(reply: &str) -> &str {
    &reply[reply.floor_char_boundary(reply.len().saturating_sub(2_000))..]
}

/// Starts a host on a free port; the receiver gets a message for each aborted reply.
fn start_host(reply: EndlessReply) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (aborted, aborts) = channel();
    thread::spawn(move || {
        let reply = std::sync::Arc::new(reply);
        for connection in listener.incoming().flatten() {
            let (reply, aborted) = (std::sync::Arc::clone(&reply), aborted.clone());
            thread::spawn(move || answer(connection, &reply, &aborted));
        }
    });
    (address, aborts)
}

/// Replies until the client disconnects. A repair request gets the repeated text only.
fn answer(mut connection: TcpStream, reply: &EndlessReply, aborted: &Sender<()>) {
    let request = read_request(&mut connection);
    let trigger_at = request.rfind("<<CALL_").expect("the prompt has a trigger");
    let trigger = &request[trigger_at..trigger_at + request[trigger_at..].find(">>").unwrap() + 2];
    let is_repair = request.contains("is missing the required parameter");
    let start = if is_repair { String::new() } else { reply.start.replace('§', trigger) };
    let repeated = frame(&reply.repeated.replace('§', trigger));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let mut written =
        connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(frame(&start).as_bytes()));
    while written.is_ok() {
        written = connection.write_all(repeated.as_bytes());
    }
    // The test may have ended already.
    aborted.send(()).unwrap_or_default();
}

fn frame(text: &str) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text } });
    format!(
        "data: {}\n\n",
        json!({ "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice] })
    )
}

/// The body of a request.
fn read_request(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let count = connection.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if body.len() >= length.unwrap().trim().parse().unwrap() {
            return body.to_owned();
        }
    }
}

fn start_gateway(host: SocketAddr) -> GatewayProcess {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[upstreams.h]\ndialect = \"openai-chat\"\nbase_url = \"http://{host}/v1\"\n\
         [models.text]\nupstream = \"h\"\ntools = \"prompted\"\n"
    );
    std::fs::write(home.path().join("toolgate.toml"), config).unwrap();
    GatewayProcess::start(home, &["--config", "toolgate.toml"])
}

/// Requests a stream and returns it, including its head.
fn ask(address: SocketAddr) -> TcpStream {
    let properties = json!({ "text": { "type": "string" }, "list": { "type": "array" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["text"] });
    let body: Value = json!({
        "model": "text", "max_tokens": 100, "stream": true, "messages": [{ "role": "user", "content": "hi" }],
        "tools": [{ "name": "note", "input_schema": schema }],
    });
    let body = body.to_string();
    let mut stream = connect(address);
    let length = body.len();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

fn read_some(stream: &mut TcpStream, mut bytes: usize) {
    let mut buffer = vec![0; 65_536];
    while bytes > 0 {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the stream ended");
        bytes = bytes.saturating_sub(count);
    }
}

/// The resident memory of the gateway's process.
fn memory_kib(gateway: &GatewayProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
