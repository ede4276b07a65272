//! The link to the scripted host: plain HTTP/1.1, HTTP/1.1 over TLS, or HTTP/2 over TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::AnyError;
use crate::dialect::Dialect;

/// How the gateway and the relay talk to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    Plain,
    Tls,
    Http2,
}

impl Link {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Tls, Self::Http2];

    /// The name on the command line of the relay and the upstream.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::Http2 => "http2",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|link| link.name() == name)
    }

    /// The name of the host in the gateway's config file.
    pub(crate) fn upstream(self, dialect: Dialect) -> String {
        match self {
            Self::Plain => dialect.config_name().to_owned(),
            Self::Tls | Self::Http2 => format!("{}-{}", dialect.config_name(), self.name()),
        }
    }

    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls | Self::Http2 => "https",
        }
    }

    /// Each host offers one protocol only, so that no client can choose another.
    fn protocol(self) -> &'static [u8] {
        match self {
            Self::Plain | Self::Tls => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// The server's side, where the link is encrypted.
    pub(crate) fn acceptor(self, folder: &Path) -> Result<Option<TlsAcceptor>, AnyError> {
        if self == Self::Plain {
            return Ok(None);
        }
        let files = Certificates::in_folder(folder);
        let certificate = CertificateDer::from_pem_file(&files.host)?;
        let key = PrivateKeyDer::from_pem_file(&files.host_key)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![self.protocol().to_vec()];
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }

    /// The client's side, where the link is encrypted.
    pub(crate) fn connector(self, folder: &Path) -> Result<Option<TlsConnector>, AnyError> {
        if self == Self::Plain {
            return Ok(None);
        }
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(Certificates::in_folder(folder).authority)?)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![self.protocol().to_vec()];
        Ok(Some(TlsConnector::from(Arc::new(config))))
    }
}

/// The same as the gateway uses.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The files of an authority made for one run, and of the host's certificate signed by it.
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    host: PathBuf,
    host_key: PathBuf,
}

impl Certificates {
    fn in_folder(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        Self { authority: file("authority.pem"), host: file("host.pem"), host_key: file("host-key.pem") }
    }

    /// Makes and writes new ones.
    pub(crate) fn make(folder: &Path) -> Result<Self, AnyError> {
        let files = Self::in_folder(folder);
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "authority of a benchmark");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        fs::write(&files.authority, params.self_signed(&authority_key)?.pem())?;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(params, authority_key);
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?;
        fs::write(&files.host, certificate.pem())?;
        fs::write(&files.host_key, key.serialize_pem())?;
        Ok(files)
    }
}
