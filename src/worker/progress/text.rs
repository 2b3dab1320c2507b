//! What is waited for, in words. They are those of the Go extension, because people and tools search for them; but here
//! nothing that is waited for hides behind something else, and pools are named.

use super::{DeploymentProgress, FailedMachineText, Phase, Progress};

/// Machines with the same failure that are named.
const MOST_NAMES: usize = 20;
/// Deployments of one kind that are named.
const MOST_DEPLOYMENTS: usize = 3;
/// Letters of one failure. Clouds answer with whole documents.
const LONGEST_DESCRIPTION: usize = 2000;

impl Progress {
    /// What is waited for.
    #[must_use]
    pub fn waiting_text(&self) -> String {
        let mut pools = self.pending_pools();
        pools.extend(self.failed().map(|(deployment, _)| deployment.pool.as_str()));
        let pools = format!(" in pools {}", pools.join(", "));
        if self.hibernated {
            let awake = self.sum(|deployment| deployment.present);
            return format!("Waiting until all machines have been hibernated ({awake} still awake){pools}");
        }
        let mut parts = vec![format!("Waiting until machines are available ({}){pools}", self.numbers())];
        let old = self.sum(|deployment| match deployment.phase {
            // Nobody knows yet which of them are old.
            Phase::Unobserved => 0,
            _ => deployment.present - deployment.updated - deployment.unselected,
        });
        let are_all_available =
            self.sum(|deployment| deployment.unavailable) == 0 && self.sum(|d| d.available) == self.sum(|d| d.desired);
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

    /// The numbers of all deployments together.
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

    /// Deployments that machine-controller-manager has done nothing about.
    fn untaken_text(&self, what: &str, is_meant: impl Fn(&DeploymentProgress) -> bool) -> Option<String> {
        let is_untaken = |phase: &Phase| matches!(phase, Phase::Unobserved | Phase::WithoutMachineSet);
        let meant = self.deployments.iter().filter(|deployment| is_untaken(&deployment.phase) && is_meant(deployment));
        let names: Vec<String> =
            meant.map(|deployment| format!("({}/{})", self.namespace, deployment.deployment)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "waiting for the machine-controller-manager to create the {what} for the machine deployment {}",
                bounded(&names, MOST_DEPLOYMENTS)
            )
        })
    }

    fn sum(&self, number: impl Fn(&DeploymentProgress) -> i32) -> i32 {
        self.deployments.iter().map(number).fold(0, i32::saturating_add)
    }
}

/// Machines of one deployment that could not be made, by what is wrong with them.
#[must_use]
pub fn failed_machines_text(machines: &[FailedMachineText]) -> String {
    let mut by_description: Vec<(&str, Vec<String>)> = Vec::new();
    for machine in machines {
        let name = format!("{:?}", machine.machine);
        match by_description.iter_mut().find(|(description, _)| *description == machine.description) {
            Some((_, names)) => names.push(name),
            None => by_description.push((&machine.description, vec![name])),
        }
    }
    let errors: Vec<String> = by_description
        .into_iter()
        .map(|(description, names)| format!("{}: {}", bounded(&names, MOST_NAMES), shortened(description)))
        .collect();
    match errors.as_slice() {
        [error] => format!("machine(s) failed: 1 error occurred: {error}"),
        errors => format!("machine(s) failed: {} errors occurred: [{}]", errors.len(), errors.join(", ")),
    }
}

fn bounded(names: &[String], most: usize) -> String {
    match names.split_at_checked(most).filter(|(_, rest)| !rest.is_empty()) {
        None => names.join(", "),
        Some((named, rest)) => format!("{} and {} more", named.join(", "), rest.len()),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_DESCRIPTION) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn nothing_that_is_waited_for_hides_behind_something_else() {
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
    fn preserved_machines_are_told_where_there_are_some() {
        let preserved = DeploymentProgress { preserved: 1, unavailable: 2, ..deployment("a", Phase::Pending) };
        assert!(text(vec![preserved]).contains("2 machine(s) pending, 1 preserved failed machine(s), 1/1 machined"));
    }

    #[test]
    fn failures_are_told_once_with_all_their_machines() {
        let failed = |machine: usize, description: &str| FailedMachineText {
            machine: format!("m{machine}"),
            description: description.to_owned(),
            error_code: None,
        };
        let one = [failed(1, "no quota"), failed(2, "no quota")];
        assert_eq!(failed_machines_text(&one), r#"machine(s) failed: 1 error occurred: "m1", "m2": no quota"#);
        let two = [failed(1, "no quota"), failed(2, "no room"), failed(3, "no quota")];
        assert_eq!(
            failed_machines_text(&two),
            r#"machine(s) failed: 2 errors occurred: ["m1", "m3": no quota, "m2": no room]"#
        );
        let many: Vec<_> = (0..1000).map(|machine| failed(machine, &"x".repeat(100_000))).collect();
        let text = failed_machines_text(&many);
        assert!(text.len() < 3000 && text.contains("\"m19\" and 980 more: xxx"), "{}", &text[..300]);
    }
}
