//! Differences between a measured result and the result of `render` for the same input.

use serde_json::Value;

use test_support::measured::compare::{Difference, compare_objects, compare_status, differ, in_one_form, items};

/// All differences of a case.
pub(crate) fn compare(expected: &Value, got: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    if let Value::String(_) = expected["error"] {
        compare_failure(expected, got, &mut differences);
        return differences;
    }
    if !items(&got["errors"]).is_empty() {
        let got = got["errors"].clone();
        return vec![Difference { path: vec!["errors".to_owned()], reference: Value::Null, got }];
    }
    compare_objects(expected, got, &mut differences);
    let (reference, got_list) = (in_one_form(&expected["machineDeployments"]), in_one_form(&got["machineDeployments"]));
    differ(vec!["machineDeployments".to_owned()], &reference, &got_list, &mut differences);
    compare_status(&expected["workerStatus"], &got["workerStatus"], &mut differences);
    differences
}

/// If the Go extension fails, we must not succeed. It stops at the first error, but we continue with the other pools,
/// so objects are not compared. However, a pool with an error must not get any. If the Go extension panics, nothing is
/// deployed unless the error names the pool.
fn compare_failure(expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    let errors = items(&got["errors"]);
    if errors.is_empty() {
        differences.push(Difference {
            path: vec!["error".to_owned()],
            reference: expected["error"].clone(),
            got: Value::Null,
        });
    }
    let panics = expected["errorStage"] == "panic";
    for deployment in items(&got["machineDeployments"]) {
        let forbids = |error: &Value| error["pool"] == deployment["poolName"] || (panics && error["pool"].is_null());
        if errors.iter().any(forbids) {
            differences.push(Difference {
                path: vec!["machineDeployments".to_owned()],
                reference: Value::Null,
                got: deployment.clone(),
            });
        }
    }
}
