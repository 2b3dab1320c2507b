//! The objects that a command reads, with one way to name them and kubectl's flags to select them.
//!
//! * [`arguments`]: the flags, and which positional arguments are names or files;
//! * [`names`]: what a name can mean, from the objects that exist;
//! * [`live`]: names in a seed; `garden`: where the seed is, if the kubeconfig is that of the garden;
//! * [`files`]: names in files;
//! * [`selector`]: label selectors.

use std::collections::BTreeSet;

mod arguments;
mod files;
mod garden;
mod live;
mod names;
mod selector;

pub(super) use arguments::{Given, Reading, given};
pub(super) use files::targets_in_files;
pub(super) use garden::location_of_shoot;
pub(super) use live::{Fallback, client_for, live_scope, not_listed};
pub(super) use names::{NameIndex, Target, is_shoot_called, shoot_of_namespace};

/// The Workers that a command reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Workers in all namespaces.
    All,
    /// Workers of these namespaces, or parts of them.
    Targets(Vec<Target>),
}

impl Scope {
    /// All Workers of these namespaces.
    pub(super) fn namespaces<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        Self::Targets(names.map(|name| Target::namespace(name)).collect())
    }

    /// Whether the scope has a Worker with this namespace and name.
    pub(super) fn includes(&self, namespace: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Targets(targets) => targets.iter().any(|target| target.includes(namespace, name)),
        }
    }

    /// The only namespace, if there is one.
    pub(super) fn only_namespace(&self) -> Option<&str> {
        let Self::Targets(targets) = self else { return None };
        let namespaces: BTreeSet<&str> = targets.iter().map(|target| target.namespace.as_str()).collect();
        if namespaces.len() == 1 { namespaces.first().copied() } else { None }
    }

    /// The pools of a Worker to show; `None` for all.
    pub(super) fn pools(&self, namespace: &str, name: &str) -> Option<BTreeSet<&str>> {
        let Self::Targets(targets) = self else { return None };
        let of_worker = targets.iter().filter(|target| target.includes(namespace, name));
        of_worker.map(|target| target.pool.as_deref()).collect()
    }

    /// Whether the scope has this pool of a Worker.
    pub(super) fn includes_pool(&self, namespace: &str, name: &str, pool: &str) -> bool {
        self.pools(namespace, name).is_none_or(|pools| pools.contains(pool))
    }
}
