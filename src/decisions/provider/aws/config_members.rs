//! Hash inputs and explanations of each member of a `WorkerConfig` for AWS. To add a member, see `docs/development.md`.

use super::documents::{
    CapacityReservation, CardRange, CpuOptions, DataVolumeConfig, InstanceMarketOptions, InstanceProfileConfig,
    MetadataOptions, NetworkInterfaceConfig, Placement, VolumeConfig, WorkerConfig,
};
use crate::provider::config_members::{ConfigMembers, given, in_one_line};

/// Lists every member in hash order, so that a new one can't be forgotten. Encrypted memory and descriptions of
/// interfaces are not hashed, as in the Go extension.
pub(super) fn config_members(config: &WorkerConfig) -> ConfigMembers {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        volume,
        data_volumes,
        iam_instance_profile,
        instance_metadata_options,
        cpu_options,
        capacity_reservation,
        network_interfaces,
        placement,
        instance_market_options,
    } = config;
    let mut members = ConfigMembers::default();
    if let Some(template) = node_template {
        members.node_template(template);
    }
    if let Some(VolumeConfig { iops, throughput }) = volume {
        members.hash("volume").add("iops", *iops).add("throughput", *throughput);
        members.explain("volume", "root volume options", speed(*iops, *throughput));
    }
    for volume in data_volumes {
        add_data_volume(&mut members, volume);
    }
    // Explained together with the infrastructure's profile.
    if let Some(InstanceProfileConfig { name, arn }) = iam_instance_profile {
        members.hash("iamInstanceProfile").add("name", name.as_ref()).add("arn", arn.as_ref());
    }
    add_metadata_options(&mut members, instance_metadata_options.as_ref());
    if let Some(CpuOptions { core_count, threads_per_core, amd_sev_snp }) = cpu_options {
        members.hash("cpuOptions").add("coreCount", *core_count).add("threadsPerCore", *threads_per_core);
        let cores = core_count.zip(*threads_per_core);
        let cores = cores.map(|(cores, threads)| format!("{cores} cores of {threads} threads"));
        members.explain("cpuOptions", "CPU", [cores, given("encrypted memory ", amd_sev_snp.as_ref())]);
    }
    if let Some(CapacityReservation {
        capacity_reservation_preference: preference,
        capacity_reservation_id: id,
        capacity_reservation_resource_group_arn: arn,
    }) = capacity_reservation
    {
        members
            .hash("capacityReservation")
            .add("capacityReservationPreference", preference.as_ref())
            .add("capacityReservationId", id.as_ref())
            .add("capacityReservationResourceGroupArn", arn.as_ref());
        let parts = [preference, id, arn].map(Clone::clone);
        members.explain("capacityReservation", "capacity reservation", parts);
    }
    if let Some(InstanceMarketOptions { market_type }) = instance_market_options {
        members.hash("instanceMarketOptions").add("marketType", Some(market_type));
        members.explain("instanceMarketOptions.marketType", "market", [Some(market_type.clone())]);
    }
    for (index, interface) in network_interfaces.iter().enumerate() {
        add_interface(&mut members, &format!("networkInterfaces[{index}]"), interface);
    }
    if let Some(placement) = placement {
        add_placement(&mut members, placement);
    }
    members
}

fn add_data_volume(members: &mut ConfigMembers, volume: &DataVolumeConfig) {
    let DataVolumeConfig { name, iops, throughput, snapshot_id } = volume;
    members
        .hash(format!("dataVolumes[{name}]"))
        .add("name", Some(name))
        .add("iops", *iops)
        .add("throughput", *throughput)
        .add("snapshotID", snapshot_id.as_ref());
    let options = speed(*iops, *throughput).into_iter().chain([given("from ", snapshot_id.as_ref())]);
    let options = in_one_line(options).map(|options| format!("{name}: {options}"));
    members.explain("dataVolumes", "data volume options", [options]);
}

fn add_metadata_options(members: &mut ConfigMembers, options: Option<&MetadataOptions>) {
    let path = "instanceMetadataOptions";
    let value = options.map(|MetadataOptions { http_tokens, http_put_response_hop_limit: hops }| {
        members.hash(path).add("httpTokens", http_tokens.as_ref()).add("httpPutResponseHopLimit", *hops);
        let value = in_one_line([given("token ", http_tokens.as_ref()), hops.map(|hops| format!("{hops} hops"))]);
        value.unwrap_or_else(|| "as the account has it".to_owned())
    });
    members.explain_or(path, "metadata", value, "token required, 2 hops");
}

fn add_interface(members: &mut ConfigMembers, path: &str, interface: &NetworkInterfaceConfig) {
    let NetworkInterfaceConfig {
        network_card_index: card,
        network_card_index_range: range,
        device_index,
        interface_type: _,
        description: _,
        subnet_id,
    } = interface;
    let range = range.map(|CardRange { from, to }| (from, to));
    members
        .hash(path)
        .add("type", Some(interface.interface_type()))
        .add("deviceIndex", Some(device_index))
        .add("networkCardIndex", *card)
        .add("networkCardIndexRange.from", range.map(|(from, _)| from))
        .add("networkCardIndexRange.to", range.map(|(_, to)| to))
        .add("subnetID", subnet_id.as_ref());
    let cards = match range {
        Some((from, to)) => format!("cards {from} to {to}"),
        None => format!("card {}", card.unwrap_or_default()),
    };
    let value = format!("{} at {cards}, device {device_index}", interface.interface_type());
    members.explain(path, "network interface", [Some(value)]);
}

fn add_placement(members: &mut ConfigMembers, placement: &Placement) {
    let Placement { group_id, tenancy, host_id, partition_number, affinity } = placement;
    members
        .hash("placement")
        .add("groupId", group_id.as_ref())
        .add("tenancy", tenancy.as_ref())
        .add("hostId", host_id.as_ref())
        .add("partitionNumber", *partition_number)
        .add("affinity", affinity.as_ref());
    let parts = [
        given("group ", group_id.as_ref()),
        given("partition ", *partition_number),
        given("tenancy ", tenancy.as_ref()),
        given("host ", host_id.as_ref()),
        given("affinity ", affinity.as_ref()),
    ];
    members.explain("placement", "placement", parts);
}

fn speed(iops: Option<i32>, throughput: Option<i32>) -> [Option<String>; 2] {
    [iops.map(|iops| format!("{iops} IOPS")), throughput.map(|throughput| format!("{throughput} MiB/s"))]
}
