//! The load: timed requests over several connections. Every reply must be complete.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::AnyError;
use crate::dialect::{Delivery, Dialect};

/// How much of a bad reply is shown.
const SHOWN_BYTES: usize = 600;

/// One request, to be sent many times.
#[derive(Debug, Clone)]
pub(crate) struct Shot {
    pub(crate) dialect: Dialect,
    pub(crate) delivery: Delivery,
    pub(crate) body: Bytes,
    /// Further text that the reply must contain.
    pub(crate) proof: Option<&'static str>,
}

/// The number of requests, and of connections at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Volume {
    pub(crate) requests: u32,
    pub(crate) connections: u32,
}

/// The time from each request to the first byte and to the end of its reply.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) first: Vec<Duration>,
    pub(crate) last: Vec<Duration>,
}

/// Sends the shot to `address` and fails on the first reply that is not a complete success: a benchmark of errors
/// would look fast.
pub(crate) async fn fire(address: &str, shot: &Shot, volume: Volume) -> Result<Times, AnyError> {
    let Volume { requests, connections } = volume;
    let share = |number: u32| requests / connections + u32::from(number < requests % connections);
    let connections = (0..connections).map(|number| send_on_one_connection(address, shot, share(number)));
    let mut all = Times::default();
    for times in try_join_all(connections).await? {
        all.extend(times);
    }
    Ok(all)
}

impl Times {
    pub(crate) fn extend(&mut self, more: Self) {
        self.first.extend(more.first);
        self.last.extend(more.last);
    }
}

async fn send_on_one_connection(address: &str, shot: &Shot, requests: u32) -> Result<Times, AnyError> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    spawn_local(async move {
        if let Err(cause) = connection.await {
            eprintln!("a connection of the load ended early: {cause}");
        }
    });
    let mut times = Times::default();
    for _ in 0..requests {
        sender.ready().await?;
        let (first, last) = one_request(&mut sender, address, shot).await?;
        times.first.push(first);
        times.last.push(last);
    }
    Ok(times)
}

async fn one_request(
    sender: &mut SendRequest<Full<Bytes>>,
    address: &str,
    shot: &Shot,
) -> Result<(Duration, Duration), AnyError> {
    let request = Request::post(shot.dialect.path())
        .header(HOST, address)
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, "Bearer sk-bench")
        .header("anthropic-version", "2023-06-01")
        .body(Full::new(shot.body.clone()))?;
    let start = Instant::now();
    let mut response = sender.send_request(request).await?;
    let mut first = None;
    let mut reply = Vec::new();
    while let Some(frame) = response.frame().await {
        if let Some(data) = frame?.data_ref() {
            first.get_or_insert_with(|| start.elapsed());
            reply.extend_from_slice(data);
        }
    }
    let last = start.elapsed();
    let end_mark = shot.dialect.end_mark(shot.delivery);
    let is_complete = [Some(end_mark), shot.proof]
        .into_iter()
        .flatten()
        .all(|mark| memmem::find(&reply, mark.as_bytes()).is_some());
    if !response.status().is_success() || !is_complete {
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(SHOWN_BYTES)]).into_owned();
        let path = shot.dialect.path();
        return Err(format!(
            "{address}{path} answered {} with no complete reply:\n{shown}",
            response.status()
        )
        .into());
    }
    Ok((first.unwrap_or(last), last))
}
