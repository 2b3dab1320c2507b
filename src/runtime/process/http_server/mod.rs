//! The HTTP server behind every port: health, metrics, webhooks. Misbehaving clients can't starve others.
//!
//! ```text
//!  accept ──► connections: is there room? ──► TLS, HTTP/1.1 or HTTP/2 ──► requests ──► Router
//!                 │ closes overdue connections, or                          │ tracks running requests;
//!                 │ the oldest of a flood        ◄──────────────────────────┘ body: limits each, and all together
//! ```
//!
//! Each port has its own connection limit, so that a flood at one port does not affect another. All limits together
//! stay far below the file descriptor limit of a process.

mod body;
mod connections;
mod requests;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tracing::{debug, warn};

pub(crate) use body::{BodyMemory, UsedMemory};
use connections::{Connections, IDLE_TIMEOUT};
use requests::Requests;

/// Number of connections that the system queues before they are accepted. Beyond that, clients retry after a second.
const BACKLOG: u32 = 4096;
/// Pause after a failed accept, for example when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often to check for overdue connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How often to log that connections were closed to make room.
const EVICTION_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Buffer sizes per connection before data is read: for the head over HTTP/1.1, for bodies over HTTP/2.
const HEAD_BUFFER: usize = 64 << 10;
const BODY_WINDOW: u32 = 256 << 10;
/// Maximum number of parallel requests on one HTTP/2 connection.
const STREAMS: u32 = 128;

/// Listens on a port of all addresses; with port 0 the system chooses one.
pub(crate) fn listen(port: u16) -> anyhow::Result<TcpListener> {
    // Dual-stack if the system has IPv6, otherwise IPv4.
    let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    listen_on(TcpSocket::new_v6(), any)
        .or_else(|_| listen_on(TcpSocket::new_v4(), SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)))
        .with_context(|| format!("port {port} can't be listened on"))
}

fn listen_on(socket: io::Result<TcpSocket>, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket?;
    // Lingering connections of a process that has just ended must not block the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The server of one port.
pub(crate) struct Server {
    name: &'static str,
    connections: Arc<Connections>,
    tls: Option<TlsAcceptor>,
    http1: auto::Builder<TokioExecutor>,
    http2: auto::Builder<TokioExecutor>,
    router: Router,
}

impl Server {
    /// A server with at most `connections` connections. The name appears in logs.
    pub(crate) fn new(name: &'static str, connections: usize, router: Router) -> Self {
        let mut http1 = auto::Builder::new(TokioExecutor::new());
        // `connections` has its own time limit for heads.
        http1.http1().header_read_timeout(None).max_buf_size(HEAD_BUFFER);
        let mut http2 = auto::Builder::new(TokioExecutor::new());
        http2.http2().max_concurrent_streams(STREAMS);
        http2.http2().initial_stream_window_size(BODY_WINDOW).initial_connection_window_size(BODY_WINDOW);
        let connections = Connections::new(connections, IDLE_TIMEOUT);
        Self { name, connections, tls: None, http1: http1.http1_only(), http2: http2.http2_only(), router }
    }

    /// Uses TLS, and ALPN to select HTTP/2.
    pub(crate) fn with_tls(self, config: ServerConfig) -> Self {
        Self { tls: Some(TlsAcceptor::from(Arc::new(config))), ..self }
    }

    /// Serves until stopped, then lets running requests end.
    pub(crate) async fn serve(self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let server = Arc::new(self);
        tokio::select! {
            () = server.accept(listener) => {}
            () = server.sweep() => {}
            () = stopped => {}
        }
        if !server.connections.close_all().await {
            warn!(port = server.name, "requests are cut off");
        }
    }

    async fn accept(self: &Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    self.connections.room().await;
                    let (open, close) = self.connections.open();
                    let server = Arc::clone(self);
                    tokio::spawn(async move {
                        let requests = Requests { router: server.router.clone(), peer, requests: open.requests() };
                        server.connection(stream, requests, close).await;
                        drop(open);
                    });
                }
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    warn!(port = self.name, %error, "a connection can't be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Closes overdue connections and logs floods.
    async fn sweep(&self) {
        let mut ticks = interval(SWEEP_INTERVAL);
        let mut logged: Option<Instant> = None;
        let mut closed = 0;
        loop {
            ticks.tick().await;
            self.connections.close_overdue();
            closed += self.connections.take_evicted();
            if closed > 0 && logged.is_none_or(|logged| logged.elapsed() > EVICTION_LOG_INTERVAL) {
                warn!(port = self.name, closed, "connections were closed to make room for others");
                (logged, closed) = (Some(Instant::now()), 0);
            }
        }
    }

    async fn connection(&self, stream: TcpStream, requests: Requests, mut close: oneshot::Receiver<Duration>) {
        // Responses are small and latency matters.
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = &self.tls else { return http(&self.http1, stream, requests, close).await };
        let stream = tokio::select! {
            accepted = acceptor.accept(stream) => match accepted {
                Ok(stream) => stream,
                Err(error) => return debug!(%error, "no TLS connection"),
            },
            _ = &mut close => return debug!("no TLS connection: too slow"),
        };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let builder = if is_http2 { &self.http2 } else { &self.http1 };
        http(builder, stream, requests, close).await;
    }
}

/// Whether the client closed the connection before it was accepted. This needs no pause before the next accept.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves HTTP until the client closes the connection or it has to close.
async fn http<S>(
    builder: &auto::Builder<TokioExecutor>,
    stream: S,
    requests: Requests,
    mut close: oneshot::Receiver<Duration>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(requests)));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        limit = &mut close => {
            connection.as_mut().graceful_shutdown();
            match timeout(limit.unwrap_or_default(), connection).await {
                Ok(result) => result,
                Err(_) => return debug!("a connection was closed"),
            }
        }
    };
    if let Err(error) = result {
        debug!(error = &*error, "a connection has failed");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use rcgen::CertifiedKey;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    /// The preface, empty settings, and a GET of `/` by the static table of RFC 7541.
    const HTTP2_REQUEST: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
        \x00\x00\x00\x04\x00\x00\x00\x00\x00\
        \x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x87\x84\x01\x01x";
    const HTTP1_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    fn configurations() -> (ServerConfig, ClientConfig) {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = signing_key.serialize_der().try_into().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let server = ServerConfig::builder().with_no_client_auth();
        let server = server.with_single_cert(vec![cert.der().clone()], key).unwrap();
        (server, ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    /// Sends a request over TLS and returns whether the server closes the connection within the time.
    async fn is_closed(idle_timeout: Duration, protocol: &str, request: &[u8], within: Duration) -> bool {
        let (mut server, mut client) = configurations();
        server.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        client.alpn_protocols = server.alpn_protocols.clone();
        let listener = listen_on(TcpSocket::new_v4(), SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new("test", 8, Router::new().route("/", get(async || "ok"))).with_tls(server);
        let server = Server { connections: Connections::new(8, idle_timeout), ..server };
        let serving = tokio::spawn(server.serve(listener, std::future::pending()));
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(client));
        let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut response = Vec::new();
        // An end without a farewell of TLS is an end, too.
        let is_closed = timeout(within, stream.read_to_end(&mut response)).await.is_ok();
        assert!(!response.is_empty(), "{protocol}: the request has no answer");
        serving.abort();
        is_closed
    }

    #[tokio::test]
    async fn idle_connections_are_closed() {
        let short = Duration::from_millis(100);
        let long = Duration::from_secs(3600);
        for (protocol, request) in [("h2", HTTP2_REQUEST), ("http/1.1", HTTP1_REQUEST)] {
            assert!(is_closed(short, protocol, request, Duration::from_secs(60)).await, "{protocol}");
            assert!(!is_closed(long, protocol, request, Duration::from_secs(2)).await, "{protocol}");
        }
        assert!(IDLE_TIMEOUT < Duration::from_secs(60));
    }
}
