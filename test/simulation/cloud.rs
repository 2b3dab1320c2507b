//! Failures of the cloud that runs the machines.

use std::sync::{Arc, Mutex};

use crate::network::locked;
use crate::random::Random;

/// How the cloud treats machines. Clones share it.
#[derive(Clone)]
pub(crate) struct Cloud {
    random: Random,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    refuses_machines: bool,
    refuses_deletions: bool,
    overlooks: u64,
}

impl Cloud {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, state: Arc::default() }
    }

    /// Sets whether creating and deleting machines fails, and how many of a thousand new classes
    /// machine-controller-manager overlooks.
    pub(crate) fn set(&self, refuses_machines: bool, refuses_deletions: bool, overlooks: u64) {
        *locked(&self.state) = State { refuses_machines, refuses_deletions, overlooks };
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
