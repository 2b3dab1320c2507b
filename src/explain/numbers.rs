//! The numbers of a pool in each zone, compared with live machine deployments, and their hazards.

use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

use crate::api::gardener::WorkerPool;
use crate::provider::WorkerContext;
use crate::provider::explanation::PlacementPlan;
use crate::worker::machine_objects::MachineObjects;

/// Numbers and names of a pool in one zone, with the live ones.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementExplanation {
    /// The planned numbers and names.
    #[serde(flatten)]
    pub plan: PlacementPlan,
    /// Target replicas of the live machine deployment, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_replicas: Option<i32>,
    /// The class of the live machine deployment if it is another one, so that its machines roll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_class: Option<String>,
    /// Hazards of the zone.
    pub hazards: Vec<Hazard>,
}

/// A dangerous setting, with a stable name for programs and a text for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Hazard {
    /// Neither surge nor unavailability allows a roll.
    NoRoomToRoll,
    /// Machines are deleted as soon as the plan is applied.
    MaximumBelowLive {
        /// Maximum number of machines.
        maximum: i32,
        /// Replicas of the live machine deployment.
        live: i32,
    },
    /// The minimum is greater than the maximum.
    MinimumAboveMaximum,
    /// The zone gets no machines although the pool has a maximum above 0.
    ZoneStaysEmpty,
    /// The pool has no zones, so no machines are created.
    NoZones,
    /// The pool lists a zone several times, so the entries have the same name.
    ZoneTwice {
        /// Name of the zone.
        zone: String,
    },
}

impl fmt::Display for Hazard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoomToRoll => formatter.write_str("surge and unavailable are both 0: a roll can't proceed here"),
            Self::MaximumBelowLive { maximum, live } => {
                let fewer = i64::from(*live) - i64::from(*maximum);
                let machines = if fewer == 1 { "machine goes" } else { "machines go" };
                write!(formatter, "maximum {maximum} is below the {live} live replicas: {fewer} {machines}")
            }
            Self::MinimumAboveMaximum => formatter.write_str("minimum is above maximum"),
            Self::ZoneStaysEmpty => {
                formatter.write_str("maximum 0: no machine here, the pool has more zones than machines")
            }
            Self::NoZones => formatter.write_str("the pool has no zones: no machine is made for it"),
            Self::ZoneTwice { zone } => write!(formatter, "zone {zone} is listed twice: both have the same names"),
        }
    }
}

/// Compares the numbers of a placement with the live machine deployment of the same name.
pub(super) fn explain_placement(
    context: WorkerContext<'_>,
    pool: &WorkerPool,
    placement: PlacementPlan,
    live: &MachineObjects,
) -> PlacementExplanation {
    let live = live.deployments.get(&placement.deployment.0).map(|live| &live.object.spec);
    let live_replicas = live.map(|spec| spec.replicas);
    let is_other = |live: &&String| placement.class.as_ref().is_some_and(|(class, _)| class.0 != **live);
    let live_class = live.map(|spec| &spec.template.spec.class.name).filter(|name| is_other(name) && !name.is_empty());
    let hibernated = context.shoot.is_hibernation_wanted();
    let mut hazards = Vec::new();
    if is_zero(placement.max_surge.as_ref()) && is_zero(placement.max_unavailable.as_ref()) {
        hazards.push(Hazard::NoRoomToRoll);
    }
    if let Some(live) = live_replicas.filter(|live| *live > placement.maximum && !hibernated) {
        hazards.push(Hazard::MaximumBelowLive { maximum: placement.maximum, live });
    }
    if placement.minimum > placement.maximum {
        hazards.push(Hazard::MinimumAboveMaximum);
    }
    if placement.maximum == 0 && pool.maximum > 0 {
        hazards.push(Hazard::ZoneStaysEmpty);
    }
    PlacementExplanation { live_replicas, live_class: live_class.cloned(), plan: placement, hazards }
}

/// The hazards of a pool's zones. A pool with an error may lack placements for another reason.
pub(super) fn pool_hazards(pool: &WorkerPool, placements: &[PlacementPlan], failed: bool) -> Vec<Hazard> {
    let mut hazards = Vec::new();
    if pool.zones.is_empty() && placements.is_empty() && !failed {
        hazards.push(Hazard::NoZones);
    }
    for (position, zone) in pool.zones.iter().enumerate() {
        let before = pool.zones.iter().take(position).filter(|other| *other == zone).count();
        if before == 1 {
            hazards.push(Hazard::ZoneTwice { zone: zone.clone() });
        }
    }
    hazards
}

fn is_zero(bound: Option<&IntOrString>) -> bool {
    match bound {
        None => true,
        Some(IntOrString::Int(number)) => *number == 0,
        Some(IntOrString::String(text)) => text.trim_end_matches('%').trim_start_matches(['+', '-', '0']).is_empty(),
    }
}
