//! From a Shoot to the Worker that gardenlet writes for it (docs/contract.md#from-a-shoot-to-its-worker). Pure.
//!
//! ```text
//!  manifest ──► stored Shoot ──► Worker
//!            │                └ worker: every member, and the name of the node agent's Secret
//!            ├ canonical_texts: durations and quantities as the API server writes them
//!            ├ defaults: what it sets on every read and write
//!            └ admission: versions, images, architectures; kube_reserved: what kubelets reserve
//! ```
//!
//! Shoots are documents here, because most members go through as they are. What a Shoot does not tell is an input with a
//! default: [`Garden`] and [`Surroundings`].

mod admission;
mod canonical_texts;
mod defaults;
mod error;
mod kube_reserved;
mod members;
mod replacing;
mod worker;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::gardener::ProfileSpec;

pub use error::ShootError;
pub use replacing::{REPLACING_INPUTS, ReplacingInput, member_in_shoot, member_of_input};
pub use worker::worker;

/// How a landscape reserves resources for Kubernetes' own processes (admission plugin `ShootResourceReservation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reservation {
    /// The same for every shoot, in its cluster-wide kubelet settings.
    #[default]
    Static,
    /// By the machine type, in the kubelet settings of each pool.
    ByMachineType,
}

/// Whether a Shoot is as an API server shows it, which fills the cluster-wide settings of kubelets: a manifest may have none.
#[must_use]
pub fn is_stored(shoot: &Value) -> bool {
    shoot["spec"]["kubernetes"]["kubelet"].get("failSwapOn").is_some()
}

impl Reservation {
    /// How the landscape of a stored Shoot reserves: without cluster-wide reservations, it is by machine type.
    #[must_use]
    pub fn of_stored(shoot: &Value) -> Self {
        let has_own = |kubelet: &Value| kubelet.get("kubeReserved").is_some();
        let by_pool = members::pools(shoot).iter().any(|pool| has_own(&pool["kubernetes"]["kubelet"]));
        if by_pool && is_stored(shoot) && !has_own(&shoot["spec"]["kubernetes"]["kubelet"]) {
            Self::ByMachineType
        } else {
            Self::Static
        }
    }
}

/// What a garden does with Shoots that are written, as far as its Shoots do not tell.
#[derive(Clone, Copy, Debug)]
pub struct Garden {
    /// How kubelets reserve resources.
    pub reservation: Reservation,
    /// Whether new Shoots get node-local DNS (admission plugin `ShootNodeLocalDNSEnabledByDefault`).
    pub node_local_dns: bool,
    /// When they are written: expired versions are not chosen.
    pub now: Timestamp,
}

/// What gardenlet knows beside the Shoot and its CloudProfile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// `status.providerStatus` of the Infrastructure.
    pub infrastructure_status: Option<&'a Value>,
    /// The public key for nodes, as in `authorized_keys`.
    pub ssh_public_key: Option<&'a str>,
    /// `spec` of the Worker there is: its node templates stay.
    pub existing_worker: Option<&'a Value>,
    /// Whether a self-hosted shoot is just being made: only the pool of its control plane is written.
    pub is_bootstrapping: bool,
}

/// The Shoot as it reads back from the API server after a person has written it; `before` is the stored one that it
/// replaces.
///
/// # Errors
/// When the API server would refuse it for a version, an image, or a text that is none.
pub fn stored_shoot(
    written: &Value,
    before: Option<&Value>,
    profile: &ProfileSpec,
    garden: &Garden,
) -> Result<Value, ShootError> {
    let mut shoot = read_shoot(written)?;
    admission::admit(&mut shoot, before, profile, garden)?;
    // What admission has set gets defaults when it is read.
    read_shoot(&shoot)
}

/// The Shoot with canonical texts and the API server's defaults, which it sets on every read. Admission has no part in it.
///
/// # Errors
/// When a member has the wrong form.
pub fn read_shoot(shoot: &Value) -> Result<Value, ShootError> {
    let mut shoot = members::without_empty(shoot);
    canonical_texts::rewrite(&mut shoot)?;
    defaults::set(&mut shoot)?;
    Ok(shoot)
}
