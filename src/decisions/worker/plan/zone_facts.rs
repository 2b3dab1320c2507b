//! Pure: the facts about zones that [`gate`](crate::worker::plan::gate) decides by, from the plan and the live objects.

use jiff::{SignedDuration, Timestamp};

use crate::provider::{MachinePlan, PoolPlan, Provider, TargetDeployment, WorkerContext};
use crate::worker::machines::live_machine::LiveMachine;
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::machines::progress::{Hibernation, OwnedObjects, Phase};
use crate::worker::plan::changes::replica_rules;
use crate::worker::plan::class_inputs::owner_digest;
use crate::worker::plan::deployment::{ReplicaRules, target_replicas};
use crate::worker::plan::gate::{Machines, Pool, PoolBudget, Zone};
use crate::worker::plan::orphans::is_being_deleted;
use crate::worker::plan::roll_budget::RollBudget;
use crate::worker::request::Operation;
use wire::api::gardener::{ErrorCode, NODE_AGENT_SECRET_LABEL, WorkerPool};

/// Error codes that don't result from the class.
const CAPACITY: [ErrorCode; 3] =
    [ErrorCode::InfraResourcesDepleted, ErrorCode::InfraQuotaExceeded, ErrorCode::InfraRateLimitsExceeded];

/// Inputs of the gate in addition to the plan.
#[derive(Clone, Copy)]
pub struct GateInputs<'a> {
    /// Provider of the Worker.
    pub provider: &'a dyn Provider,
    /// The operation.
    pub operation: Operation,
    /// The live objects.
    pub live: &'a MachineObjects,
    /// The time.
    pub now: Timestamp,
    /// The budget with its free slots; `None` without `--roll-budget`.
    pub budget: Option<&'a RollBudget>,
}

/// The live objects, and what applies to all pools.
pub(super) struct ZoneFacts<'a> {
    pub(super) context: &'a WorkerContext<'a>,
    pub(super) provider: &'a dyn Provider,
    pub(super) live: &'a MachineObjects,
    pub(super) now: Timestamp,
    owned: OwnedObjects<'a>,
    rules: ReplicaRules,
    has_no_machines_to_protect: bool,
}

/// A pool of the Worker and its settings.
pub(super) struct PoolSettings<'a> {
    pub(super) pool: &'a WorkerPool,
    pub(super) is_zone_by_zone: bool,
    pub(super) is_stopped: bool,
    pub(super) budget: Option<PoolBudget>,
}

impl<'a> ZoneFacts<'a> {
    pub(super) fn of(context: &'a WorkerContext<'a>, inputs: &GateInputs<'a>) -> Self {
        Self {
            context,
            provider: inputs.provider,
            live: inputs.live,
            now: inputs.now,
            owned: OwnedObjects::of(inputs.live),
            rules: replica_rules(context, inputs.live),
            has_no_machines_to_protect: context.shoot.should_hibernate() || inputs.operation == Operation::Restore,
        }
    }

    pub(super) fn pool<'p>(&'p self, planned: &'p PoolPlan, settings: &PoolSettings<'_>) -> Pool<'p> {
        let first = planned.machines.first().map(|machine| &machine.deployment);
        let owner = settings.budget.map(|_| owner_digest(settings.pool));
        let timeout = first.and_then(|deployment| deployment.machine_configuration.creation_timeout);
        Pool {
            is_named: settings.is_zone_by_zone,
            is_stopped: settings.is_stopped,
            budget: settings.budget,
            replaces_machines: first.is_some_and(|deployment| deployment.strategy.in_place_update.is_none()),
            has_no_machines_to_protect: self.has_no_machines_to_protect,
            creation_timeout: timeout.map(|timeout| SignedDuration::from_nanos(timeout.nanoseconds())),
            zones: planned.machines.iter().map(|machine| self.zone(machine, settings.pool, owner.as_deref())).collect(),
        }
    }

    /// `owner`: the digest of what the owner can edit, with a budget.
    fn zone<'p>(&'p self, machine: &'p MachinePlan, pool: &WorkerPool, owner: Option<&str>) -> Zone<'p> {
        let target = &machine.deployment;
        let target_class = target.class_name.0.as_str();
        let live = self.live.deployments.get(&target.name.0);
        let Some(live) = live.filter(|live| !class_of(live).is_empty()) else {
            return Zone { target_class, ..Zone::default() };
        };
        let history = live.history().unwrap_or_default();
        let recorded_owner = history.owner_of(class_of(live));
        let is_ready = class_of(live) == target_class && {
            let progress = self.owned.progress(target, Some(live), Hibernation::NotRequested);
            progress.phase == Phase::Ready
        };
        Zone {
            target_class,
            live_class: Some(class_of(live)),
            recorded_class: history.newest_class().map(str::to_owned),
            class_since: history.class_since(class_of(live)),
            waits_since: history.waits_since(target_class),
            is_being_deleted: is_being_deleted(&live.document),
            key_stays: key_stays(pool, target, live),
            is_requested: owner.is_some() && recorded_owner.is_some() && recorded_owner != owner,
            mark: history.mark,
            is_paused: live.object.spec.paused,
            has_pause_mark: live.has_pause_mark(),
            is_ready,
            machines: self.machines(target, live),
        }
    }

    fn machines(&self, target: &TargetDeployment, live: &LiveDeployment) -> Machines {
        let machines = self.owned.machines(&target.name.0);
        let is_of_class = |machine: &&&LiveMachine| *machine.member.class == *class_of(live);
        let replicas = target_replicas(target, Some(live.object.spec.replicas), self.rules);
        Machines {
            target: usize::try_from(replicas).unwrap_or_default(),
            existing: machines.len(),
            have_run: machines.iter().filter(|machine| machine.has_run && !machine.is_being_deleted).count(),
            are_mixed: !machines.iter().all(|machine| is_of_class(&machine)),
            class_has_run: machines.iter().filter(is_of_class).any(|machine| machine.has_run),
            lack_capacity: self.lack_capacity(live, machines),
        }
    }

    /// Also from the machines themselves, because `failedMachines` is empty between two attempts.
    fn lack_capacity(&self, live: &LiveDeployment, machines: &[&LiveMachine]) -> bool {
        let of_machine = |machine: &&LiveMachine| {
            let codes = self.provider.error_codes(None, &machine.last_description);
            !machine.has_run && codes.iter().any(|code| CAPACITY.contains(code))
        };
        let reported = live.failed_machines.iter().flat_map(|failed| &failed.codes);
        reported.into_iter().any(|code| CAPACITY.contains(code)) || machines.iter().any(of_machine)
    }

    /// Failure of a machine of the class that fails.
    pub(super) fn failure(&self, target: &TargetDeployment) -> Option<String> {
        let live = self.live.deployments.get(&target.name.0)?;
        let reported = live.failed_machines.first().map(|failed| failed.description.clone());
        let machines = self.owned.machines(&target.name.0).iter();
        let mut machines = machines.filter(|machine| *machine.member.class == *target.class_name.0);
        let of_machine =
            || machines.find(|machine| !machine.has_run).map(|machine| machine.last_description.to_string());
        reported.or_else(of_machine).filter(|failure| !failure.is_empty())
    }
}

/// Whether new machines of the live class can join: gardenlet keeps only the node agent Secret of the current name.
fn key_stays(pool: &WorkerPool, target: &TargetDeployment, live: &LiveDeployment) -> bool {
    let live_labels = &live.object.spec.template.spec.node_template.metadata.labels;
    let live_key = live_labels.get(NODE_AGENT_SECRET_LABEL);
    live_key.is_some()
        && live_key == pool.node_agent_secret_name.as_ref()
        && live_key == target.labels.get(NODE_AGENT_SECRET_LABEL)
}

pub(super) fn class_of(live: &LiveDeployment) -> &str {
    &live.object.spec.template.spec.class.name
}
