//! Clients of clouds, behind the small trait that Workers ask through ([`worker::dependencies`](crate::worker::dependencies)).
//!
//! * [`azure`]: scale sets for the non-zonal pools of Azure.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::provider;
use crate::provider::profile::ProfileFormat as _;
use crate::worker::dependencies::Cloud;

pub mod azure;

/// Namespace and name of a Worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Who is told that something has come to an end at a cloud, so that the Worker is looked at.
pub type Bell = Arc<dyn Fn(WorkerName) + Send + Sync>;

/// Whether something may be changed at a cloud now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// It may.
    Allowed,
    /// Another process leads: it has to.
    HeldBack,
    /// Nothing may be changed; what would be made is taken for made.
    Pretended,
}

/// Who knows whether something may be changed at a cloud.
pub type Gate = Arc<dyn Fn() -> Writes + Send + Sync>;

/// The clouds that this program knows, by `spec.type` of the Workers.
#[derive(Clone, Default)]
pub struct Clouds(BTreeMap<&'static str, Arc<dyn Cloud>>);

impl Clouds {
    /// All of them.
    #[must_use]
    pub fn new(azure: azure::Addresses, gate: Gate, bell: Bell) -> Self {
        let azure: Arc<dyn Cloud> = Arc::new(azure::Azure::new(azure, gate, bell));
        Self([(provider::azure::Azure.provider_type(), azure)].into())
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
