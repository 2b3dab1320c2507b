//! Messages about progress. They match those of the Go extension, because users and tools search for them. Unlike
//! there, they include everything that is waited for and name the pools.

use std::collections::HashMap;

use crate::worker::machines::machine_objects::FailedMachine;
use crate::worker::machines::progress::{DeploymentProgress, Phase, Progress};
use wire::api::bounded_text::{Bound, beginning, joined, named, shortened, size};

/// Limit of listed machines with the same failure.
const MOST_NAMES: usize = 20;
/// Limit of listed deployments of one kind.
const MOST_DEPLOYMENTS: usize = 3;
/// Maximum length of a list of pools in bytes.
const MOST_OF_POOLS: usize = 4 * 1024;
/// Maximum length of a failure in characters. Clouds may respond with whole documents.
pub(crate) const LONGEST_DESCRIPTION: usize = 2000;
/// Maximum length of a name in a message in bytes. Kubernetes names are shorter.
const MOST_OF_NAME: usize = 512;

impl Progress {
    /// Message about everything that is waited for.
    #[must_use]
    pub fn waiting_text(&self) -> String {
        let mut pools = self.pending_pools();
        pools.extend(self.failed().map(|(deployment, _)| deployment.pool.as_str()));
        let pools = format!(" in pools {}", named(&pools, Bound::bytes(MOST_OF_POOLS)));
        if self.hibernated {
            let awake = self.sum(|deployment| deployment.present);
            return format!("Waiting until all machines have been hibernated ({awake} still awake){pools}");
        }
        let mut parts = vec![format!("Waiting until machines are available ({}){pools}", self.numbers())];
        let old = self.sum(|deployment| match deployment.phase {
            // The number of old machines is not known yet.
            Phase::Unobserved => 0,
            _ => deployment.present - deployment.updated - deployment.unselected,
        });
        let waits = self.deployments.iter().any(|deployment| deployment.phase == Phase::Waiting);
        let are_all_available = !waits
            && self.sum(|deployment| deployment.unavailable) == 0
            && self.sum(|d| d.available) == self.sum(|d| d.desired);
        if old > 0 && are_all_available {
            parts.push(format!(
                "Waiting until all old machines are drained and terminated. Waiting for {old} machine(s)"
            ));
        } else if old > 0 {
            parts.push(format!("{old} old machine(s) still to go"));
        }
        let selected = self.sum(|deployment| deployment.selected);
        if selected > 0 {
            parts.push(format!("Waiting until {selected} old machines are updated"));
        }
        parts.extend(self.untaken_text("machine sets", |deployment| deployment.rolls));
        parts.extend(self.untaken_text("updated machine set", |deployment| !deployment.rolls));
        parts.join("; ")
    }

    /// The sums over all deployments.
    fn numbers(&self) -> String {
        let desired = self.sum(|deployment| deployment.desired);
        let preserved = match self.sum(|deployment| deployment.preserved) {
            0 => String::new(),
            preserved => format!("{preserved} preserved failed machine(s), "),
        };
        format!(
            "{}/{desired} desired machine(s) available, {}/{desired} machine(s) updated, {} machine(s) pending, \
             {preserved}{}/{} machinedeployments available",
            self.sum(|deployment| deployment.available),
            self.sum(|deployment| deployment.updated + deployment.unselected + deployment.selected),
            self.sum(|deployment| deployment.unavailable),
            self.deployments.iter().filter(|deployment| deployment.is_healthy).count(),
            self.deployments.len(),
        )
    }

    /// Deployments that machine-controller-manager has not acted on.
    fn untaken_text(&self, what: &str, is_meant: impl Fn(&DeploymentProgress) -> bool) -> Option<String> {
        let is_untaken = |phase: &Phase| matches!(phase, Phase::Unobserved | Phase::WithoutMachineSet);
        let meant = self.deployments.iter().filter(|deployment| is_untaken(&deployment.phase) && is_meant(deployment));
        let names: Vec<String> =
            meant.map(|deployment| format!("({}/{})", self.namespace, deployment.deployment)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "waiting for the machine-controller-manager to create the {what} for the machine deployment {}",
                named(&names, Bound { items: MOST_DEPLOYMENTS, bytes: MOST_OF_POOLS })
            )
        })
    }

    fn sum(&self, number: impl Fn(&DeploymentProgress) -> i32) -> i32 {
        self.deployments.iter().map(number).fold(0, i32::saturating_add)
    }
}

/// Machines with the same failure.
struct FailureGroup<'a> {
    description: &'a str,
    names: Vec<&'a str>,
}

/// Groups failures by description, in the order of their first machines.
fn by_description<'a>(machines: impl Iterator<Item = &'a FailedMachine>) -> Vec<FailureGroup<'a>> {
    let mut failures: Vec<FailureGroup<'a>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for FailedMachine { name, description, .. } in machines {
        let position = *known.entry(description).or_insert_with(|| {
            failures.push(FailureGroup { description, names: Vec::new() });
            failures.len() - 1
        });
        failures[position].names.push(name);
    }
    failures
}

/// Number of omitted failures and machines.
fn rest_of(separator: &str, rest: &[FailureGroup<'_>]) -> String {
    let machines: usize = rest.iter().map(|failure| failure.names.len()).sum();
    format!("{separator}and {} more errors of {machines} machines", rest.len())
}

impl FailureGroup<'_> {
    /// Names and description in at most `bytes`, with at most half of them for names.
    fn text(&self, names: &[String], between: &str, bytes: usize) -> String {
        let names = named(names, Bound { items: MOST_NAMES, bytes: bytes / 2 });
        let left = bytes.saturating_sub(size(&names) + size(between));
        format!("{names}{between}{}", shortened(&beginning(self.description, LONGEST_DESCRIPTION), left))
    }
}

/// Failed machines of one deployment, grouped by failure, in at most `bytes`.
#[must_use]
pub fn failed_machines_text(machines: &[FailedMachine], bytes: usize) -> String {
    let failures = by_description(machines.iter());
    let (begin, end) = match failures.len() {
        1 => ("machine(s) failed: 1 error occurred: ".to_owned(), ""),
        number => (format!("machine(s) failed: {number} errors occurred: ["), "]"),
    };
    let text_of = |failure: &FailureGroup<'_>, bytes: usize| {
        let names: Vec<String> = failure.names.iter().map(|name| format!("{name:?}")).collect();
        failure.text(&names, ": ", bytes)
    };
    let left = Bound::bytes(bytes.saturating_sub(size(&begin) + size(end)));
    format!("{begin}{}{end}", joined(&failures, ", ", left, text_of, |rest| rest_of(", ", rest)))
}

/// Machines whose deletion failed, grouped by failure, in at most `bytes`. Each failure starts with `what`, the
/// attempted action.
#[must_use]
pub fn failed_deletions_text(what: &str, machines: &[&FailedMachine], bytes: usize) -> String {
    let text_of = |failure: &FailureGroup<'_>, bytes: usize| {
        let begin = format!("{what}: machine{} ", if failure.names.len() == 1 { "" } else { "s" });
        let names: Vec<String> = failure.names.iter().map(|name| shortened(name, MOST_OF_NAME)).collect();
        format!("{begin}{}", failure.text(&names, " failed: ", bytes.saturating_sub(size(&begin))))
    };
    joined(&by_description(machines.iter().copied()), "; ", Bound::bytes(bytes), text_of, |rest| rest_of("; ", rest))
}

impl DeploymentProgress {
    /// Its failed machines and its pool, in at most `bytes`.
    pub(crate) fn failure_text(&self, machines: &[FailedMachine], bytes: usize) -> String {
        let pool = format!(" (pool {})", shortened(&format!("{:?}", self.pool), MOST_OF_NAME.min(bytes / 4)));
        format!("{}{pool}", failed_machines_text(machines, bytes.saturating_sub(size(&pool))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::status::status_text::MAX_FAILURE_BYTES;

    fn deployment(pool: &str, phase: Phase) -> DeploymentProgress {
        DeploymentProgress {
            pool: pool.to_owned(),
            deployment: format!("{pool}-z1"),
            phase,
            is_healthy: true,
            rolls: false,
            desired: 2,
            present: 2,
            updated: 2,
            available: 2,
            unavailable: 0,
            preserved: 0,
            unselected: 0,
            selected: 0,
            untaken_since: None,
        }
    }

    fn text(deployments: Vec<DeploymentProgress>) -> String {
        Progress { namespace: "ns".to_owned(), deployments, hibernated: false }.waiting_text()
    }

    #[test]
    fn message_lists_everything_waited_for() {
        let text = text(vec![
            DeploymentProgress { present: 3, rolls: true, ..deployment("old", Phase::Pending) },
            DeploymentProgress { updated: 1, selected: 1, ..deployment("hand", Phase::Pending) },
            deployment("new", Phase::WithoutMachineSet),
            deployment("well", Phase::Ready),
        ]);
        for part in [
            "Waiting until machines are available (8/8 desired machine(s) available, 8/8 machine(s) updated, \
             0 machine(s) pending, 4/4 machinedeployments available) in pools old, hand, new; ",
            "Waiting until all old machines are drained and terminated. Waiting for 2 machine(s); ",
            "Waiting until 1 old machines are updated; ",
            "to create the updated machine set for the machine deployment (ns/new-z1)",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        assert!(!text.contains("well"), "{text}");
    }

    #[test]
    fn mentions_preserved_machines() {
        let preserved = DeploymentProgress { preserved: 1, unavailable: 2, ..deployment("a", Phase::Pending) };
        assert!(text(vec![preserved]).contains("2 machine(s) pending, 1 preserved failed machine(s), 1/1 machined"));
    }

    #[test]
    fn groups_machines_by_failure() {
        let failed = |machine: usize, description: &str| FailedMachine {
            name: format!("m{machine}"),
            description: description.to_owned(),
            ..FailedMachine::default()
        };
        let one = [failed(1, "no quota"), failed(2, "no quota")];
        assert_eq!(
            failed_machines_text(&one, MAX_FAILURE_BYTES),
            r#"machine(s) failed: 1 error occurred: "m1", "m2": no quota"#
        );
        let two = [failed(1, "no quota"), failed(2, "no room"), failed(3, "no quota")];
        assert_eq!(
            failed_machines_text(&two, MAX_FAILURE_BYTES),
            r#"machine(s) failed: 2 errors occurred: ["m1", "m3": no quota, "m2": no room]"#
        );
        let many: Vec<_> = (0..1000).map(|machine| failed(machine, &"x".repeat(100_000))).collect();
        let text = failed_machines_text(&many, MAX_FAILURE_BYTES);
        assert!(text.len() < 3000 && text.contains("\"m19\" and 980 more: xxx"), "{}", &text[..300]);
        let numbered: Vec<_> =
            (0..1200).map(|machine| failed(machine, &format!("{machine} {}", "x".repeat(2000)))).collect();
        let text = failed_machines_text(&numbered, MAX_FAILURE_BYTES);
        assert!(text.starts_with("machine(s) failed: 1200 errors occurred: [\"m0\": 0 xxx"), "{}", &text[..300]);
        assert!(text.ends_with(", and 1186 more errors of 1186 machines]"), "{}", &text[text.len() - 300..]);
        let event = failed_machines_text(&numbered, 800);
        assert!(event.len() <= 800 && event.ends_with(" machines]"), "{event}");
    }

    #[test]
    fn percentage_counts_updated_available_machines() {
        let of = |desired, present, updated, available| DeploymentProgress {
            desired,
            present,
            updated,
            available,
            ..deployment("a", Phase::Pending)
        };
        let percentage = |hibernated, deployments: &[DeploymentProgress]| {
            Progress { namespace: "ns".to_owned(), deployments: deployments.to_vec(), hibernated }.percentage()
        };
        assert_eq!(percentage(false, &[of(4, 4, 1, 4)]), 25, "the others are of the old class");
        assert_eq!(percentage(false, &[of(4, 5, 5, 2), of(1, 1, 1, 1)]), 50, "surplus machines are still to go");
        assert_eq!(percentage(false, &[of(2, 2, 2, 2)]), 100);
        assert_eq!(percentage(true, &[of(0, 2, 2, 2)]), 0, "none of them sleeps");
    }

    #[test]
    fn mentions_drain_once_machines_are_available() {
        let old = |available: i32, unavailable: i32| {
            let pending = deployment("a", Phase::Pending);
            text(vec![DeploymentProgress { present: 3, available, unavailable, ..pending }])
        };
        let drained = "Waiting until all old machines are drained and terminated. Waiting for 1 machine(s)";
        assert!(old(2, 0).ends_with(drained), "{}", old(2, 0));
        for (available, unavailable) in [(1, 0), (2, 1), (1, 1)] {
            let text = old(available, unavailable);
            assert!(text.ends_with("; 1 old machine(s) still to go"), "{text}");
        }
    }

    #[test]
    fn ignores_old_machines_until_observed() {
        let pending = deployment("a", Phase::Pending);
        let missing = DeploymentProgress { present: 1, updated: 1, available: 1, unavailable: 1, ..pending.clone() };
        let unselected = DeploymentProgress { updated: 1, unselected: 1, ..pending.clone() };
        let unobserved = DeploymentProgress { updated: 0, ..deployment("a", Phase::Unobserved) };
        for progress in [pending, missing, unselected, unobserved] {
            let text = text(vec![progress.clone()]);
            assert!(!text.contains("old machine"), "{text}: {progress:?}");
        }
    }

    #[test]
    fn names_leave_room_for_description() {
        let failed = |number: usize, length: usize| FailedMachine {
            name: format!("{number:02}{}", "m".repeat(length)),
            description: "no quota".to_owned(),
            ..FailedMachine::default()
        };
        let event: Vec<FailedMachine> = (0..20).map(|number| failed(number, 60)).collect();
        let text = failed_machines_text(&event, 800);
        assert!(text.ends_with(" more: no quota"), "{text}");
        let deletions: Vec<FailedMachine> = (0..20).map(|number| failed(number, 200)).collect();
        let deletions: Vec<&FailedMachine> = deletions.iter().collect();
        let text = failed_deletions_text("deleting", &deletions, MAX_FAILURE_BYTES);
        assert!(text.contains("19mmm") && text.ends_with(" failed: no quota"), "{text}");
    }

    #[test]
    fn bounds_failed_machines_text() {
        let failed = |number: usize| FailedMachine {
            name: format!("m{number}"),
            description: format!("{number} {}", "x".repeat(1500)),
            ..FailedMachine::default()
        };
        for (failures, bounds) in [(1, 200..300), (9, 2050..2200)] {
            let machines: Vec<FailedMachine> = (0..failures).map(failed).collect();
            for bytes in bounds {
                let text = failed_machines_text(&machines, bytes);
                assert!(size(&text) <= bytes, "{} of {bytes} bytes", size(&text));
            }
        }
    }
}
