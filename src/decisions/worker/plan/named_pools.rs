//! Pools that an annotation of the Worker or its Shoot names: `*` or names separated by commas.

use std::collections::BTreeSet;

use wire::api::gardener::{Shoot, Worker};

/// The pools that an annotation names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedPools {
    /// All pools.
    All,
    /// The pools with these names.
    Pools(BTreeSet<String>),
}

impl NamedPools {
    /// The setting of the Worker, otherwise that of its Shoot.
    #[must_use]
    pub fn of(annotation: &str, worker: &Worker, shoot: &Shoot) -> Self {
        let of_worker = worker.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
        Self::of_value(of_worker.or_else(|| shoot.annotations().get(annotation)).map_or("", String::as_str))
    }

    /// The setting with this value of the annotation.
    #[must_use]
    pub fn of_value(value: &str) -> Self {
        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
        if value.trim() == "*" { Self::All } else { Self::Pools(names.map(str::to_owned).collect()) }
    }

    /// Whether the annotation names this pool.
    #[must_use]
    pub fn has_pool(&self, pool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Pools(names) => names.contains(pool),
        }
    }
}
