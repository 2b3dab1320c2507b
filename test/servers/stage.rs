//! The stage of a request at which a client falls silent.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use test_support::https::{client_config, connect};

/// An open connection of any kind.
pub(crate) type Held = Box<dyn Stream>;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The requests of a client before it falls silent.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// Protocol after the handshake; `None` means no TLS.
    tls: Option<&'static str>,
    sends: Vec<u8>,
    /// Whether it waits for the response before it falls silent.
    pub(crate) is_completed: bool,
}

/// Time limit for a client of the flood to reach its stage.
const STAGE_TIMEOUT: Duration = Duration::from_secs(5);

impl Stage {
    /// Connects and sends everything up to this stage.
    pub(crate) async fn reach(&self, port: u16) -> Result<Held> {
        timeout(STAGE_TIMEOUT, self.go(port)).await.context("not let in")?
    }

    async fn go(&self, port: u16) -> Result<Held> {
        let mut stream: Held = match self.tls {
            None => Box::new(TcpStream::connect(("127.0.0.1", port)).await?),
            Some(protocol) => Box::new(connect(port, client_config(&[protocol], Arc::default())?).await?),
        };
        stream.write_all(&self.sends).await?;
        stream.flush().await?;
        if self.is_completed {
            stream.read_u8().await?;
        }
        Ok(stream)
    }
}

fn stage(name: &'static str, tls: Option<&'static str>, sends: impl Into<Vec<u8>>) -> Stage {
    Stage { name, tls, sends: sends.into(), is_completed: false }
}

/// Stages of HTTP/1.1. `method` and `path` belong to a request with a body.
fn http1(tls: Option<&'static str>, method: &str, path: &str) -> [Stage; 5] {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
    let responded = stage("answered over HTTP/1.1", tls, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
    [
        stage("half a request line", tls, &head[..6]),
        stage("half a head", tls, head.as_str()),
        stage("a body in pieces", tls, format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n")),
        stage("an announced body", tls, format!("{head}Content-Length: 3000\r\n\r\n{{")),
        Stage { is_completed: true, ..responded },
    ]
}

/// Stages of a port without TLS.
pub(crate) fn plain() -> Vec<Stage> {
    let mut stages = vec![stage("a connection and nothing else", None, "")];
    stages.extend(http1(None, "PUT", "/log-level"));
    stages
}

/// Stages of the webhooks.
pub(crate) fn webhooks(path: &str) -> Vec<Stage> {
    let h2 = Some("h2");
    let mut stages = vec![
        stage("a connection and nothing else", None, ""),
        stage("half a handshake", None, [0x16, 3, 1, 2, 0, 1]),
        stage("a handshake and nothing else", Some("http/1.1"), ""),
        stage("half a preface of HTTP/2", h2, &PREFACE[..10]),
        stage("HTTP/2 without a request", h2, [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()),
        stage("half a head over HTTP/2", h2, begin_http2(path, 0)),
        stage("a body without end over HTTP/2", h2, begin_http2(path, END_HEADERS)),
    ];
    stages.extend(http1(Some("http/1.1"), "POST", path));
    stages
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_HEADERS: u8 = 4;

/// An HTTP/2 frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("short frames only");
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A POST of JSON. Its fields are encoded by their numbers in the static table of RFC 7541.
fn begin_http2(path: &str, flags: u8) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short texts only")], text.as_bytes()].concat();
    let (method, scheme, authority) = (0x83, 0x87, [&[0x01], text("x").as_slice()].concat());
    let (path, content_type) = ([&[0x04], text(path).as_slice()].concat(), text("application/json"));
    let fields = [&[method, scheme], authority.as_slice(), &path, &[0x0f, 0x10], &content_type].concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, flags, 1, &fields)].concat()
}
