//! Pure step: combines the objects from which all pools of a Worker are planned.

use crate::provider::{WorkerContext, WorkerError};
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

/// Combines Worker, Cluster and Secrets.
///
/// # Errors
/// When the Cluster has no CloudProfile or no Shoot.
pub fn context<'a>(
    worker: &'a Worker,
    cluster: &'a Cluster,
    secrets: &'a Secrets,
) -> Result<WorkerContext<'a>, WorkerError> {
    let missing =
        |member| WorkerError::ClusterIncomplete { cluster: cluster.metadata.name.clone().unwrap_or_default(), member };
    Ok(WorkerContext {
        worker,
        cloud_profile: cluster.spec.cloud_profile.as_ref().ok_or_else(|| missing("cloudProfile"))?,
        shoot: cluster.spec.shoot.as_ref().ok_or_else(|| missing("shoot"))?,
        secrets,
        dependencies: None,
    })
}

/// Combines Worker, Cluster and Secrets, for a Cluster that may be missing.
///
/// # Errors
/// When there is none, or it has no CloudProfile or no Shoot.
pub fn context_of<'a>(
    worker: &'a Worker,
    cluster: Option<&'a Cluster>,
    secrets: &'a Secrets,
) -> Result<WorkerContext<'a>, WorkerError> {
    let missing = || WorkerError::ClusterMissing(worker.metadata.namespace.clone().unwrap_or_default());
    context(worker, cluster.ok_or_else(missing)?, secrets)
}

/// Whether Gardener has given up on the shoot until a user retries it. Until then, no operation may run.
#[must_use]
pub fn is_shoot_failed(cluster: &Cluster) -> bool {
    let last = cluster.spec.shoot.as_ref().and_then(|shoot| shoot.status.last_operation.as_ref());
    last.is_some_and(|last| last.state == "Failed")
}

/// Whether a user has confirmed force deletion, which gives up resources that can't be deleted at the cloud.
#[must_use]
pub fn is_deletion_forced(cluster: &Cluster) -> bool {
    const ANNOTATION: &str = "confirmation.gardener.cloud/force-deletion";
    let shoot = cluster.spec.shoot.as_ref();
    // Boolean values as parsed by Go.
    shoot
        .and_then(|shoot| shoot.annotations().get(ANNOTATION))
        .is_some_and(|value| matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn detects_failed_shoot() {
        let is_failed = |shoot: serde_json::Value| {
            let document = json!({"metadata": {"name": "shoot--p--s"}, "spec": {"shoot": shoot}});
            is_shoot_failed(&serde_json::from_str(&document.to_string()).unwrap())
        };
        let of_state = |state: &str| is_failed(json!({"status": {"lastOperation": {"state": state}}}));
        assert!(of_state("Failed"));
        assert!(!of_state("Error") && !of_state("Processing") && !is_failed(json!({})));
    }

    #[test]
    fn parses_force_deletion_like_go() {
        let is_forced = |annotations: serde_json::Value| {
            let shoot = json!({"metadata": {"annotations": annotations}});
            let document = json!({"metadata": {"name": "shoot--p--s"}, "spec": {"shoot": shoot}});
            is_deletion_forced(&serde_json::from_str(&document.to_string()).unwrap())
        };
        let annotated = |value: &str| is_forced(json!({"confirmation.gardener.cloud/force-deletion": value}));
        for value in ["1", "t", "T", "true", "TRUE", "True"] {
            assert!(annotated(value), "{value}");
        }
        for value in ["", "0", "false", "tRUE", "yes"] {
            assert!(!annotated(value), "{value}");
        }
        assert!(!is_forced(json!({})) && !is_forced(json!({"confirmation.gardener.cloud/deletion": "true"})));
    }
}
