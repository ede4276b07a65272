//! What an operator's probes see, and how connections are spread over workers.

use std::sync::Arc;

use toolgate_backend::config::BackendConfig;
use toolgate_state::{SqliteStore, Store};
use toolgate_testkit::RawClient;

use crate::gate::{Gate, Surroundings, config};
use crate::stage::client_of;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[tokio::test]
async fn a_gateway_is_healthy_and_ready() {
    let gate = Gate::start(&config(), BackendConfig::default());
    for path in ["/healthz", "/readyz"] {
        assert_eq!(gate.get(path).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn a_gateway_whose_store_cannot_be_written_is_healthy_and_not_ready() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().await.expect("a store"));
    let surroundings = Surroundings { store: Arc::clone(&store), ..Surroundings::default() };
    let gate = Gate::start_in(&config(), BackendConfig::default(), surroundings);
    assert_eq!(gate.get("/readyz").await.status(), 200);
    store.close().await;
    assert_eq!(gate.get("/readyz").await.status(), 503);
    assert_eq!(gate.get("/healthz").await.status(), 200);
}

/// How many connections each worker serves, as the metrics show it.
async fn connections_by_worker(client: &mut RawClient) -> Vec<usize> {
    client.send(get("/metrics")).await;
    let metrics = client.response().await.text();
    let gauges = metrics.lines().filter(|line| line.starts_with("toolgate_connections{worker=\""));
    gauges.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect()
}

#[tokio::test]
async fn a_burst_of_connections_is_spread_over_the_workers() {
    let mut config = config();
    config.workers = 4;
    let gate = Gate::start(&config, BackendConfig::default());
    let mut clients = Vec::new();
    for _ in 0..24 {
        clients.push(client_of(&gate).await);
    }
    // A client that got a response has a worker.
    for client in &mut clients {
        client.send(get("/healthz")).await;
    }
    for client in &mut clients {
        assert_eq!(client.response().await.status(), 200);
    }
    let counts = connections_by_worker(&mut clients[0]).await;
    assert_eq!((counts.len(), counts.iter().sum::<usize>()), (4, 24), "{counts:?}");
    assert!(counts.iter().all(|count| *count <= 9), "{counts:?}");
}
