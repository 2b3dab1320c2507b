//! The rendered objects of a plan, by placement: what machine-controller-manager and new nodes get to see.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::inputs::Inputs;
use crate::api::gardener::{ErrorCode, MachineDeploymentStatus};
use crate::api::gotext::json::DecodeError;
use crate::api::machine::MachineDeployment;
use crate::pool::hash::HashItems;
use crate::provider::{UserData, WorkerContext, WorkerError};
use crate::worker::changes::{class_document, replica_rules};
use crate::worker::deployment::wanted_document;
use crate::worker::difference::is_same;
use crate::worker::live::{Live, MachineObjects};
use crate::worker::plan::plan;

/// The objects of one pool in one zone.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Name of the pool.
    pub pool: String,
    /// The zone, if there is one and it is known.
    pub zone: Option<String>,
    /// The MachineDeployment.
    pub deployment: Value,
    /// Name of the class.
    pub class_name: String,
    /// The MachineClass; absent when a live one is gone.
    pub class: Option<Value>,
    /// The boot script; absent when a live one is gone.
    pub user_data: Option<UserData>,
    /// Bounds and priority for the cluster-autoscaler, where they are known.
    pub bounds: Option<Bounds>,
    /// What the class name is made of, where it is known.
    pub hash_items: Option<HashItems>,
}

/// What `status.machineDeployments` says of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest machines.
    pub minimum: i32,
    /// Most machines.
    pub maximum: i32,
    /// Priority for the priority expander.
    pub priority: Option<i32>,
}

impl Placement {
    /// Wanted machines.
    #[must_use]
    pub fn replicas(&self) -> i64 {
        self.deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn bounds_differ(&self, other: &Self) -> bool {
        let numbers = |placement: &Self| placement.bounds.map(|bounds| (bounds.minimum, bounds.maximum));
        matches!((numbers(self), numbers(other)), (Some(left), Some(right)) if left != right)
    }

    pub(super) fn priority_differs(&self, other: &Self) -> bool {
        matches!((self.bounds, other.bounds), (Some(left), Some(right)) if left.priority != right.priority)
    }

    /// Whether a machine made now would be like one made then.
    pub(super) fn makes_same_nodes(&self, other: &Self) -> bool {
        let (Some(left), Some(right)) = (&self.class, &other.class) else { return true };
        let same_script = match (&self.user_data, &other.user_data) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        };
        same_script
            && ["provider", "providerSpec", "credentialsSecretRef"].iter().all(|member| {
                is_same(left.get(member).unwrap_or(&Value::Null), right.get(member).unwrap_or(&Value::Null))
            })
    }

    /// Whether the parts of the class agree that no machine is made from.
    pub(super) fn has_same_class_metadata(&self, other: &Self) -> bool {
        let (Some(left), Some(right)) = (&self.class, &other.class) else { return true };
        ["/nodeTemplate", "/metadata/labels"].iter().all(|member| {
            is_same(left.pointer(member).unwrap_or(&Value::Null), right.pointer(member).unwrap_or(&Value::Null))
        })
    }
}

/// Why a Worker or a pool of it can't be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Gardener's code.
    pub code: Option<ErrorCode>,
    /// What is wrong and where.
    pub message: String,
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

/// The objects of all pools of a Worker.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By name of the MachineDeployment.
    pub placements: BTreeMap<String, Placement>,
    /// Names of the deployments in the order of pools and zones.
    pub order: Vec<String>,
    /// Pools that can't be planned. They keep what they have.
    pub failed_pools: BTreeMap<String, Failure>,
    /// Whether the shoot shall sleep.
    pub hibernated: bool,
}

/// Plans the Worker and renders its objects over those there are, and over what the `cloud` has, where that is known.
///
/// # Errors
/// When no pool can be planned.
pub fn outcome(inputs: &Inputs, live: &MachineObjects, cloud: Option<&Value>) -> Result<Outcome, Failure> {
    let mut context = context(inputs)?;
    let namespace = inputs.namespace();
    let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type)?;
    let dependencies = match cloud {
        Some(cloud) => provider.described_dependencies(context, cloud)?,
        None => None,
    };
    context.dependencies = dependencies.as_ref();
    let plan = plan(provider, context)?;
    let rules = replica_rules(&context, live);
    let mut outcome = Outcome { hibernated: rules.hibernated, ..Outcome::default() };
    for machine in plan.machines() {
        let wanted = &machine.deployment;
        let live = live.deployments.get(&wanted.name.0);
        let placement = Placement {
            pool: wanted.pool_name.clone(),
            zone: machine.zone.clone(),
            deployment: wanted_document(inputs.name(), namespace, wanted, live, rules),
            class_name: wanted.class_name.0.clone(),
            class: Some(class_document(machine)),
            user_data: Some(machine.user_data.clone()),
            bounds: Some(Bounds { minimum: wanted.minimum, maximum: wanted.maximum, priority: wanted.priority }),
            hash_items: Some(machine.hash_items.clone()),
        };
        outcome.order.push(wanted.name.0.clone());
        outcome.placements.insert(wanted.name.0.clone(), placement);
    }
    outcome.failed_pools = plan
        .errors()
        .map(|error| {
            let failure = Failure { code: error.problem.code(), message: error.problem.to_string() };
            (error.pool.clone(), failure)
        })
        .collect();
    Ok(outcome)
}

/// Everything of the Worker that decides what a pool gets of its CloudProfile; `None` where the provider can't tell.
#[must_use]
pub fn asks_profile(inputs: &Inputs, pool: &str) -> Option<Value> {
    let context = context(inputs).ok()?;
    let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type).ok()?;
    provider.planner(context).ok()?.asks_profile(context.pool(pool)?)
}

/// The cloud before a change: what is recorded is there, as the old inputs need it. A file seldom describes the whole cloud,
/// and a preview asks nobody.
#[must_use]
pub fn cloud_before(old: Option<&Inputs>, new: Option<&Inputs>) -> Option<Value> {
    let of = |inputs: &Inputs| {
        let context = context(inputs).ok()?;
        let provider = inputs.providers.for_worker_type(&context.worker.spec.worker_type).ok()?;
        provider.settled_cloud(context).ok()?
    };
    old.and_then(of).or_else(|| new.and_then(of))
}

fn context(inputs: &Inputs) -> Result<WorkerContext<'_>, Failure> {
    let namespace = inputs.namespace();
    let missing = |member| WorkerError::ClusterIncomplete { cluster: namespace.to_owned(), member };
    if inputs.shoot.is_none() && inputs.cloud_profile.is_none() {
        return Err(WorkerError::ClusterMissing { cluster: namespace.to_owned() }.into());
    }
    let unreadable =
        |error: DecodeError| Failure { code: Some(ErrorCode::ConfigurationProblem), message: error.to_string() };
    Ok(WorkerContext {
        worker: inputs.worker.decoded().map_err(unreadable)?,
        cloud_profile: &inputs.cloud_profile.as_ref().ok_or_else(|| missing("cloudProfile"))?.decoded,
        shoot: inputs.shoot.as_ref().ok_or_else(|| missing("shoot"))?.decoded().map_err(unreadable)?,
        secrets: &inputs.secrets,
        dependencies: None,
    })
}

/// A live deployment with its class, as a placement.
#[must_use]
pub fn live_placement(
    name: &str,
    live: &Live<MachineDeployment>,
    objects: &MachineObjects,
    published: &[MachineDeploymentStatus],
) -> Placement {
    let class_name = live.object.spec.template.spec.class.name.clone();
    let script =
        objects.class_secrets.get(&class_name).and_then(|secret| secret.whole.as_ref()?.data.as_ref()?.get("userData"));
    Placement {
        pool: live.pool().unwrap_or_default().to_owned(),
        zone: None,
        deployment: live.document.clone(),
        class: objects.classes.get(&class_name).and_then(|class| class.whole.as_deref().cloned()),
        user_data: script.map(|script| UserData(script.0.clone())),
        class_name,
        bounds: published.iter().find(|entry| entry.name == name).map(|entry| Bounds {
            minimum: entry.minimum,
            maximum: entry.maximum,
            priority: entry.priority,
        }),
        hash_items: None,
    }
}

/// The placements as live objects, for what comes after them.
#[must_use]
pub fn as_live(placements: &BTreeMap<String, Placement>) -> MachineObjects {
    let mut objects = MachineObjects::default();
    for (name, placement) in placements {
        // A document that was rendered from a typed object can be read again.
        if let Ok(live) = Live::read(placement.deployment.clone()) {
            objects.deployments.insert(name.clone(), live);
        }
    }
    objects
}

/// A label of a deployment document.
#[must_use]
pub fn is_paused(deployment: &Value) -> bool {
    deployment.pointer("/spec/paused") == Some(&json!(true))
}
