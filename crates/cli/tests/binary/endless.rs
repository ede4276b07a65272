//! A text-only host that never comes to an end: the gateway's memory stays flat, and where nothing good can come any
//! more it leaves the host.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};

use crate::http_client::connect;
use crate::running::Running;

/// How much the client reads of a stream without end, and when its memory is first looked at.
const READ_BYTES: usize = 9 * 1024 * 1024;
const WARM_BYTES: usize = 3 * 1024 * 1024;

/// What the gateway's memory may grow by in between; holding what came would be twice as much.
const MAX_GROWTH_KIB: u64 = 3 * 1024;

/// A value that can only be read whole is held up to 8 MiB, in more than one place while it is given up.
const MAX_HELD_GROWTH_KIB: u64 = 64 * 1024;

/// What the host says: a beginning, in which `§` stands for the trigger, and a piece of text again and again.
struct Tale {
    begins: String,
    goes_on: String,
}

const CALL: &str = "§\n<invoke name=\"note\">\n";

#[test]
fn memory_is_flat_while_a_host_never_stops() {
    let tales = [
        ("a text", "Well, ", "so it goes on and on, ".repeat(40)),
        ("a value", "<parameter name=\"text\">", "x < y && \"z\" </parameter> \n".repeat(20)),
        ("thoughts", "<think>", "hm, \n".repeat(50)),
        ("fences", "", "```\n§\n".repeat(20)),
    ];
    for (what, begins, goes_on) in tales {
        let begins = if what == "a value" { [CALL, begins].concat() } else { begins.to_owned() };
        let (host, _left) = start_host(Tale { begins, goes_on });
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
fn a_host_whose_value_cannot_end_well_is_left() {
    let tales = [
        ("a list", [CALL, "<parameter name=\"list\">["].concat(), "\"x\", ".repeat(2_000)),
        (
            "calls that are no calls",
            "§\n<tool_call>{\"name\":\"note\",\"arguments\":{\"text\":\"".to_owned(),
            "y".repeat(10_000),
        ),
    ];
    for (what, begins, goes_on) in tales {
        let (host, left) = start_host(Tale { begins, goes_on });
        let gateway = start_gateway(host);
        let cold = memory_kib(&gateway);
        let mut reply = String::new();
        ask(gateway.address).read_to_string(&mut reply).unwrap();
        assert!(
            reply.contains("\"max_tokens\"") && reply.contains("message_stop"),
            "{what}: {}",
            ending(&reply)
        );
        left.recv().unwrap();
        let grown = memory_kib(&gateway).saturating_sub(cold);
        assert!(grown < MAX_HELD_GROWTH_KIB, "{what}: {grown} KiB more");
    }
}

#[test]
fn a_question_that_is_answered_without_end_is_given_up() {
    // P26: the value of `text` is asked for, and the answer to that never ends.
    let begins = [CALL, "<parameter name=\"list\">[]</parameter>\n</invoke>\n"].concat();
    let (host, left) = start_host(Tale { begins, goes_on: "and so on ".repeat(1_000) });
    let gateway = start_gateway(host);
    let mut reply = String::new();
    ask(gateway.address).read_to_string(&mut reply).unwrap();
    assert!(reply.contains("\"tool_use\"") && reply.contains("message_stop"), "{}", ending(&reply));
    assert!(!reply.contains("and so on"), "{}", ending(&reply));
    // The question first, then the answer itself.
    left.recv().unwrap();
    left.recv().unwrap();
}

fn ending(reply: &str) -> &str {
    &reply[reply.floor_char_boundary(reply.len().saturating_sub(2_000))..]
}

/// A host on a port of its own; the receiver hears of each answer that was left.
fn start_host(tale: Tale) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, left) = channel();
    thread::spawn(move || {
        let tale = std::sync::Arc::new(tale);
        for connection in listener.incoming().flatten() {
            let (tale, tell) = (std::sync::Arc::clone(&tale), tell.clone());
            thread::spawn(move || answer(connection, &tale, &tell));
        }
    });
    (address, left)
}

/// Speaks until nobody listens. A side question is answered with what goes on, at once.
fn answer(mut connection: TcpStream, tale: &Tale, left: &Sender<()>) {
    let request = read_request(&mut connection);
    let start = request.rfind("<<CALL_").expect("a trigger is taught");
    let trigger = &request[start..start + request[start..].find(">>").unwrap() + 2];
    let is_question = request.contains("is missing the required parameter");
    let begins = if is_question { String::new() } else { tale.begins.replace('§', trigger) };
    let goes_on = frame(&tale.goes_on.replace('§', trigger));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let mut spoken =
        connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(frame(&begins).as_bytes()));
    while spoken.is_ok() {
        spoken = connection.write_all(goes_on.as_bytes());
    }
    // A test that is over no longer listens.
    left.send(()).unwrap_or_default();
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

fn start_gateway(host: SocketAddr) -> Running {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[upstreams.h]\ndialect = \"openai-chat\"\nbase_url = \"http://{host}/v1\"\n\
         [models.text]\nupstream = \"h\"\ntools = \"prompted\"\n"
    );
    std::fs::write(home.path().join("toolgate.toml"), config).unwrap();
    Running::start(home, &["--config", "toolgate.toml"])
}

/// Asks for a stream and gives it, its head included.
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

/// The memory that the gateway's process holds.
fn memory_kib(gateway: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
