//! Names of machine classes and machine deployments. They equal those of the Go extensions, so they are not shortened
//! or sanitized.

use std::fmt;

use serde::Serialize;

use super::hash::PoolHash;

/// Name of a MachineDeployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DeploymentName(pub String);

/// Name of a MachineClass and of its user data Secret. It contains the class hash, so a new name rolls the nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ClassName(pub String);

/// Prefix of all machine objects of one pool: `<technical id>-<pool>`.
#[must_use]
pub fn pool_prefix(technical_id: &str, pool: &str) -> String {
    format!("{technical_id}-{pool}")
}

/// `<technical id>-<pool>`, with the provider's suffix such as `-z1` for a zone.
#[must_use]
pub fn deployment_name(technical_id: &str, pool: &str, zone_suffix: &str) -> DeploymentName {
    DeploymentName(format!("{technical_id}-{pool}{zone_suffix}"))
}

/// `<technical id>-<pool>-<hash>`, with the provider's suffix such as `-z1` for a zone.
#[must_use]
pub fn class_name(technical_id: &str, pool: &str, hash: &PoolHash, zone_suffix: &str) -> ClassName {
    ClassName(format!("{technical_id}-{pool}-{hash}{zone_suffix}"))
}

impl DeploymentName {
    /// The class name of this deployment for providers that put the hash last, after the zone.
    #[must_use]
    pub fn class_name(&self, hash: &PoolHash) -> ClassName {
        ClassName(format!("{self}-{hash}"))
    }
}

impl fmt::Display for DeploymentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
