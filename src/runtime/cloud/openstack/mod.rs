//! OpenStack: server groups for pools that configure one (docs/openstack-server-groups.md), and the images of Glance.
//!
//! The decisions are in [`decisions::provider::openstack::server_groups`] and are pure, and the requests are in `nova`,
//! with the tokens of `keystone`.
//! This module runs them as tasks.

use std::sync::{Arc, OnceLock};

use clap::ArgMatches;
use futures::FutureExt;
use tokio::sync::Mutex;

use self::keystone::transport;
use self::nova::Nova;
use super::background_task::Report;
use super::dependency_tasks::{self, Dependency, DependencyTasks, NeedsResult, Removed, TaskResult, Words};
use super::{CloudFactory, TaskEnded, WriteCheck};
use crate::cloud::dependency::{Cloud, DependencyRequest};
use decisions::provider::openstack::credentials::Credentials;
use decisions::provider::openstack::server_groups::{
    Needs, PoolNeed, ServerGroup, ServerGroupScope, TargetGroup, needs, needs_of_deletion,
};
use decisions::provider::profile::ProfileFormat as _;
use decisions::provider::{self, DependencyFailure, DependencyRecord, WorkerContext};
use wire::api::gardener::{Cluster, Worker};
use wire::api::secret::Secrets;

mod glance;
mod keystone;
mod nova;

pub use glance::Glance;
pub use keystone::Transport;

/// OpenStack has no arguments: Secret and CloudProfile have its address.
pub struct OpenStackFactory;

impl CloudFactory for OpenStackFactory {
    fn worker_type(&self) -> &'static str {
        provider::openstack::OpenStack.provider_type()
    }

    fn open(
        &self,
        _: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error> {
        Ok(Arc::new(OpenStack::new(write_check, task_ended)))
    }
}

/// Server groups at OpenStack.
pub type OpenStack = DependencyTasks<ServerGroups>;

/// Provides server groups.
#[derive(Default)]
pub struct ServerGroups {
    /// Shared by all Workers whose cloud has a certificate from an authority that the system trusts. Loading the
    /// trusted certificates takes milliseconds, and keeping them some hundred KiB.
    trusting: OnceLock<Transport>,
}

impl OpenStack {
    /// `task_ended` is called when a background task has ended.
    #[must_use]
    pub fn new(write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        Self::of(ServerGroups::default(), write_check, task_ended)
    }

    /// Like `new`, but sends all requests through `transport` instead of the network.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn by(transport: Transport, write_check: WriteCheck, task_ended: TaskEnded) -> Self {
        Self::of(ServerGroups { trusting: OnceLock::from(transport) }, write_check, task_ended)
    }
}

impl ServerGroups {
    fn transport(&self, credentials: &Credentials) -> Result<Transport, DependencyFailure> {
        if credentials.ca_certificates.is_some() || credentials.insecure {
            return transport(credentials);
        }
        if let Some(trusting) = self.trusting.get() {
            return Ok(Arc::clone(trusting));
        }
        let trusting = transport(credentials)?;
        Ok(Arc::clone(self.trusting.get_or_init(|| trusting)))
    }
}

/// Nova client shared by the tasks of one Worker, which make one call at a time.
type Session = Result<Arc<Mutex<Nova>>, DependencyFailure>;

impl Dependency for ServerGroups {
    type Scope = ServerGroupScope;
    type Target = TargetGroup;
    type Listed = ServerGroup;
    type Session = Session;
    const WORDS: Words = Words {
        one: "server group",
        many: "server groups",
        until_removed: "until unneeded server groups are deleted",
        member: "serverGroupDependencies",
    };

    fn needs(context: &WorkerContext<'_>) -> NeedsResult<Self> {
        needs(context)
    }

    fn needs_of_deletion(worker: &Worker, cluster: Option<&Cluster>, secrets: &Secrets) -> NeedsResult<Self> {
        needs_of_deletion(worker, cluster, secrets)
    }

    fn session(&self, scope: &ServerGroupScope, write_check: &WriteCheck) -> Session {
        let transport = self.transport(&scope.credentials)?;
        Ok(Arc::new(Mutex::new(Nova::new(transport, scope.clone(), Arc::clone(write_check)))))
    }

    /// Keeps the recorded group, adopts an existing one, or creates one.
    fn provide(
        &self,
        session: &Session,
        need: PoolNeed,
        _: &DependencyRequest<'_>,
        _: Arc<Report<DependencyRecord>>,
    ) -> TaskResult<DependencyRecord> {
        let session = session.clone();
        async move {
            let nova = session?;
            let mut nova = nova.lock().await;
            if let Some(recorded) = &need.recorded
                && nova.get(&recorded.id).await?.is_some_and(|observed| need.is_met_by(recorded, &observed))
            {
                return Ok(recorded.clone());
            }
            // Finds a group that was created but not recorded before a crash.
            if let Some(adopted) = need.adopted(&nova.list().await?) {
                return Ok(need.record(adopted));
            }
            Ok(need.record(&nova.create(&need).await?))
        }
        .boxed()
    }

    /// A failure does not stop the other deletions.
    fn remove(
        &self,
        session: &Session,
        removal: Removal,
        listed: Option<Vec<ServerGroup>>,
        _: Arc<Report<Removed<ServerGroup>>>,
    ) -> TaskResult<Removed<ServerGroup>> {
        let session = session.clone();
        async move {
            let nova = session?;
            let mut nova = nova.lock().await;
            let Removal { needs, used } = removal;
            let listed = match listed {
                Some(listed) => listed,
                None => nova.list().await?,
            };
            let unneeded = needs.unneeded(&listed, used.as_deref().unwrap_or_default());
            if used.is_none() && !unneeded.is_empty() {
                return Ok(Removed::Unneeded(listed));
            }
            let mut failures = Vec::new();
            for id in &unneeded {
                failures.extend(nova.delete(id).await.err());
            }
            failures.into_iter().next().map_or_else(|| Ok(Removed::Done(needs.records_without(&unneeded))), Err)
        }
        .boxed()
    }

    /// A group that is adopted by name may be any of them.
    fn may_take(_: &Needs, _: &PoolNeed) -> bool {
        true
    }

    fn sort(records: &mut [DependencyRecord]) {
        records.sort_by(|one, other| one.pool_name.cmp(&other.pool_name));
    }
}

type Removal = dependency_tasks::Removal<ServerGroupScope, TargetGroup>;
