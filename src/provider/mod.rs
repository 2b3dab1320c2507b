//! The seam: what a provider of machines has to say, and nothing more.
//!
//! ```text
//!  WorkerContext ── Provider::planner ──► PoolPlanner ── plan_pool, once per pool ──► PoolPlan | PoolError
//!   (decoded objects,    decode the provider's    image, disks, network, hash     classes, user data,
//!    once per Worker)    documents, once)         → names, provider spec          wanted deployments
//! ```
//!
//! A provider is one folder and one implementation of [`Provider`]. Everything is pure: what needs the cloud's API is
//! fetched before and handed in. No other room matches on the name of a provider.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::api::gardener::{CloudProfile, ErrorCode, Shoot, ShootPools, Worker, WorkerPool};
use crate::api::gotext::field::FieldErrors;
use crate::api::secret::Secrets;
use crate::pool::hash::ProviderItems;

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
#[cfg(test)]
pub(crate) mod test_support;
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
pub use plan::{MachinePlan, PoolPlan, UserData, WantedDeployment};
pub use user_data::user_data;

/// The decoded objects that the pools of one Worker are planned from.
#[derive(Clone, Copy, Debug)]
pub struct WorkerContext<'a> {
    /// The Worker.
    pub worker: &'a Worker,
    /// The CloudProfile of the Cluster.
    pub cloud_profile: &'a CloudProfile,
    /// The Shoot of the Cluster.
    pub shoot: &'a Shoot,
    /// Credentials and user data.
    pub secrets: &'a Secrets,
    /// What pools depend on at the cloud, after it was reconciled; without it, what the provider status records.
    pub dependencies: Option<&'a Dependencies>,
}

impl<'a> WorkerContext<'a> {
    /// The pool of that name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&'a WorkerPool> {
        self.worker.spec.pools.iter().find(|pool| pool.name == name)
    }
}

/// A provider of machines. Providers that have only images serve no Workers.
pub trait Provider: ImageProvider {
    /// Decodes what all pools of a Worker share.
    ///
    /// # Errors
    /// When a document of the whole Worker is missing or wrong; then no pool can be planned.
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError>;

    /// The cloud as it has to be taken for where nobody can look: what is recorded is there, as these pools need it. In the
    /// form of [`described_dependencies`](Self::described_dependencies); `None` when they depend on nothing.
    ///
    /// # Errors
    /// As [`Provider::planner`].
    fn settled_cloud(&self, _context: WorkerContext<'_>) -> Result<Option<Value>, WorkerError> {
        Ok(None)
    }

    /// What the pools would depend on at a cloud that a file describes in members of its own; `None` when they depend on
    /// nothing.
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

    /// The id of what a machine class depends on at the cloud, as its provider spec names it.
    fn dependency_of_class<'a>(&self, _provider_spec: &'a Value) -> Option<&'a str> {
        None
    }

    /// Where a machine class names its image: JSON pointers into its provider spec. A provider without any keeps no class at an
    /// image (`--pin-images`).
    fn image_pointers(&self, _provider_spec: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What the provider adds to the hash of a pool for members of the pool itself, its infrastructure aside.
    ///
    /// # Errors
    /// When the provider config can't be read, or a version that counts.
    fn pool_items(&self, _pool: &WorkerPool) -> Result<ProviderItems, PoolProblem> {
        Ok(ProviderItems::default())
    }

    /// Names that the provider's [`HashItems`](crate::pool::hash::HashItems) have for inputs that come from the infrastructure
    /// status or the provider status. A roll that only these cause counts as `infrastructure` in metrics and alerts.
    fn infrastructure_inputs(&self) -> &'static [&'static str] {
        &[]
    }

    /// An infrastructure status as pools in these zones need it, for plans that are made from a Shoot alone: names and ids in
    /// it mean nothing, but what counts in class names is there or not as `config`, the Shoot's `InfrastructureConfig`, orders it.
    /// `images` are those of the pools, by name and version. Without one, no Shoot can be previewed.
    fn presumed_infrastructure(&self, _config: &Value, _zones: &BTreeSet<&str>, _images: &[&Value]) -> Option<Value> {
        None
    }

    /// What is wrong with the pools of a Shoot, also compared with what they were before a change. A provider without rules
    /// of its own refuses nothing.
    fn validate_shoot_pools(&self, _pools: &ShootPools, _old: Option<&ShootPools>) -> FieldErrors {
        FieldErrors::default()
    }

    /// What the sidecar of machine-controller-manager is told only by this provider, after what all are told.
    fn sidecar_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the cloud's errors mean.
    fn known_errors(&self) -> &'static KnownErrors;

    /// Gardener's codes for a failed machine: the driver's `code` such as `ResourceExhausted`, and its text.
    fn error_codes(&self, code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
        error_codes(self.known_errors(), code, text)
    }
}

/// Plans the pools of one Worker.
pub trait PoolPlanner {
    /// Everything that shall exist for the pool. Pools know nothing of each other.
    ///
    /// # Errors
    /// When the pool can't be planned; the others are not affected.
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError>;

    /// What a person needs to know to understand the plan of the pool, also of one that can't be planned. It is made by
    /// the functions that [`plan_pool`](Self::plan_pool) decides with.
    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation;

    /// Everything of the Worker that decides what the pool gets of a CloudProfile, whatever that lists: pools of two Workers
    /// with equal answers get the same of each. `None` where they must not be taken for each other.
    fn asks_profile(&self, _pool: &WorkerPool) -> Option<Value> {
        None
    }

    /// The `providerStatus` document after `planned`. Images of pools that could not be planned stay as they are.
    ///
    /// # Errors
    /// When a plan has an image that is no entry of the document.
    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError>;
}

/// The providers of a program, each type once. A program with one of its own hands its list to
/// [`cli::Program`](crate::cli::Program).
#[derive(Clone, Copy)]
pub struct Providers {
    /// Those that serve Workers.
    pub of_machines: &'static [&'static dyn Provider],
}

impl Providers {
    /// Those of `gardener-extension-worker`.
    pub const SHIPPED: Self =
        Self { of_machines: &[&azure::Azure, &aws::Aws, &gcp::Gcp, &alicloud::AliCloud, &openstack::OpenStack] };

    /// The id of what a machine class depends on at its cloud.
    #[must_use]
    pub fn dependency_of_class(self, provider_spec: &Value) -> Option<&str> {
        self.of_machines.iter().find_map(|provider| provider.dependency_of_class(provider_spec))
    }

    /// `spec.type` of all Workers that are served.
    pub fn worker_types(self) -> impl Iterator<Item = &'static str> {
        self.of_machines.iter().map(|provider| provider.provider_type())
    }

    /// How every provider writes its half of CloudProfiles.
    pub fn profile_formats(self) -> impl Iterator<Item = &'static dyn ProfileFormat> {
        self.of_machines.iter().map(|provider| *provider as &dyn ProfileFormat)
    }

    /// The format of CloudProfiles of that type; `None` when no provider knows them.
    #[must_use]
    pub fn profile_format(self, provider_type: &str) -> Option<&'static dyn ProfileFormat> {
        self.profile_formats().find(|format| format.provider_type() == provider_type)
    }

    /// The provider of Workers of that type.
    ///
    /// # Errors
    /// When there is none.
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
