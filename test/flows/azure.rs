//! Azure in a case: its scale sets, the calls that fail, and the received calls in order.

use serde_json::{Value, json};

use test_support::measured::cases::Form;

use crate::case::Case;
use crate::location::Location;
use test_support::arm::{Arm, Fault, Group, Naming, ScaleSet, Verb};

/// One stand-in for all cases, which use different subscriptions.
pub(crate) struct Azure(pub(crate) Arm);

/// The resource group of a case.
pub(crate) struct CaseGroup {
    group: Group,
    form: Form,
}

impl Azure {
    /// Creates the initial state of Azure; `None` for a Worker without a subscription or a resource group.
    pub(crate) fn prepare(&self, case: &Case, location: &Location) -> Option<CaseGroup> {
        let subscription = location.subscription()?;
        let name = case.given.worker.pointer("/spec/infrastructureProviderStatus/resourceGroup/name")?.as_str()?;
        let group = self.0.group(&subscription, name);
        let azure = &case.given.azure;
        group.naming(match azure.form {
            Form::Cases => Naming::Numbered,
            Form::Flows => Naming::Masked,
        });
        let measured = case.steps.iter().flat_map(|step| step.expected["azureCalls"].as_array().into_iter().flatten());
        let made = measured.filter(|call| call["call"] == "createOrUpdate").filter_map(|call| call["name"].as_str());
        group.measured_names(made.map(str::to_owned).collect());
        for given in &azure.scale_sets {
            let of =
                given["resourceGroup"].as_str().map_or_else(|| group.clone(), |name| self.0.group(&subscription, name));
            of.has(scale_set(given));
        }
        for (verb, operation) in
            [(Verb::List, "list"), (Verb::Get, "get"), (Verb::Put, "createOrUpdate"), (Verb::Delete, "delete")]
        {
            if let Some(text) = azure.failures[operation].as_str() {
                group.fail(Fault::as_in_cases(verb, text));
            }
        }
        Some(CaseGroup { group, form: azure.form })
    }
}

impl CaseGroup {
    /// The calls since the last time, with bodies as objects.
    pub(crate) fn calls(&self) -> Value {
        let calls = self.group.calls();
        self.group.forget_calls();
        let calls = calls.iter().map(|call| match self.form {
            Form::Cases => call.in_cases(),
            Form::Flows => call.in_flows(),
        });
        json!(calls.map(with_body).collect::<Vec<_>>())
    }
}

/// Normalizes calls so that only the required order is compared. First, the controller looks up and creates what pools
/// need, independently for each pool. Then it lists everything, and deletes what is not needed. Calls for the same
/// scale set keep their order, and so do the three parts.
pub(crate) fn in_order_that_counts(calls: &Value) -> Value {
    let mut calls: Vec<Value> = calls.as_array().into_iter().flatten().cloned().map(with_body).collect();
    for part in calls.chunk_by_mut(|call, next| part_of(call) == part_of(next)) {
        part.sort_by_cached_key(stem_of);
    }
    json!(calls)
}

/// The part that a call belongs to: both kinds of providing are one part.
fn part_of(call: &Value) -> &str {
    match call.get("call").or_else(|| call.get(0)).and_then(Value::as_str).unwrap_or_default() {
        "get" | "Get" | "createOrUpdate" | "CreateOrUpdate" => "provide",
        other => other,
    }
}

/// The name of a scale set without its random suffix.
fn stem_of(call: &Value) -> String {
    let name = call.get("name").or_else(|| call.get(2)).and_then(Value::as_str).unwrap_or_default();
    name.rsplit_once('-').map_or(name, |(stem, _)| stem).to_owned()
}

/// A call with its body as an object instead of text, because the order of members does not matter.
fn with_body(mut call: Value) -> Value {
    let body = call.get(3).and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let (Some(body @ Value::Object(_)), Some(location)) = (body, call.get_mut(3)) {
        *location = body;
    }
    call
}

fn scale_set(given: &Value) -> ScaleSet {
    let fault_domains = [&given["platformFaultDomainCount"], &given["properties"]["platformFaultDomainCount"]]
        .into_iter()
        .find_map(Value::as_i64);
    let text = |member: &str| given[member].as_str().unwrap_or_default().to_owned();
    let fault_domains = fault_domains.and_then(|count| i32::try_from(count).ok()).unwrap_or_default();
    let mut set = ScaleSet::foreign(&text("name"), fault_domains);
    set.id = text("id");
    set.tags = serde_json::from_value(given["tags"].clone()).unwrap_or_default();
    set
}
