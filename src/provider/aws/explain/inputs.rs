//! Inputs of an AWS pool that no other provider has, each with the document it comes from.

use crate::api::gardener::WorkerPool;
use crate::provider::aws::AwsWorker;
use crate::provider::aws::documents::{CpuOptions, InstanceProfileConfig, Placement, WorkerConfig};
use crate::provider::aws::network::{IpFamilies, subnet_of_zone};
use crate::provider::explanation::{EffectiveInput, Origin};

impl AwsWorker<'_> {
    pub(super) fn explain_inputs(&self, pool: &WorkerPool, config: Option<&WorkerConfig>) -> Vec<EffectiveInput> {
        let of_infrastructure =
            |path: &str, name, value: String| EffectiveInput::of(Origin::InfrastructureStatus, path, name, value);
        let mut inputs = vec![EffectiveInput::of(Origin::Worker, "spec.region", "region", self.region())];
        let subnets = pool.zones.iter().filter_map(|zone| {
            let subnet = subnet_of_zone(&self.infrastructure, zone).ok()?;
            Some(of_infrastructure("vpc.subnets", "subnet", format!("{subnet} for zone {zone}")))
        });
        inputs.extend(subnets);
        inputs.push(of_infrastructure("vpc.securityGroups", "security group", self.security_group.clone()));
        let key = &self.infrastructure.ec2.key_name;
        if !key.is_empty() {
            inputs.push(of_infrastructure("ec2.keyName", "key pair", key.clone()));
        }
        if IpFamilies::of_shoot(self.context.shoot).ipv6 {
            let path = "spec.networking.ipFamilies";
            inputs.push(EffectiveInput::of(Origin::Shoot, path, "IPv6", "one address and one prefix"));
        }
        if let Some(config) = config {
            inputs.extend(self.explain_instance_profile(config));
            inputs.extend(explain_config(config));
        }
        inputs
    }

    fn explain_instance_profile(&self, config: &WorkerConfig) -> Option<EffectiveInput> {
        let InstanceProfileConfig { name, arn } = self.instance_profile(config).ok()?;
        let value = name.or(arn)?;
        Some(if config.iam_instance_profile.is_some() {
            EffectiveInput::of(Origin::Worker, "providerConfig.iamInstanceProfile", "instance profile", value)
        } else {
            EffectiveInput::of(Origin::InfrastructureStatus, "iam.instanceProfiles", "instance profile", value)
        })
    }
}

/// What the provider config says or leaves to its defaults.
fn explain_config(config: &WorkerConfig) -> Vec<EffectiveInput> {
    let WorkerConfig {
        _api_version: _,
        _kind: _,
        node_template,
        volume,
        data_volumes,
        // With the infrastructure's, above.
        iam_instance_profile: _,
        instance_metadata_options,
        cpu_options,
        capacity_reservation,
        network_interfaces,
        placement,
        instance_market_options,
    } = config;
    let of_config = |path: &str, name, value: String| {
        EffectiveInput::of(Origin::Worker, format!("providerConfig.{path}"), name, value)
    };
    let mut inputs = vec![match instance_metadata_options {
        None => EffectiveInput::default_of("metadata", "token required, 2 hops"),
        Some(options) => {
            let hops = options.http_put_response_hop_limit.map(|hops| format!("{hops} hops"));
            let token = options.http_tokens.as_ref().map(|tokens| format!("token {tokens}"));
            let value = in_one_line([token, hops]);
            of_config(
                "instanceMetadataOptions",
                "metadata",
                value.unwrap_or_else(|| "as the account has it".to_owned()),
            )
        }
    }];
    let performance = |iops: Option<i32>, throughput: Option<i32>| {
        [iops.map(|iops| format!("{iops} IOPS")), throughput.map(|throughput| format!("{throughput} MiB/s"))]
    };
    let root = volume.as_ref().and_then(|volume| in_one_line(performance(volume.iops, volume.throughput)));
    inputs.extend(root.map(|value| of_config("volume", "root volume options", value)));
    for volume in data_volumes {
        let [iops, throughput] = performance(volume.iops, volume.throughput);
        let snapshot = volume.snapshot_id.as_ref().map(|snapshot| format!("from {snapshot}"));
        let value = in_one_line([iops, throughput, snapshot]);
        inputs.extend(
            value.map(|value| of_config("dataVolumes", "data volume options", format!("{}: {value}", volume.name))),
        );
    }
    for (index, interface) in network_interfaces.iter().enumerate() {
        let card = interface.network_card_index.unwrap_or_default();
        let cards = match interface.network_card_index_range {
            Some(range) => format!("cards {} to {}", range.from, range.to),
            None => format!("card {card}"),
        };
        let value = format!("{} at {cards}, device {}", interface.interface_type(), interface.device_index);
        inputs.push(of_config(&format!("networkInterfaces[{index}]"), "network interface", value));
    }
    let cpu = cpu_options.as_ref().and_then(cpu_text);
    inputs.extend(cpu.map(|value| of_config("cpuOptions", "CPU", value)));
    if let Some(reservation) = capacity_reservation {
        let value = in_one_line([
            reservation.capacity_reservation_preference.clone(),
            reservation.capacity_reservation_id.clone(),
            reservation.capacity_reservation_resource_group_arn.clone(),
        ]);
        inputs.extend(value.map(|value| of_config("capacityReservation", "capacity reservation", value)));
    }
    let placement = placement.as_ref().and_then(placement_text);
    inputs.extend(placement.map(|value| of_config("placement", "placement", value)));
    if let Some(market) = instance_market_options {
        inputs.push(of_config("instanceMarketOptions.marketType", "market", market.market_type.clone()));
    }
    if let Some(template) = node_template {
        inputs.push(of_config("nodeTemplate.capacity", "capacity override", template.capacity_text()));
    }
    inputs
}

fn cpu_text(options: &CpuOptions) -> Option<String> {
    let cores = options.core_count.zip(options.threads_per_core);
    in_one_line([
        cores.map(|(cores, threads)| format!("{cores} cores of {threads} threads")),
        options.amd_sev_snp.as_ref().map(|memory| format!("encrypted memory {memory}")),
    ])
}

fn placement_text(placement: &Placement) -> Option<String> {
    in_one_line([
        placement.group_id.as_ref().map(|group| format!("group {group}")),
        placement.partition_number.map(|partition| format!("partition {partition}")),
        placement.tenancy.as_ref().map(|tenancy| format!("tenancy {tenancy}")),
        placement.host_id.as_ref().map(|host| format!("host {host}")),
        placement.affinity.as_ref().map(|affinity| format!("affinity {affinity}")),
    ])
}

/// What is given, with commas; `None` where nothing is.
fn in_one_line(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let given: Vec<String> = parts.into_iter().flatten().collect();
    (!given.is_empty()).then(|| given.join(", "))
}
