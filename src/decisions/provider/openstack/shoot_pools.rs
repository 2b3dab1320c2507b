//! Validates Shoot pools on OpenStack. Unlike the Go extension's errors, each error contains the pool.

use super::documents::{MachineLabel, WorkerConfig};
use super::server_groups::policy;
use crate::provider::document::decode_document;
use crate::provider::shoot_pools::{self, validate_node_template, validate_zones_once};
use wire::api::gardener::{ShootPool, ShootPools};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Maximum length of a machine label's name or value.
const LONGEST: usize = 255;

/// Validates the pools and their changes from `old`.
pub(super) fn validate(pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
    shoot_pools::validate(pools, old, validate_pool, validate_config)
}

/// Checks that the CloudProfile allows the policy of the pool. Decoding errors are reported elsewhere.
pub(super) fn validate_policy(pool: &ShootPool, selectable: &[String], path: FieldPath<'_>, errors: &mut FieldErrors) {
    let config = pool.provider_config.as_deref().map(decode_document::<WorkerConfig>).and_then(Result::ok);
    if let Some(policy) = config.as_ref().and_then(policy).filter(|policy| !selectable.iter().any(|one| one == policy))
    {
        let path = path.child("providerConfig");
        let path = path.child("serverGroup");
        errors.not_supported(path.child("policy"), policy, selectable.iter().map(String::as_str));
    }
}

fn validate_pool(pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if pool.zones.is_empty() {
        errors.required(path.child("zones"), "at least one zone must be configured");
    }
    validate_zones_once(pool, path, errors);
    if pool.volume.as_ref().is_some_and(|volume| !volume.volume_type.is_empty() && volume.size.is_empty()) {
        errors.forbidden(path.child("volume").child("type"), "specifying volume type without a size is not allowed");
    }
}

fn validate_config(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        server_group,
        machine_labels,
        additional_security_groups: groups,
    } = config;
    if let Some(group) = server_group {
        let path = path.child("serverGroup");
        let path = path.child("policy");
        if group.policy.is_empty() {
            errors.required(path, "must not be empty");
        } else if group.policy == "affinity" && pool.zones.len() > 1 {
            errors.forbidden(path, "policy \"affinity\" is only allowed for pools with one zone");
        }
    }
    validate_node_template(node_template.as_ref(), path, errors);
    validate_labels(machine_labels, pool, path.child("machineLabels"), errors);
    let path = path.child("additionalSecurityGroups");
    for (index, group) in groups.iter().enumerate() {
        if group.is_empty() {
            errors.required(path.index(index), "must not be empty");
        } else if groups.iter().take(index).any(|earlier| earlier == group) {
            errors.duplicate(path.index(index), group);
        }
    }
}

fn validate_labels(labels: &[MachineLabel], pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, MachineLabel { name, value, trigger_rolling_on_update: _ }) in labels.iter().enumerate() {
        let path = path.index(index);
        for (member, text) in [("name", name), ("value", value)] {
            let length = text.chars().count();
            if length == 0 || length > LONGEST {
                errors.invalid(path.child(member), text, format!("must have 1 to {LONGEST} characters, got {length}"));
            } else if text.contains(['{', '}', '[', ']', '\n', '\r']) {
                errors.invalid(path.child(member), text, "must not contain brackets or line breaks");
            }
        }
        if labels.iter().take(index).any(|earlier| earlier.name == *name) {
            errors.duplicate(path.child("name"), name);
        } else if pool.labels.contains_key(name) {
            errors.invalid(path.child("name"), name, "is a label of the pool already");
        }
    }
}
