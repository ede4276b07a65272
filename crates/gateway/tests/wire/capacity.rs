//! More connections than the gateway serves at once.

use rustix::process::{Resource, Rlimit};
use toolgate_backend::config::BackendConfig;
use toolgate_testkit::{RawClient, RawMessage};

use crate::gate::{Gate, config};
use crate::stage::client_of;

const CAP: usize = 100;

/// Ten times as many as are served.
const CONNECTIONS: usize = 1000;

/// Lets this process open as many files as the system allows: each connection takes two here.
fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(Resource::Nofile, raised).expect("raise the limit of open files");
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn capped() -> Gate {
    let mut config = config();
    config.workers = 2;
    config.limits.connections = CAP;
    Gate::start(&config, BackendConfig::default())
}

async fn is_served(client: &mut RawClient) -> bool {
    client.send(HEALTH).await;
    client.response().await.status() == 200
}

/// The connections that the gateway counts.
async fn counted(client: &mut RawClient) -> usize {
    client.send("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let metrics = client.response().await.text();
    let gauges = metrics.lines().filter(|line| line.starts_with("toolgate_connections{worker=\""));
    gauges.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

#[tokio::test]
async fn connections_beyond_the_cap_are_not_served_and_those_within_it_are() {
    raise_file_limit();
    let gate = capped();
    let mut served = Vec::new();
    for _ in 0..CAP {
        let mut client = client_of(&gate).await;
        assert!(is_served(&mut client).await);
        served.push(client);
    }
    let mut more = Vec::new();
    for _ in CAP..CONNECTIONS {
        let mut client = client_of(&gate).await;
        client.send(HEALTH).await;
        more.push(client);
    }
    for client in &mut served {
        assert!(is_served(client).await, "a crowd does not disturb those who are served");
    }
    let count = counted(&mut served[0]).await;
    assert!(count <= CAP, "{count} connections are counted");
    // Those beyond the cap wait or were refused. With room for them, each gets an answer or an end.
    drop(served);
    for client in more {
        let statuses: Vec<u16> = first_response(client).await.iter().map(RawMessage::status).collect();
        assert!(statuses.is_empty() || statuses == [200] || statuses == [503], "{statuses:?}");
    }
    assert!(is_served(&mut client_of(&gate).await).await);
}

/// What a client got: one response, or none where the gateway closed.
async fn first_response(mut client: RawClient) -> Vec<RawMessage> {
    client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    let (mut responses, _) = client.rest().await;
    responses.truncate(1);
    responses
}

#[tokio::test]
async fn a_place_becomes_free_when_its_client_leaves() {
    let gate = capped();
    for _ in 0..CAP * 3 {
        let mut client = client_of(&gate).await;
        assert!(is_served(&mut client).await);
    }
}

#[tokio::test]
async fn a_refused_client_gets_a_503_with_retry_after() {
    let gate = capped();
    let mut served = Vec::new();
    for _ in 0..CAP {
        let mut client = client_of(&gate).await;
        assert!(is_served(&mut client).await);
        served.push(client);
    }
    let (responses, _) = client_of(&gate).await.rest().await;
    assert_eq!(responses.len(), 1, "{responses:?}");
    let refusal = &responses[0];
    assert_eq!((refusal.status(), refusal.header("connection"), refusal.is_complete), (503, "close", true));
    assert!(!refusal.header("retry-after").is_empty(), "{}", refusal.head);
}
