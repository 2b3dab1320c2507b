//! Histories: a shoot, its profile, and edits in between.

use std::collections::BTreeMap;

use gardener_extension_worker::api::gardener::{NamespacedProfileSpec, ProfileSpec};
use gardener_extension_worker::cloud_profile::namespaced::merge as merge_profiles;
use gardener_extension_worker::versions::catalog::VersionCatalog;
use gardener_extension_worker::versions::garden::{Garden, Validation};
use gardener_extension_worker::versions::history::{History, Step, Trigger};
use gardener_extension_worker::versions::kubernetes_settings::KubernetesSettings;
use gardener_extension_worker::versions::maintenance::MaintainedShoot;
use gardener_extension_worker::versions::run::{LastMaintenance, Update};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::defaults::{merge, set_defaults};

pub(crate) fn result(input: &Value) -> Result<Value, String> {
    let events = input["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let specs = profiles(input, events)?;
    let name = input["cloudProfile"]["metadata"]["name"].as_str().unwrap_or_default();
    let catalogs: Vec<VersionCatalog<'_>> = specs.iter().map(|spec| VersionCatalog::new(name, spec)).collect();
    let mut world = World::start(input, &catalogs)?;
    for (event, catalog) in events.iter().zip(&catalogs[1..]) {
        let at = time(&event["at"])?;
        world.advance(at);
        world.history.set_profile(catalog);
        if event["deleteShoot"] == true {
            world.history.delete();
        }
        if let Some(patch) = event.get("shootPatch") {
            merge(&mut world.shoot, patch);
            world.original = KubernetesSettings::of(&world.shoot["spec"]);
            let mut state = MaintainedShoot::read(&world.shoot, world.defaults).map_err(|error| error.to_string())?;
            state.shoot.status.last_maintenance.clone_from(&world.history.state.shoot.status.last_maintenance);
            world.history.set_shoot(state, at);
            world.follow();
        }
    }
    let end = time(&input["end"])? + SignedDuration::from_nanos(1);
    world.advance(end);
    Ok(world.result())
}

/// The initial profile, and the profile after each event, with the changes of a NamespacedCloudProfile.
fn profiles(input: &Value, events: &[Value]) -> Result<Vec<ProfileSpec>, String> {
    let (mut profile, mut namespaced) = (&input["cloudProfile"]["spec"], &input["namespacedCloudProfile"]["spec"]);
    let mut specs = Vec::new();
    for event in std::iter::once(&Value::Null).chain(events) {
        if event["cloudProfile"].is_object() {
            profile = &event["cloudProfile"]["spec"];
        }
        if event["namespacedCloudProfile"].is_object() {
            namespaced = &event["namespacedCloudProfile"]["spec"];
        }
        let spec: ProfileSpec = decoded(profile)?;
        let namespaced: Option<NamespacedProfileSpec> = decoded(namespaced)?;
        specs.push(match namespaced {
            Some(namespaced) => merge_profiles(spec, namespaced),
            None => spec,
        });
    }
    Ok(specs)
}

pub(crate) fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_str(&value.to_string()).map_err(|error| error.to_string())
}

pub(crate) fn time(value: &Value) -> Result<Timestamp, String> {
    value.as_str().unwrap_or_default().parse().map_err(|_| format!("no time: {value}"))
}

/// A history, with the objects as an API server has them.
struct World<'c> {
    history: History<'c>,
    shoot: Value,
    original: Option<KubernetesSettings>,
    defaults: bool,
    window: [String; 2],
    /// The pools at each step, and changes other than versions.
    steps: Vec<(Vec<String>, Value)>,
}

impl<'c> World<'c> {
    fn start(input: &Value, catalogs: &'c [VersionCatalog<'c>]) -> Result<Self, String> {
        let defaults = input["noDefaults"] != true;
        let mut shoot = input["shoot"].clone();
        if defaults {
            set_defaults(&mut shoot);
        }
        let garden = Garden {
            bindings: Some(input["objects"].as_array().cloned().unwrap_or_default()),
            is_nginx_ingress_disabled: input["disableNginxIngressInShoot"] == true,
            validation: if input["apiValidation"] == true { Validation::OfShoot } else { Validation::Off },
        };
        let state = MaintainedShoot::read(&shoot, defaults).map_err(|error| error.to_string())?;
        let original = state.settings.clone();
        let offset = SignedDuration::from_secs(input["offsetSeconds"].as_i64().unwrap_or_default());
        let first = catalogs.first().ok_or("no profile")?;
        let history = History::start(state, first, garden, offset, time(&input["start"])?);
        let window = history.window().times().map(|time| time.to_string());
        let mut world = Self { history, shoot, original, defaults, window, steps: Vec::new() };
        world.follow();
        Ok(world)
    }

    /// Advances the time run by run, to record each change of the Shoot.
    fn advance(&mut self, until: Timestamp) {
        while self.history.advance_once(until) {
            self.follow();
        }
    }

    /// Writes the state into the Shoot, and records the changes of a new step.
    fn follow(&mut self) {
        let before = self.shoot["spec"].clone();
        self.history.state.write(self.original.as_ref(), &mut self.shoot);
        if let Some(annotations) = &self.history.state.shoot.metadata.annotations {
            self.shoot["metadata"]["annotations"] = json!(annotations);
        }
        if self.history.steps.len() > self.steps.len() {
            let names = self.history.state.shoot.spec.provider.workers.iter().map(|pool| pool.name.clone());
            self.steps.push((names.collect(), spec_changes(&before, &self.shoot["spec"])));
        }
    }

    fn result(&self) -> Value {
        let spec = &self.history.state.shoot.spec;
        let pools = spec.provider.workers.iter().map(|pool| {
            let image = pool.machine.image.clone().unwrap_or_default();
            json!({"name": pool.name, "image": image.name, "imageVersion": image.version, "kubernetes": pool.kubernetes.version})
        });
        let [begin, end] = &self.window;
        let steps =
            self.history.steps.iter().zip(&self.steps).map(|(step, (names, changes))| step_value(step, names, changes));
        let times = self.history.first_and_last.map(|times| times.map(|time| time.to_string()));
        plain(json!({
            "window": {"effectiveBegin": begin, "effectiveEnd": end},
            "runs": self.history.runs,
            "firstRun": times.as_ref().map(|[first, _]| first),
            "lastRun": times.as_ref().map(|[_, last]| last),
            "steps": steps.collect::<Vec<_>>(),
            "final": {"controlPlane": spec.kubernetes.version, "pools": pools.collect::<Vec<_>>()},
        }))
    }
}

/// Without nulls and empty lists.
pub(crate) fn plain(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, plain(value)));
            Value::Object(members.filter(|(name, value)| name == "steps" || !is_empty(value)).collect())
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn step_value(step: &Step, names: &[String], changes: &Value) -> Value {
    let run = &step.run;
    let trigger = match step.trigger {
        Trigger::Start => "start",
        Trigger::Window => "window",
        Trigger::Event => "event",
    };
    let repeated = step.runs > 1;
    plain(json!({
        "time": step.time.to_string(),
        "runs": repeated.then_some(step.runs),
        "lastTime": repeated.then(|| step.last_time.to_string()),
        "trigger": trigger,
        "controlPlane": run.control_plane.as_ref().and_then(|update| moved(update, false)),
        "pools": pools(step, names),
        "failures": failures(step),
        "specChanges": changes,
        "operations": run.operations,
        "operationAnnotation": run.operation,
        "rejected": run.rejected,
        "loggedErrors": run.logged,
        "panic": run.crash,
        "lastMaintenance": run.last_maintenance.as_ref().map(last_maintenance),
        "events": run.events(),
    }))
}

fn last_maintenance(last: &LastMaintenance) -> Value {
    let LastMaintenance { state, summary, parts, failure_reasons } = last;
    json!({"state": state, "summary": summary, "parts": parts, "failureReasons": failure_reasons})
}

fn moved(update: &Update, is_silent: bool) -> Option<Value> {
    let to = update.to.as_ref().ok().filter(|to| **to != update.from)?;
    let mut moved = json!({"from": update.from, "to": to, "reason": update.reason()});
    if let Some(image) = &update.image {
        moved["name"] = image.name.clone().into();
    }
    if is_silent {
        moved["reason"] = Value::Null;
        moved["unreported"] = true.into();
    }
    Some(moved)
}

fn pools(step: &Step, names: &[String]) -> Vec<Value> {
    let pool = |name: &String| {
        let image = step.run.images.get(name).and_then(|update| moved(update, step.run.is_silent));
        let kubernetes = step.run.kubernetes.get(name).and_then(|update| moved(update, false));
        (image.is_some() || kubernetes.is_some())
            .then(|| json!({"name": name, "image": image, "kubernetes": kubernetes}))
    };
    // Names should be unique. Of equal ones, the last one counts.
    let names: Vec<&String> =
        names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name)).map(|(_, name)| name).collect();
    names.into_iter().filter_map(pool).collect()
}

fn failures(step: &Step) -> Vec<Value> {
    let failed = step.run.updates().filter(|(_, update)| update.to.is_err());
    let failure = |(pool, update): (Option<&str>, &Update)| {
        let item = match (pool, &update.image) {
            (None, _) => "controlPlane",
            (_, None) => "poolKubernetes",
            _ => "poolImage",
        };
        json!({"item": item, "pool": pool, "reason": update.reason(), "error": update.description()})
    };
    failed.map(failure).collect()
}

/// Differences in a spec other than versions, member by member.
fn spec_changes(before: &Value, after: &Value) -> Value {
    let [mut old, mut new] = [BTreeMap::new(), BTreeMap::new()];
    leaves("spec", before, &mut old);
    leaves("spec", after, &mut new);
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let is_version = |path: &str| path.ends_with("kubernetes.version") || path.ends_with("machine.image.version");
    let changes = paths.into_iter().filter(|path| old.get(*path) != new.get(*path) && !is_version(path)).map(|path| {
        let mut change = Map::from_iter([("path".to_owned(), path.clone().into())]);
        change.extend(old.get(path).map(|from| ("from".to_owned(), (*from).clone())));
        change.extend(new.get(path).map(|to| ("to".to_owned(), (*to).clone())));
        Value::Object(change)
    });
    changes.collect()
}

fn leaves<'a>(path: &str, value: &'a Value, found: &mut BTreeMap<String, &'a Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, value)| leaves(&format!("{path}.{name}"), value, found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| leaves(&format!("{path}[{index}]"), item, found));
        }
        leaf => drop(found.insert(path.to_owned(), leaf)),
    }
}
