//! What can go wrong with a host, each in words that say what to do.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;
use toolgate_model::{ErrorKind, TurnError};

use super::body::HostBody;
use super::pool::PoolError;

/// How long the rest of an error answer is waited for.
pub(super) const MAX_ERROR_WAIT: Duration = Duration::from_secs(10);

/// How much of a page is shown: enough to recognise it.
const SHOWN_CHARS: usize = 120;

/// How much of a page is read.
const MAX_PAGE_BYTES: usize = 64 * 1024;

/// A host, by the name that errors call it.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: Arc<str>,
}

impl Host {
    pub(super) fn unreachable(&self, error: PoolError) -> TurnError {
        let what = match &error {
            PoolError::Connect(cause) => {
                untrusted(cause.as_ref()).unwrap_or("cannot be reached: check its base_url and that it runs")
            }
            PoolError::Broken(_) => "closed the connection before it answered: try again",
        };
        self.upstream(what).caused_by(error)
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

    pub(super) fn spoke_rubbish(&self, expected: &str) -> TurnError {
        self.upstream(&format!("answered something that is not {expected}: check its dialect and base_url"))
    }

    pub(super) fn too_large(&self, limit: usize) -> TurnError {
        self.upstream(&format!(
            "sent a reply of more than {limit} bytes: ask for a smaller one, or for a stream"
        ))
    }

    pub(super) fn redirected(&self, location: Option<&str>) -> TurnError {
        let place = location.unwrap_or("an unnamed place");
        self.upstream(&format!("redirects to {place}: set its base_url to where it really is"))
    }

    /// A proxy's login page or a web server's welcome, where a model was expected.
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

/// Why a host's certificate was refused, where that is what went wrong.
fn untrusted(error: &(dyn Error + 'static)) -> Option<&'static str> {
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
    // An I/O error names as its source what its content has as source, and leaves the content out.
    let content = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match content {
        Some(content) => untrusted(content),
        None => untrusted(error.source()?),
    }
}
