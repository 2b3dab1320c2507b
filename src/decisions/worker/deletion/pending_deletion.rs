//! Pure: remaining objects of a Worker that is being deleted, their finalizers, and the progress.

use crate::worker::machines::live_machine::LiveMachine;
use crate::worker::machines::machine_objects::MachineObjects;
use crate::worker::machines::progress::LONGEST_DESCRIPTION;
use wire::api::bounded_text::{Bound, beginning, named};

/// Limit of listed objects.
const MOST_NAMES: usize = 3;
/// Limit of listed finalizers per object.
const MOST_FINALIZERS: Bound = Bound { items: 10, bytes: 1024 };

/// Message with the number of remaining objects, and the finalizers of those to be deleted next. With `why`, it
/// contains machine-controller-manager's description of the last attempt to delete each machine, which changes often.
#[must_use]
pub fn pending_deletion_text(live: &MachineObjects, why: bool) -> String {
    let counts = [
        (live.machines.len(), "machine", "s"),
        (live.machine_sets.len(), "machine set", "s"),
        (live.deployments.len(), "machine deployment", "s"),
        (live.classes.len(), "machine class", "es"),
        (live.class_secrets.len(), "machine class secret", "s"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(count, kind, plural)| format!("{count} {kind}{}", if count == 1 { "" } else { plural })).collect();
    let mut text = format!("waiting until the following machine resources have been deleted: {}", counts.join(", "));
    let held = held(live, why);
    for holder in held.iter().take(MOST_NAMES) {
        text.push_str("; ");
        text.push_str(holder);
    }
    if held.len() > MOST_NAMES {
        text.push_str(&format!("; and {} more", held.len() - MOST_NAMES));
    }
    text
}

/// Objects of the kind to be deleted next, with their finalizers.
fn held(live: &MachineObjects, why: bool) -> Vec<String> {
    let of_machine = |machine: &LiveMachine| {
        let mut text = holder("Machine", &machine.member.name, &machine.member.finalizers)?;
        let result = &machine.last_description;
        if why && !result.is_empty() {
            text.push_str(&format!(" ({})", beginning(result, LONGEST_DESCRIPTION)));
        }
        Some(text)
    };
    let machines: Vec<String> = live.machines.iter().filter_map(of_machine).collect();
    if !machines.is_empty() {
        return machines;
    }
    let sets = live.machine_sets.iter().map(|set| ("MachineSet", &*set.member.name, &*set.member.finalizers));
    let deployments = live.deployments.iter().map(|(name, live)| {
        let finalizers = live.object.metadata.finalizers.as_deref().unwrap_or_default();
        ("MachineDeployment", name.as_str(), finalizers)
    });
    let classes = live.classes.iter().map(|(name, class)| ("MachineClass", name.as_str(), &*class.finalizers));
    let secrets = live.class_secrets.iter().map(|(name, secret)| ("Secret", name.as_str(), &*secret.finalizers));
    let mut held = sets.chain(deployments).chain(classes).chain(secrets).filter(|(.., by)| !by.is_empty()).peekable();
    let next = held.peek().map(|(kind, ..)| *kind);
    held.take_while(|(kind, ..)| Some(*kind) == next).filter_map(|(kind, name, by)| holder(kind, name, by)).collect()
}

fn holder(kind: &str, name: &str, finalizers: &[String]) -> Option<String> {
    let by = (!finalizers.is_empty()).then(|| named(finalizers, MOST_FINALIZERS))?;
    Some(format!("{kind} {name} is held by {by}"))
}

/// `lastOperation.progress`, by the kind to be deleted next.
#[must_use]
pub fn percentage(live: &MachineObjects) -> i32 {
    match live {
        _ if live.uses_classes() => 30,
        _ if !live.classes.is_empty() => 60,
        _ if !live.class_secrets.is_empty() => 80,
        _ => 90,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::worker::machines::machine_objects::DigestedObject;

    fn machine(name: &str) -> LiveMachine {
        serde_json::from_value(json!({
            "metadata": {"name": name, "finalizers": ["machine.sapcloud.io/machine-controller"]},
            "status": {"lastOperation": {"description": "a disruption budget forbids the eviction"}},
        }))
        .unwrap()
    }

    #[test]
    fn counts_objects_and_names_finalizers() {
        let class =
            json!({"metadata": {"name": "class-a", "finalizers": ["machine.sapcloud.io/machine-controller-manager"]}});
        let mut live = MachineObjects {
            machines: ["m1", "m2", "m3", "m4"].map(machine).into(),
            classes: [("class-a".to_owned(), DigestedObject::class(class).unwrap())].into(),
            ..MachineObjects::default()
        };
        let text = pending_deletion_text(&live, false);
        assert!(text.contains("deleted: 4 machines, 1 machine class; Machine m1 is held by"), "{text}");
        assert!(text.contains("Machine m3 is held") && text.ends_with("; and 1 more"), "{text}");
        assert!(!text.contains("class-a") && !text.contains("disruption"), "{text}");
        assert!(pending_deletion_text(&live, true).contains("(a disruption budget forbids"), "{text}");
        live.machines.pop();
        let text = pending_deletion_text(&live, false);
        assert!(text.ends_with("; Machine m3 is held by machine.sapcloud.io/machine-controller"), "{text}");
        live.machines.clear();
        assert!(pending_deletion_text(&live, true).ends_with(
            "1 machine class; MachineClass class-a is held by machine.sapcloud.io/machine-controller-manager"
        ));
        assert_eq!(percentage(&live), 60);
    }

    #[test]
    fn progress_follows_deletion_order() {
        let class = DigestedObject::class(json!({"metadata": {"name": "a"}})).unwrap();
        let secret = DigestedObject::secret(serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap());
        let mut live = MachineObjects {
            machines: vec![machine("m")],
            classes: [("a".to_owned(), class)].into(),
            class_secrets: [("a".to_owned(), secret)].into(),
            ..MachineObjects::default()
        };
        let mut reported = vec![percentage(&live)];
        live.machines.clear();
        reported.push(percentage(&live));
        live.classes.clear();
        reported.push(percentage(&live));
        live.class_secrets.clear();
        reported.push(percentage(&live));
        assert_eq!(reported, [30, 60, 80, 90]);
    }

    #[test]
    fn omits_objects_without_finalizers() {
        let set = |finalizers: &[&str]| {
            let document = json!({"metadata": {"name": "set", "finalizers": finalizers}});
            let machine_sets = vec![serde_json::from_value(document).unwrap()];
            pending_deletion_text(&MachineObjects { machine_sets, ..MachineObjects::default() }, true)
        };
        assert!(set(&["foregroundDeletion"]).ends_with("1 machine set; MachineSet set is held by foregroundDeletion"));
        assert!(set(&[]).ends_with("have been deleted: 1 machine set"), "{}", set(&[]));
        let unheld = json!({"metadata": {"name": "set"}});
        let machine_sets = vec![serde_json::from_value(unheld).unwrap()];
        let live = MachineObjects { machine_sets, ..MachineObjects::default() };
        assert!(!pending_deletion_text(&live, true).contains("is held by"));
    }
}
