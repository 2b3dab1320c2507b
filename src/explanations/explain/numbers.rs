//! The numbers of a pool in each zone, compared with live machine deployments, and their hazards.

use std::fmt;

use serde::Serialize;

use decisions::pool::roll_bounds::{BOTH_ZERO, RollBounds};
use decisions::provider::WorkerContext;
use decisions::provider::explanation::PlacementPlan;
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::zone_by_zone::zone_by_zone;
use wire::api::gardener::{UpdateStrategy, WorkerPool};

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
    /// Surge and unavailability both come to 0: a node is removed before its successor is created.
    #[serde(rename = "noRoomToRoll")]
    SurgeAndUnavailableZero,
    /// Machines are removed as soon as this is applied.
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
            Self::SurgeAndUnavailableZero => {
                write!(formatter, "its share of maxSurge and maxUnavailable is 0, {BOTH_ZERO}")
            }
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
    mut placement: PlacementPlan,
    live: &MachineObjects,
) -> PlacementExplanation {
    let is_in_place = pool.update_strategy.is_some_and(UpdateStrategy::is_in_place);
    if !is_in_place && zone_by_zone(context.worker, context.shoot).has_pool(&pool.name) {
        placement.max_surge = Some(pool.max_surge.clone());
        placement.max_unavailable = Some(pool.max_unavailable.clone());
    }
    let live = live.deployments.get(&placement.deployment.0).map(|live| &live.object.spec);
    let live_replicas = live.map(|spec| spec.replicas);
    let is_other = |live: &&String| placement.class.as_ref().is_some_and(|(class, _)| class.0 != **live);
    let live_class = live.map(|spec| &spec.template.spec.class.name).filter(|name| is_other(name) && !name.is_empty());
    let hibernated = context.shoot.should_hibernate();
    let mut hazards = Vec::new();
    if removes_a_node_first(pool, &placement, live_replicas) {
        hazards.push(Hazard::SurgeAndUnavailableZero);
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

/// Whether a node is removed before its replacement exists: both bounds resolve to 0, as machine-controller-manager
/// computes them for the live replicas or, if unknown, for the minimum.
fn removes_a_node_first(pool: &WorkerPool, placement: &PlacementPlan, live_replicas: Option<i32>) -> bool {
    if pool.update_strategy == Some(UpdateStrategy::ManualInPlaceUpdate) {
        return false;
    }
    let replicas = i64::from(live_replicas.unwrap_or(placement.minimum).max(1));
    let bounds = RollBounds::of(placement.max_surge.as_ref(), placement.max_unavailable.as_ref(), replicas);
    bounds.is_some_and(|bounds| bounds.both_zero)
}
