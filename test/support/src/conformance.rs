//! Conformance tests for machine providers, run on an example of the provider. Names depend on values and not on their
//! order, no document causes a panic, and for each hash candidate the example declares whether it affects the hash.
//!
//! A provider only needs to call `check` in a test; see `test/tiny` and `test/properties`.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context as _, Result, anyhow, ensure};
use gardener_extension_worker::api::gardener::{Cluster, ShootPools, Worker};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::provider::{PoolPlan, Provider, WorkerContext};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

/// A provider and the example to test it with.
pub struct Example<'a> {
    /// The provider.
    pub provider: &'a dyn Provider,
    /// A Worker with its Cluster and Secrets, as input for `render`. Every pool must be plannable.
    pub documents: &'a str,
    /// The pool to change.
    pub pool: &'a str,
    /// Values to add before the test, by path in the pool (or in the Worker, below `/spec/`): every member that can be
    /// hashed, and a Kubernetes version for which values are hashed.
    pub members: &'a [(&'a str, &'a str)],
    /// Changes that change names. Together, they change every hashed text.
    pub hashed: &'a [(&'a str, &'a str)],
    /// Changes that keep names.
    pub not_hashed: &'a [(&'a str, &'a str)],
}

/// The result of planning a pool.
#[derive(Clone, Debug, PartialEq)]
struct Planned {
    /// Names of classes and deployments, in the order of the plan.
    names: Vec<[String; 2]>,
    /// Hashed values by name of the input, for all zones.
    hashed: BTreeMap<String, BTreeSet<String>>,
    /// All other parts of the plan.
    plan: String,
}

impl From<&PoolPlan> for Planned {
    fn from(plan: &PoolPlan) -> Self {
        let mut hashed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for item in plan.machines.iter().flat_map(|machine| machine.hash_items.iter()) {
            hashed.entry(item.input.to_string()).or_default().insert(item.value.clone());
        }
        let name = |machine: &gardener_extension_worker::provider::MachinePlan| {
            [machine.deployment.class_name.0.clone(), machine.deployment.name.0.clone()]
        };
        Self { names: plan.machines.iter().map(name).collect(), hashed, plan: json!(plan).to_string() }
    }
}

/// The objects of an example.
#[derive(Clone)]
struct Objects {
    worker: Value,
    cluster: Value,
    secrets: Vec<Value>,
}

/// Runs all checks.
///
/// # Errors
/// For the first check that fails.
pub fn check(example: &Example<'_>) -> Result<()> {
    let mut objects = Objects::read(example.documents)?;
    for (path, text) in example.members {
        objects.change(example.pool, path, text)?;
    }
    let before = plans(example.provider, &objects)?.context("the example can't be read")?;
    for (pool, planned) in &before {
        let planned = planned.as_ref().map_err(|error| anyhow!("the example can't be planned: {error}"))?;
        ensure!(!planned.names.is_empty(), "pool {pool} has no machines");
    }
    check_order(example.provider, &objects, &before)?;
    check_hash(example, &objects, &before)?;
    check_panics(example.provider, &objects)
}

/// Plans of all pools by pool name.
type Plans = BTreeMap<String, Result<Planned, String>>;

impl Objects {
    fn read(text: &str) -> Result<Self> {
        let mut of_kind: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for document in yaml::documents(text)? {
            of_kind.entry(document["kind"].as_str().unwrap_or_default().to_owned()).or_default().push(document);
        }
        let mut one = |kind: &str| {
            let found = of_kind.remove(kind).and_then(|mut found| found.pop());
            found.with_context(|| format!("there is no {kind}"))
        };
        let (worker, cluster) = (one("Worker")?, one("Cluster")?);
        Ok(Self { worker, cluster, secrets: of_kind.remove("Secret").unwrap_or_default() })
    }

    /// Sets a value at a path in a pool, or in the Worker if it begins with `/spec`.
    fn change(&mut self, pool: &str, path: &str, text: &str) -> Result<()> {
        let pools = self.worker["spec"]["pools"].as_array().context("there are no pools")?;
        let position =
            pools.iter().position(|known| known["name"] == pool).with_context(|| format!("no pool {pool}"))?;
        let of_worker = path.starts_with("/spec/").then(|| path.to_owned());
        let path = of_worker.unwrap_or_else(|| format!("/spec/pools/{position}{path}"));
        // A document must be an object or list, so wrap the value in a member.
        let value = yaml::documents(&format!("value: {text}"))?.pop().context("no value")?["value"].take();
        put(&mut self.worker, &path, value).with_context(|| format!("no place {path}"))
    }
}

/// Plans the pools. `None` if the objects cannot be decoded or nothing can be planned.
fn plans(provider: &dyn Provider, objects: &Objects) -> Result<Option<Plans>> {
    let worker: Result<Worker, _> = decode_lenient(&to_go_json(&objects.worker));
    let cluster: Result<Cluster, _> = decode_lenient(&to_go_json(&objects.cluster));
    let (Ok(worker), Ok(cluster)) = (worker, cluster) else { return Ok(None) };
    let (Some(cloud_profile), Some(shoot)) = (&cluster.spec.cloud_profile, &cluster.spec.shoot) else {
        return Ok(None);
    };
    let secrets = secrets(&objects.secrets)?;
    let context = WorkerContext { worker: &worker, cloud_profile, shoot, secrets: &secrets, dependencies: None };
    let Ok(planner) = provider.planner(context) else { return Ok(None) };
    let results: Vec<_> = worker.spec.pools.iter().map(|pool| (pool, planner.plan_pool(pool))).collect();
    for (pool, _) in &results {
        planner.explain_pool(pool);
    }
    let planned: Vec<&PoolPlan> = results.iter().filter_map(|(_, plan)| plan.as_ref().ok()).collect();
    let failed: Vec<_> = results.iter().filter(|(_, plan)| plan.is_err()).map(|(pool, _)| *pool).collect();
    let status = planner.provider_status(&planned, &failed);
    ensure!(status.is_ok(), "what was planned gives no provider status: {status:?}");
    let plan = |plan: &Result<PoolPlan, _>| plan.as_ref().map(Planned::from).map_err(ToString::to_string);
    Ok(Some(results.iter().map(|(pool, result)| (pool.name.clone(), plan(result))).collect()))
}

fn secrets(documents: &[Value]) -> Result<Secrets> {
    let mut secrets = Secrets::default();
    for document in documents {
        let mut secret: Secret = serde_json::from_value(document.clone())?;
        let texts = secret.string_data.take().unwrap_or_default();
        let bytes = texts.into_iter().map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes())));
        secret.data.get_or_insert_default().extend(bytes);
        let (namespace, name) = (secret.metadata.namespace.clone(), secret.metadata.name.clone());
        secrets.insert(&namespace.unwrap_or_default(), &name.unwrap_or_default(), SecretContent::from(secret));
    }
    Ok(secrets)
}

/// The order of pools, and of members in documents, must not affect the result.
fn check_order(provider: &dyn Provider, objects: &Objects, before: &Plans) -> Result<()> {
    let mut turned = objects.clone();
    if let Some(pools) = turned.worker.pointer_mut("/spec/pools").and_then(Value::as_array_mut) {
        pools.reverse();
    }
    turned.secrets.reverse();
    let after = plans(provider, &turned)?;
    ensure!(after.as_ref() == Some(before), "another order of pools gives other machines: {before:#?}, {after:#?}");
    let again = plans(provider, objects)?;
    ensure!(again.as_ref() == Some(before), "the same objects give other machines: {before:#?}, {again:#?}");
    let names: Vec<_> = before.values().flatten().flat_map(|planned| &planned.names).collect();
    let classes: BTreeSet<_> = names.iter().map(|[class, _]| class).collect();
    let deployments: BTreeSet<_> = names.iter().map(|[_, deployment]| deployment).collect();
    ensure!(classes.len() == names.len() && deployments.len() == names.len(), "names repeat: {names:?}");
    Ok(())
}

fn check_hash(example: &Example<'_>, objects: &Objects, before: &Plans) -> Result<()> {
    let base = before.get(example.pool).and_then(|planned| planned.as_ref().ok()).context("the pool is not planned")?;
    let mut unchanged: BTreeSet<&str> = base.hashed.keys().map(String::as_str).collect();
    for (path, text) in example.hashed {
        let planned = changed(example, objects, path, text)?;
        let same = base.names.iter().zip(&planned.names).find(|([class, _], [other, _])| class == other);
        ensure!(same.is_none(), "{path}: {text} gives no other class: {same:?}");
        let deployments = |planned: &Planned| planned.names.iter().map(|[_, name]| name.clone()).collect::<Vec<_>>();
        ensure!(deployments(base) == deployments(&planned), "{path}: {text} gives another deployment");
        unchanged.retain(|input| base.hashed.get(*input) == planned.hashed.get(*input));
    }
    ensure!(unchanged.is_empty(), "hashed, but no change of the example changes it: {unchanged:?}");
    for (path, text) in example.not_hashed {
        let planned = changed(example, objects, path, text)?;
        ensure!(planned.hashed == base.hashed, "{path}: {text} changes what is hashed: {:#?}", planned.hashed);
        ensure!(planned.names == base.names, "{path}: {text} gives other names: {:?}", planned.names);
    }
    Ok(())
}

/// Plans the pool with a changed value.
fn changed(example: &Example<'_>, objects: &Objects, path: &str, text: &str) -> Result<Planned> {
    let mut objects = objects.clone();
    objects.change(example.pool, path, text)?;
    let mut plans = plans(example.provider, &objects)?.with_context(|| format!("{path}: {text} can't be read"))?;
    let planned = plans.remove(example.pool).with_context(|| format!("{path}: {text} leaves no pool"))?;
    planned.map_err(|error| anyhow!("{path}: {text} can't be planned: {error}"))
}

fn put(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, member) = path.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => drop(members.insert(member.replace("~1", "/").replace("~0", "~"), value)),
        Value::Array(items) => *items.get_mut(member.parse::<usize>().ok()?)? = value,
        _ => return None,
    }
    Some(())
}

/// Any document must result in machines or an error, not a panic.
fn check_panics(provider: &dyn Provider, objects: &Objects) -> Result<()> {
    let of_document: [fn(&mut Objects) -> &mut Value; 2] =
        [|objects| &mut objects.worker, |objects| &mut objects.cluster];
    let mut oddities = oddities().into_iter().cycle();
    for document in of_document {
        for path in paths(document(&mut objects.clone())) {
            // Test each path with null and two other values in turn, because all combinations would take a minute.
            for value in [Value::Null].into_iter().chain(oddities.by_ref().take(2)) {
                let mut odd = objects.clone();
                put(document(&mut odd), &path, value.clone());
                check_odd(provider, &odd, &format!("{path} of {} as {value}", document(&mut odd.clone())["kind"]))?;
            }
        }
    }
    for text in ["", "\u{0}", "{\"error\":", "RESPONSE 409\nERROR CODE: ", "code = [", "\u{1F600}: quota exceeded"] {
        catch_unwind(AssertUnwindSafe(|| provider.error_codes(Some(text), text)))
            .map_err(|_| anyhow!("error_codes panics on {text:?}"))?;
    }
    Ok(())
}

fn check_odd(provider: &dyn Provider, odd: &Objects, what: &str) -> Result<()> {
    let run = || -> Result<()> {
        plans(provider, odd)?;
        let pools = json!({"workers": odd.worker["spec"]["pools"]});
        if let Ok(pools) = decode_lenient::<ShootPools>(&to_go_json(&pools)) {
            provider.validate_shoot_pools(&pools, Some(&pools));
        }
        let config = odd.cluster.pointer("/spec/cloudProfile/spec/providerConfig").map(to_go_json);
        if let Some(raw) = config.and_then(|text| serde_json::value::RawValue::from_string(text).ok()) {
            drop(provider.open(Some(&raw)));
        }
        Ok(())
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| anyhow!("{what}: panics"))?.with_context(|| what.to_owned())
}

/// All paths in a document.
fn paths(document: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match document {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    let below = |(name, value): (String, &Value)| {
        let deeper = paths(value).into_iter().map(|path| format!("/{name}{path}")).collect::<Vec<_>>();
        std::iter::once(format!("/{name}")).chain(deeper)
    };
    children.into_iter().flat_map(below).collect()
}

/// Unexpected values.
fn oddities() -> [Value; 11] {
    [
        json!(true),
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(1e300),
        json!(""),
        json!("0"),
        json!("\u{0}\u{2028}é/../%"),
        json!("x".repeat(300)),
        json!([null, "a", "a", {}]),
        json!({"": {}, "name": "a"}),
    ]
}
