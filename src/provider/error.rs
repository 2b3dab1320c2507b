//! Why a Worker or one of its pools can't be planned: what is wrong, where, and what would help.

use super::dependencies::DependencyFailure;
use super::document::DocumentError;
use crate::api::gardener::ErrorCode;
use crate::pool::bounds::BoundsError;
use crate::pool::hash::HashError;

/// Why no pool of a Worker can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// There is no Cluster.
    #[error("Cluster {0:?} does not exist; gardenlet makes it for each shoot")]
    ClusterMissing(String),
    /// The Cluster lacks an object.
    #[error("Cluster {cluster:?}: spec.{member} is missing")]
    ClusterIncomplete {
        /// Name of the Cluster.
        cluster: String,
        /// `cloudProfile` or `shoot`.
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
    /// A provider document can't be read.
    #[error("{path}: {source}")]
    Document {
        /// Object and field path.
        path: String,
        /// Why.
        source: DocumentError,
    },
    /// The credentials are missing.
    #[error("spec.secretRef: Secret {0:?} with the cloud credentials does not exist")]
    CredentialsMissing(String),
    /// The credentials are incomplete.
    #[error("spec.secretRef: Secret {secret:?} has no key {key:?} or its value is empty")]
    CredentialsIncomplete {
        /// `namespace/name`.
        secret: String,
        /// The key.
        key: &'static str,
    },
    /// Something in the credentials has the wrong form.
    #[error("spec.secretRef: Secret {secret:?} has a key {key:?} whose value can't be read")]
    CredentialsUnreadable {
        /// `namespace/name`.
        secret: String,
        /// The key.
        key: &'static str,
    },
    /// Credentials exclude each other, or none are there.
    #[error("spec.secretRef: Secret {secret:?} {detail}")]
    CredentialsContradictory {
        /// `namespace/name`.
        secret: String,
        /// How.
        detail: &'static str,
    },
    /// The CloudProfile does not say where tokens come from.
    #[error("{path}: no Keystone URL for region {region:?}")]
    IdentityUrlMissing {
        /// Object and field path.
        path: String,
        /// The region.
        region: String,
    },
    /// The CloudProfile names an unknown cloud.
    #[error("{path}: unknown cloud {name:?}; supported: {}", supported.join(", "))]
    UnknownCloud {
        /// Object and field path.
        path: String,
        /// The name.
        name: String,
        /// The names there are.
        supported: &'static [&'static str],
    },
    /// The infrastructure names no resource group.
    #[error("spec.infrastructureProviderStatus.resourceGroup.name: {0:?} can't be the name of a resource group")]
    ResourceGroup(String),
    /// The infrastructure has nothing of a kind that nodes need.
    #[error("spec.infrastructureProviderStatus.{path}: no {what} with purpose \"nodes\"")]
    NothingForNodes {
        /// Path in the infrastructure status.
        path: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// No provider serves Workers of this type.
    #[error("spec.type: no provider for type {0:?}")]
    UnknownType(String),
}

impl WorkerError {
    /// The code for `lastError.codes`.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::CredentialsMissing(_)
            | Self::CredentialsIncomplete { .. }
            | Self::CredentialsContradictory { .. }
            | Self::CredentialsUnreadable { .. } => Some(ErrorCode::InfraUnauthenticated),
            // gardenlet's turn, not a person's.
            Self::ClusterMissing(_) => None,
            Self::ClusterIncomplete { .. }
            | Self::DocumentMissing { .. }
            | Self::Document { .. }
            | Self::IdentityUrlMissing { .. }
            | Self::UnknownCloud { .. }
            | Self::ResourceGroup(_)
            | Self::NothingForNodes { .. }
            | Self::UnknownType(_) => Some(ErrorCode::ConfigurationProblem),
        }
    }
}

/// Why one pool can't be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pool {pool:?}: {problem}")]
pub struct PoolError {
    /// Name of the pool.
    pub pool: String,
    /// What is wrong.
    pub problem: PoolProblem,
}

/// What is wrong with a pool. Every text names the field within the pool, or the object it refers to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolProblem {
    /// The CloudProfile has no such machine type.
    #[error("machineType: {machine_type:?} is not in spec.machineTypes of CloudProfile {cloud_profile:?}")]
    MachineTypeUnknown {
        /// The machine type.
        machine_type: String,
        /// Name of the CloudProfile.
        cloud_profile: String,
    },
    /// No image fits.
    #[error("machineImage: {} for machine type {machine_type:?}: {in_profile}; {in_status}", named(.image, .version))]
    ImageUnresolved {
        /// Name of the image.
        image: String,
        /// Version of the image.
        version: String,
        /// The machine type that it must fit.
        machine_type: String,
        /// Why the CloudProfile gives none.
        in_profile: String,
        /// Why the provider status gives none.
        in_status: String,
    },
    /// The chosen image has no reference to an image of the cloud.
    #[error("machineImage: {image} {version} in {place} has no image reference; give it one of {expected}")]
    ImageWithoutReference {
        /// Name of the image.
        image: String,
        /// Version of the image.
        version: String,
        /// Where it was found.
        place: &'static str,
        /// The members that could hold it.
        expected: &'static str,
    },
    /// The chosen image does not say for which machines it is.
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
    /// The CloudProfile has no provider config, which old-format profiles need.
    #[error("CloudProfile {0:?}: spec.providerConfig is missing, so machine types can't be looked up")]
    ProfileConfigMissing(String),
    /// The provider config of the pool can't be read.
    #[error("providerConfig: {0}")]
    ProviderConfig(#[from] DocumentError),
    /// The pool has no root volume.
    #[error("volume: required")]
    VolumeMissing,
    /// A field is wrong, or missing where the rest of the pool calls for it.
    #[error("{path}: {detail}")]
    Field {
        /// Path within the pool.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// The Secret with the boot script is missing.
    #[error("userDataSecretRef: Secret {0:?} does not exist")]
    UserDataSecretMissing(String),
    /// The Secret with the boot script has none.
    #[error("userDataSecretRef: Secret {secret:?} has no key {key:?} or its value is empty")]
    UserDataEmpty {
        /// Name of the Secret.
        secret: String,
        /// The key.
        key: String,
    },
    /// A zone has no network.
    #[error("zones: infrastructure status has no subnet with purpose \"nodes\" for zone {0:?}")]
    ZoneSubnetMissing(String),
    /// The infrastructure has nothing of a kind that the pool needs.
    #[error("spec.infrastructureProviderStatus.{path} of the Worker: no {what} with purpose \"nodes\"")]
    NothingForNodes {
        /// Path in the infrastructure status.
        path: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// The pool can't have what it would depend on at the cloud.
    #[error("zones: {0}")]
    ScaleSet(String),
    /// What the pool depends on at the cloud could not be made.
    #[error("{path}: {failure}")]
    Dependency {
        /// Path within the pool.
        path: &'static str,
        /// Why.
        failure: DependencyFailure,
    },
    /// What the pool depends on at the cloud is on its way. No problem, unless it takes too long.
    #[error("waiting {0}")]
    DependencyAwaited(DependencyFailure),
    /// A surge or unavailability is wrong.
    #[error(transparent)]
    Percentage(#[from] BoundsError),
    /// The pool can't be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
}

impl PoolProblem {
    /// Of a field at a path within the pool.
    #[must_use]
    pub fn field(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Field { path: path.into(), detail: detail.into() }
    }

    /// The code for `lastError.codes`.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            // gardenlet writes both Secrets; they come with the next try.
            Self::UserDataSecretMissing(_) | Self::UserDataEmpty { .. } => None,
            Self::Dependency { failure, .. } => failure.code,
            Self::DependencyAwaited(_) => None,
            _ => Some(ErrorCode::ConfigurationProblem),
        }
    }

    /// The code for the case that something on its way takes too long.
    #[must_use]
    pub fn code_when_late(&self) -> Option<ErrorCode> {
        match self {
            Self::DependencyAwaited(awaited) => awaited.code,
            _ => self.code(),
        }
    }

    /// Whether it is none, but something on its way.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        matches!(self, Self::DependencyAwaited(_))
    }

    /// The problem as an error of that pool.
    #[must_use]
    pub fn of_pool(self, pool: &str) -> PoolError {
        PoolError { pool: pool.to_owned(), problem: self }
    }
}
/// An image that is looked for. A pool need not name one.
fn named(image: &str, version: &str) -> String {
    if image.is_empty() { "no image is named".to_owned() } else { format!("{image} {version}") }
}
