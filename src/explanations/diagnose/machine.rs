//! Reasons why machines are not ready. Machines of a pool with the same reason are one finding.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::facts::Facts;
use super::finding::{Finding, FindingKind, Severity};
use super::machine_document::{FailedMachine, MachineDocument, MachineStatus};
use wire::api::bounded_text::beginning;
use wire::api::gardener::ErrorCode;
use wire::api::gotext::json::decode_value;

/// machine-controller-manager replaces a machine that has not joined after this time, by default.
const LONGEST_JOIN: SignedDuration = SignedDuration::from_mins(20);
/// machine-controller-manager deletes a machine that is not drained after this time, by default.
const LONGEST_DRAIN: SignedDuration = SignedDuration::from_hours(2);
/// Maximum length of a driver's message, in characters.
const LONGEST_TEXT: usize = 2000;

/// How AWS reports a capacity reservation without free capacity.
const RESERVATION_FULL: &str = "ReservationCapacityExceeded";

/// Machines of one pool with the same reason.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: FindingKind,
    pool: String,
    driver_code: Option<String>,
    codes: BTreeSet<ErrorCode>,
    /// The driver's message without the name of the machine.
    words: String,
}

/// The findings about machines.
pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut groups: BTreeMap<Group, (Finding, usize)> = BTreeMap::new();
    for machine in &facts.machines {
        if let Some(kind) = machine.waits_for() {
            add(&mut groups, facts, kind, machine);
        }
    }
    let known: BTreeSet<&str> = facts.machines.iter().map(MachineDocument::name).collect();
    for machine in failed_machines(facts).iter().filter(|machine| !known.contains(machine.name())) {
        add(&mut groups, facts, machine.status.last_operation.failure(), machine);
    }
    let finding = |(finding, count): (Finding, usize)| {
        overdue(Finding { message: message(finding.kind, count), ..finding }, facts.now)
    };
    groups.into_values().map(finding).collect()
}

/// A machine that waits for too long has a problem.
fn overdue(finding: Finding, now: Timestamp) -> Finding {
    let longest = match finding.kind {
        FindingKind::NotJoined => LONGEST_JOIN,
        FindingKind::Terminating => LONGEST_DRAIN,
        _ => return finding,
    };
    let is_overdue = finding.since.is_some_and(|since| now.duration_since(since) > longest);
    if is_overdue { Finding { severity: Severity::Error, ..finding } } else { finding }
}

/// The failed machines that MachineDeployments report, in the form of Machines.
fn failed_machines(facts: &Facts<'_>) -> Vec<MachineDocument> {
    let mut machines = Vec::new();
    for (deployment, live) in &facts.deployments {
        let failed = live.document.pointer("/status/failedMachines").and_then(Value::as_array);
        let failed = failed.into_iter().flatten().filter_map(|failed| decode_value::<FailedMachine>(failed).ok());
        machines.extend(failed.map(|failed| {
            let labels = Some([("name".to_owned(), deployment.clone())].into());
            MachineDocument {
                metadata: ObjectMeta { name: Some(failed.name), labels, ..ObjectMeta::default() },
                status: MachineStatus { last_operation: failed.last_operation, ..MachineStatus::default() },
                ..MachineDocument::default()
            }
        }));
    }
    machines
}

fn add(
    groups: &mut BTreeMap<Group, (Finding, usize)>,
    facts: &Facts<'_>,
    kind: FindingKind,
    machine: &MachineDocument,
) {
    let last = &machine.status.last_operation;
    let pool = facts.pool_of(machine.deployment()).unwrap_or_default().to_owned();
    // Machines that merely wait need no message.
    let words = match kind {
        FindingKind::NotJoined | FindingKind::Terminating => "",
        _ => last.description.as_str(),
    };
    let codes = match words {
        "" => BTreeSet::new(),
        words => facts.codes(last.error_code.as_deref(), words),
    };
    let name = machine.name();
    let group = Group {
        kind,
        driver_code: last.error_code.clone(),
        codes: codes.clone(),
        words: if name.is_empty() { words.to_owned() } else { words.replace(name, "") },
        pool: pool.clone(),
    };
    let (finding, count) = groups.entry(group).or_insert_with(|| {
        let subject = if pool.is_empty() { "machines of no pool".to_owned() } else { format!("pool {pool}") };
        let finding = Finding {
            driver_code: last.error_code.clone(),
            driver_text: (!words.is_empty()).then(|| beginning(words, LONGEST_TEXT)),
            disruption_budgets: disruption_budgets(words),
            ..kind.found(subject, "").codes(codes)
        };
        (with_reservation(with_budgets(finding)), 0)
    });
    *count += 1;
    finding.machines.push(name.to_owned());
    finding.since = match (finding.since, machine.since(kind)) {
        (Some(first), Some(other)) => Some(first.min(other)),
        (first, other) => first.or(other),
    };
}

fn message(kind: FindingKind, count: usize) -> String {
    let machines = if count == 1 { "1 machine".to_owned() } else { format!("{count} machines") };
    let (has, is, them) = if count == 1 { ("has", "is", "it") } else { ("have", "are", "them") };
    match kind {
        FindingKind::Preserved => format!("{machines} failed and {is} preserved, so nothing replaces {them}"),
        FindingKind::CreationFailed => format!("{machines} can't be created"),
        FindingKind::DeletionFailed => format!("{machines} can't be deleted"),
        FindingKind::DrainBlocked => format!("{machines} can't be drained"),
        FindingKind::NotJoined => format!("{machines} {has} not joined the cluster"),
        FindingKind::Terminating => format!("{machines} {is} being drained and deleted"),
        _ => format!("{machines} {is} unhealthy"),
    }
}

/// A full capacity reservation stays full while its own old machines wait for new ones, so waiting never helps.
fn with_reservation(finding: Finding) -> Finding {
    let texts = [&finding.driver_code, &finding.driver_text];
    if !texts.into_iter().flatten().any(|text| text.contains(RESERVATION_FULL)) {
        return finding;
    }
    let step = "Waiting doesn't help: the old machines occupy the capacity reservation that the new ones need. Enlarge the \
                reservation at the cloud, or set maxSurge to 0 and maxUnavailable to 1 in the pool, so that an old machine is \
                deleted first.";
    finding.next(step)
}

/// If a disruption budget is named, replaces the next step by one that is specific to it.
fn with_budgets(finding: Finding) -> Finding {
    if finding.disruption_budgets.is_empty() {
        return finding;
    }
    let step = "If the disruption budget allows no disruption, run more pods, or change it. After the drain timeout the machine is \
                deleted all the same.";
    finding.next(step)
}

/// The pod disruption budgets in messages such as `disruption budget kube-system/dns is misconfigured` or `The
/// disruption budget dns needs 2 healthy pods`.
fn disruption_budgets(text: &str) -> Vec<String> {
    const NAMED: &str = "disruption budget ";
    let mut budgets = Vec::new();
    for (start, _) in text.match_indices(NAMED) {
        let behind = text.get(start + NAMED.len()..).unwrap_or_default();
        let Some((name, rest)) = behind.split_once(' ') else { continue };
        let name = name.trim_matches(['"', '\'', '`']);
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        let continues = ["is ", "needs ", "does "].iter().any(|word| rest.starts_with(word));
        let name = name.to_owned();
        if continues && name.splitn(2, '/').all(is_name) && !budgets.contains(&name) {
            budgets.push(name);
        }
    }
    budgets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_budgets_in_driver_messages() {
        for (text, budgets) in [
            ("pod disruption budget kube-system/dns is misconfigured and requires zero", &["kube-system/dns"][..]),
            (
                "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget \"dns\" needs 2 \
                 healthy pods and has 2 currently",
                &["dns"],
            ),
            ("a disruption budget forbids it", &[]),
            ("disruption budget $(rm) is x", &[]),
        ] {
            assert_eq!(disruption_budgets(text), budgets, "{text}");
        }
    }
}
