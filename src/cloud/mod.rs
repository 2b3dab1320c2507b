//! Clients of clouds, behind the small trait that Workers ask through ([`dependency`]).
//!
//! * [`azure`]: scale sets for the non-zonal pools of Azure;
//! * [`openstack`]: server groups for the pools of OpenStack that ask for one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use clap::Args;

use crate::cloud::dependency::Cloud;

pub mod azure;
mod background_task;
pub mod dependency;
pub mod openstack;

/// Namespace and name of a Worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Is called when a background task for a Worker has ended, so that the Worker is reconciled.
pub type TaskEnded = Arc<dyn Fn(WorkerName) + Send + Sync>;

/// Whether this process may change something at a cloud now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// It may.
    Allowed,
    /// Another process leads: it has to.
    Denied,
    /// Nothing may be changed; what would be made is taken for made.
    DryRun,
}

/// Tells whether this process may change something at a cloud.
pub type WriteCheck = Arc<dyn Fn() -> WriteAccess + Send + Sync>;

/// The cloud of one provider, before it is opened: its arguments of the controller.
pub trait CloudFactory {
    /// `spec.type` of the Workers that depend on it.
    fn worker_type(&self) -> &'static str;

    /// The cloud with these arguments.
    fn open(&self, write_check: WriteCheck, task_ended: TaskEnded) -> Arc<dyn Cloud>;
}

/// The arguments of the controller that clouds bring: the one list of them.
#[derive(Clone, Debug, Default, Args)]
pub struct CloudArguments {
    #[command(flatten)]
    azure: azure::AzureArguments,
}

impl CloudArguments {
    fn factories(&self) -> [&dyn CloudFactory; 2] {
        let Self { azure } = self;
        [azure, &openstack::OpenStackFactory]
    }
}

/// The clouds that this program knows, by `spec.type` of the Workers.
#[derive(Clone, Default)]
pub struct Clouds(BTreeMap<&'static str, Arc<dyn Cloud>>);

impl Clouds {
    /// All of them.
    #[must_use]
    pub fn open(arguments: &CloudArguments, write_check: &WriteCheck, task_ended: &TaskEnded) -> Self {
        let open = |factory: &dyn CloudFactory| factory.open(Arc::clone(write_check), Arc::clone(task_ended));
        Self(arguments.factories().into_iter().map(|factory| (factory.worker_type(), open(factory))).collect())
    }

    /// The cloud of Workers of that type; `None` where pools depend on nothing.
    #[must_use]
    pub fn for_worker_type(&self, worker_type: &str) -> Option<&dyn Cloud> {
        self.0.get(worker_type).map(AsRef::as_ref)
    }
}

impl fmt::Debug for Clouds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}
