//! Whether the API server serves the kinds that the controller watches: Gardener installs their definitions, not we.

use std::time::Duration;

use kube::Client;
use tokio::time::sleep;
use tracing::warn;

use crate::process::failure_reason::reason;
use crate::process::readiness::{Need, Readiness};

/// Group, version and plural names.
const KINDS: [(&str, &[&str]); 2] = [
    ("extensions.gardener.cloud/v1alpha1", &["workers", "clusters"]),
    ("machine.sapcloud.io/v1alpha1", &["machinedeployments", "machineclasses", "machinesets", "machines"]),
];

/// Pause between two questions.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Returns once all are served. Until then readiness says which are missing.
pub(crate) async fn wait_until_served(client: &Client, readiness: &Readiness) {
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
        sleep(ASK_AGAIN).await;
    }
}

async fn missing(client: &Client) -> Vec<String> {
    let answers = KINDS.map(|(version, kinds)| async move {
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
    futures::future::join_all(answers).await.concat()
}
