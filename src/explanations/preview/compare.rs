//! Compares one Worker before and after a change: a verdict for each pool and zone, with its causes and findings.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget_effect::{BudgetEffect, budget_effect};
use super::cause::Cause;
use super::cloud_profile::CloudProfiles;
use super::difference::{Change, ChangeKind, ChangedObject, Path, Step, difference};
use super::finding::{
    Finding, FindingKind, Severity, findings_of_placement, findings_of_pools, unchanged_node_agent_secret,
};
use super::inputs::Inputs;
use super::placement::{Placement, live_placement};
use super::placement_change::{Nodes, PlacementChange};
use super::presumption::presumptions_that_decide;
use super::refusals::refusal;
use super::rendered_pools::{Failure, RenderedPools, as_live, cloud_before, render_pools, worker_context};
use super::rule::{Effect, Verdict, effect};
use super::shoot_source::both_made;
use super::surge::surge_plan;
use super::trials::{TrialContext, Trials};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::class_inputs::{ChangedInputs, changed_inputs, inputs_of};

/// The objects that the new ones are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The objects rendered from the old inputs, over the existing ones.
    Rendered,
    /// The existing objects, whatever the old inputs render to.
    Live,
}

/// The effect of a change on one Worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkerChange {
    /// Namespace of the Worker.
    pub namespace: String,
    /// Name of the Worker.
    pub name: String,
    /// The placements, in the order of pools and zones.
    pub placements: Vec<PlacementChange>,
    /// Problems, hazards and notices for the user.
    pub findings: Vec<Finding>,
}

impl WorkerChange {
    /// Whether anything changes or has to be reported.
    #[must_use]
    pub fn is_worth_showing(&self) -> bool {
        !self.findings.is_empty() || self.placements.iter().any(PlacementChange::is_change)
    }

    /// The result for a Worker with an unreadable object. Nothing is known about its pools.
    #[must_use]
    pub fn not_compared(namespace: &str, name: &str, reason: &str) -> Self {
        let finding = Finding::of_pool(FindingKind::CannotBeEvaluated, "", format!("can't be compared: {reason}"));
        Self { namespace: namespace.to_owned(), name: name.to_owned(), findings: vec![finding], ..Self::default() }
    }

    /// The result for a Shoot from which no Worker can be derived.
    fn not_made(namespace: &str, name: &str, kind: FindingKind, failure: Failure) -> Self {
        let finding =
            Finding { code: failure.code, ..Finding::of_pool(kind, "", format!("is invalid: {}", failure.message)) };
        Self { namespace: namespace.to_owned(), name: name.to_owned(), findings: vec![finding], ..Self::default() }
    }

    /// If the garden rejects the Shoot, removes all findings but the rejection and the assumptions: the change has no effect.
    pub fn keep_only_refusal(&mut self) {
        if self.findings.iter().all(|finding| finding.kind != FindingKind::Refused) {
            return;
        }
        self.placements.clear();
        self.findings.retain(|finding| [FindingKind::Refused, FindingKind::Presumed].contains(&finding.kind));
        for finding in self.findings.iter_mut().filter(|finding| finding.kind == FindingKind::Refused) {
            finding.severity = Severity::Error;
        }
    }

    /// Whether something can't be compared, or becomes invalid.
    #[must_use]
    pub fn breaks(&self) -> bool {
        let breaks = [FindingKind::CannotBePlanned, FindingKind::CannotBeEvaluated, FindingKind::Refused];
        self.findings.iter().any(|finding| breaks.contains(&finding.kind))
    }
}

/// Compares a Worker before and after a change. An absent side means that the Worker does not exist.
#[must_use]
pub fn compare(
    old: Option<&Inputs>,
    new: Option<&Inputs>,
    live: &MachineObjects,
    baseline: Baseline,
    profiles: &CloudProfiles,
) -> WorkerChange {
    let who = new.or(old);
    let [namespace, name] = [Inputs::namespace, Inputs::name].map(|part| who.map(part).unwrap_or_default());
    let written = (old, new);
    let (old, new) = match both_made(old, new) {
        Ok(sides) => sides,
        Err((kind, failure)) => return WorkerChange::not_made(namespace, name, kind, failure),
    };
    let old = old.as_ref();
    let new = new.as_ref();
    let cloud = cloud_before(old, new);
    let cloud = cloud.as_ref();
    let planned = old.map(|old| render_pools(old, live, cloud));
    let before = before(old, planned.as_ref(), live, baseline);
    let basis = match as_live(&before) {
        Ok(basis) => basis,
        Err(error) => return WorkerChange::not_compared(namespace, name, &error.to_string()),
    };
    let is_unchanged = matches!((old, new), (Some(old), Some(new)) if old.is_same(new));
    let after = match (&planned, new) {
        (_, None) => Ok(RenderedPools::default()),
        // The same inputs over their own objects render the same objects.
        (Some(planned), Some(_)) if is_unchanged && baseline == Baseline::Rendered => planned.clone(),
        (_, Some(new)) => render_pools(new, &basis, cloud),
    };

    let sides = (old, new);
    let mut change = WorkerChange { namespace: namespace.to_owned(), name: name.to_owned(), ..WorkerChange::default() };
    change.findings.extend(refused(written, sides));
    let kept = |pool: &str| after.as_ref().map_or(true, |after| after.failed_pools.contains_key(pool));
    let empty = RenderedPools::default();
    let rendered = after.as_ref().unwrap_or(&empty);
    for name in names(&before, planned.as_ref(), rendered) {
        let old = before.get(&name);
        let new = rendered.placements.get(&name).or_else(|| old.filter(|old| kept(&old.pool)));
        let seen = live.deployments.contains_key(&name);
        let mut of_placement = placement_change(&name, old, new, seen, baseline);
        if of_placement.verdict.is_roll() {
            let (old, new) = (sides.0.zip(old), sides.1.zip(new));
            of_placement.changed_inputs = changed_between(old, new);
            of_placement.budget = old.zip(new).map(|(old, new)| budget_effect(old, new)).unwrap_or_default();
        }
        change.placements.push(of_placement);
        if let Some(change_of_zone) = change.placements.last() {
            change.findings.extend(findings_of_placement(change_of_zone, old, new));
        }
    }
    let old_result = planned.unwrap_or_else(|| Ok(RenderedPools::default()));
    change.findings.extend(failures(old, &old_result, &after, live, baseline));
    change.findings.extend(findings_of_pools(&change.placements, &rendered.zone_by_zone));
    let pinned = rendered.pinned_pools.iter();
    change.findings.extend(pinned.map(|(pool, text)| Finding::of_pool(FindingKind::ImagePinned, pool, text.clone())));
    if let (Some(old), Some(new), false) = (old, new, is_unchanged) {
        let old_result = match baseline {
            Baseline::Rendered => old_result,
            Baseline::Live => render_pools(old, &basis, cloud),
        };
        let trials = Trials::new((old, old_result), (new, after), TrialContext { live: &basis, cloud }, profiles);
        blame(&mut change, &trials);
    }
    if let ((Some(from), Some(to)), Some(old), Some(new)) = (written, old, new)
        && !from.is_same(to)
    {
        change.findings.extend(presumptions_that_decide((from, to), (old, new), &change.placements));
    }
    if baseline == Baseline::Live {
        blame_live(&mut change, &before);
    }
    change.findings.sort_by_key(|finding| finding.severity);
    change
}

/// The finding if the garden rejects the Shoot of the new side.
fn refused(
    (_, written): (Option<&Inputs>, Option<&Inputs>),
    (old, new): (Option<&Inputs>, Option<&Inputs>),
) -> Option<Finding> {
    let reason = refusal(old, new?, written?)?;
    Some(Finding::of_pool(FindingKind::Refused, "", format!("the garden would refuse this: {reason}")))
}

/// The objects before the change, by name of the deployment.
fn before(
    old: Option<&Inputs>,
    planned: Option<&Result<RenderedPools, Failure>>,
    live: &MachineObjects,
    baseline: Baseline,
) -> BTreeMap<String, Placement> {
    let none = RenderedPools::default();
    let planned = planned.and_then(|planned| planned.as_ref().ok()).unwrap_or(&none);
    let mut before = BTreeMap::new();
    if baseline == Baseline::Rendered {
        before.clone_from(&planned.placements);
    }
    // A Worker that can't be decoded can't be planned either, which is reported as a finding.
    let published = old.and_then(|old| old.worker.decoded().ok()).map(|worker| &worker.status.machine_deployments);
    let published = published.map(Vec::as_slice).unwrap_or_default();
    for (name, deployment) in &live.deployments {
        // For files, the old inputs decide. But a pool that can't be planned keeps its existing objects.
        let keeps = deployment.pool().is_some_and(|pool| planned.failed_pools.contains_key(pool));
        if baseline == Baseline::Live || keeps {
            let mut placement = live_placement(name, deployment, live, published);
            let known = planned.placements.get(name);
            placement.zone = known.and_then(|known| known.zone.clone());
            placement.hash_items = known
                .filter(|known| known.class_name == placement.class_name)
                .and_then(|known| known.hash_items.clone());
            before.insert(name.clone(), placement);
        }
    }
    before
}

/// Every deployment once: in the order of the new plan, then removed ones in the order of the old plan.
fn names(
    before: &BTreeMap<String, Placement>,
    planned: Option<&Result<RenderedPools, Failure>>,
    after: &RenderedPools,
) -> Vec<String> {
    let old_order = planned.and_then(|planned| planned.as_ref().ok()).map(|planned| planned.order.clone());
    let mut names = after.order.clone();
    let deleted = old_order.unwrap_or_default().into_iter().chain(before.keys().cloned());
    for name in deleted.filter(|name| before.contains_key(name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn placement_change(
    name: &str,
    old: Option<&Placement>,
    new: Option<&Placement>,
    seen: bool,
    baseline: Baseline,
) -> PlacementChange {
    let Effect { verdict, new_nodes_differ } = effect(old, new);
    let reports_differences = new_nodes_differ || (baseline == Baseline::Live && verdict.is_roll());
    let replicas = |placement: Option<&Placement>| placement.map(Placement::replicas).unwrap_or_default();
    let before = replicas(old);
    let after = replicas(new);
    let affected = match verdict {
        Verdict::Roll | Verdict::InPlace | Verdict::Delete => before,
        Verdict::Create => after,
        Verdict::Scale => (after - before).abs(),
        Verdict::Metadata | Verdict::None => 0,
    };
    let surge = match new {
        Some(new) if verdict.is_roll() => surge_plan(&new.deployment, before),
        _ => None,
    };
    let placement = new.or(old);
    let zone = |placement: Option<&Placement>| placement.and_then(|placement| placement.zone.clone());
    PlacementChange {
        pool: placement.map(|placement| placement.pool.clone()).unwrap_or_default(),
        zone: zone(new).or_else(|| zone(old)),
        deployment: name.to_owned(),
        verdict,
        new_nodes_differ,
        class_differences: if reports_differences { class_differences(old, new) } else { Vec::new() },
        nodes: Nodes { before, after, affected, seen },
        old_class: old.map(|old| old.class_name.clone()),
        new_class: new.map(|new| new.class_name.clone()),
        old_machine: old.and_then(Placement::machine),
        new_machine: new.and_then(Placement::machine),
        surge,
        causes: Vec::new(),
        hash_inputs: if verdict.is_roll() { hash_inputs(old, new) } else { Vec::new() },
        changed_inputs: None,
        budget: BudgetEffect::default(),
    }
}

/// The paths at which the classes differ, without values, because a class has confidential fields.
fn class_differences(old: Option<&Placement>, new: Option<&Placement>) -> Vec<String> {
    let (Some(old), Some(new)) = (old, new) else { return Vec::new() };
    let class = |placement: &Placement| placement.class.clone().unwrap_or_default();
    let mut paths = class_paths(&class(old), &class(new));
    if old.user_data.is_some() && new.user_data.is_some() && old.user_data != new.user_data {
        paths.push("user data".to_owned());
    }
    paths
}

/// The paths that differ between two classes and that affect machines.
pub(super) fn class_paths(old: &Value, new: &Value) -> Vec<String> {
    let members = ["provider", "providerSpec", "credentialsSecretRef"];
    let changes = difference(&ChangedObject::Worker, old, new, &members);
    changes.iter().map(|change| change.path.to_string()).collect()
}

/// The inputs of the class name that change, in the form in which they are recorded.
fn changed_between(old: Option<(&Inputs, &Placement)>, new: Option<(&Inputs, &Placement)>) -> Option<ChangedInputs> {
    let recorded = |side: Option<(&Inputs, &Placement)>| {
        let (inputs, placement) = side?;
        let context = worker_context(inputs).ok()?;
        Some(inputs_of(placement.hash_items.as_ref()?, context.pool(&placement.pool)?, context.shoot))
    };
    Some(changed_inputs(&recorded(old)?, &recorded(new)?))
}

/// The names of the inputs of the class name that differ.
fn hash_inputs(old: Option<&Placement>, new: Option<&Placement>) -> Vec<String> {
    let items = |placement: Option<&Placement>| -> Option<Vec<(String, String)>> {
        let items = placement?.hash_items.as_ref()?;
        Some(items.iter().map(|item| (item.input.to_string(), item.value.clone())).collect())
    };
    let (Some(old), Some(new)) = (items(old), items(new)) else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for (name, value) in old.iter().chain(&new) {
        let has = |items: &[(String, String)]| items.iter().any(|item| item.0 == *name && item.1 == *value);
        let is_kept = has(&old) && has(&new);
        if !is_kept && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The finding for a Worker or pool that was not compared, because an object is not in the files of a side.
fn not_compared(pool: &str, failure: &Failure) -> Finding {
    let message = format!("can't be compared without an object that is not in the files: {}", failure.message);
    Finding::of_pool(FindingKind::CannotBeEvaluated, pool, message)
}

/// The finding for a Worker or pool that can't be planned after the change.
fn not_planned(kind: FindingKind, pool: &str, failure: &Failure) -> Finding {
    let again = if kind == FindingKind::StillCannotBePlanned { "still " } else { "" };
    let message = format!("is {again}invalid; its existing machines stay unchanged: {}", failure.message);
    Finding { code: failure.code, ..Finding::of_pool(kind, pool, message) }
}

/// A finding for everything that can't be planned, on one side or on both.
fn failures(
    old: Option<&Inputs>,
    before: &Result<RenderedPools, Failure>,
    after: &Result<RenderedPools, Failure>,
    live: &MachineObjects,
    baseline: Baseline,
) -> Vec<Finding> {
    // A live Worker whose object does not exist is known to lack it.
    let is_not_given = |failure: &Failure| failure.lacks_object && baseline == Baseline::Rendered;
    let (before, after) = match (before, after) {
        (Err(failure), _) if is_not_given(failure) => return vec![not_compared("", failure)],
        (Err(_), Err(failure)) if is_not_given(failure) => return vec![not_compared("", failure)],
        (Err(_), Err(failure)) => return vec![not_planned(FindingKind::StillCannotBePlanned, "", failure)],
        (Ok(_), Err(failure)) => return vec![not_planned(FindingKind::CannotBePlanned, "", failure)],
        (Err(failure), Ok(_)) => {
            let message = format!("could not be planned before, so what there is is not known: {}", failure.message);
            return vec![Finding::of_pool(FindingKind::CouldNotBePlanned, "", message)];
        }
        (Ok(before), Ok(after)) => (before, after),
    };
    let mut findings: Vec<Finding> = after
        .failed_pools
        .iter()
        .map(|(pool, failure)| match before.failed_pools.get(pool) {
            None => not_planned(FindingKind::CannotBePlanned, pool, failure),
            Some(earlier) if is_not_given(earlier) || is_not_given(failure) => not_compared(pool, failure),
            Some(_) => not_planned(FindingKind::StillCannotBePlanned, pool, failure),
        })
        .collect();
    let pools: BTreeSet<&str> = after.placements.values().map(|placement| placement.pool.as_str()).collect();
    let is_known = |pool: &str| live.deployments.values().any(|deployment| deployment.pool() == Some(pool));
    for (pool, failure) in &before.failed_pools {
        if old.is_some() && pools.contains(pool.as_str()) && !is_known(pool) {
            if is_not_given(failure) {
                findings.push(not_compared(pool, failure));
                continue;
            }
            let message = format!("could not be planned before; machines that it has may roll: {}", failure.message);
            findings.push(Finding::of_pool(FindingKind::CouldNotBePlanned, pool, message));
        }
    }
    findings
}

fn blame(change: &mut WorkerChange, trials: &Trials<'_>) {
    let targets: BTreeSet<String> = change
        .placements
        .iter()
        .filter(|placement| placement.is_change())
        .map(|placement| placement.deployment.clone())
        .collect();
    let mut causes = trials.causes(&targets);
    for placement in &mut change.placements {
        placement.causes = causes.remove(&placement.deployment).unwrap_or_default();
        // Causes of the verdict come first.
        placement.causes.sort_by_key(|cause| (cause.effect.verdict != placement.verdict, cause.effect.verdict));
    }
    for placement in &mut change.placements {
        // gardenlet would choose another Secret, and then the roll can't wait.
        if unchanged_node_agent_secret(&placement.pool, trials.changes()).is_some() {
            placement.budget = BudgetEffect::Starts;
        }
    }
    let pools: BTreeSet<&str> = change
        .placements
        .iter()
        .filter(|placement| {
            !placement.verdict.is_roll() && placement.old_class.is_some() && placement.new_class.is_some()
        })
        .map(|placement| placement.pool.as_str())
        .collect();
    let fails = |pool: &str| {
        let of_pool = |finding: &&Finding| finding.pool.as_deref() == Some(pool) || finding.pool.is_none();
        change.findings.iter().filter(of_pool).any(|finding| finding.severity == Severity::Error)
    };
    let stale: Vec<Finding> = pools
        .iter()
        .filter(|pool| !fails(pool))
        .filter_map(|pool| unchanged_node_agent_secret(pool, trials.changes()))
        .collect();
    change.findings.extend(stale);
}

/// If no changed input explains a verdict, the live object is the cause: it differs from what its Worker renders to.
fn blame_live(change: &mut WorkerChange, before: &BTreeMap<String, Placement>) {
    for placement in change.placements.iter_mut().filter(|placement| placement.is_change()) {
        let explained = placement.causes.iter().any(|cause| cause.effect.verdict == placement.verdict);
        if explained {
            continue;
        }
        let Some(old) = before.get(&placement.deployment) else { continue };
        let live = Change {
            object: ChangedObject::MachineDeployment,
            path: Path(vec![Step::Member(placement.deployment.clone())]),
            old: Some(old.class_name.clone().into()),
            new: placement.new_class.clone().map(Value::from),
            kind: ChangeKind::Value,
        };
        let effect = Effect { verdict: placement.verdict, new_nodes_differ: placement.new_nodes_differ };
        placement.causes.insert(0, Cause { change: live, effect, joint: false });
    }
}
