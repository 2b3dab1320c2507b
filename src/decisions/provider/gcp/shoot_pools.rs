//! Validates Shoot pools on GCP. Unlike the Go extension's errors, each error contains the pool.

use super::disks::{SCRATCH, WITH_IOPS, WITH_THROUGHPUT};
use super::documents::{Encryption, Gpu, ServiceAccount, VolumeConfig, WorkerConfig};
use crate::provider::shoot_pools::{
    self, one_of, validate_data_volume_names, validate_node_template, validate_volume, validate_zones_once,
};
use wire::api::gardener::{ShootPool, ShootPools};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Maximum length of a member.
const LONGEST: usize = 250;
/// Suffix of service account addresses.
const ACCOUNT_SUFFIX: &str = ".gserviceaccount.com";
/// Prefix of OAuth scopes.
const SCOPE_PREFIX: &str = "https://www.googleapis.com/";

/// Validates the pools and their changes from `old`.
pub(super) fn validate(pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
    shoot_pools::validate(pools, old, validate_pool, validate_config)
}

fn validate_pool(pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    match &pool.volume {
        None => errors.required(path.child("volume"), "must not be nil"),
        Some(volume) => {
            let path = path.child("volume");
            validate_volume(volume, path, errors);
            if volume.volume_type == SCRATCH {
                errors.invalid(path.child("type"), SCRATCH, "type SCRATCH is not allowed as boot disk");
            }
        }
    }
    if pool.provider_config.is_some() {
        let path = path.child("dataVolumes");
        for (index, _) in pool.data_volumes.iter().enumerate().filter(|(_, known)| known.volume_type.is_empty()) {
            errors.required(path.index(index).child("type"), "must not be empty");
        }
    }
    if pool.zones.is_empty() {
        errors.required(path.child("zones"), "at least one zone must be configured");
    }
    validate_zones_once(pool, path, errors);
}

fn validate_config(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    if pool.provider_config.is_none() {
        return;
    }
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        gpu,
        volume,
        boot_volume,
        // Validated below, together with the data volumes of the pool.
        data_volumes: _,
        min_cpu_platform,
        service_account,
        node_template,
    } = config;
    validate_volume_config(volume.as_ref(), pool, path.child("volume"), errors);
    if let Some(Gpu { accelerator_type, count }) = gpu {
        let path = path.child("gpu");
        let is_type = |text: &str| consists_of(text, |character| is_small(character) || character == '-');
        validate_text(accelerator_type, is_type, r"^[a-z0-9\-]+$", path.child("acceleratorType"), errors);
        if *count <= 0 {
            errors.forbidden(path.child("count"), "must be > 0 when providing gpu");
        }
    }
    if let Some(account) = service_account {
        validate_account(account, path.child("serviceAccount"), errors);
    }
    if let Some(platform) = min_cpu_platform {
        let is_name = |text: &str| {
            consists_of(text, |character| character.is_ascii_alphanumeric() || character.is_ascii_whitespace())
        };
        validate_text(platform, is_name, r"^[A-Za-z0-9\s]+$", path.child("minCpuPlatform"), errors);
    }
    validate_node_template(node_template.as_ref(), path, errors);
    let boot = boot_volume.as_ref();
    let boot_type = pool.volume.as_ref().map_or("", |volume| volume.volume_type.as_str());
    let speed = [boot.and_then(|boot| boot.provisioned_iops), boot.and_then(|boot| boot.provisioned_throughput)];
    validate_speed(speed, boot_type, path.child("bootVolume"), errors);
    validate_data_volumes(config, pool, path.child("dataVolumes"), errors);
}

/// Local disks need an interface and have no key; other disks have no interface.
fn validate_volume_config(
    volume: Option<&VolumeConfig>,
    pool: &ShootPool,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let interface = volume.and_then(|volume| volume.interface.as_deref());
    let encryption = volume.and_then(|volume| volume.encryption.as_ref());
    one_of(interface, &["NVME", "SCSI"], path.child("interface"), errors);
    let types = || pool.data_volumes.iter().map(|volume| volume.volume_type.as_str());
    if types().any(|volume_type| volume_type == SCRATCH) {
        if interface.is_none() {
            errors.required(path.child("interface"), "must be set when using SCRATCH volumes");
        }
        if encryption.is_some() {
            errors.invalid(path.child("encryption"), (), "must not be set in combination with SCRATCH volumes");
        }
    }
    if let Some(interface) = interface
        && types().any(|volume_type| volume_type != SCRATCH)
    {
        errors.invalid(path.child("interface"), interface, "is only allowed for type SCRATCH");
    }
    if let Some(Encryption { kms_key_name, kms_key_service_account }) = encryption {
        let path = path.child("encryption");
        match kms_key_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            None => errors.required(path.child("kmsKeyName"), "must be specified when configuring disk encryption"),
            Some(_) => {
                let name = kms_key_name.as_deref().unwrap_or_default();
                let is_name = |text: &str| shoot_pools::is_word(text, "-/");
                validate_text(name, is_name, r"^[a-zA-Z0-9\-_/]+$", path.child("kmsKeyName"), errors);
            }
        }
        if let Some(account) = kms_key_service_account {
            validate_address(account, path.child("kmsKeyServiceAccount"), errors);
        }
    }
}

fn validate_account(account: &ServiceAccount, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let ServiceAccount { email, scopes } = account;
    validate_address(email, path.child("email"), errors);
    let path = path.child("scopes");
    let scopes = scopes.as_deref().unwrap_or_default();
    if scopes.is_empty() {
        errors.required(path, "must have at least one scope");
    }
    for (index, scope) in scopes.iter().enumerate() {
        let path = path.index(index);
        if scopes.iter().take(index).any(|earlier| earlier == scope) {
            errors.duplicate(path, scope);
            continue;
        }
        let is_scope = |text: &str| {
            let is_allowed = |character| is_small(character) || "-./_".contains(character);
            text.strip_prefix(SCOPE_PREFIX).is_some_and(|rest| consists_of(rest, is_allowed))
        };
        validate_text(scope, is_scope, r"^https:\/\/www\.googleapis\.com\/[a-z0-9\-\.\/_]+$", path, errors);
    }
}

fn validate_data_volumes(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let names: Vec<&str> = config.data_volumes.iter().map(|volume| volume.name.as_str()).collect();
    for (index, known) in validate_data_volume_names(&names, pool, path, errors) {
        let Some(volume) = config.data_volumes.get(index) else { continue };
        let path = path.index(index);
        validate_speed([volume.provisioned_iops, volume.provisioned_throughput], &known.volume_type, path, errors);
        if let Some(image) = &volume.source_image {
            let is_image = |text: &str| consists_of(text, |character| is_small(character) || "-/".contains(character));
            validate_text(image, is_image, r"^[a-z0-9\-/]+$", path.child("sourceImage"), errors);
        }
    }
}

/// Only some disk types support I/O operations per second and throughput.
fn validate_speed(
    [iops, throughput]: [Option<i64>; 2],
    volume_type: &str,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let members = [("provisionedIops", iops, WITH_IOPS), ("provisionedThroughput", throughput, WITH_THROUGHPUT)];
    for (member, value, types) in members {
        // A missing type is reported separately.
        if value.is_some() && !volume_type.is_empty() && !types.contains(&volume_type) {
            errors.forbidden(path.child(member), format!("is only allowed for types: [{}]", types.join(" ")));
        }
    }
}

fn validate_address(address: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let is_address = |text: &str| {
        let (Some((user, domain)), true) = (text.split_once('@'), text.ends_with(ACCOUNT_SUFFIX)) else { return false };
        let domain = domain.strip_suffix(ACCOUNT_SUFFIX).unwrap_or_default();
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
        shoot_pools::is_word(user, "-.") && consists_of(domain, is_allowed)
    };
    let form = r"^[a-zA-Z0-9\-_\.]+@[a-zA-Z0-9\-\.]+\.gserviceaccount\.com$";
    validate_text(address, is_address, form, path, errors);
}

/// Validates length and format of a text.
fn validate_text(
    text: &str,
    is_form: impl Fn(&str) -> bool,
    form: &str,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let length = text.chars().count();
    if length == 0 {
        errors.invalid(path, text, "must not be fewer than 1 characters, got 0");
    } else if length > LONGEST {
        errors.invalid(path, text, format!("must not be more than {LONGEST} characters, got {length}"));
    } else if !is_form(text) {
        errors.invalid(path, text, format!("does not match expected regex {form}"));
    }
}

fn is_small(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit()
}

fn consists_of(text: &str, is_allowed: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(is_allowed)
}
