//! Validation of Shoot pools that all providers share.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::document::{Document, decode_document};
use super::node_template::StrictNodeTemplate;
use wire::api::gardener::{ShootPool, ShootPools, ShootVolume};
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::api::gotext::json::{decode_lenient, null_as_default};
use wire::api::gotext::quantity::Quantity;

/// Validates pools and their changes from `old`: `of_pool` checks each pool, `of_config` its provider config (absent is
/// empty). Also checks the fields that are immutable for all providers.
pub(super) fn validate<Config: Document>(
    pools: &ShootPools,
    old: Option<&ShootPools>,
    of_pool: impl Fn(&ShootPool, FieldPath<'_>, &mut FieldErrors),
    of_config: impl Fn(&Config, &ShootPool, FieldPath<'_>, &mut FieldErrors),
) -> FieldErrors {
    validate_pools(pools, old, |pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors| {
        of_pool(pool, path, errors);
        let path = path.child("providerConfig");
        match pool.provider_config.as_deref().map(decode_document).transpose() {
            Ok(config) => of_config(&config.unwrap_or_default(), pool, path, errors),
            // The document may be long, so the message contains only the error, which names the member.
            Err(error) => errors.invalid(path, (), format!("invalid providerConfig: {error}")),
        }
    })
}

/// As [`validate`], for a provider that does not read the provider config of a pool.
pub(super) fn validate_pools(
    pools: &ShootPools,
    old: Option<&ShootPools>,
    of_pool: impl Fn(&ShootPool, FieldPath<'_>, &mut FieldErrors),
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    for (index, pool) in pools.workers.iter().enumerate() {
        let path = PATH.index(index);
        of_pool(pool, path, &mut errors);
        let before = old.and_then(|old| old.workers.iter().find(|before| before.name == pool.name));
        validate_change(before, pool, path, &mut errors);
    }
    errors
}

/// Path of the pools in a Shoot.
const PATH: FieldPath<'static> = FieldPath::new("spec.provider.workers");

/// The members of an `InfrastructureConfig` that pools depend on.
#[derive(Debug, Default, Deserialize)]
#[serde(bound = "ZoneName: Deserialize<'de> + Default")]
pub(super) struct InfrastructureConfig<ZoneName> {
    /// Azure: whether the cluster is zoned.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) zoned: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    networks: Networks<ZoneName>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound = "ZoneName: Deserialize<'de> + Default")]
struct Networks<ZoneName> {
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    zones: Vec<Zone<ZoneName>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound = "ZoneName: Deserialize<'de> + Default")]
struct Zone<ZoneName> {
    #[serde(default, deserialize_with = "null_as_default")]
    name: ZoneName,
}

impl<ZoneName> InfrastructureConfig<ZoneName> {
    /// The configured zones.
    pub(super) fn zones(&self) -> impl ExactSizeIterator<Item = &ZoneName> {
        self.networks.zones.iter().map(|zone| &zone.name)
    }
}

/// Decodes an `InfrastructureConfig`. Decoding errors are ignored here, because the validation of that document reports
/// them.
pub(super) fn infrastructure_config<ZoneName: DeserializeOwned + Default>(
    pools: &ShootPools,
) -> Option<InfrastructureConfig<ZoneName>> {
    decode_lenient(pools.infrastructure_config.as_deref()?.get()).ok()
}

/// Requires a type and a size for root and data volumes, and at most `most` data volumes.
pub(super) fn validate_volumes(pool: &ShootPool, most: usize, path: FieldPath<'_>, errors: &mut FieldErrors) {
    match &pool.volume {
        None => errors.required(path.child("volume"), "must not be nil"),
        Some(volume) => validate_volume(volume, path.child("volume"), errors),
    }
    let path = path.child("dataVolumes");
    if pool.data_volumes.len() > most {
        errors.too_many(path, pool.data_volumes.len(), most);
    }
    for (index, volume) in pool.data_volumes.iter().enumerate() {
        validate_volume(volume, path.index(index), errors);
    }
}

/// Requires a type and a size.
pub(super) fn validate_volume(volume: &ShootVolume, path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (member, value) in [("type", &volume.volume_type), ("size", &volume.size)] {
        if value.is_empty() {
            errors.required(path.child(member), "must not be empty");
        }
    }
}

/// Each zone once: two machine deployments for one zone would have the same name.
pub(super) fn validate_zones_once(pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child("zones");
    let mut earlier = HashSet::new();
    for (index, zone) in pool.zones.iter().enumerate() {
        if !earlier.insert(zone) {
            errors.invalid(path.index(index), zone, ZONE_TWICE);
        }
    }
}

/// Zones that a message lists.
const MOST_LISTED: usize = 20;
/// Detail of the error for a zone that a pool names twice.
const ZONE_TWICE: &str = "must only be specified once per worker group";

/// Rejects duplicate zones, and zones that the infrastructure does not have. If `configured` is absent, all zones are
/// allowed.
pub(super) fn validate_zones(
    pool: &ShootPool,
    configured: Option<&[String]>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.child("zones");
    let known: Option<HashSet<&String>> = configured.map(|configured| configured.iter().collect());
    let mut earlier = HashSet::new();
    for (index, zone) in pool.zones.iter().enumerate() {
        let is_unknown = known.as_ref().is_some_and(|known| !known.contains(zone));
        if !earlier.insert(zone) {
            errors.invalid(path.index(index), zone, ZONE_TWICE);
        } else if let (Some(configured), true) = (configured, is_unknown) {
            let detail = format!(
                "zone configuration must be specified in \"infrastructureConfig.networks.zones\"; it has {}",
                listed(configured)
            );
            errors.invalid(path.index(index), zone, detail);
        }
    }
}

/// The first zones, and how many more there are.
fn listed(zones: &[String]) -> String {
    if zones.is_empty() {
        return "none".to_owned();
    }
    let named = zones.iter().take(MOST_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match zones.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        Some(more) => format!("{named} and {more} more"),
        None => named,
    }
}

/// Rejects zone changes other than additions at the end, and changes that in-place updates can't apply to a running
/// machine.
fn validate_change(before: Option<&ShootPool>, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(before) = before else { return };
    if !pool.zones.starts_with(&before.zones) {
        let detail = format!(
            "field is immutable but for zones added at its end: it was [{}]; add a pool for other zones",
            before.zones.join(", ")
        );
        errors.invalid(path.child("zones"), &pool.zones, detail);
    }
    if !pool.is_updated_in_place() {
        return;
    }
    let why = format!("field is immutable with update strategy {}: running machines keep it", pool.update_strategy);
    if pool.data_volumes != before.data_volumes {
        errors.invalid(path.child("dataVolumes"), (), why.as_str());
    }
    if !same_document(pool.provider_config.as_deref(), before.provider_config.as_deref()) {
        errors.invalid(path.child("providerConfig"), (), why);
    }
}

/// Whether two documents are equal, regardless of member order and white space.
fn same_document(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    let value = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get());
    match (value(one), value(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.get() == other.get(),
    }
}

/// Capacities must not be negative, and virtual capacities must be whole numbers.
pub(super) fn validate_node_template(
    template: Option<&StrictNodeTemplate>,
    config: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(template) = template else { return };
    let path = config.child("nodeTemplate");
    for resource in ["cpu", "gpu", "memory"] {
        if let Some(quantity) = template.capacity.get(resource).filter(|quantity| is_negative(quantity)) {
            let detail = format!("{resource} value must not be negative");
            errors.invalid(path.child("capacity").child(resource), quantity.to_string(), detail);
        }
    }
    let path = path.child("virtualCapacity");
    for (resource, quantity) in template.virtual_capacity.iter().flatten() {
        let path = path.child(resource);
        if is_negative(quantity) {
            errors.invalid(path, quantity.to_string(), format!("{resource} value must not be negative"));
        } else if !is_whole(quantity) {
            errors.invalid(path, quantity.to_string(), "must be a whole number");
        }
    }
}

fn is_negative(quantity: &Quantity) -> bool {
    quantity.to_string().starts_with('-')
}

/// Whether the quantity is a whole number.
fn is_whole(quantity: &Quantity) -> bool {
    Quantity::parse(&quantity.value_rounded_up().to_string()).is_ok_and(|rounded| rounded == *quantity)
}

/// Whether a text is not empty and has only ASCII letters, digits, `_` and the characters in `more`.
pub(super) fn is_word(text: &str, more: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || character == '_' || more.contains(character);
    !text.is_empty() && text.chars().all(fits)
}

/// Returns the data volumes of a pool that a provider config names, by position in the config. Reports names that the
/// pool does not have and duplicates.
pub(super) fn validate_data_volume_names<'a>(
    names: &[&str],
    pool: &'a ShootPool,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Vec<(usize, &'a ShootVolume)> {
    let mut found = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("name");
        if names.iter().take(index).any(|earlier| earlier == name) {
            errors.duplicate(path, name);
        }
        match pool.data_volumes.iter().find(|known| known.name == *name) {
            Some(known) => found.push((index, known)),
            None => errors.invalid(path, name, "no dataVolume with this name exists"),
        }
    }
    found
}

/// The value, if given, must be one of `supported`.
pub(super) fn one_of(value: Option<&str>, supported: &[&str], path: FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(value) = value.filter(|value| !supported.contains(value)) {
        errors.not_supported(path, value, supported.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::provider::{Provider, Providers, aws::Aws, openstack::OpenStack};
    use wire::api::gotext::yaml;

    /// A table of `test/shoot-pools`.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Table {
        api_version: String,
        pool: Map<String, Value>,
        infrastructure: Value,
        rows: Vec<Row>,
    }

    #[derive(Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        rule: String,
        #[serde(default)]
        pool: Map<String, Value>,
        config: Option<Map<String, Value>>,
        old: Option<Map<String, Value>>,
        #[serde(default)]
        errors: Vec<String>,
    }

    #[test]
    fn each_rule_for_a_pool_names_its_field() {
        let tables: [(&dyn Provider, &str); 2] = [
            (&Aws, include_str!("../../../test/shoot-pools/aws.yaml")),
            (&OpenStack, include_str!("../../../test/shoot-pools/openstack.yaml")),
        ];
        for (provider, text) in tables {
            let documents = yaml::documents(text).unwrap();
            let table: Table = serde_json::from_value(documents.into_iter().next().unwrap()).unwrap();
            let pools = |members: Map<String, Value>| -> ShootPools {
                let mut pool = table.pool.clone();
                pool.extend(members);
                pool.retain(|_, member| !member.is_null());
                let pools = json!({"workers": [pool], "infrastructureConfig": table.infrastructure});
                serde_json::from_str(&pools.to_string()).unwrap()
            };
            for Row { rule, mut pool, config, old, errors } in table.rows.iter().cloned() {
                if let Some(mut config) = config {
                    config.extend([
                        ("apiVersion".to_owned(), json!(table.api_version)),
                        ("kind".to_owned(), json!("WorkerConfig")),
                    ]);
                    pool.insert("providerConfig".to_owned(), config.into());
                }
                let found = provider.validate_shoot_pools(&pools(pool), old.map(pools).as_ref());
                let of_pool = |field| str::strip_prefix(field, "spec.provider.workers[0].").unwrap_or(field);
                let found: Vec<&str> = found.0.iter().map(|error| of_pool(error.field.as_str())).collect();
                assert_eq!(found, errors, "{}: {rule}", provider.provider_type());
            }
        }
    }

    #[test]
    fn every_cloud_refuses_a_zone_twice() {
        for provider in Providers::SHIPPED.of_machines {
            for infrastructure in [json!(null), json!({"zoned": true}), json!({"networks": {"zones": []}})] {
                let pool = json!({"name": "a", "zones": ["1", "2", "1"]});
                let pools = json!({"workers": [pool], "infrastructureConfig": infrastructure});
                let pools = serde_json::from_str(&pools.to_string()).unwrap();
                let errors = provider.validate_shoot_pools(&pools, None);
                let twice: Vec<&str> = errors
                    .0
                    .iter()
                    .filter(|error| error.detail == ZONE_TWICE)
                    .map(|error| error.field.as_str())
                    .collect();
                assert_eq!(twice, ["spec.provider.workers[0].zones[2]"], "{}", provider.provider_type());
            }
        }
    }
}
