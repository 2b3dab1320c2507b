//! Azure: scale sets for non-zonal pools (docs/azure-scale-sets.md), and images of galleries (docs/images.md).
//!
//! ```text
//!  reconcile of a Worker ──► `dependency_tasks` ── waits briefly ──► background task ──► requeue
//!                                                              provision · removal
//!                                                                        │
//!    accounts      one pipeline per credentials                        client  list, get, create, delete
//!    access_token  one token for all requests of a pipeline
//!    addresses     the three clouds, and URLs that replace them        resource_manager  errors, pages
//!    transport     the last step of a request                          operation  waits until Azure has finished
//! ```
//!
//! `galleries` lists images through the same `resource_manager`. The decisions are in
//! [`decisions::provider::azure::scale_sets`] and are pure. This module sends requests, waits for them and reports results.

use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use futures::FutureExt;

use self::accounts::Accounts;
use self::client::ScaleSets;
use self::provision::{Provision, Turns};
use self::removal::Removal;
use self::resource_manager::ResourceManager;
use self::retry_listener::RetryListener;
use super::background_task::Report;
use super::dependency_tasks::{Dependency, DependencyTasks, NeedsResult, Removed, TaskResult, Words};
use super::{CloudFactory, TaskEnded, WriteAccess, WriteCheck};
use crate::cloud::dependency::{Cloud, DependencyRequest};
use decisions::provider::azure::scale_sets::{Needs, PoolNeed, ScaleSet, ScaleSetScope, needs, needs_of_deletion};
use decisions::provider::profile::ProfileFormat as _;
use decisions::provider::{self, DependencyFailure, DependencyRecord, WorkerContext};
use decisions::worker::machines::machine_objects::MachineObjects;
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

mod access_token;
mod accounts;
mod addresses;
mod client;
mod error;
mod galleries;
mod operation;
mod provision;
mod removal;
mod resource_manager;
mod retry_listener;
mod transport;

pub use addresses::{Addresses, Origin};
pub use galleries::{Galleries, GalleryKind};

// Azure's arguments of the controller. A doc comment would become the help text of the command.
#[derive(Args)]
struct AzureArguments {
    /// URL of Azure's resource manager for every cloud, such as a proxy or a simulator for tests.
    #[arg(long, env = "AZURE_RESOURCE_MANAGER_URL", value_name = "URL")]
    azure_resource_manager_url: Option<Origin>,
    /// URL for Azure's access tokens for every cloud.
    #[arg(long, env = "AZURE_AUTHORITY_HOST", value_name = "URL")]
    azure_authority_url: Option<Origin>,
}

/// Creates [`Azure`] for the controller.
pub struct AzureFactory;

impl CloudFactory for AzureFactory {
    fn worker_type(&self) -> &'static str {
        provider::azure::Azure.provider_type()
    }

    fn with_arguments(&self, command: Command) -> Command {
        AzureArguments::augment_args(command)
    }

    fn open(
        &self,
        typed: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error> {
        let AzureArguments { azure_resource_manager_url, azure_authority_url } =
            AzureArguments::from_arg_matches(typed)?;
        let addresses = Addresses { resource_manager: azure_resource_manager_url, authority: azure_authority_url };
        Ok(Arc::new(Azure::new(addresses, write_check, task_ended)))
    }
}

/// Scale sets at Azure.
pub type Azure = DependencyTasks<AzureScaleSets>;

/// Provides scale sets.
pub struct AzureScaleSets {
    accounts: Arc<Accounts>,
    write_check: WriteCheck,
}

impl Azure {
    /// Sends requests to these addresses. `task_ended` is called when a background task has ended.
    #[must_use]
    pub fn new(addresses: Addresses, write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        let accounts = Accounts::new(addresses, Arc::clone(&write_check));
        Self::of(AzureScaleSets::new(accounts, &write_check), write_check, task_ended)
    }

    /// Like `new`, but sends all requests through another transport instead of the network. The SDK does not retry
    /// them, because its backoff is random.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn by(
        client: Arc<dyn azure_core::http::HttpClient>,
        addresses: Addresses,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Self {
        let transport = transport::transport(client, addresses.clone(), Arc::clone(&write_check));
        let accounts = Accounts::by(transport, addresses, azure_core::http::RetryOptions::none());
        Self::of(AzureScaleSets::new(accounts, &write_check), write_check, task_ended)
    }
}

/// State shared by the tasks of a Worker.
pub struct Session {
    location: Arc<ScaleSetScope>,
    turns: Turns,
}

impl AzureScaleSets {
    fn new(accounts: Accounts, write_check: &WriteCheck) -> Self {
        Self { accounts: Arc::new(accounts), write_check: Arc::clone(write_check) }
    }

    /// The calls for one scope.
    fn calls(
        &self,
        location: &Arc<ScaleSetScope>,
        listener: Arc<dyn RetryListener>,
    ) -> Result<ScaleSets, DependencyFailure> {
        let account = self.accounts.account(location.cloud, &location.credentials).map_err(|error| error.failure())?;
        let pretends = (self.write_check)() == WriteAccess::DryRun;
        let accounts = Arc::clone(&self.accounts);
        let resource_manager = ResourceManager { accounts, account, cloud: location.cloud, listener: Some(listener) };
        Ok(ScaleSets { resource_manager, location: Arc::clone(location), pretends })
    }
}

impl Dependency for AzureScaleSets {
    type Scope = ScaleSetScope;
    type Target = i32;
    type Listed = ScaleSet;
    type Session = Session;
    const WORDS: Words = Words {
        one: "scale set",
        many: "scale sets",
        until_removed: "until its scale set, which is no longer needed, is deleted",
        member: "vmoDependencies",
    };

    fn needs(context: &WorkerContext<'_>) -> NeedsResult<Self> {
        needs(context)
    }

    fn needs_of_deletion(worker: &Worker, cluster: Option<&Cluster>, secrets: &Secrets) -> NeedsResult<Self> {
        needs_of_deletion(worker, cluster, secrets)
    }

    fn only_leftovers(location: &ScaleSetScope) -> bool {
        location.zonal
    }

    fn session(&self, location: &ScaleSetScope, _: &WriteCheck) -> Session {
        Session { location: Arc::new(location.clone()), turns: Turns::default() }
    }

    fn provide(
        &self,
        Session { location, turns }: &Session,
        need: PoolNeed,
        request: &DependencyRequest<'_>,
        report: Arc<Report<DependencyRecord>>,
    ) -> TaskResult<DependencyRecord> {
        let has_machines = request.live.deployments.values().any(|live| live.pool() == Some(&need.pool));
        let provision = Provision {
            location: Arc::clone(location),
            searches: request.has_moved || has_machines,
            ids_of_machines: scale_sets_of_machines(&need.pool, request.live),
            turns: turns.clone(),
            need,
        };
        let turn = turns.queue();
        let calls = self.calls(location, Arc::clone(&report) as Arc<dyn RetryListener>);
        async move { provision.run(turn, calls?, report).await }.boxed()
    }

    fn remove(
        &self,
        session: &Session,
        removal: Removal,
        listed: Option<Vec<ScaleSet>>,
        report: Arc<Report<Removed<ScaleSet>>>,
    ) -> TaskResult<Removed<ScaleSet>> {
        let calls = self.calls(&session.location, Arc::clone(&report) as Arc<dyn RetryListener>);
        async move { removal::run(removal, listed, calls?, report).await }.boxed()
    }

    /// Whether the recorded scale set may be deleted, because no pool needed it at the last check.
    fn may_take(removal: &Needs, need: &PoolNeed) -> bool {
        let is_kept = |name: &str| {
            let mut records = removal.records.iter();
            records.any(|record| record.name == name && removal.cached_pools.contains(&record.pool_name))
        };
        need.recorded.as_ref().is_some_and(|recorded| !is_kept(&recorded.name))
    }
}

/// The scale sets that contain a pool's machines, according to the classes of its deployments.
fn scale_sets_of_machines(pool: &str, live: &MachineObjects) -> Vec<String> {
    let of_pool = live.deployments.values().filter(|live| live.pool() == Some(pool));
    let classes = of_pool.filter_map(|deployment| live.classes.get(&deployment.object.spec.template.spec.class.name));
    classes.filter_map(|class| class.placed_in.as_deref().map(str::to_owned)).collect()
}
