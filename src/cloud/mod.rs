//! Clients of clouds, behind the small trait that Workers ask through ([`dependency`]); `dependency_tasks` is what they share.
//!
//! * [`azure`]: scale sets for the non-zonal pools of Azure; images of its galleries;
//! * [`openstack`]: server groups for the pools of OpenStack that ask for one;
//! * `aws`, with the feature `live-images`: images of EC2;
//! * [`image_source`]: who can be asked for images.

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

/// The cloud of one provider, before it is opened.
pub trait CloudFactory: Sync {
    /// `spec.type` of the Workers that depend on it.
    fn worker_type(&self) -> &'static str;

    /// The command of the controller, with the arguments that this cloud needs beside the others. They may stand in the
    /// environment and in the file of `--config` as all can.
    fn with_arguments(&self, command: Command) -> Command {
        command
    }

    /// The cloud with what was typed.
    ///
    /// # Errors
    /// When what was typed is not what [`with_arguments`](Self::with_arguments) asks for.
    fn open(
        &self,
        typed: &ArgMatches,
        write_check: WriteCheck,
        task_ended: TaskEnded,
    ) -> Result<Arc<dyn Cloud>, clap::Error>;
}

/// The clouds of a program, and what was typed for them.
#[derive(Clone)]
pub struct CloudArguments {
    factories: &'static [&'static dyn CloudFactory],
    typed: ArgMatches,
}

impl CloudArguments {
    /// What was typed for the controller, for these clouds.
    #[must_use]
    pub fn new(factories: &'static [&'static dyn CloudFactory], typed: ArgMatches) -> Self {
        Self { factories, typed }
    }
}

/// The clouds that this program knows, by `spec.type` of the Workers.
#[derive(Clone, Default)]
pub struct Clouds(BTreeMap<&'static str, Arc<dyn Cloud>>);

impl Clouds {
    /// All of them.
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

    /// One alone, for Workers of that type.
    #[cfg(test)]
    pub(crate) fn of_one(worker_type: &'static str, cloud: Arc<dyn Cloud>) -> Self {
        Self(BTreeMap::from([(worker_type, cloud)]))
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
