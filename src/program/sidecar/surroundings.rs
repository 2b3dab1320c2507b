//! Properties of a shoot that affect its sidecar.

use serde::Deserialize;
use serde::de::IgnoredAny;

use wire::api::gotext::json::{DecodeError, decode_lenient, null_as_default};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The control plane runs on nodes of the shoot itself.
    pub(crate) self_hosted: bool,
    /// The credentials are a token that is renewed.
    pub(crate) workload_identity: bool,
}

/// The fields of a Cluster that are needed.
#[derive(Deserialize)]
struct Cluster {
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ClusterSpec,
}

#[derive(Default, Deserialize)]
struct ClusterSpec {
    shoot: Option<Shoot>,
}

#[derive(Deserialize)]
struct Shoot {
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ShootSpec,
}

#[derive(Default, Deserialize)]
struct ShootSpec {
    #[serde(default, deserialize_with = "null_as_default")]
    provider: ShootProvider,
}

#[derive(Default, Deserialize)]
struct ShootProvider {
    #[serde(default, deserialize_with = "null_as_default")]
    workers: Vec<Pool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pool {
    control_plane: Option<IgnoredAny>,
}

/// Whether the Shoot in a Cluster (as JSON) is self-hosted; `None` if the Cluster has no Shoot.
pub(crate) fn is_self_hosted(cluster: &str) -> Result<Option<bool>, DecodeError> {
    let cluster: Cluster = decode_lenient(cluster)?;
    let pools = cluster.spec.shoot.map(|shoot| shoot.spec.provider.workers);
    Ok(pools.map(|pools| pools.iter().any(|pool| pool.control_plane.is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shoot_is_self_hosted_when_a_pool_carries_its_control_plane() {
        for (shoot, required) in [
            (r#"{"spec":{"provider":{"workers":[{"name":"a"},{"name":"b","controlPlane":{}}]}}}"#, Some(true)),
            (r#"{"spec":{"provider":{"workers":[{"name":"a","controlPlane":null}]}}}"#, Some(false)),
            (r#"{"spec":{"provider":{}}}"#, Some(false)),
            ("null", None),
        ] {
            let cluster = format!(r#"{{"spec":{{"cloudProfile":{{"spec":1}},"shoot":{shoot}}}}}"#);
            assert_eq!(is_self_hosted(&cluster).unwrap(), required, "{shoot}");
        }
        assert!(is_self_hosted(r#"{"spec":{"shoot":{"spec":{"provider":{"workers":{}}}}}}"#).is_err());
    }
}
