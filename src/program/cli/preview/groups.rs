//! Groups pools of many Workers by causes and verdict, so that a landscape fits on a screen.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::words;
use explanations::preview::{ChangedObject, Finding, FindingKind, PlacementChange, Severity, Verdict, WorkerChange};

/// Number of Workers listed per group.
const EXAMPLES: usize = 5;

/// Pools with the same verdict for the same reasons.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) verdict: Verdict,
    pub(super) new_nodes_differ: bool,
    /// Descriptions of the changes.
    pub(super) causes: Vec<String>,
    pub(super) workers: usize,
    pub(super) pools: usize,
    /// Nodes that are replaced, updated, added or removed.
    pub(super) nodes: i64,
    /// Whether the number of nodes is a lower bound.
    pub(super) at_least: bool,
    /// `namespace/name` of the first Workers.
    pub(super) examples: Vec<String>,
}

/// Workers with the same kind of finding.
pub(super) struct FindingGroup<'a> {
    pub(super) workers: usize,
    /// The first finding of the group, as an example.
    pub(super) first: &'a Finding,
    pub(super) examples: Vec<String>,
}

type Reasons = (Verdict, bool, Vec<String>);

/// Groups all changes: strongest verdict first, then most nodes.
pub(super) fn groups(workers: &[WorkerChange]) -> Vec<Group> {
    let mut placements: BTreeMap<Reasons, Vec<(usize, &PlacementChange)>> = BTreeMap::new();
    for (index, worker) in workers.iter().enumerate() {
        for placement in worker.placements.iter().filter(|placement| placement.is_change()) {
            placements.entry(reasons(placement)).or_default().push((index, placement));
        }
    }
    let mut groups: Vec<Group> = placements
        .into_iter()
        .map(|((verdict, new_nodes_differ, causes), members)| {
            let of_workers: BTreeSet<usize> = members.iter().map(|(index, _)| *index).collect();
            let pools: BTreeSet<_> = members.iter().map(|(index, placement)| (index, &placement.pool)).collect();
            let touches_nodes = verdict.is_roll() || verdict == Verdict::Delete;
            Group {
                verdict,
                new_nodes_differ,
                causes,
                workers: of_workers.len(),
                pools: pools.len(),
                nodes: members.iter().map(|(_, placement)| placement.nodes.affected).sum(),
                at_least: touches_nodes && members.iter().any(|(_, placement)| !placement.nodes.seen),
                examples: examples(workers, &of_workers),
            }
        })
        .collect();
    groups.sort_by_key(|group| (group.verdict, std::cmp::Reverse(group.nodes)));
    groups
}

/// The causes without details specific to one Worker, such as Secret and deployment names.
fn reasons(placement: &PlacementChange) -> Reasons {
    let mut causes: Vec<String> = Vec::new();
    for cause in &placement.causes {
        let change = &cause.change;
        let field = match &change.object {
            ChangedObject::Secret { .. } => "Secret".to_owned(),
            ChangedObject::MachineDeployment => {
                causes.push("MachineDeployment: differs from what the Worker leads to".to_owned());
                continue;
            }
            _ => words::field(change, &placement.pool),
        };
        // gardenlet derives this name from the pool, so it differs for each pool.
        let step = if field == "nodeAgentSecretName" { "changed".to_owned() } else { words::step(change) };
        causes.push(format!("{field}: {step}"));
    }
    causes.dedup();
    (placement.verdict, placement.new_nodes_differ, causes)
}

/// Groups findings by kind, most severe first.
pub(super) fn finding_groups(workers: &[WorkerChange]) -> Vec<FindingGroup<'_>> {
    let mut findings: BTreeMap<(Severity, FindingKind), (&Finding, BTreeSet<usize>)> = BTreeMap::new();
    for (index, worker) in workers.iter().enumerate() {
        for finding in &worker.findings {
            let group = findings.entry((finding.severity, finding.kind)).or_insert_with(|| (finding, BTreeSet::new()));
            group.1.insert(index);
        }
    }
    findings
        .into_values()
        .map(|(first, of_workers)| FindingGroup {
            workers: of_workers.len(),
            first,
            examples: examples(workers, &of_workers),
        })
        .collect()
}

fn examples(workers: &[WorkerChange], indices: &BTreeSet<usize>) -> Vec<String> {
    let named = indices.iter().filter_map(|index| workers.get(*index));
    named.take(EXAMPLES).map(|worker| format!("{}/{}", worker.namespace, worker.name)).collect()
}
