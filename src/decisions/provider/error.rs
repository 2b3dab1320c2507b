//! Errors in planning a Worker or one of its pools: cause, field, and remedy.

use super::dependencies::DependencyFailure;
use super::document::DocumentError;
use crate::pool::bounds::BoundsError;
use crate::pool::hash::HashError;
use wire::api::gardener::ErrorCode;

/// Reason why no pool of a Worker can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The Cluster does not exist.
    #[error("Cluster {0:?} does not exist; gardenlet makes it for each shoot")]
    ClusterMissing(String),
    /// The Cluster lacks an object.
    #[error("Cluster {cluster:?}: spec.{member} is missing")]
    ClusterIncomplete {
        /// Name of the Cluster.
        cluster: String,
        /// Missing member: `cloudProfile` or `shoot`.
        member: &'static str,
    },
    /// A provider document is missing.
    #[error("{path}: the {kind} is missing")]
    DocumentMissing {
        /// Object and field path.
        path: String,
        /// Kind of the document.
        kind: &'static str,
    },
    /// A provider document can't be decoded.
    #[error("{path}: {source}")]
    Document {
        /// Object and field path.
        path: String,
        /// Cause of the failure.
        source: DocumentError,
    },
    /// The credentials Secret does not exist.
    #[error("spec.secretRef: Secret {0:?} with the cloud credentials does not exist")]
    CredentialsMissing(String),
    /// The credentials lack a key.
    #[error("spec.secretRef: Secret {secret:?} has no key {key:?} or its value is empty")]
    CredentialsIncomplete {
        /// Secret as `namespace/name`.
        secret: String,
        /// Missing key.
        key: &'static str,
    },
    /// A value in the credentials has an invalid format.
    #[error("spec.secretRef: Secret {secret:?} has a key {key:?} whose value can't be read: {reason}")]
    CredentialsUnreadable {
        /// Secret as `namespace/name`.
        secret: String,
        /// Key of the value.
        key: &'static str,
        /// Why it is invalid, without any part of it.
        reason: &'static str,
    },
    /// The credentials contradict each other, or none are set.
    #[error("spec.secretRef: Secret {secret:?} {detail}")]
    CredentialsContradictory {
        /// Secret as `namespace/name`.
        secret: String,
        /// Description of the conflict.
        detail: &'static str,
    },
    /// The CloudProfile has no Keystone URL.
    #[error("{path}: no Keystone URL for region {region:?}")]
    IdentityUrlMissing {
        /// Object and field path.
        path: String,
        /// Region of the Worker.
        region: String,
    },
    /// The CloudProfile refers to an unknown cloud.
    #[error("{path}: unknown cloud {name:?}; supported: {}", supported.join(", "))]
    UnknownCloud {
        /// Object and field path.
        path: String,
        /// Unknown name.
        name: String,
        /// Supported names.
        supported: &'static [&'static str],
    },
    /// The infrastructure status has no valid resource group.
    #[error("spec.infrastructureProviderStatus.resourceGroup.name: {0:?} can't be the name of a resource group")]
    ResourceGroup(String),
    /// The infrastructure status has no entry for nodes.
    #[error("spec.infrastructureProviderStatus.{path}: no {what} with purpose \"nodes\"")]
    NodesEntryMissing {
        /// Path in the infrastructure status.
        path: &'static str,
        /// Description of the missing entry.
        what: &'static str,
    },
    /// No provider serves Workers of this type.
    #[error("spec.type: no provider for type {0:?}")]
    UnknownType(String),
}

impl WorkerError {
    /// Gardener's code for `lastError.codes`.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::CredentialsMissing(_)
            | Self::CredentialsIncomplete { .. }
            | Self::CredentialsContradictory { .. }
            | Self::CredentialsUnreadable { .. } => Some(ErrorCode::InfraUnauthenticated),
            // gardenlet creates the Cluster, so no user has to act.
            Self::ClusterMissing(_) => None,
            Self::ClusterIncomplete { .. }
            | Self::DocumentMissing { .. }
            | Self::Document { .. }
            | Self::IdentityUrlMissing { .. }
            | Self::UnknownCloud { .. }
            | Self::ResourceGroup(_)
            | Self::NodesEntryMissing { .. }
            | Self::UnknownType(_) => Some(ErrorCode::ConfigurationProblem),
        }
    }
}

/// Reason why one pool can't be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pool {pool:?}: {problem}")]
pub struct PoolError {
    /// Name of the pool.
    pub pool: String,
    /// Problem of the pool.
    pub problem: PoolProblem,
}

/// A problem of a pool. Every message names the field within the pool, or the object it refers to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolProblem {
    /// The CloudProfile has no such machine type.
    #[error("machineType: {machine_type:?} is not in spec.machineTypes of CloudProfile {cloud_profile:?}")]
    MachineTypeUnknown {
        /// Unknown machine type.
        machine_type: String,
        /// Name of the CloudProfile.
        cloud_profile: String,
    },
    /// No image fits the pool.
    #[error(
        "machineImage: {} for machine type {machine_type:?}: {in_profile}; {in_status}{}",
        named(.image, .version),
        alternatives(.fitting)
    )]
    ImageUnresolved {
        /// Name of the image.
        image: String,
        /// Version of the image.
        version: String,
        /// Machine type of the pool.
        machine_type: String,
        /// Why the CloudProfile has no fitting image.
        in_profile: String,
        /// Why the provider status has no fitting image.
        in_status: String,
        /// Images of the CloudProfile that fit the machine type, as a list for people; empty if none is known.
        fitting: String,
    },
    /// The selected image has no reference to an image of the cloud.
    #[error("machineImage: {image} {version} in {location} has no image reference; give it one of {expected}")]
    ImageWithoutReference {
        /// Name of the image.
        image: String,
        /// Version of the image.
        version: String,
        /// Object in which the image was found.
        location: &'static str,
        /// Supported reference members.
        expected: &'static str,
    },
    /// The selected image has no architecture.
    #[error(
        "machineImage: the flavor of {image} {version} in the CloudProfile's providerConfig has no capability \
         \"architecture\""
    )]
    ImageWithoutArchitecture {
        /// Name of the image.
        image: String,
        /// Version of the image.
        version: String,
    },
    /// The CloudProfile has no provider config, which the old format requires.
    #[error("CloudProfile {0:?}: spec.providerConfig is missing, so machine types can't be looked up")]
    ProfileConfigMissing(String),
    /// The provider config of the pool can't be decoded.
    #[error("providerConfig: {0}")]
    ProviderConfig(#[from] DocumentError),
    /// The pool has no root volume.
    #[error("volume: required")]
    VolumeMissing,
    /// A field is invalid, or missing although another field requires it.
    #[error("{path}: {detail}")]
    Field {
        /// Path within the pool.
        path: String,
        /// Description of the problem.
        detail: String,
    },
    /// The user data Secret does not exist.
    #[error("userDataSecretRef: Secret {0:?} does not exist")]
    UserDataSecretMissing(String),
    /// The user data Secret has no boot script.
    #[error("userDataSecretRef: Secret {secret:?} has no key {key:?} or its value is empty")]
    UserDataEmpty {
        /// Name of the Secret.
        secret: String,
        /// Missing key.
        key: String,
    },
    /// A zone has no subnet.
    #[error("zones: infrastructure status has no subnet with purpose \"nodes\" for zone {0:?}")]
    ZoneSubnetMissing(String),
    /// The infrastructure status has no entry that the pool needs.
    #[error("spec.infrastructureProviderStatus.{path} of the Worker: no {what} with purpose \"nodes\"")]
    NodesEntryMissing {
        /// Path in the infrastructure status.
        path: &'static str,
        /// Description of the missing entry.
        what: &'static str,
    },
    /// The pool can't have the scale set that it would need.
    #[error("zones: {0}")]
    ScaleSet(String),
    /// A cloud dependency of the pool could not be created.
    #[error("{path}: {failure}")]
    Dependency {
        /// Path within the pool.
        path: &'static str,
        /// Reason for the failure.
        failure: DependencyFailure,
    },
    /// A cloud dependency of the pool is in progress. It becomes an error only if it takes too long.
    #[error("waiting {0}")]
    DependencyPending(DependencyFailure),
    /// A surge or unavailability is invalid.
    #[error(transparent)]
    Percentage(#[from] BoundsError),
    /// The pool can't be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
}

impl PoolProblem {
    /// A problem of the field at a path within the pool.
    #[must_use]
    pub fn field(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Field { path: path.into(), detail: detail.into() }
    }

    /// Gardener's code for `lastError.codes`.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            // gardenlet writes both Secrets, so the next reconcile finds them.
            Self::UserDataSecretMissing(_) | Self::UserDataEmpty { .. } => None,
            Self::Dependency { failure, .. } => failure.code,
            Self::DependencyPending(_) => None,
            _ => Some(ErrorCode::ConfigurationProblem),
        }
    }

    /// The code to report if a dependency in progress takes too long.
    #[must_use]
    pub fn code_when_late(&self) -> Option<ErrorCode> {
        match self {
            Self::DependencyPending(awaited) => awaited.code,
            _ => self.code(),
        }
    }

    /// Whether the pool only waits for a dependency in progress.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        matches!(self, Self::DependencyPending(_))
    }

    /// Adds the name of the pool.
    #[must_use]
    pub fn of_pool(self, pool: &str) -> PoolError {
        PoolError { pool: pool.to_owned(), problem: self }
    }
}
/// Formats the images that a pool can have instead.
fn alternatives(fitting: &str) -> String {
    if fitting.is_empty() { String::new() } else { format!("; images for this machine type: {fitting}") }
}

/// Formats the requested image; a pool may request none.
fn named(image: &str, version: &str) -> String {
    if image.is_empty() { "no image is named".to_owned() } else { format!("{image} {version}") }
}
