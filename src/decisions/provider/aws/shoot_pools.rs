//! Validates Shoot pools on AWS.

use super::documents::{
    CapacityReservation, CpuOptions, InstanceProfileConfig, MetadataOptions, NetworkInterfaceConfig, Placement,
    WorkerConfig,
};
use crate::provider::shoot_pools::{
    self, infrastructure_config, is_word, one_of, validate_data_volume_names, validate_node_template, validate_volumes,
    validate_zones,
};
use wire::api::gardener::{ShootPool, ShootPools};
use wire::api::gotext::field::{FieldErrors, FieldPath};

/// Limited by the number of device names.
const MAX_DATA_VOLUMES: usize = 11;
/// The volume type that requires `iops`.
const NEEDS_IOPS: &str = "io1";

/// Validates the pools and their changes from `old`.
pub(super) fn validate(pools: &ShootPools, old: Option<&ShootPools>) -> FieldErrors {
    let configured: Option<Vec<String>> = infrastructure_config(pools).map(|config| config.zones().cloned().collect());
    let of_pool = |pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors| {
        validate_volumes(pool, MAX_DATA_VOLUMES, path, errors);
        if pool.zones.is_empty() {
            errors.required(path.child("zones"), "at least one zone must be configured");
        }
        validate_zones(pool, configured.as_deref(), path, errors);
    };
    shoot_pools::validate(pools, old, of_pool, validate_config)
}

fn validate_config(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        volume,
        // Validated below, together with the data volumes of the pool.
        data_volumes: _,
        iam_instance_profile,
        instance_metadata_options,
        cpu_options,
        capacity_reservation,
        network_interfaces,
        placement,
        instance_market_options,
    } = config;
    validate_node_template(node_template.as_ref(), path, errors);
    let root = volume.as_ref();
    let root_type = pool.volume.as_ref().map_or("", |volume| volume.volume_type.as_str());
    let speed = Speed { iops: root.and_then(|root| root.iops), throughput: root.and_then(|root| root.throughput) };
    speed.validate(root_type, path.child("volume"), errors);
    validate_data_volumes(config, pool, path.child("dataVolumes"), errors);
    if let Some(profile) = iam_instance_profile {
        validate_profile(profile, path.child("iamInstanceProfile"), errors);
    }
    if let Some(options) = instance_metadata_options {
        validate_metadata_options(options, path.child("instanceMetadataOptions"), errors);
    }
    if let Some(options) = cpu_options {
        validate_cpu_options(options, path.child("cpuOptions"), errors);
    }
    if let Some(reservation) = capacity_reservation {
        validate_reservation(reservation, path.child("capacityReservation"), errors);
    }
    let interfaces = path.child("networkInterfaces");
    for (index, interface) in network_interfaces.iter().enumerate() {
        validate_interface(interface, interfaces.index(index), errors);
    }
    if let Some(placement) = placement {
        validate_placement(placement, path.child("placement"), errors);
    }
    if let Some(options) = instance_market_options {
        let types = ["spot", "capacity-block", "interruptible-capacity-reservation"];
        let path = path.child("instanceMarketOptions");
        one_of(Some(&options.market_type), &types, path.child("marketType"), errors);
    }
}

/// Performance settings of a volume.
#[derive(Clone, Copy)]
struct Speed {
    iops: Option<i32>,
    throughput: Option<i32>,
}

impl Speed {
    fn validate(self, volume_type: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
        match self.iops {
            None if volume_type == NEEDS_IOPS => {
                errors.required(path.child("iops"), format!("must be given for volumes of type {NEEDS_IOPS}"));
            }
            Some(iops) if iops <= 0 => errors.invalid(path.child("iops"), iops, "must be positive"),
            _ => {}
        }
        if let Some(throughput) = self.throughput.filter(|throughput| *throughput <= 0) {
            errors.invalid(path.child("throughput"), throughput, "must be positive");
        }
    }
}

fn validate_data_volumes(config: &WorkerConfig, pool: &ShootPool, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let names: Vec<&str> = config.data_volumes.iter().map(|volume| volume.name.as_str()).collect();
    for (index, known) in validate_data_volume_names(&names, pool, path, errors) {
        let Some(volume) = config.data_volumes.get(index) else { continue };
        let path = path.index(index);
        let speed = Speed { iops: volume.iops, throughput: volume.throughput };
        speed.validate(&known.volume_type, path, errors);
        if let Some(snapshot) = &volume.snapshot_id {
            let id = snapshot.strip_prefix("snap-").unwrap_or_default();
            let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            if !is_id {
                errors.invalid(path.child("snapshotID"), snapshot, "does not match expected regex ^snap-[a-z0-9]+$");
            }
        }
    }
    for volume in pool.data_volumes.iter().filter(|volume| volume.volume_type == NEEDS_IOPS) {
        if !config.data_volumes.iter().any(|known| known.name == volume.name) {
            let detail = format!("must give iops for data volume {:?}, which is of type {NEEDS_IOPS}", volume.name);
            errors.required(path, detail);
        }
    }
}

fn validate_profile(profile: &InstanceProfileConfig, path: FieldPath<'_>, errors: &mut FieldErrors) {
    match (&profile.name, &profile.arn) {
        (Some(name), None) => {
            if name.len() > 128 || !is_word(name, "+=,.@-") {
                errors.invalid(path.child("name"), name, r"does not match expected regex ^[\w+=,.@-]{1,128}$");
            }
        }
        (None, Some(arn)) => {
            let is_arn = arn.strip_prefix("arn:").is_some_and(|rest| is_word(rest, " +=,.@-/:"));
            if arn.len() > 255 || !is_arn {
                let form = r"must have at most 255 characters and match ^arn:[\w +=,.@\-/:]+$";
                errors.invalid(path.child("arn"), arn, form);
            }
        }
        _ => errors.invalid(path, profile, "either name or arn must be given"),
    }
}

fn validate_metadata_options(options: &MetadataOptions, path: FieldPath<'_>, errors: &mut FieldErrors) {
    one_of(options.http_tokens.as_deref(), &["required", "optional"], path.child("httpTokens"), errors);
    if let Some(limit) = options.http_put_response_hop_limit.filter(|limit| !(1..=64).contains(limit)) {
        errors.invalid(path.child("httpPutResponseHopLimit"), limit, "must be between 1 and 64");
    }
}

fn validate_cpu_options(options: &CpuOptions, path: FieldPath<'_>, errors: &mut FieldErrors) {
    match (options.core_count, options.threads_per_core) {
        (Some(_), None) => errors.required(path.child("threadsPerCore"), "must be given together with coreCount"),
        (None, Some(_)) => errors.required(path.child("coreCount"), "must be given together with threadsPerCore"),
        _ => {}
    }
    if let Some(threads) = options.threads_per_core.filter(|threads| !(1..=2).contains(threads)) {
        errors.invalid(path.child("threadsPerCore"), threads, "must be 1 or 2");
    }
    one_of(options.amd_sev_snp.as_deref(), &["enabled", "disabled"], path.child("amdSevSnp"), errors);
}

fn validate_reservation(reservation: &CapacityReservation, path: FieldPath<'_>, errors: &mut FieldErrors) {
    const ONLY: &str = "capacity-reservations-only";
    let CapacityReservation {
        capacity_reservation_preference: preference,
        capacity_reservation_id: id,
        capacity_reservation_resource_group_arn: arn,
    } = reservation;
    let preference_path = path.child("capacityReservationPreference");
    one_of(preference.as_deref(), &[ONLY, "open", "none"], preference_path, errors);
    if id.is_some() && arn.is_some() {
        let detail = "capacityReservationId and capacityReservationResourceGroupArn exclude each other";
        errors.forbidden(path.child("capacityReservationResourceGroupArn"), detail);
    }
    if let Some(preference) = preference.as_deref().filter(|preference| *preference != ONLY)
        && (id.is_some() || arn.is_some())
    {
        let detail = format!("must be absent or {ONLY} where a reservation or a group of them is given");
        errors.invalid(preference_path, preference, detail);
    }
}

fn validate_interface(interface: &NetworkInterfaceConfig, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let types = ["interface", "efa", "efa-only"];
    one_of(interface.interface_type.as_deref(), &types, path.child("type"), errors);
    let range_path = path.child("networkCardIndexRange");
    if interface.network_card_index.is_some() && interface.network_card_index_range.is_some() {
        errors.forbidden(range_path, "networkCardIndex and networkCardIndexRange exclude each other");
    }
    let range = interface.network_card_index_range;
    let numbers = [
        (interface.network_card_index, path, "networkCardIndex"),
        (Some(interface.device_index), path, "deviceIndex"),
        (range.map(|range| range.from), range_path, "from"),
        (range.map(|range| range.to), range_path, "to"),
    ];
    for (number, parent, member) in &numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            errors.invalid(parent.child(member), number, "must not be negative");
        }
    }
    if let Some(range) = range.filter(|range| range.from > range.to) {
        errors.invalid(range_path, range.to, format!("must not end before it begins, at {}", range.from));
    }
    let first_card = range.map_or(interface.network_card_index.unwrap_or_default(), |range| range.from);
    if first_card == 0 && interface.device_index == 0 && interface.interface_type() == "efa-only" {
        let detail = "the primary interface, device 0 of card 0, needs an address: use interface or efa";
        errors.invalid(path.child("type"), interface.interface_type(), detail);
    }
}

fn validate_placement(placement: &Placement, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let tenancy = placement.tenancy.as_deref();
    one_of(tenancy, &["default", "dedicated", "host"], path.child("tenancy"), errors);
    one_of(placement.affinity.as_deref(), &["default", "host"], path.child("affinity"), errors);
    if placement.host_id.is_some() && tenancy != Some("host") {
        errors.forbidden(path.child("hostId"), "is only for tenancy host");
    }
    if let Some(number) = placement.partition_number.filter(|number| *number < 1) {
        errors.invalid(path.child("partitionNumber"), number, "must be at least 1");
    }
}
