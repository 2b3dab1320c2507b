//! Pure: computes the Worker that gardenlet writes for a Shoot (docs/contract.md#from-a-shoot-to-its-worker).
//!
//! ```text
//!  manifest ──► stored Shoot ──► Worker
//!            │                └ worker: every field, and the name of the node agent's Secret
//!            ├ canonical_texts: durations and quantities as the API server writes them
//!            ├ defaults: fields that it sets on every read and write
//!            └ admission: versions, images, architectures; kube_reserved: kubelet reservations
//! ```
//!
//! Shoots are documents here, because most fields are copied unchanged. [`Garden`] and [`Surroundings`] are inputs with
//! defaults for everything that a Shoot does not contain.

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

use wire::api::gardener::ProfileSpec;

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

/// Whether a Shoot was stored by an API server, which sets cluster-wide kubelet settings. A manifest may have none.
#[must_use]
pub fn is_stored(shoot: &Value) -> bool {
    shoot["spec"]["kubernetes"]["kubelet"].get("failSwapOn").is_some()
}

impl Reservation {
    /// The mode of a stored Shoot's landscape: by machine type if only its pools have reservations.
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

/// Behavior of a garden for written Shoots that can't be derived from its Shoots.
#[derive(Clone, Copy, Debug)]
pub struct Garden {
    /// How kubelets reserve resources.
    pub reservation: Reservation,
    /// Whether new Shoots get node-local DNS (admission plugin `ShootNodeLocalDNSEnabledByDefault`).
    pub node_local_dns: bool,
    /// Time of the write. Versions that have expired by then are not selected.
    pub now: Timestamp,
}

/// Inputs of gardenlet in addition to the Shoot and its CloudProfile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// `status.providerStatus` of the Infrastructure.
    pub infrastructure_status: Option<&'a Value>,
    /// The public key for nodes, as in `authorized_keys`.
    pub ssh_public_key: Option<&'a str>,
    /// `spec` of the existing Worker, whose node templates are kept.
    pub existing_worker: Option<&'a Value>,
    /// Whether a self-hosted shoot is being bootstrapped, so that only its control plane pool is written.
    pub is_bootstrapping: bool,
}

/// The Shoot as stored by the API server after a user has written it. `before` is the stored Shoot that it replaces.
///
/// # Errors
/// When the API server would reject it because of a version, an image or a field of the wrong type.
pub fn stored_shoot(
    written: &Value,
    before: Option<&Value>,
    profile: &ProfileSpec,
    garden: &Garden,
) -> Result<Value, ShootError> {
    let mut shoot = read_shoot(written)?;
    admission::admit(&mut shoot, before, profile, garden)?;
    // Fields set by admission get their defaults when the Shoot is read.
    read_shoot(&shoot)
}

/// The Shoot with canonical texts and the defaults that the API server sets on every read. Admission is not applied.
///
/// # Errors
/// When a field has the wrong type.
pub fn read_shoot(shoot: &Value) -> Result<Value, ShootError> {
    let mut shoot = members::without_empty(shoot);
    canonical_texts::rewrite(&mut shoot)?;
    defaults::set(&mut shoot)?;
    Ok(shoot)
}
