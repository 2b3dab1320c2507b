//! The controller's connection to the API server of its seed: one HTTP/2 connection for all concurrent requests.
//!
//! kube's default client only speaks HTTP/1.1, so each of a hundred concurrent writes would need its own connection and
//! TLS handshake. Servers without HTTP/2 are still reached with HTTP/1.1.

use std::time::Duration;

use anyhow::Context;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};

use crate::cluster::responses::Responses;
use crate::cluster::write_fence::WriteFence;

/// Keep-alive interval: HTTP/2 pings while requests are under way, TCP probes on an idle connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Keep-alive timeout. A connection that does not respond is closed, and all its requests fail.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Unanswered TCP probes after which the connection is closed.
const TCP_KEEP_ALIVE_PROBES: u32 = 3;

/// Flow-control windows per stream and per connection, in bytes. An API server ends a watch whose reader falls behind,
/// so a burst of events must fit.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The client with the state that its layers share.
#[derive(Clone)]
pub struct Access {
    /// A client whose writes pass the write fence.
    pub client: kube::Client,
    pub fence: WriteFence,
    /// Tracks whether the client's requests receive responses.
    pub responses: Responses,
}

/// Builds the HTTP client that sends the requests.
///
/// # Errors
/// When the certificates or the server name in the configuration are invalid.
pub fn connection(config: &Config) -> anyhow::Result<Client<HttpsConnector<HttpConnector>, Body>> {
    // Fail early: this connector ignores proxies, so it would bypass the proxy or never reach the API server.
    anyhow::ensure!(
        config.proxy_url.is_none(),
        "the kubeconfig has a proxy-url, and API servers are reached directly only"
    );
    let tls = config.rustls_client_config().context("no TLS for the seed")?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().context("the name of the server is no name of a host")?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_TIMEOUT));
    connector.set_keepalive_retries(Some(TCP_KEEP_ALIVE_PROBES));
    let connector = builder.enable_http1().enable_http2().wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .build(connector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_kubeconfig_with_proxy() {
        let mut config = Config::new("https://seed.example.org".parse().unwrap());
        assert!(connection(&config).is_ok());
        config.proxy_url = Some("http://proxy.example.org:3128".parse().unwrap());
        assert!(connection(&config).unwrap_err().to_string().contains("proxy-url"));
    }
}
