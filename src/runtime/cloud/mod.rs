//! Clients of clouds. Workers use them through the interface in [`dependency`]; `dependency_tasks` is their common
//! part.
//!
//! * [`azure`]: scale sets for Azure's non-zonal pools, and images of its galleries;
//! * [`openstack`]: server groups for OpenStack pools that configure one;
//! * `aws`, with the feature `live-images`: images of EC2;
//! * [`image_source`]: interface to clouds that can list images.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use clap::{ArgMatches, Command};

use crate::cloud::dependency::Cloud;

#[cfg(feature = "live-images")]
pub mod aws;
pub mod azure;
mod background_task;
pub mod dependency;
mod dependency_tasks;
pub mod image_source;
pub mod openstack;

/// Namespace and name of a Worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Called when a background task for a Worker has ended, so that the Worker is reconciled.
pub type TaskEnded = Arc<dyn Fn(WorkerName) + Send + Sync>;

/// Whether this process may change anything at a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// Changes are allowed.
    Allowed,
    /// Another process leads and makes the changes.
    Denied,
    /// Changes are only simulated.
    DryRun,
}

/// Returns the current write access to clouds.
pub type WriteCheck = Arc<dyn Fn() -> WriteAccess + Send + Sync>;

/// Creates the cloud of one provider.
pub trait CloudFactory: Sync {
    /// `spec.type` of the Workers that depend on it.
    fn worker_type(&self) -> &'static str;

    /// Adds the arguments of this cloud to the command of the controller. Like all others, they can also be set in
    /// the environment and in the file of `--config`.
    fn with_arguments(&self, command: Command) -> Command {
        command
    }

    /// Creates the cloud from the command line.
    ///
    /// # Errors
    /// If the arguments don't match [`with_arguments`](Self::with_arguments).
    fn open(
        &self,
        typed: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error>;
}

/// The clouds of a program and their arguments.
#[derive(Clone)]
pub struct CloudArguments {
    factories: &'static [&'static dyn CloudFactory],
    typed: ArgMatches,
}

impl CloudArguments {
    /// The clouds and the controller's command line.
    #[must_use]
    pub fn new(factories: &'static [&'static dyn CloudFactory], typed: ArgMatches) -> Self {
        Self { factories, typed }
    }
}

/// The supported clouds, by `spec.type` of the Workers.
#[derive(Clone, Default)]
pub struct Clouds(BTreeMap<&'static str, Arc<dyn Cloud>>);

impl Clouds {
    /// Creates all clouds.
    ///
    /// # Errors
    /// As [`CloudFactory::open`].
    pub fn open(
        arguments: &CloudArguments,
        write_check: &WriteCheck,
        task_ended: &TaskEnded,
    ) -> Result<Self, clap::Error> {
        let CloudArguments { factories, typed } = arguments;
        let open = |factory: &&'static dyn CloudFactory| {
            let cloud = factory.open(typed, Arc::clone(write_check), Arc::clone(task_ended))?;
            Ok((factory.worker_type(), cloud))
        };
        factories.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// A single cloud for Workers of that type.
    #[cfg(any(test, feature = "testing"))]
    pub fn of_one(worker_type: &'static str, cloud: Arc<dyn Cloud>) -> Self {
        Self(BTreeMap::from([(worker_type, cloud)]))
    }

    /// The cloud for Workers of that type; `None` if their pools have no dependencies.
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
