//! How the controller reaches the API server of its seed: over one connection of HTTP/2 for everything that is under way.
//!
//! kube's own client speaks HTTP/1.1 only, so each of a hundred writes that go side by side needs a connection and a TLS
//! handshake of its own, which costs both ends time and memory. Where the other end does not speak HTTP/2, connections of
//! HTTP/1.1 are made.

use std::time::Duration;

use anyhow::Context;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};

use crate::cluster::answers::Answers;
use crate::cluster::write_fence::WriteFence;

/// How often the other end is asked whether it lives: by HTTP/2 while something is under way, by TCP while nothing comes.
const ARE_YOU_THERE: Duration = Duration::from_secs(20);
/// How long it may take to say so. A connection without an answer is given up, with all that waits on it.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// How often TCP asks in vain.
const TCP_QUESTIONS: u32 = 3;

/// Bytes that may be on their way to us for one request, and for all together. An API server ends a watch whose reader falls
/// behind, so a burst of events must fit in.
const WINDOW: u32 = 2 << 20;
const ALL_WINDOWS: u32 = 16 << 20;

/// What the work is done through.
#[derive(Clone)]
pub(crate) struct Access {
    /// A client whose writes go through the fence.
    pub(crate) client: kube::Client,
    /// Who may write.
    pub(crate) fence: WriteFence,
    /// Whether the requests of the client are answered.
    pub(crate) answers: Answers,
}

/// What requests are sent through.
///
/// # Errors
/// When the certificates or the name of the server in the configuration can't be used.
pub(crate) fn connection(config: &Config) -> anyhow::Result<Client<HttpsConnector<HttpConnector>, Body>> {
    // Without it the API server would be asked past the proxy, or never be reached.
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
    connector.set_keepalive(Some(ARE_YOU_THERE));
    connector.set_keepalive_interval(Some(SIGN_OF_LIFE));
    connector.set_keepalive_retries(Some(TCP_QUESTIONS));
    let connector = builder.enable_http1().enable_http2().wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(ALL_WINDOWS)
        .http2_keep_alive_interval(ARE_YOU_THERE)
        .http2_keep_alive_timeout(SIGN_OF_LIFE)
        .build(connector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_of_the_kubeconfig_is_not_passed_by() {
        let mut config = Config::new("https://seed.example.org".parse().unwrap());
        assert!(connection(&config).is_ok());
        config.proxy_url = Some("http://proxy.example.org:3128".parse().unwrap());
        assert!(connection(&config).unwrap_err().to_string().contains("proxy-url"));
    }
}
