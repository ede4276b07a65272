//! What can go wrong with a host, each in words that say what to do now.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;
use toolgate_model::{ErrorKind, TurnError};

use super::body::HostBody;
use super::request_error::RequestError;
use crate::config::HostDeadlines;

/// How long to wait for the whole body of an error.
pub(super) const MAX_ERROR_WAIT: Duration = Duration::from_secs(10);

/// How much of an HTML page is shown: enough to recognise it.
const SHOWN_CHARS: usize = 120;

/// How much of an HTML page is read.
const MAX_PAGE_BYTES: usize = 64 * 1024;

/// A host, as errors describe it.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// As in `[upstreams.NAME]`.
    pub(super) name: Arc<str>,
    pub(super) access: Access,
    pub(super) key: Key,
}

/// How a host is reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    Direct,
    Proxied,
}

/// Whether requests to a host carry a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Configured,
    Missing,
    /// An agent's own, from its `env`.
    OfAgent,
}

impl Host {
    pub(super) fn unanswered(&self, error: RequestError, deadlines: &HostDeadlines) -> TurnError {
        let timeout = |what: &str, limit: Duration| {
            let (name, seconds) = (&self.name, limit.as_secs_f32());
            let message =
                format!("upstream `{name}` {what} for {seconds} s: try again, or raise its `timeouts`");
            TurnError::new(ErrorKind::Timeout, message)
        };
        let failed = match &error {
            RequestError::Connect(cause) => self.unreachable(cause.as_ref()),
            RequestError::Malformed(cause) => self.upstream(&format!(
                "sent a response that is not valid HTTP ({cause}): check its base_url, and what is in front of it"
            )),
            RequestError::Unprocessed(_) => self.upstream("refused the request before processing it: try again"),
            RequestError::Unanswered(_) | RequestError::Broken(_) => {
                self.upstream("closed the connection before it answered: try again")
            }
            RequestError::ConnectTimeout => timeout("could not be connected to", deadlines.connect),
            RequestError::WriteTimeout => timeout("accepted no more of the request", deadlines.write),
            RequestError::FirstByteTimeout => timeout("said nothing", deadlines.first_byte),
            RequestError::PingTimeout(_) => timeout("replied to no ping", deadlines.http2_keep_alive),
        };
        failed.caused_by(error)
    }

    fn unreachable(&self, cause: &(dyn Error + 'static)) -> TurnError {
        let what = untrusted_certificate(cause);
        self.upstream(what.unwrap_or(match self.access {
            Access::Direct => "cannot be reached: check its base_url and that it runs",
            Access::Proxied => {
                "cannot be reached through its proxy: check the proxy's address, user name and password, or list the host \
                 in NO_PROXY"
            }
        }))
    }

    pub(super) fn silent_for(&self, waited: Duration) -> TurnError {
        let name = &self.name;
        let seconds = waited.as_secs_f32();
        TurnError::new(
            ErrorKind::Timeout,
            format!("upstream `{name}` said nothing for {seconds} s: try again, or raise its timeouts"),
        )
    }

    pub(super) fn cut(&self, error: impl Error + Send + Sync + 'static) -> TurnError {
        self.upstream("cut its reply in the middle: what came is incomplete, try again").caused_by(error)
    }

    pub(super) fn ended_early(&self) -> TurnError {
        self.upstream("ended its reply in the middle: what came is incomplete, try again")
    }

    pub(super) fn malformed_reply(&self, expected: &str) -> TurnError {
        self.upstream(&format!(
            "answered with something that is not {expected}: check its dialect and base_url"
        ))
    }

    pub(super) fn compressed(&self, encoding: &str) -> TurnError {
        let shown: String = encoding.chars().take(SHOWN_CHARS).collect();
        self.upstream(&format!(
            "sent a compressed reply ({shown}) that was not asked for: check its base_url, and what is in front of it"
        ))
    }

    pub(super) fn without_reply(&self, status: u16) -> TurnError {
        self.upstream(&format!("answered with status {status}, which has no reply: check its base_url"))
    }

    /// The host's own words are logged and not repeated: they may hold a part of the key.
    pub(super) fn key_rejected(&self, refusal: &TurnError) -> TurnError {
        let name = &self.name;
        tracing::warn!(upstream = %name, error = %refusal.message, "the host rejected the gateway's key");
        match self.key {
            Key::Configured => {
                self.upstream(&format!("rejected the gateway's key: check `api_key` of [upstreams.{name}]"))
            }
            Key::Missing => {
                self.upstream(&format!("wants a key and has none: set `api_key` of [upstreams.{name}]"))
            }
            // The program tells its API's answers apart, so it gets them as they are.
            Key::OfAgent => refusal.clone(),
        }
    }

    pub(super) fn proxy_rejected(&self) -> TurnError {
        self.upstream(
            "cannot be reached: its proxy wants another user name or password; check the proxy's address",
        )
    }

    pub(super) fn too_large(&self, limit: usize) -> TurnError {
        self.upstream(&format!(
            "sent a reply of more than {limit} bytes: ask for a smaller one, or for a stream"
        ))
    }

    /// The target is logged and not repeated: it may be an address inside the operator's network.
    pub(super) fn redirected(&self, location: Option<&str>) -> TurnError {
        tracing::warn!(upstream = %self.name, location, "the host redirects, and redirects are not followed");
        self.upstream("answered with a redirect: set its base_url to where it really is")
    }

    /// A proxy's login page or a web server's welcome page instead of a reply.
    pub(super) async fn sent_a_page(&self, body: &mut HostBody) -> TurnError {
        let page = body.collect(MAX_PAGE_BYTES).await.unwrap_or_default();
        let page = String::from_utf8_lossy(&page);
        let shown: String =
            page.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN_CHARS).collect();
        self.upstream(&format!("answered with an HTML page instead of a reply: check its base_url ({shown})"))
    }

    fn upstream(&self, what: &str) -> TurnError {
        TurnError::upstream(format!("upstream `{}` {what}", self.name))
    }
}

/// Why a host's certificate was refused, if that is the cause.
fn untrusted_certificate(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
        use CertificateError as Why;
        return Some(if matches!(why, Why::UnknownIssuer | Why::BadSignature) {
            "has a certificate from an authority that is not trusted here: add the authority to the system's roots, or \
             start with SSL_CERT_FILE set to a file that holds it"
        } else if matches!(why, Why::NotValidForName | Why::NotValidForNameContext { .. }) {
            "has a certificate for another name: put the name it was made for into base_url"
        } else if matches!(why, Why::Expired | Why::ExpiredContext { .. }) {
            "has a certificate that has expired: it needs a new one, or the clock here is wrong"
        } else {
            "has a certificate that cannot be trusted: check it, and that base_url is right"
        });
    }
    // The source of an I/O error is the source of its inner error; the inner error itself is skipped.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match inner {
        Some(inner) => untrusted_certificate(inner),
        None => untrusted_certificate(error.source()?),
    }
}
