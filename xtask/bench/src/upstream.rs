//! The scripted upstream: speaks all three dialects. The model name selects the reply (see [`Script`]).
//!
//! Replies are cached, so that the upstream takes as little processor time as possible from the servers under
//! measurement.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use serde_json::Value;

use crate::AnyError;
use crate::dialect::{Delivery, Dialect, Pace, Script};
use crate::link::Link;
use crate::serve::{Body, accept};

/// Time between two words of a slow reply: long enough that all streams are open at once.
const PAUSE: Duration = Duration::from_millis(20);

/// Interval between two words of a steady reply. Each word reaches the client before the next is sent.
const INTERVAL: Duration = Duration::from_micros(500);

pub(crate) async fn serve(link: Link, certificates: &Path) -> Result<Infallible, AnyError> {
    let replies = Rc::new(RefCell::new(Replies::new()));
    accept(link.acceptor(certificates)?, move |request| answer(Rc::clone(&replies), request)).await
}

type Replies = HashMap<(Dialect, Delivery, Script), Rc<[Bytes]>>;

async fn answer(
    replies: Rc<RefCell<Replies>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, AnyError> {
    let dialect = Dialect::of_path(request.uri().path());
    let body = request.into_body().collect().await?.to_bytes();
    let bytes = body;
    let body: Value = serde_json::from_slice(&bytes)?;
    let script =
        body["model"].as_str().and_then(Script::of_model).map(|script| script.with_trigger_of(&bytes));
    let (Some(dialect), Some(script)) = (dialect, script) else {
        let explanation = Bytes::from_static(b"the bench upstream knows no such path or model");
        return Ok(Response::builder().status(StatusCode::NOT_FOUND).body(body_of(explanation))?);
    };
    let delivery = if body["stream"] == true { Delivery::Streamed } else { Delivery::Whole };
    let reply = replies
        .borrow_mut()
        .entry((dialect, delivery, script))
        .or_insert_with(|| make(dialect, delivery, script))
        .clone();
    match delivery {
        Delivery::Whole => {
            if script.pace == Pace::Slow {
                tokio::time::sleep(PAUSE * u32::try_from(script.words)?).await;
            }
            let whole = reply.first().cloned().unwrap_or_default();
            Ok(Response::builder().header(CONTENT_TYPE, "application/json").body(body_of(whole))?)
        }
        Delivery::Streamed => Ok(Response::builder()
            .header(CONTENT_TYPE, "text/event-stream")
            .body(stream(&reply, script.pace))?),
    }
}

fn make(dialect: Dialect, delivery: Delivery, script: Script) -> Rc<[Bytes]> {
    match delivery {
        Delivery::Whole => Rc::from([dialect.whole(script)]),
        Delivery::Streamed => Rc::from(dialect.frames(script)),
    }
}

fn stream(frames: &Rc<[Bytes]>, pace: Pace) -> Body {
    let began = Instant::now();
    let due_times = (1..).map(move |number| began + INTERVAL * number);
    let frames: Vec<(Bytes, Instant)> = frames.iter().cloned().zip(due_times).collect();
    let paced = futures_util::stream::iter(frames).then(move |(frame, due)| async move {
        match pace {
            // Yielding makes hyper write each frame separately, as a real host does.
            Pace::Fast => tokio::task::yield_now().await,
            Pace::Steady => {
                tokio::task::yield_now().await;
                // Each word has a fixed due time: a real host has its own machine and does not slow down with its
                // clients. The runtime's timer is too coarse. Blocking is fine, as steady replies are requested one at a
                // time.
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            Pace::Slow => tokio::time::sleep(PAUSE).await,
        }
        Ok::<_, AnyError>(Frame::data(frame))
    });
    BodyExt::boxed(StreamBody::new(paced))
}

fn body_of(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}
