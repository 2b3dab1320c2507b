//! Damaged inputs: random members of Worker, Cluster, Secrets and live objects are removed, or get another type or an
//! extreme value. Every input produces objects or an error.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use gardener_extension_worker::api::gardener::Worker;
use gardener_extension_worker::cli::input::workers_of_documents;
use gardener_extension_worker::cli::render::{Rendered, render};
use gardener_extension_worker::provider::Providers;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

use crate::parity_inputs::{self, ParityInput};

static INPUTS: LazyLock<Vec<ParityInput>> = LazyLock::new(parity_inputs::all);

/// One way to damage a value.
#[derive(Clone, Debug)]
enum Mutation {
    Remove,
    Replace(Value),
    /// Repeats a list a hundred times, or an object's first member under a hundred names.
    Multiply,
    /// Copies the value of another location.
    CopyFrom(Index),
    /// Nests the value in this many lists.
    Bury(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        3 => Just(Mutation::Remove),
        4 => replacement().prop_map(Mutation::Replace),
        1 => Just(Mutation::Multiply),
        2 => any::<Index>().prop_map(Mutation::CopyFrom),
        1 => prop_oneof![Just(1_usize), Just(60), Just(130)].prop_map(Mutation::Bury),
    ]
}

/// Values of every type, especially boundary values.
fn replacement() -> impl Strategy<Value = Value> {
    const TEXTS: [&str; 26] = [
        "",
        " ",
        "0",
        "-1",
        "1",
        "100%",
        "-1%",
        "33.3%",
        "%",
        "9223372036854775807%",
        "99999999999999999999%",
        "9223372036854775807",
        "9223372036854775808Gi",
        "1e999999999",
        "-0.0000000001m",
        "NaN",
        "v1.35",
        "1.35.0-0",
        "18446744073709551616.0.0",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999-23:59",
        "292y",
        "2562047h47m16.854775808s",
        "\u{0}",
        "é\u{2028}\u{feff}😀",
        "{\"a\":",
    ];
    prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(Value::from),
        prop_oneof![
            Just(i64::MIN),
            Just(i64::from(i32::MIN)),
            Just(-1),
            Just(0),
            Just(1),
            Just(i64::from(i32::MAX)),
            Just(i64::from(i32::MAX) + 1),
            Just(i64::MAX),
        ]
        .prop_map(Value::from),
        prop_oneof![Just(u64::MAX).prop_map(Value::from), Just(json!(0.5)), Just(json!(1e308)), Just(json!(-1e-308))],
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
        Just(json!({"": null})),
        Just(Value::from("x".repeat(100_000))),
    ]
}

/// Pointers to all locations in a value, including its root.
fn locations(value: &Value) -> Vec<String> {
    fn collect(value: &Value, pointer: &str, locations: &mut Vec<String>) {
        locations.push(pointer.to_owned());
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    collect(member, &format!("{pointer}/{name}"), locations);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    collect(item, &format!("{pointer}/{index}"), locations);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, "", &mut found);
    found
}

/// Damages one location and returns its pointer.
fn damage(bundle: &mut Value, location: Index, mutation: &Mutation) -> String {
    let locations = locations(bundle);
    let pointer = location.get(&locations).clone();
    match mutation {
        Mutation::Remove => remove(bundle, &pointer),
        Mutation::Replace(value) => put(bundle, &pointer, value.clone()),
        Mutation::CopyFrom(other) => {
            let copied = bundle.pointer(other.get(&locations).as_str()).cloned().unwrap_or_default();
            put(bundle, &pointer, copied);
        }
        Mutation::Multiply => {
            if let Some(value) = bundle.pointer_mut(&pointer) {
                multiply(value);
            }
        }
        Mutation::Bury(depth) => {
            if let Some(value) = bundle.pointer_mut(&pointer) {
                *value = (0..*depth).fold(value.take(), |inner, _| json!([inner]));
            }
        }
    }
    pointer
}

fn put(bundle: &mut Value, pointer: &str, value: Value) {
    if let Some(location) = bundle.pointer_mut(pointer) {
        *location = value;
    }
}

fn remove(bundle: &mut Value, pointer: &str) {
    let Some((parent, step)) = pointer.rsplit_once('/') else { return };
    match bundle.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&step.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(index) = step.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn multiply(value: &mut Value) {
    const TIMES: usize = 100;
    match value {
        Value::Array(items) => *items = items.iter().cycle().take(items.len() * TIMES).cloned().collect(),
        Value::Object(members) => {
            let copies: Map<_, _> =
                members.iter().take(1).flat_map(|(name, member)| named_copies(name, member, TIMES)).collect();
            members.extend(copies);
        }
        Value::String(text) => *text = text.repeat(TIMES),
        _ => {}
    }
}

fn named_copies(name: &str, member: &Value, times: usize) -> Vec<(String, Value)> {
    (0..times).map(|number| (format!("{name}{number}"), member.clone())).collect()
}

/// Names of the pools that must have machine deployments or an error.
fn pools_with_placements(worker: &Worker) -> BTreeSet<String> {
    let pools = worker.spec.pools.iter().filter(|pool| !pool.zones.is_empty());
    pools.map(|pool| pool.name.clone()).collect()
}

/// Every pool has machine deployments or an error that a user can read.
fn check_result(pools: &BTreeSet<String>, rendered: &Rendered) -> Result<(), TestCaseError> {
    let is_whole = rendered.errors.iter().any(|error| error.pool.is_none());
    let failed: BTreeSet<_> = rendered.errors.iter().filter_map(|error| error.pool.as_deref()).collect();
    let planned: BTreeSet<_> =
        rendered.machine_deployments.iter().map(|expected| expected.pool_name.as_str()).collect();
    for pool in pools {
        prop_assert!(
            is_whole || failed.contains(pool.as_str()) || planned.contains(pool.as_str()),
            "pool {pool:?} has neither machines nor an error"
        );
    }
    for error in &rendered.errors {
        prop_assert!(!error.message.is_empty());
    }
    let documents = rendered.machine_deployment_objects.iter().map(|object| &object["metadata"]["name"]);
    let documents: BTreeSet<_> = documents.filter_map(Value::as_str).collect();
    for expected in &rendered.machine_deployments {
        prop_assert!(documents.contains(expected.name.0.as_str()), "no object for {:?}", expected.name.0);
    }
    prop_assert!(serde_json::to_string(rendered).is_ok());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(2000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn damaged_inputs_give_objects_or_an_error(
        input in any::<Index>(),
        mutations in prop::collection::vec((any::<Index>(), mutation()), 1..5),
    ) {
        let input = input.get(&INPUTS);
        let mut bundle = input.bundle.clone();
        let damaged: Vec<_> =
            mutations.iter().map(|(location, mutation)| damage(&mut bundle, *location, mutation)).collect();
        // An error for the whole file is a valid result, too.
        let workers = workers_of_documents(Path::new("input"), vec![bundle]).unwrap_or_default();
        for worker in workers {
            let pools = pools_with_placements(&worker.worker);
            check_result(&pools, &render(worker, Providers::SHIPPED))
                .map_err(|error| TestCaseError::fail(format!("{} at {damaged:?}: {error}", input.name)))?;
        }
    }
}

/// Replaces each member of one input with each extreme value.
#[test]
fn no_single_member_can_cause_a_panic() {
    let input = parity_inputs::one("azure/in-place/auto-image-version");
    let values = [
        json!(null),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(""),
        json!("99999999999999999999%"),
        json!([]),
        json!({}),
    ];
    for location in locations(&input.bundle) {
        let mut damaged = vec![input.bundle.clone()];
        remove(&mut damaged[0], &location);
        for value in &values {
            let mut bundle = input.bundle.clone();
            put(&mut bundle, &location, value.clone());
            damaged.push(bundle);
        }
        for bundle in damaged {
            for worker in workers_of_documents(Path::new("input"), vec![bundle]).unwrap_or_default() {
                let pools = pools_with_placements(&worker.worker);
                check_result(&pools, &render(worker, Providers::SHIPPED))
                    .unwrap_or_else(|error| panic!("{location}: {error}"));
            }
        }
    }
}
