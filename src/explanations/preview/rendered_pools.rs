//! The rendered objects of a plan, by placement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::inputs::Inputs;
use super::placement::{Bounds, Placement};
use decisions::provider::{PoolProblem, WorkerContext, WorkerError};
use decisions::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use decisions::worker::plan::changes::class_document;
use decisions::worker::plan::class_images::ImagePolicy;
use decisions::worker::plan::desired::{CloudView, DesiredState};
use decisions::worker::plan::zone_by_zone::zone_by_zone;
use profiles::shoot::ShootError;
use wire::api::gardener::ErrorCode;
use wire::api::gotext::json::DecodeError;

/// Why a Worker or one of its pools can't be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Gardener's error code.
    pub(crate) code: Option<ErrorCode>,
    /// The error, with its location.
    pub message: String,
    /// Whether an object that the Worker refers to does not exist. In files, it may just not be among them.
    pub(super) lacks_object: bool,
}

impl Failure {
    pub(super) fn unreadable(error: &DecodeError) -> Self {
        Self { code: Some(ErrorCode::ConfigurationProblem), message: error.to_string(), lacks_object: false }
    }
}

impl From<ShootError> for Failure {
    fn from(error: ShootError) -> Self {
        let message = match &error {
            ShootError::NoDefault { .. } => format!("the garden would refuse this: {error}"),
            _ => error.to_string(),
        };
        Self { code: Some(ErrorCode::ConfigurationProblem), message, lacks_object: false }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        let lacks_object = matches!(error, WorkerError::ClusterMissing(_) | WorkerError::CredentialsMissing(_));
        Self { code: error.code(), message: error.to_string(), lacks_object }
    }
}

/// The objects of all pools of a Worker.
#[derive(Clone, Debug, Default)]
pub(super) struct RenderedPools {
    /// By name of the MachineDeployment.
    pub(crate) placements: BTreeMap<String, Placement>,
    /// Names of the deployments in the order of pools and zones.
    pub(crate) order: Vec<String>,
    /// Pools that can't be planned. Their existing objects stay.
    pub(crate) failed_pools: BTreeMap<String, Failure>,
    /// Pools with a class that keeps the image that it was created with, and the text of the finding.
    pub(crate) pinned_pools: BTreeMap<String, String>,
    /// Pools whose zones roll one after the other.
    pub(crate) zone_by_zone: BTreeSet<String>,
}

/// Plans the Worker and renders its objects over the existing ones. `cloud` is the state of the cloud, if known.
pub(super) fn render_pools(
    inputs: &Inputs,
    live: &MachineObjects,
    cloud: Option<&Value>,
) -> Result<RenderedPools, Failure> {
    let context = worker_context(inputs)?;
    let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type)?;
    let desired = DesiredState::new(provider, context, cloud.map_or(CloudView::Context, CloudView::Described))?
        .with_bounds_of_pools()
        .with_images(provider, inputs.image_policy, live);
    let plan = &desired.plan;
    let mut rendered = RenderedPools::default();
    for machine in plan.machines() {
        let required = &machine.deployment;
        let placement = Placement {
            pool: required.pool_name.clone(),
            zone: machine.zone.clone(),
            deployment: desired.deployment_document(machine, live),
            class_name: required.class_name.0.clone(),
            class: Some(class_document(machine)),
            user_data: Some(machine.user_data.clone()),
            bounds: Some(Bounds { minimum: required.minimum, maximum: required.maximum, priority: required.priority }),
            hash_items: Some(machine.hash_items.clone()),
            is_hibernated: context.shoot.should_hibernate(),
        };
        rendered.order.push(required.name.0.clone());
        rendered.placements.insert(required.name.0.clone(), placement);
    }
    let setting = zone_by_zone(context.worker, context.shoot);
    let pools = plan.pools.iter().flatten().map(|planned| &planned.pool);
    rendered.zone_by_zone = pools.filter(|pool| setting.has_pool(pool)).cloned().collect();
    if inputs.image_policy == ImagePolicy::Pin {
        let pinned = desired.image_drifts().map(|(pool, text)| (pool.to_owned(), text.to_owned()));
        rendered.pinned_pools = pinned.collect();
    }
    rendered.failed_pools = plan
        .errors()
        .map(|error| {
            let lacks_object = matches!(error.problem, PoolProblem::UserDataSecretMissing(_));
            let failure = Failure { code: error.problem.code(), message: error.problem.to_string(), lacks_object };
            (error.pool.clone(), failure)
        })
        .collect();
    Ok(rendered)
}

/// All fields of the Worker that decide which part of the CloudProfile a pool uses; `None` if the provider does not
/// know.
pub(super) fn needs_profile(inputs: &Inputs, pool: &str) -> Option<Value> {
    let context = worker_context(inputs).ok()?;
    let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type).ok()?;
    provider.planner(context).ok()?.needs_profile(context.pool(pool)?)
}

/// The assumed cloud state before a change: everything recorded exists, as the old inputs need it. A file seldom
/// describes the whole cloud, and a preview sends no requests.
pub(super) fn cloud_before(old: Option<&Inputs>, new: Option<&Inputs>) -> Option<Value> {
    let of = |inputs: &Inputs| {
        let context = worker_context(inputs).ok()?;
        let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type).ok()?;
        provider.settled_cloud(context).ok()?
    };
    old.and_then(of).or_else(|| new.and_then(of))
}

/// Decodes the inputs that planning needs.
///
/// # Errors
/// If an input is missing or can't be decoded.
pub fn worker_context(inputs: &Inputs) -> Result<WorkerContext<'_>, Failure> {
    let namespace = inputs.namespace();
    let missing = |member| WorkerError::ClusterIncomplete { cluster: namespace.to_owned(), member };
    if inputs.shoot.is_none() && inputs.cloud_profile.is_none() {
        return Err(WorkerError::ClusterMissing(namespace.to_owned()).into());
    }
    let unreadable = |error: DecodeError| Failure::unreadable(&error);
    Ok(WorkerContext {
        worker: inputs.worker.decoded().map_err(unreadable)?,
        cloud_profile: &inputs.cloud_profile.as_ref().ok_or_else(|| missing("cloudProfile"))?.decoded,
        shoot: inputs.shoot.as_ref().ok_or_else(|| missing("shoot"))?.decoded().map_err(unreadable)?,
        secrets: &inputs.secrets,
        dependencies: None,
    })
}

/// The placements as live objects, for rendering the next state over them.
pub(super) fn as_live(placements: &BTreeMap<String, Placement>) -> Result<MachineObjects, DecodeError> {
    let read = |(name, placement): (&String, &Placement)| {
        let deployment = LiveDeployment::read_without_codes(placement.deployment.clone());
        Ok((name.clone(), deployment.map_err(|error| error.within(name))?))
    };
    let deployments = placements.iter().map(read).collect::<Result<_, DecodeError>>()?;
    Ok(MachineObjects { deployments, ..MachineObjects::default() })
}
