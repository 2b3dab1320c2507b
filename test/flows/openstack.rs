//! OpenStack in a case: its server groups, the calls that fail, and the received calls in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::case::Case;
use crate::location::Location;
use test_support::openstack::{Fault, OpenStack, Project, made};

/// Creates the initial state of OpenStack in the project of a location.
pub(crate) fn prepare(openstack: &OpenStack, case: &Case, location: &Location) -> Project {
    let project = openstack.project(&location.namespace);
    let given = &case.given.openstack;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    project.set(|state| {
        state.groups = given["serverGroups"].as_array().cloned().unwrap_or_default();
        // The controller provides for pools concurrently, so the order of new groups is random. IDs are assigned by
        // name.
        let measured = case.steps.iter().flat_map(|step| {
            let status = &step.expected["workerStatus"]["providerStatus"];
            status["serverGroupDependencies"].as_array().into_iter().flatten()
        });
        let ids: BTreeMap<String, String> =
            measured.map(|record| (text(&record["name"]), text(&record["id"]))).collect();
        state.id_of = Box::new(move |name, number| ids.get(name).cloned().unwrap_or_else(|| made(number)));
        state.regions = match given["catalogRegions"].as_array() {
            Some(regions) => regions.iter().map(text).collect(),
            None => vec![text(&case.given.worker["spec"]["region"])],
        };
        for (call, fails) in given["fail"].as_object().into_iter().flatten() {
            let number = |member: &str| fails[member].as_u64().and_then(|number| u32::try_from(number).ok());
            let status = number("status").and_then(|status| u16::try_from(status).ok()).unwrap_or(500);
            let fault = Fault::of(call, status, &text(&fails["body"]));
            state.fails.push(number("times").map_or(fault.clone(), |times| fault.times(times)));
        }
    });
    project
}

/// The calls of Nova since the last time.
pub(crate) fn calls(project: &Project) -> Value {
    let calls = project.take_calls().into_iter().filter(|call| call.kind != "authenticate");
    json!(calls.map(|call| call.in_cases()).collect::<Vec<_>>())
}

/// Creating and deleting calls without their address. Lookups are omitted, because each extension decides how often it
/// looks up a group. The calls are sorted, because groups of several pools are created concurrently.
pub(crate) fn changes(calls: &Value) -> Value {
    let mut calls = calls.as_array().cloned().unwrap_or_default();
    calls.retain(|call| call["call"] == "create" || call["call"] == "delete");
    calls.sort_by_cached_key(|call| (call["call"].to_string(), call["body"].to_string()));
    for call in calls.iter_mut().filter_map(Value::as_object_mut) {
        call.retain(|member, _| member != "host" && member != "request");
    }
    json!(calls)
}
