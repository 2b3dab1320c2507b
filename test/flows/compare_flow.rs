//! Differences between a measured step and the same step of this controller.

use serde_json::{Value, json};

use crate::azure::in_order_that_counts;
use crate::openstack::changes;
use test_support::measured::compare::{Difference, compare_list, compare_objects, compare_status, differ, items};

/// All differences of a step. If the Go extension fails before it has written anything, only the failure is compared,
/// because we continue with the pools that can be planned. A failure while waiting follows after all objects are
/// written.
pub(crate) fn compare(operation: &str, expected: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    let error = expected["error"].as_str();
    let at = |member: &str| vec![member.to_owned()];
    match (error, found["state"].as_str()) {
        (None, Some("Succeeded")) | (Some(_), Some("Error")) => {}
        (Some(error), _) => {
            differences.push(Difference { path: at("error"), reference: json!(error), got: found["error"].clone() });
            return differences;
        }
        (None, state) => {
            let got = json!({"state": state, "error": found["error"]});
            return vec![Difference { path: at("error"), reference: Value::Null, got }];
        }
    }
    differ(at("errorCodes"), &expected["errorCodes"], &found["errorCodes"], &mut differences);
    if error.is_some_and(|error| !is_waiting(error)) {
        return differences;
    }
    if let Some(error) = error {
        compare_text(error, &found["error"], &mut differences);
    }
    compare_objects(expected, found, &mut differences);
    // These lists were measured only where they matter.
    for list in ["machineSetObjects", "machineObjects"].into_iter().filter(|list| expected.get(list).is_some()) {
        compare_list(list, expected, found, &mut differences);
    }
    let mut status = Vec::new();
    compare_status(&expected["workerStatus"], &found["workerStatus"], &mut status);
    if operation == "delete" {
        // No client reads the status of a deleted Worker.
        status.iter_mut().for_each(|difference| difference.path[0] = "statusOfDeleted".to_owned());
    }
    differences.append(&mut status);
    let [reference, got] = [expected, found].map(|side| in_order_that_counts(&side["azureCalls"]));
    differ(at("azureCalls"), &reference, &got, &mut differences);
    let [reference, mut got] = [expected, found].map(|side| changes(&side["openstackCalls"]));
    if items(&found["openstackCalls"]).is_empty() && reference != got {
        // The controller did not even look up server groups.
        got = Value::Null;
    }
    differ(at("openstackCalls"), &reference, &got, &mut differences);
    differ(at("deleted"), &expected["deleted"], &found["deleted"], &mut differences);
    for member in
        ["machinesWhenDeploymentsWereDeleted", "machineControllerManagerReplicas", "machineSetNames", "secretNames"]
    {
        if expected.get(member).is_some() {
            differ(at(member), &expected[member], &found[member], &mut differences);
        }
    }
    let named =
        |side: &Value| json!(items(&side["pods"]).iter().map(|pod| &pod["metadata"]["name"]).collect::<Vec<_>>());
    differ(at("pods"), &named(expected), &named(found), &mut differences);
    differences
}

fn is_waiting(error: &str) -> bool {
    error.starts_with("failed while waiting")
}

/// Our text must contain the Go extension's words for what it waits for, because people and tools search for them.
fn compare_text(reference: &str, got: &Value, differences: &mut Vec<Difference>) {
    let reported =
        reference.rsplit_once("last error: ").map_or(reference, |(_, reported)| reported).trim_end_matches("...");
    let reports_it = got.as_str().is_some_and(|got| got.to_lowercase().contains(&reported.to_lowercase()));
    if !reports_it {
        differences.push(Difference {
            path: vec!["errorText".to_owned()],
            reference: json!(reported),
            got: got.clone(),
        });
    }
}
