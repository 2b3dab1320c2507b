//! HTTP requests to a local port, each on a new connection.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Time limit for a response.
const DEADLINE: Duration = Duration::from_secs(10);

/// Returns status and body.
pub async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    request(port, "GET", path, "").await
}

/// Returns status and body.
pub async fn request(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    request_with(port, method, path, "", body).await
}

/// Same as [`request`] with another header, a whole line.
pub async fn request_with(port: u16, method: &str, path: &str, header: &str, body: &str) -> Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.context("connecting")?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        anyhow::Ok(response)
    };
    let response = tokio::time::timeout(DEADLINE, exchange).await.context("no answer")??;
    let (head, body) = response.split_once("\r\n\r\n").with_context(|| format!("half an answer: {response:?}"))?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
