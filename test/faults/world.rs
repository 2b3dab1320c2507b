//! Shared by all cases: the control plane, the observer, and a fake machine-controller-manager.

use std::time::Duration;

use anyhow::Result;

use crate::controller::{Chatter, Controller};
use crate::observer::Observer;
use test_support::cluster::{self, ControlPlane, FAKER, Faker};
use test_support::openstack::OpenStack;
use test_support::shoot::Shoot;

/// Machines take this long, so that faults can occur while the controller waits for them.
const MACHINES_TAKE: Duration = Duration::from_millis(150);

pub(crate) struct World {
    pub(crate) control_plane: &'static ControlPlane,
    pub(crate) observer: Observer,
    /// The OpenStack of all Workers, with a project for each.
    pub(crate) openstack: OpenStack,
    _machines: Faker,
}

impl World {
    /// Starts it on the shared control plane.
    pub(crate) async fn start() -> Result<Self> {
        Self::on(cluster::shared().await?).await
    }

    /// Starts it on a new control plane, for a case that would affect all others.
    pub(crate) async fn start_alone() -> Result<Self> {
        Self::on(Box::leak(Box::new(ControlPlane::start().await?))).await
    }

    async fn on(control_plane: &'static ControlPlane) -> Result<Self> {
        let observer = Observer::start(control_plane).await?;
        let machines = Faker::start_with_machines(control_plane.client(FAKER).await?, None, MACHINES_TAKE);
        Ok(Self { control_plane, observer, openstack: OpenStack::start()?, _machines: machines })
    }

    /// A new namespace with a controller for it.
    pub(crate) async fn shoot(&self, prefix: &str, chatter: Chatter) -> Result<(Shoot, Controller)> {
        let shoot = Shoot::new(self.control_plane, prefix).await?;
        let controller = Controller::start(self.control_plane, &shoot.namespace, 0, chatter).await?;
        Ok((shoot, controller))
    }
}
