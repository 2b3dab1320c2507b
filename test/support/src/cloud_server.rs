//! The HTTP server of a fake cloud, on a thread of its own because it outlives the runtimes of single tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Time limit for a client's TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// An HTTP or HTTPS server. Dropping it stops it.
pub struct CloudServer {
    address: SocketAddr,
    /// CA certificate, PEM.
    certificate: Option<String>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CloudServer {
    /// Listens on a free local port.
    pub fn start(name: &str, router: Router) -> Result<Self> {
        Self::listen(name, router, None)
    }

    /// Same as [`Self::start`] with TLS and a newly created CA.
    pub fn start_tls(name: &str, router: Router) -> Result<Self> {
        Self::listen(name, router, Some(Identity::generate()?))
    }

    fn listen(name: &str, router: Router, identity: Option<Identity>) -> Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (certificate, acceptor) =
            identity.map(|Identity { certificate, acceptor }| (certificate, acceptor)).unzip();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let serve = async {
                match acceptor {
                    None => axum::serve(listener, router).await,
                    Some(acceptor) => axum::serve(TlsListener { listener, acceptor }, router).await,
                }
            };
            tokio::select! {
                _ = serve => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(serve))?;
        Ok(Self { address, certificate, stop: Some(stop), thread: Some(thread) })
    }

    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The CA certificate as PEM; empty for HTTP.
    pub fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap_or_default()
    }
}

impl Drop for CloudServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server certificate for localhost, and its CA certificate.
struct Identity {
    certificate: String,
    acceptor: TlsAcceptor,
}

impl Identity {
    fn generate() -> Result<Self> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signing = KeyPair::generate()?;
        let of_authority = authority.self_signed(&signing)?;
        let key = KeyPair::generate()?;
        let server = CertificateParams::new(["127.0.0.1".to_owned()])?;
        let of_server = server.signed_by(&key, &Issuer::from_params(&authority, &signing))?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(of_server.der().to_vec())], private)?;
        Ok(Self { certificate: of_authority.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}

/// Accepts connections after their TLS handshake, and drops those that fail it.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await;
            if let Ok(Ok(stream)) = handshake {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
