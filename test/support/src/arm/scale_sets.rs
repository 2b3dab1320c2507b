//! The scale sets of one resource group, with Azure's rules for calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::{Call, Verb};
use super::faults::{self, Fault};
use super::operations::{Effect, Operation, Operations, Running};
use super::server::{Reply, Requested};

/// Tag of scale sets that the extension created, and the tag with their pool.
const MANAGED_TAG: &str = "machineset.azure.extensions.gardener.cloud";
const POOL_TAG: &str = "machineset.azure.extensions.gardener.cloud.worker-name";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSet {
    pub name: String,
    /// If empty, it is derived from group and name.
    pub id: String,
    pub location: String,
    pub fault_domains: i32,
    pub tags: BTreeMap<String, String>,
    pub provisioning_state: String,
}

impl ScaleSet {
    /// A scale set as the extension creates it for a pool.
    pub fn of_pool(name: &str, pool: &str, fault_domains: i32) -> Self {
        let tags = [(MANAGED_TAG.to_owned(), "1".to_owned()), (POOL_TAG.to_owned(), pool.to_owned())].into();
        Self { tags, ..Self::foreign(name, fault_domains) }
    }

    /// A scale set of another owner.
    pub fn foreign(name: &str, fault_domains: i32) -> Self {
        Self {
            name: name.to_owned(),
            id: String::new(),
            location: "westeurope".to_owned(),
            fault_domains,
            tags: BTreeMap::new(),
            provisioning_state: "Succeeded".to_owned(),
        }
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "type": "Microsoft.Compute/virtualMachineScaleSets",
            "location": self.location,
            "tags": self.tags,
            "properties": {
                "orchestrationMode": "Flexible",
                "platformFaultDomainCount": self.fault_domains,
                "provisioningState": self.provisioning_state,
                "singlePlacementGroup": false,
                "timeCreated": "2026-11-21T10:00:00+00:00",
                "uniqueId": "00000000-0000-0000-0000-000000000000",
            },
        })
    }
}

/// How to name new scale sets. Recorded flows contain no random names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// As requested.
    #[default]
    AsRequested,
    /// Replace the part after the last dash with a counter: `vmo-a-00000001`.
    Numbered,
    /// Replace the part after the last dash with `XXXXXXXX`.
    Masked,
}

#[derive(Debug)]
pub(super) struct ResourceGroup {
    pub(super) subscription: String,
    pub(super) name: String,
    pub(super) exists: bool,
    pub(super) scale_sets: Vec<ScaleSet>,
    pub(super) calls: Vec<Call>,
    pub(super) faults: Vec<Fault>,
    pub(super) pace: Operations,
    pub(super) naming: Naming,
    /// For [`Naming::Numbered`]: names that were recorded when the scale sets were created one after the other.
    pub(super) measured_names: Vec<String>,
    /// The error with which operations for new scale sets end.
    pub(super) fails_to_make: Option<(String, String)>,
    pub(super) page: usize,
    /// Host of URLs in responses, instead of the host of the request.
    pub(super) links_to: Option<String>,
    running: Running,
    begun: usize,
    created: usize,
    /// Requested names, with the actual ones.
    renamed: BTreeMap<String, String>,
}

impl ResourceGroup {
    pub(super) fn new(subscription: &str, name: &str) -> Self {
        Self {
            subscription: subscription.to_owned(),
            name: name.to_owned(),
            exists: true,
            scale_sets: Vec::new(),
            calls: Vec::new(),
            faults: Vec::new(),
            pace: Operations::AtOnce,
            naming: Naming::AsRequested,
            measured_names: Vec::new(),
            fails_to_make: None,
            page: 50,
            links_to: None,
            running: Running::default(),
            begun: 0,
            created: 0,
            renamed: BTreeMap::new(),
        }
    }

    pub(super) fn id_of(&self, name: &str) -> String {
        // Recorded cases contain a fixed subscription, regardless of the credentials.
        let subscription = if self.naming == Naming::AsRequested { &self.subscription } else { "sub" };
        format!(
            "/subscriptions/{subscription}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}",
            self.name
        )
    }

    fn find(&self, name: &str) -> Option<usize> {
        let name = self.renamed.get(name).map_or(name, String::as_str);
        self.scale_sets.iter().position(|set| set.name.eq_ignore_ascii_case(name))
    }

    /// Answers a call for the scale sets of this group. `name` is absent for a list.
    pub(super) fn response(&mut self, requested: &Requested, name: Option<&str>) -> Reply {
        let Some(verb) = verb_of(&requested.method, name.is_some()) else {
            return Reply::error(405, "MethodNotAllowed", "The method is not allowed.");
        };
        let name = name.unwrap_or_default();
        self.record(verb, requested, name);
        let fault = faults::next(&mut self.faults, verb, name);
        if let Some(fault) = fault.as_ref().filter(|fault| !fault.is_after_the_call()) {
            return fault.response();
        }
        if !self.exists {
            let text = format!("Resource group '{}' could not be found.", self.name);
            return Reply::error(404, "ResourceGroupNotFound", &text);
        }
        let response = match verb {
            Verb::List => self.list(requested),
            Verb::Get => self.get(name),
            Verb::Put => self.put(requested, name),
            Verb::Delete => self.delete(requested, name),
        };
        fault.map_or(response, |fault| fault.response())
    }

    fn record(&mut self, verb: Verb, requested: &Requested, name: &str) {
        let mut query = requested.query.clone();
        query.remove("api-version");
        let is_next_page = query.contains_key("$skiptoken");
        // The read that completes a PUT has no query.
        let ends_an_operation = verb == Verb::Get && query.is_empty();
        if is_next_page || ends_an_operation {
            return;
        }
        let name = if verb == Verb::Put { self.new_name(name) } else { name.to_owned() };
        self.calls.push(Call { verb, resource_group: self.name.clone(), name, query, body: requested.body.clone() });
    }

    /// The actual name of a scale set, stable across calls.
    fn new_name(&mut self, requested: &str) -> String {
        if let Some(known) = self.renamed.get(requested) {
            return known.clone();
        }
        let stem = |name: &str| name.rsplit_once('-').map_or(name, |(stem, _)| stem).to_owned();
        let measured = self.measured_names.iter().position(|measured| stem(measured) == stem(requested));
        let stem = stem(requested);
        let name = match self.naming {
            Naming::AsRequested => return requested.to_owned(),
            _ if self.find(requested).is_some() => return requested.to_owned(),
            Naming::Numbered if let Some(index) = measured => self.measured_names.remove(index),
            Naming::Numbered => {
                self.created += 1;
                format!("{stem}-{:08}", self.created)
            }
            Naming::Masked => format!("{stem}-XXXXXXXX"),
        };
        self.renamed.insert(requested.to_owned(), name.clone());
        name
    }

    fn list(&self, requested: &Requested) -> Reply {
        let start: usize = requested.query.get("$skiptoken").and_then(|token| token.parse().ok()).unwrap_or_default();
        let page: Vec<Value> = self.scale_sets.iter().skip(start).take(self.page).map(ScaleSet::document).collect();
        let mut response = json!({ "value": page });
        if start + self.page < self.scale_sets.len() {
            let origin = self.links_to.as_ref().unwrap_or(&requested.origin);
            let next = format!("{origin}{}?api-version=2024-03-01&$skiptoken={}", requested.path, start + self.page);
            response["nextLink"] = next.into();
        }
        Reply::json(200, response)
    }

    fn get(&self, name: &str) -> Reply {
        match self.find(name) {
            Some(position) => Reply::json(200, self.scale_sets[position].document()),
            None => self.not_found(name),
        }
    }

    fn not_found(&self, name: &str) -> Reply {
        let text = format!(
            "The Resource 'Microsoft.Compute/virtualMachineScaleSets/{name}' under resource group '{}' was not found.",
            self.name
        );
        Reply::error(404, "ResourceNotFound", &text)
    }

    fn put(&mut self, requested: &Requested, name: &str) -> Reply {
        let body = &requested.body;
        let Some(location) = body["location"].as_str() else {
            return Reply::error(400, "LocationRequired", "The location property is required for this definition.");
        };
        let count = body["properties"]["platformFaultDomainCount"].as_i64().unwrap_or(1) as i32;
        if !(1..=3).contains(&count) {
            let text = "The value of parameter platformFaultDomainCount is invalid.";
            return Reply::error(400, "InvalidParameter", text);
        }
        let name = self.new_name(name);
        if self.running.is_busy(&name) {
            return Reply::error(409, "Conflict", "Another operation on this scale set is in progress.");
        }
        if let Some(position) = self.find(&name) {
            if self.scale_sets[position].fault_domains != count {
                let text = "Changing property 'platformFaultDomainCount' is not allowed.";
                return Reply::error(409, "PropertyChangeNotAllowed", text);
            }
            self.scale_sets[position].tags = tags_of(body);
            self.scale_sets[position].provisioning_state = "Succeeded".to_owned();
            return Reply::json(200, self.scale_sets[position].document());
        }
        let mut made = ScaleSet {
            id: self.id_of(&name),
            location: location.to_owned(),
            tags: tags_of(body),
            ..ScaleSet::foreign(&name, count)
        };
        if self.pace == Operations::AtOnce && self.fails_to_make.is_none() {
            self.scale_sets.push(made.clone());
            return Reply::json(201, made.document());
        }
        made.provisioning_state = "Creating".to_owned();
        self.scale_sets.push(made.clone());
        let effect = match &self.fails_to_make {
            Some((code, message)) => Effect::Failed { code: code.clone(), message: message.clone() },
            None => Effect::Made,
        };
        let address = self.begin(requested, &name, effect);
        Reply::json(201, made.document())
            .header("azure-asyncoperation", address)
            .header("retry-after", self.pace.retry_after().to_string())
    }

    fn delete(&mut self, requested: &Requested, name: &str) -> Reply {
        let Some(position) = self.find(name) else { return Reply::empty(204) };
        if self.running.is_busy(&self.scale_sets[position].name) {
            return Reply::error(409, "Conflict", "Another operation on this scale set is in progress.");
        }
        if self.pace == Operations::AtOnce {
            self.scale_sets.remove(position);
            return Reply::empty(200);
        }
        self.scale_sets[position].provisioning_state = "Deleting".to_owned();
        let name = self.scale_sets[position].name.clone();
        let address = self.begin(requested, &name, Effect::Deleted);
        Reply::empty(202)
            .header("location", format!("{address}&monitor=true"))
            .header("retry-after", self.pace.retry_after().to_string())
    }

    /// Begins an operation and returns its URL.
    fn begin(&mut self, requested: &Requested, name: &str, effect: Effect) -> String {
        self.begun += 1;
        let id = format!("{}-{}", self.name, self.begun);
        self.running.begin(id.clone(), name, effect);
        format!(
            "{}/subscriptions/{}/providers/Microsoft.Compute/locations/westeurope/operations/{id}?api-version=2024-03-01",
            self.links_to.as_ref().unwrap_or(&requested.origin),
            self.subscription
        )
    }

    fn take_effect(&mut self, operation: &Operation) {
        let Some(position) = self.find(&operation.scale_set) else { return };
        match operation.effect {
            Effect::Made => self.scale_sets[position].provisioning_state = "Succeeded".to_owned(),
            Effect::Failed { .. } => self.scale_sets[position].provisioning_state = "Failed".to_owned(),
            Effect::Deleted => {
                self.scale_sets.remove(position);
            }
        }
    }

    pub(super) fn complete_operations(&mut self) {
        for operation in self.running.end_all() {
            self.take_effect(&operation);
        }
    }

    /// Answers a poll; `None` if the operation belongs to another group.
    pub(super) fn poll(&mut self, id: &str, is_location: bool) -> Option<Reply> {
        let (operation, ends_now) = self.running.poll(id, self.pace)?;
        if ends_now {
            self.take_effect(&operation);
        }
        let response = if is_location { operation.location() } else { Reply::json(200, operation.status(id)) };
        Some(response.header("retry-after", self.pace.retry_after().to_string()))
    }
}

fn verb_of(method: &str, names_one: bool) -> Option<Verb> {
    match (method, names_one) {
        ("GET", false) => Some(Verb::List),
        ("GET", true) => Some(Verb::Get),
        ("PUT", true) => Some(Verb::Put),
        ("DELETE", true) => Some(Verb::Delete),
        _ => None,
    }
}

fn tags_of(body: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(body["tags"].clone()).unwrap_or_default()
}
