//! Sends requests that no API server would send, and records the server's certificate.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// Time limit for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// An HTTP/1.1 connection.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    certificate: Vec<u8>,
}

/// Accepts and records any certificate.
#[derive(Debug)]
struct Anybody {
    provider: CryptoProvider,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock().expect("nobody panics with it") = certificate.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A TLS client that accepts any certificate, records the last one, and offers these protocols.
pub fn client_config(protocols: &[&str], seen: Arc<Mutex<Vec<u8>>>) -> Result<ClientConfig> {
    let provider = aws_lc_rs::default_provider();
    let verifier = Anybody { provider: provider.clone(), seen };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(config)
}

/// Connects to a local port, including the TLS handshake.
pub async fn connect(port: u16, config: ClientConfig) -> Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("127.0.0.1")?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.context("the handshake")
}

impl Connection {
    /// Connects to a local port.
    pub async fn open(port: u16) -> Result<Self> {
        let seen = Arc::default();
        let stream = connect(port, client_config(&[], Arc::clone(&seen))?).await?;
        let certificate = seen.lock().expect("nobody panics with it").clone();
        Ok(Self { stream, certificate })
    }

    /// The server's certificate, DER.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// Sends raw bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await.context("sending")
    }

    /// Sends a review and reads the response.
    pub async fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Result<Reply> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.send(head.as_bytes()).await?;
        // A server that rejects by the header may close the connection before the body is sent.
        let sent = self.send(body).await;
        match self.response().await {
            Ok(response) => Ok(response),
            Err(error) => sent.and(Err(error)),
        }
    }

    /// Reads one response.
    pub async fn response(&mut self) -> Result<Reply> {
        timeout(RESPONSE_TIMEOUT, self.read_response()).await.context("no answer")?
    }

    async fn read_response(&mut self) -> Result<Reply> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            anyhow::ensure!(self.stream.read_buf(&mut bytes).await? > 0, "the connection ended");
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
        };
        let length: usize = header("content-length").context("no length")?.parse()?;
        while bytes.len() < head_end + length {
            anyhow::ensure!(self.stream.read_buf(&mut bytes).await? > 0, "the answer ended early");
        }
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok(Reply { status, body: String::from_utf8(bytes[head_end..head_end + length].to_vec())? })
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}
