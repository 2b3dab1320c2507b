//! Proxies of the environment are for clouds. Clusters are reached as their kubeconfigs say.

use axum::http::Uri;
use kube::Config;

/// Takes a proxy away that kube has taken from the environment because the kubeconfig names none: the API server is near,
/// and a proxy that leads to a cloud may not lead there.
#[must_use]
pub(crate) fn without_proxy_of_environment(mut config: Config) -> Config {
    let of_environment = ["HTTPS_PROXY", "https_proxy"].into_iter().find_map(|name| {
        let proxy = std::env::var(name).ok().filter(|proxy| !proxy.is_empty())?;
        proxy.parse::<Uri>().ok()
    });
    if of_environment.is_some() && config.proxy_url == of_environment {
        config.proxy_url = None;
    }
    config
}
