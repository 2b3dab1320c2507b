//! What every client of a cluster has in common: who it says it is, and that it is reached as its kubeconfig says. Proxies of
//! the environment are for clouds.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Uri};
use kube::Config;

/// Who API servers write down as the one that has changed something, in `managedFields` and in their audit log.
const PROGRAM: &str = concat!("gardener-extension-worker/", env!("CARGO_PKG_VERSION"));

/// The configuration with what every client has in common.
#[must_use]
pub(crate) fn completed(config: Config) -> Config {
    let mut config = without_proxy_of_environment(config);
    config.headers.push((USER_AGENT, HeaderValue::from_static(PROGRAM)));
    config
}

/// Takes a proxy away that kube has taken from the environment because the kubeconfig names none: the API server is near,
/// and a proxy that leads to a cloud may not lead there.
fn without_proxy_of_environment(mut config: Config) -> Config {
    let of_environment = ["HTTPS_PROXY", "https_proxy"].into_iter().find_map(|name| {
        let proxy = std::env::var(name).ok().filter(|proxy| !proxy.is_empty())?;
        proxy.parse::<Uri>().ok()
    });
    if of_environment.is_some() && config.proxy_url == of_environment {
        config.proxy_url = None;
    }
    config
}
