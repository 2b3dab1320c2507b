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
    let mut config = without_proxy_of(config, |name| std::env::var(name).ok());
    config.headers.push((USER_AGENT, HeaderValue::from_static(PROGRAM)));
    config
}

/// Takes a proxy away that kube has taken from the environment because the kubeconfig names none: the API server is near,
/// and a proxy that leads to a cloud may not lead there.
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
    fn only_the_proxy_of_a_kubeconfig_leads_to_a_cluster() {
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
