//! The server's certificate, which can be replaced while serving. Open connections keep the old one; new ones get the
//! new one.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use parking_lot::RwLock;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

/// ALPN protocols in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The current certificate. Clones share it.
#[derive(Clone, Default)]
pub struct LiveCertificate {
    current: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
}

/// Hides the private key.
impl fmt::Debug for LiveCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LiveCertificate")
    }
}

impl LiveCertificate {
    /// Replaces the certificate for new connections. Both arguments are PEM, the certificate with its chain.
    ///
    /// # Errors
    /// If either cannot be read or they do not match. The previous certificate stays.
    pub(crate) fn replace(&self, certificates: &[u8], key: &[u8]) -> anyhow::Result<()> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow::anyhow!("the certificate is no PEM: {error}"))?;
        anyhow::ensure!(!chain.is_empty(), "there is no certificate in the PEM");
        // Drops the error, because it might contain part of the key.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| anyhow::anyhow!("the private key is no PEM"))?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).context("certificate and private key")?;
        *self.current.write() = Some(Arc::new(certified));
        Ok(())
    }

    /// The served chain: the certificate and its intermediates.
    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let current = self.current.read();
        current.as_ref().map(|certified| certified.cert.clone()).unwrap_or_default()
    }

    /// TLS configuration that serves the current certificate. Handshakes fail while there is none.
    pub(crate) fn server_config(&self) -> anyhow::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .context("no TLS version")?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(Resolver(self.clone())));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(config)
    }
}

fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

#[derive(Debug)]
struct Resolver(LiveCertificate);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.current.read().clone()
    }
}
