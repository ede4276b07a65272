//! Certificates made for one test: an authority that nobody else knows, and a server certificate signed by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Counts the authorities that were made.
static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

/// The protocols that a scripted server offers over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2, or HTTP/1.1 for clients without HTTP/2.
    Http2,
    /// HTTP/1.1 from a server without ALPN.
    NoAlpn,
}

/// The server's side of TLS, and the authority a client has to trust.
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) authority: String,
}

impl Identity {
    /// A certificate for 127.0.0.1, signed by an authority of its own.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its certificate")]
    pub(crate) fn make(offer: Offer) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("an authority's certificate");
        // Two authorities of one name would look like one that changed its key.
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number} of a test"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&authority_key).expect("the authority signs itself").pem();
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .and_then(|params| params.signed_by(&key, &issuer))
            .expect("the authority signs the server");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("the default TLS versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a certificate with its key");
        config.alpn_protocols = match offer {
            Offer::Http1 => vec![b"http/1.1".to_vec()],
            Offer::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Offer::NoAlpn => Vec::new(),
        };
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority }
    }
}
