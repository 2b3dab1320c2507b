//! The interface that each provider implements, and nothing more.
//!
//! ```text
//!  WorkerContext ── Provider::planner ──► PoolPlanner ── plan_pool, once per pool ──► PoolPlan | PoolError
//!   (decoded objects,    decode the provider's    image, disks, network, hash     classes, user data,
//!    once per Worker)    documents, once)         → names, provider spec          target deployments
//! ```
//!
//! A provider is one folder with one implementation of [`Provider`]. It is pure: data from the cloud's API is fetched
//! beforehand and passed in. No other room matches on the name of a provider.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::pool::hash::ProviderItems;
use wire::api::gardener::{CloudProfile, ErrorCode, Shoot, ShootPools, Worker, WorkerPool};
use wire::api::gotext::field::FieldErrors;
use wire::api::secret::Secrets;

pub mod alicloud;
pub mod aws;
pub mod azure;
mod cloud_error;
mod config_members;
mod dependencies;
mod deployment;
pub mod document;
mod documents;
mod error;
mod error_texts;
pub mod explanation;
pub mod gcp;
pub mod image;
mod machine_class;
pub mod node_template;
pub mod openstack;
mod plan;
pub mod profile;
mod shoot_pools;
#[cfg(any(test, feature = "testing"))]
pub mod test_support;
mod user_data;
mod volumes;
mod zonal;

pub use dependencies::{Dependencies, DependencyFailure, DependencyRecord, Needs, PoolNeed};
pub use documents::pool_config;
pub use error::{PoolError, PoolProblem, WorkerError};
pub use error_texts::{ErrorNames, ErrorTexts, KnownErrors, error_codes};
pub use explanation::ProviderExplanation;
use image::ImageProvider;
use profile::ProfileFormat;

pub use machine_class::{ClassContent, machine_class, node_template, operating_system_labels, without_nulls};
pub use plan::{MachinePlan, PoolPlan, TargetDeployment, UserData};
pub use user_data::user_data;

/// The decoded objects from which the pools of one Worker are planned.
#[derive(Clone, Copy, Debug)]
pub struct WorkerContext<'a> {
    /// The Worker to plan.
    pub worker: &'a Worker,
    /// CloudProfile of the Cluster.
    pub cloud_profile: &'a CloudProfile,
    /// Shoot of the Cluster.
    pub shoot: &'a Shoot,
    /// Secrets with the cloud credentials and the user data.
    pub secrets: &'a Secrets,
    /// Cloud dependencies of the pools after their reconciliation; `None` to use those recorded in the provider status.
    pub dependencies: Option<&'a Dependencies>,
}

impl<'a> WorkerContext<'a> {
    /// Returns the pool with this name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&'a WorkerPool> {
        self.worker.spec.pools.iter().find(|pool| pool.name == name)
    }
}

/// A provider of machines. Providers that only supply images implement [`ImageProvider`] and serve no Workers.
pub trait Provider: ImageProvider {
    /// Decodes the documents that all pools of a Worker share.
    ///
    /// # Errors
    /// If a document of the whole Worker is missing or invalid, so no pool can be planned.
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError>;

    /// Assumed cloud state when the cloud can't be queried: everything recorded exists and matches the pools. Uses the
    /// format of [`described_dependencies`](Self::described_dependencies); `None` if the pools have no dependencies.
    ///
    /// # Errors
    /// As [`Provider::planner`].
    fn settled_cloud(&self, _context: WorkerContext<'_>) -> Result<Option<Value>, WorkerError> {
        Ok(None)
    }

    /// The dependencies that the pools would have in a cloud described by a file in provider-specific members; `None`
    /// if the pools have no dependencies.
    ///
    /// # Errors
    /// As [`Provider::planner`].
    fn described_dependencies(
        &self,
        _context: WorkerContext<'_>,
        _described: &Value,
    ) -> Result<Option<Dependencies>, WorkerError> {
        Ok(None)
    }

    /// The id of the cloud dependency in the provider spec of a machine class.
    fn dependency_of_class<'a>(&self, _provider_spec: &'a Value) -> Option<&'a str> {
        None
    }

    /// JSON pointers to the image in the provider spec of a machine class. Without pointers, `--pin-images` has no
    /// effect for this provider.
    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Hash inputs that the provider adds for the pool itself, without its infrastructure.
    ///
    /// # Errors
    /// If the provider config or a version that is a hash input can't be parsed.
    fn pool_items(&self, _pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        Ok(ProviderItems::default())
    }

    /// Names that the provider's [`HashItems`](crate::pool::hash::HashItems) have for inputs that come from the infrastructure
    /// status or the provider status. Metrics and alerts report a roll with only these causes as `infrastructure`.
    fn infrastructure_inputs(&self) -> &'static [&'static str] {
        &[]
    }

    /// An assumed infrastructure status for pools in these zones, for plans made from a Shoot alone. Its names and ids
    /// are placeholders, but members that are inputs of class names are present or absent as `config`, the Shoot's
    /// `InfrastructureConfig`, requires. `images` are the images of the pools, by name and version. A provider that
    /// returns `None` supports no preview of Shoots.
    fn presumed_infrastructure(&self, _config: &Value, _zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        None
    }

    /// Validates the pools of a Shoot, and their changes from `old` if given. By default, accepts everything.
    fn validate_shoot_pools(&self, _pools: &ShootPools, _old: Option<&ShootPools>) -> FieldErrors {
        FieldErrors::default()
    }

    /// Additional arguments of this provider for the sidecar of machine-controller-manager, after those for all
    /// providers.
    fn sidecar_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    /// Known errors of the cloud and their meaning.
    fn known_errors(&self) -> &'static KnownErrors;

    /// Gardener's codes for a failed machine, from the driver's `code` such as `ResourceExhausted` and from its text.
    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes(self.known_errors(), code, text)
    }
}

/// Plans the pools of one Worker.
pub trait PoolPlanner {
    /// Returns all target objects of the pool. Pools are planned independently of each other.
    ///
    /// # Errors
    /// If the pool can't be planned; other pools are not affected.
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError>;

    /// Explains the plan of the pool to a person, even if the pool can't be planned. Uses the same functions as
    /// [`plan_pool`](Self::plan_pool).
    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation;

    /// All inputs from the Worker that decide what the pool gets from a CloudProfile. Pools of two Workers with equal
    /// inputs get the same from every profile. `None` if the pool must not share results with other pools.
    fn needs_profile(&self, _pool: &WorkerPool) -> Option<Value> {
        None
    }

    /// The `providerStatus` document after `planned`. Images of pools that could not be planned stay unchanged.
    ///
    /// # Errors
    /// If a plan has an image that is not a valid entry of the document.
    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError>;
}

/// The providers of a program, each type once. A program with its own provider passes its list to
/// `cli::Program`.
#[derive(Clone, Copy)]
pub struct Providers {
    /// The providers that serve Workers.
    pub of_machines: &'static [&'static dyn Provider],
}

impl Providers {
    /// The providers that `gardener-extension-worker` ships with.
    pub const SHIPPED: Self =
        Self { of_machines: &[&azure::Azure, &aws::Aws, &gcp::Gcp, &alicloud::AliCloud, &openstack::OpenStack] };

    /// The id of the cloud dependency of a machine class.
    #[must_use]
    pub fn dependency_of_class(self, provider_spec: &Value) -> Option<&str> {
        self.of_machines.iter().find_map(|provider| provider.dependency_of_class(provider_spec))
    }

    /// The supported values of `spec.type` in Workers.
    pub fn worker_types(self) -> impl Iterator<Item = &'static str> {
        self.of_machines.iter().map(|provider| provider.provider_type())
    }

    /// The CloudProfile formats of all providers.
    pub fn profile_formats(self) -> impl Iterator<Item = &'static dyn ProfileFormat> {
        self.of_machines.iter().map(|provider| *provider as &dyn ProfileFormat)
    }

    /// The CloudProfile format of this type; `None` if no provider supports it.
    #[must_use]
    pub fn profile_format(self, provider_type: &str) -> Option<&'static dyn ProfileFormat> {
        self.profile_formats().find(|format| format.provider_type() == provider_type)
    }

    /// The provider of Workers of this type.
    ///
    /// # Errors
    /// If no provider supports the type.
    pub fn for_worker_type(self, worker_type: &str) -> Result<&'static dyn Provider, WorkerError> {
        let found = self.of_machines.iter().copied().find(|provider| provider.provider_type() == worker_type);
        found.ok_or_else(|| WorkerError::UnknownType(worker_type.to_owned()))
    }
}

impl Default for Providers {
    fn default() -> Self {
        Self::SHIPPED
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.profile_formats().map(ProfileFormat::provider_type)).finish()
    }
}
