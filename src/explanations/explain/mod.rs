//! Explains a Worker's plan: for each pool the inputs that decided, and their results (pure).
//!
//! ```text
//!  DesiredState ──────────────► names, hash inputs, numbers ──┐
//!  PoolPlanner::explain_pool ─► image, provider's inputs ─────┼──► Explanation ──► table or JSON (cli)
//!  live objects ──────────────► existing replicas ────────────┘
//! ```
//!
//! This module makes no decisions. If a pool can't be planned, the provider's explanation has what could be determined
//! nevertheless. The types serialize to the documented JSON of `explain`.

use std::collections::BTreeMap;

use serde::Serialize;

use decisions::pool::settings::cluster_autoscaler_annotations;
use decisions::provider::explanation::{EffectiveInput, ImageExplanation, PlacementPlan};
use decisions::provider::{PoolError, PoolPlan, PoolPlanner, Provider, WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::desired::DesiredState;
use wire::api::gardener::{ErrorCode, WorkerPool};

mod hash_inputs;
mod inputs;
mod numbers;
mod selectable_images;
mod shoot;

pub use hash_inputs::{HashEffect, HashExplanation, HashInput};
pub use numbers::{Hazard, PlacementExplanation};
pub use shoot::{DecidingMember, ShootPoolExplanation, ZoneClasses, explain_shoot};

/// The explanation of a Worker's machines.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// `namespace/name` of the Worker.
    pub worker: String,
    /// The value of `spec.type`.
    pub provider: String,
    /// One explanation per pool, in the order of the Worker.
    pub pools: Vec<PoolExplanation>,
}

/// The explanation of a pool's machines.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolExplanation {
    /// Name of the pool.
    pub pool: String,
    /// Why the pool can't be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PoolFailure>,
    /// The inputs that decide, with their origin.
    pub inputs: Vec<EffectiveInput>,
    /// How the image was chosen.
    pub image: ImageExplanation,
    /// Numbers and names in each zone, with their hazards.
    pub placements: Vec<PlacementExplanation>,
    /// The hashes in the class names, with their inputs.
    pub hashes: Vec<HashExplanation>,
    /// Annotations for cluster-autoscaler; `null` means that the annotation is removed.
    pub autoscaler_annotations: BTreeMap<String, Option<String>>,
    /// Hazards of the pool as a whole.
    pub hazards: Vec<Hazard>,
}

/// Why a pool can't be planned.
#[derive(Clone, Debug, Serialize)]
pub struct PoolFailure {
    /// Gardener's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The error, its location and the remedy.
    pub message: String,
}

/// Explains the pools of a Worker, or only the pool with the name `only`.
///
/// # Errors
/// If no pool can be planned, because something that all pools share is missing or invalid.
pub fn explain(
    provider: &dyn Provider,
    desired: &DesiredState<'_>,
    live: &MachineObjects,
    only: Option<&str>,
) -> Result<Explanation, WorkerError> {
    let context = desired.context();
    let planner = provider.planner(context)?;
    let pools = context.worker.spec.pools.iter().zip(&desired.plan.pools);
    let pools = pools.filter(|(pool, _)| is_meant(pool, only));
    Ok(explanation(context, pools.map(|(pool, planned)| explain_pool(context, planner.as_ref(), planned, live, pool))))
}

fn is_meant(pool: &WorkerPool, only: Option<&str>) -> bool {
    only.is_none_or(|only| pool.name == only)
}

fn explanation(context: WorkerContext<'_>, pools: impl Iterator<Item = PoolExplanation>) -> Explanation {
    let metadata = &context.worker.metadata;
    let spec = &context.worker.spec;
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    Explanation {
        worker: format!("{}/{}", name(&metadata.namespace), name(&metadata.name)),
        provider: spec.worker_type.clone(),
        pools: pools.collect(),
    }
}

fn explain_pool(
    context: WorkerContext<'_>,
    planner: &dyn PoolPlanner,
    planned: &Result<PoolPlan, PoolError>,
    live: &MachineObjects,
    pool: &WorkerPool,
) -> PoolExplanation {
    let of_provider = planner.explain_pool(pool);
    let (placements, error): (Vec<PlacementPlan>, _) = match planned {
        Ok(plan) => (plan.machines.iter().map(PlacementPlan::from).collect(), None),
        Err(error) => {
            let failure = PoolFailure { code: error.problem.code(), message: error.problem.to_string() };
            (of_provider.placements, Some(failure))
        }
    };
    let mut inputs = inputs::of_worker(context, pool);
    inputs.extend(of_provider.inputs);
    PoolExplanation {
        pool: pool.name.clone(),
        inputs,
        image: of_provider.image,
        hashes: hash_inputs::explain_hashes(context.shoot, pool, &placements),
        autoscaler_annotations: cluster_autoscaler_annotations(pool.cluster_autoscaler.as_ref())
            .into_iter()
            .map(|(annotation, value)| (annotation, Some(value).filter(|value| !value.is_empty())))
            .collect(),
        hazards: numbers::pool_hazards(pool, &placements, error.is_some()),
        placements: placements
            .into_iter()
            .map(|placement| numbers::explain_placement(context, pool, placement, live))
            .collect(),
        error,
    }
}
