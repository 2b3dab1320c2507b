//! Failures of the cloud that runs the machines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::network::locked;
use crate::random::Random;

/// How the cloud treats machines. Clones share it.
#[derive(Clone)]
pub(crate) struct Cloud {
    random: Random,
    state: Arc<Mutex<State>>,
    /// A machine deployment in whose zone no machine can be created.
    full: Arc<Mutex<Option<String>>>,
    /// Whether no drain of a machine ends.
    drains_endlessly: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Default)]
struct State {
    refuses_machines: bool,
    refuses_deletions: bool,
    overlooks: u64,
}

impl Cloud {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, state: Arc::default(), full: Arc::default(), drains_endlessly: Arc::default() }
    }

    /// Sets whether creating and deleting machines fails, and how many of a thousand new classes
    /// machine-controller-manager overlooks.
    pub(crate) fn set(&self, refuses_machines: bool, refuses_deletions: bool, overlooks: u64) {
        *locked(&self.state) = State { refuses_machines, refuses_deletions, overlooks };
    }

    /// Sets the machine deployment in whose zone no machine can be created.
    pub(crate) fn fill(&self, deployment: Option<String>) {
        *locked(&self.full) = deployment;
    }

    /// Sets whether no drain of a machine ends.
    pub(crate) fn drain_endlessly(&self, is_endless: bool) {
        self.drains_endlessly.store(is_endless, Ordering::Relaxed);
    }

    pub(crate) fn drains_endlessly(&self) -> bool {
        self.drains_endlessly.load(Ordering::Relaxed)
    }

    /// Why a VM of a machine deployment can't be created.
    pub(crate) fn lacks_capacity(&self, deployment: &str) -> Option<&'static str> {
        (locked(&self.full).as_deref() == Some(deployment)).then_some("quota exceeded: the zone is full")
    }

    fn state(&self) -> State {
        *locked(&self.state)
    }

    /// Why a VM cannot be created or deleted.
    pub(crate) fn error(&self, deletes: bool) -> Option<&'static str> {
        let state = self.state();
        match deletes {
            true => state.refuses_deletions.then_some("the disk is still attached"),
            false => state.refuses_machines.then_some("quota exceeded: no machines of this type are left"),
        }
    }

    /// Whether machine-controller-manager overlooks a class.
    pub(crate) fn overlooks(&self) -> bool {
        self.random.happens(self.state().overlooks)
    }
}
