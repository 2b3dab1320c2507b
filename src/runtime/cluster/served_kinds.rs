//! Waits until the API server serves the watched kinds. Gardener installs their CRDs, not the controller.

use std::time::Duration;

use kube::Client;
use tokio::time::sleep;
use tracing::warn;

use crate::process::failure_reason::reason;
use crate::process::readiness::{Need, Readiness};

/// API group and version, and plural names.
const KINDS: [(&str, &[&str]); 2] = [
    ("extensions.gardener.cloud/v1alpha1", &["workers", "clusters"]),
    ("machine.sapcloud.io/v1alpha1", &["machinedeployments", "machineclasses", "machinesets", "machines"]),
];

/// Delay between two checks.
const CHECK_DELAY: Duration = Duration::from_secs(2);

/// Returns once all kinds are served. Until then, readiness reports the missing ones.
pub async fn wait_until_served(client: &Client, readiness: &Readiness) {
    let mut reported = String::new();
    loop {
        let missing = missing(client).await;
        if missing.is_empty() {
            readiness.has(Need::Kinds);
            return;
        }
        let text = missing.join("; ");
        if text != reported {
            warn!(missing = text, "waiting for kinds");
            reported.clone_from(&text);
        }
        readiness.misses(Need::Kinds, text);
        sleep(CHECK_DELAY).await;
    }
}

async fn missing(client: &Client) -> Vec<String> {
    let responses = KINDS.map(|(version, kinds)| async move {
        match client.list_api_group_resources(version).await {
            Ok(list) => {
                let is_served = |kind: &&&str| list.resources.iter().any(|resource| resource.name == **kind);
                let missing = kinds.iter().filter(|kind| !is_served(kind));
                missing.map(|kind| format!("{kind} of {version} are not served")).collect()
            }
            Err(kube::Error::Api(status)) if status.code == 404 => vec![format!("{version} is not served")],
            Err(error) => vec![format!("the API server can't be asked for {version}: {}", reason(&error))],
        }
    });
    futures::future::join_all(responses).await.concat()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, logged, refusal};

    const ALL: [&str; 6] = ["workers", "clusters", "machinedeployments", "machineclasses", "machinesets", "machines"];

    /// Kinds that an API server serves, or the status code of its error.
    type Served = Arc<Mutex<Result<Vec<&'static str>, u16>>>;

    fn api_server() -> (Served, ApiServer) {
        let served: Served = Arc::new(Mutex::new(Ok(vec![])));
        let serves = Arc::clone(&served);
        let server = ApiServer::new(move |requested| {
            let version = requested.line.trim_start_matches("GET /apis/");
            let (_, kinds) = KINDS.into_iter().find(|(group, _)| *group == version).unwrap();
            let resource =
                |kind: &&str| json!({"name": kind, "singularName": "", "namespaced": true, "kind": kind, "verbs": []});
            let resources: Vec<Value> = match &*serves.lock().unwrap() {
                Ok(served) => served.iter().filter(|kind| kinds.contains(kind)).map(resource).collect(),
                Err(code) => return refusal(*code, ""),
            };
            if resources.is_empty() {
                return refusal(404, "NotFound");
            }
            document(&json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources}))
        });
        (served, server)
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_names_missing_kinds() {
        let (served, server) = api_server();
        let readiness = Readiness::waiting_for([Need::Kinds]);
        for (serves, expected) in [
            (
                Ok(vec![]),
                "extensions.gardener.cloud/v1alpha1 is not served; machine.sapcloud.io/v1alpha1 is not served",
            ),
            (Ok(vec!["workers", "clusters"]), "machine.sapcloud.io/v1alpha1 is not served"),
            (
                Ok(ALL[..4].to_vec()),
                "machinesets of machine.sapcloud.io/v1alpha1 are not served; machines of machine.sapcloud.io/v1alpha1 are not served",
            ),
            (
                Err(503),
                "the API server can't be asked for extensions.gardener.cloud/v1alpha1: the API server answers 503; \
                the API server can't be asked for machine.sapcloud.io/v1alpha1: the API server answers 503",
            ),
        ] {
            *served.lock().unwrap() = serves;
            let waiting = timeout(Duration::from_secs(60), wait_until_served(&server.client, &readiness));
            let (waited, log) = logged(waiting).await;
            assert!(waited.is_err(), "it goes on although kinds are missing: {expected}");
            assert_eq!(readiness.report(), Err(format!("kinds: {expected}\n")));
            assert_eq!(log.matches("waiting for kinds").count(), 1, "once, and not with each request: {log}");
        }
        *served.lock().unwrap() = Ok(ALL.to_vec());
        wait_until_served(&server.client, &readiness).await;
        assert_eq!(readiness.report().as_deref(), Ok("ready\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn notices_installed_kinds_within_seconds() {
        let (served, server) = api_server();
        let readiness = Readiness::waiting_for([Need::Kinds]);
        let start = Instant::now();
        let installed = async {
            sleep(Duration::from_secs(61)).await;
            *served.lock().unwrap() = Ok(ALL.to_vec());
        };
        tokio::join!(wait_until_served(&server.client, &readiness), installed);
        assert!(readiness.report().is_ok() && start.elapsed() < Duration::from_secs(64), "{:?}", start.elapsed());
    }
}
