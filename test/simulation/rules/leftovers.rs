//! Checks for missing and leftover objects after completed operations.

use std::sync::Arc;

use serde_json::Value;

use super::{Rules, class_of, is_of_class, is_owned, machines_of, of_deployment};
use crate::actor::is_vanishing;
use crate::api_server::kinds::{DEPLOYMENT, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, WORKER};
use crate::api_server::store::{Change, Object};
use crate::machines::in_place;

/// Missing and leftover objects after an operation has succeeded.
pub(crate) fn leftovers(log: &[Change]) -> Vec<String> {
    let mut rules = Rules::new(true, None);
    log.iter().for_each(|change| rules.keep(change));
    if rules.of(&WORKER).next().is_none() {
        return rules
            .machine_objects()
            .into_iter()
            .map(|left| format!("{left} is left, and its Worker is gone"))
            .collect();
    }
    let Some(requested) = rules.requested.last() else { return Vec::new() };
    let mut found: Vec<String> =
        requested.expected.unplanned.iter().map(|pool| format!("pool {pool} can't be planned at the end")).collect();
    for (name, expected) in requested.expected.deployments.iter() {
        let secret = rules.get(&MACHINE_CLASS, &expected.class).map(|class| &class["secretRef"]["name"]);
        if !secret.and_then(Value::as_str).and_then(|name| rules.get(&SECRET, name)).is_some_and(is_of_class) {
            found.push(format!("MachineClass {} or its Secret is missing at the end", expected.class));
        }
        match rules.get(&MACHINE_DEPLOYMENT, name) {
            None => found.push(format!("MachineDeployment {name} is missing at the end")),
            Some(live) if class_of(live) != expected.class => {
                found.push(format!(
                    "MachineDeployment {name} has class {} at the end, not {}",
                    class_of(live),
                    expected.class
                ));
            }
            Some(live) => {
                let (replicas, machines) =
                    (live["spec"]["replicas"].as_i64().unwrap_or_default(), machines_of(&rules, name));
                let is_right = if requested.hibernates {
                    replicas == 0
                } else {
                    (expected.minimum..=expected.maximum).contains(&replicas)
                };
                if !is_right || machines != replicas {
                    found.push(format!(
                        "MachineDeployment {name} has {replicas} replicas and {machines} machines at the end"
                    ));
                }
            }
        }
    }
    let runs = rules.of(&DEPLOYMENT).any(|manager| manager.value["spec"]["replicas"] != 0);
    let mut classes: Vec<&str> =
        requested.expected.deployments.values().map(|expected| expected.class.as_str()).collect();
    // A machine that is updated in place needs its original class, and so does its set until the machine leaves it.
    let in_place = |object: &&Arc<Object>| {
        rules.get(&MACHINE_DEPLOYMENT, of_deployment(&object.value)).is_some_and(in_place::is_in_place)
    };
    let machines = rules.of(&MACHINE).filter(in_place);
    classes.extend(machines.filter_map(|machine| machine.value["spec"]["class"]["name"].as_str()));
    let sets = rules.of(&MACHINE_SET).filter(in_place).filter(|set| set.value["status"]["replicas"] != 0);
    classes.extend(sets.map(|set| class_of(&set.value)));
    for ((kind, name), object) in &rules.now {
        // machine-controller-manager is stopped and does not remove its finalizer.
        let is_held = is_vanishing(&object.value) && !runs;
        let is_required = is_held
            || match *kind {
                "MachineDeployment" => requested.requests(name),
                "MachineClass" => classes.contains(&name.as_str()),
                "Secret" if is_of_class(&object.value) => classes.contains(&name.as_str()),
                // The garbage collector deletes owned sets.
                "MachineSet" if !is_owned(&object.value) => requested.requests(of_deployment(&object.value)),
                _ => true,
            };
        if !is_required {
            found.push(format!("{kind} {name} is left, and nobody wants it"));
        }
    }
    found
}
