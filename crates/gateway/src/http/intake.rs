//! Reads a request's body within its bounds.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use toolgate_model::{ErrorKind, TurnError};

use crate::config::{ClientDeadlines, Limits};
use crate::wire::{Pace, too_slow};

/// How much of a refused body is read and discarded. A client that is still sending would otherwise see a connection
/// reset instead of the refusal.
const MAX_DISCARDED_BYTES: u64 = 256 * 1024 * 1024;

/// The body, if it is not larger than the limit and does not arrive too slowly.
pub(crate) async fn read_body<B>(body: B, limits: &Limits) -> Result<Bytes, TurnError>
where
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Unpin,
{
    let received = AtomicUsize::new(0);
    let reading = std::pin::pin!(collect(body, limits.body_bytes, &received));
    tokio::select! {
        biased;
        body = reading => body,
        () = falls_behind(&limits.deadlines, &received) => Err(too_slow()),
    }
}

/// Ready when a window of time brought too little of the body.
async fn falls_behind(deadlines: &ClientDeadlines, received: &AtomicUsize) {
    let mut pace = Pace::new(deadlines, 0);
    loop {
        tokio::time::sleep(pace.window()).await;
        if !pace.next_window(received.load(Ordering::Relaxed)) {
            return;
        }
    }
}

async fn collect<B>(mut body: B, limit: usize, received: &AtomicUsize) -> Result<Bytes, TurnError>
where
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Unpin,
{
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        Box::pin(discard(body, received)).await;
        return Err(too_large(limit));
    }
    let mut whole = Bytes::new();
    while let Some(more) = next(&mut body, received).await? {
        if whole.len() + more.len() > limit {
            Box::pin(discard(body, received)).await;
            return Err(too_large(limit));
        }
        // A body in one frame is not copied.
        if whole.is_empty() {
            whole = more;
        } else {
            let mut joined = BytesMut::from(whole);
            joined.extend_from_slice(&more);
            whole = joined.freeze();
        }
    }
    Ok(whole)
}

async fn next<B>(body: &mut B, received: &AtomicUsize) -> Result<Option<Bytes>, TurnError>
where
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Unpin,
{
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(TurnError::invalid("reading the request body: it broke off; send it again")
                    .caused_by(error));
            }
            Some(Ok(frame)) => {
                // Trailers have no meaning here.
                if let Ok(bytes) = frame.into_data() {
                    received.fetch_add(bytes.len(), Ordering::Relaxed);
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// Refuses a body whose media type is not JSON: browsers send other types across sites without a preflight request.
pub(crate) fn check_media_type(headers: &HeaderMap) -> Result<(), TurnError> {
    const JSON: &str = "application/json";
    let Some(named) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    if named == JSON {
        return Ok(());
    }
    let media_type = named.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    let mut error = TurnError::invalid(format!(
        "content-type: this is `{media_type}`; send `content-type: application/json`"
    ));
    error.status = Some(StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16());
    Err(error)
}

async fn discard<B>(mut body: B, received: &AtomicUsize)
where
    B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Unpin,
{
    let mut discarded = 0;
    while discarded < MAX_DISCARDED_BYTES {
        match next(&mut body, received).await {
            Ok(Some(bytes)) => discarded += u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            // The body has ended or its sender has left.
            Ok(None) | Err(_) => return,
        }
    }
}

fn too_large(limit: usize) -> TurnError {
    TurnError::new(
        ErrorKind::TooLarge,
        format!(
            "the request body is larger than {limit} bytes; shorten the conversation or send files by reference"
        ),
    )
}
