//! Settings shared by all clients of clusters: the user agent, and no proxy except the one in the kubeconfig. Proxies
//! from the environment are for clouds.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Uri};
use kube::Config;

/// User agent, which API servers record in `managedFields` and in their audit log.
const USER_AGENT_VALUE: &str = concat!("gardener-extension-worker/", env!("CARGO_PKG_VERSION"));

/// Adds the shared settings to a client's configuration.
#[must_use]
pub(crate) fn completed(config: Config) -> Config {
    let mut config = without_proxy_of(config, |name| std::env::var(name).ok());
    config.headers.push((USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE)));
    config
}

/// Removes a proxy that kube read from the environment because the kubeconfig names none. The API server is nearby, and
/// a proxy for clouds may not reach it.
fn without_proxy_of(mut config: Config, environment: impl Fn(&str) -> Option<String>) -> Config {
    let of_environment = ["HTTPS_PROXY", "https_proxy"].into_iter().find_map(|name| {
        let proxy = environment(name).filter(|proxy| !proxy.is_empty())?;
        proxy.parse::<Uri>().ok()
    });
    if of_environment.is_some() && config.proxy_url == of_environment {
        config.proxy_url = None;
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_proxy_from_environment() {
        const NEAR: &str = "http://near.example:3128";
        const CLOUDS: &str = "http://clouds.example:3128";
        for (upper_case, lower_case, taken, expected) in [
            (Some(CLOUDS), None, Some(CLOUDS), None),
            (None, Some(CLOUDS), Some(CLOUDS), None),
            (Some(""), Some(CLOUDS), Some(CLOUDS), None),
            (Some(CLOUDS), None, Some(NEAR), Some(NEAR)),
            (None, None, Some(NEAR), Some(NEAR)),
            (Some(CLOUDS), None, None, None),
        ] {
            let mut config = Config::new(Uri::from_static("https://api.example"));
            config.proxy_url = taken.map(Uri::from_static);
            let environment =
                |name: &str| if name == "HTTPS_PROXY" { upper_case } else { lower_case }.map(str::to_owned);
            let proxy = without_proxy_of(config, environment).proxy_url;
            assert_eq!(proxy, expected.map(Uri::from_static), "{upper_case:?}, {lower_case:?}: {taken:?}");
        }
    }
}
