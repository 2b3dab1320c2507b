//! The provider spec of a machine class, as machine-controller-manager's AWS driver decodes it.

use serde_json::{Value, json};

use super::documents::{CpuOptions, InstanceMarketOptions, MetadataOptions, WorkerConfig};
use super::network::{IpFamilies, network_interfaces, subnet_of_zone};
use super::tags::machine_tags;
use super::zonal::AwsWorker;
use crate::provider::PoolProblem;
use crate::provider::machine_class::without_nulls;
use crate::provider::zonal::PoolInputs;

impl AwsWorker<'_> {
    pub(super) fn provider_spec(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<Value, PoolProblem> {
        let pool = inputs.pool;
        let shoot = self.context.shoot;
        // Lists every member of the provider config, so that a new one can't be forgotten.
        let WorkerConfig {
            _api_version: _,
            _kind: _,
            // Part of the node template of the class.
            node_template: _,
            // Part of the block devices.
            volume: _,
            data_volumes: _,
            // Resolved together with the infrastructure's profile.
            iam_instance_profile: _,
            instance_metadata_options,
            cpu_options,
            capacity_reservation,
            network_interfaces: interfaces,
            placement,
            instance_market_options,
        } = &inputs.config;
        let families = IpFamilies::of_shoot(shoot);
        let subnet = subnet_of_zone(&self.infrastructure, zone)?;
        let key = &self.infrastructure.ec2.key_name;
        let market = instance_market_options.as_ref().map(|InstanceMarketOptions { market_type }| {
            json!({"marketType": Some(market_type).filter(|market_type| !market_type.is_empty())})
        });
        Ok(without_nulls(json!({
            "ami": inputs.image.reference.value,
            "region": self.region(),
            "machineType": pool.machine_type,
            "srcAndDstChecksEnabled": false,
            "iam": inputs.shared.instance_profile,
            "keyName": Some(key).filter(|key| !key.is_empty()),
            "networkInterfaces": network_interfaces(interfaces, subnet, &self.security_group, families)?,
            "tags": machine_tags(&shoot.status.technical_id, &pool.labels),
            "blockDevices": inputs.shared.block_devices,
            "instanceMetadataOptions": metadata_options(instance_metadata_options.as_ref(), families.only_ipv6),
            "cpuOptions": cpu_options.as_ref().map(cpu_options_value),
            "capacityReservation": capacity_reservation,
            "instanceMarketOptions": market,
            "placement": placement,
        })))
    }
}

/// By default, metadata requires a token, and containers have access as well.
fn metadata_options(given: Option<&MetadataOptions>, only_ipv6: bool) -> Value {
    let (tokens, limit) = match given {
        None => (Some("required"), Some(2)),
        Some(MetadataOptions { http_tokens, http_put_response_hop_limit }) => {
            (http_tokens.as_deref(), *http_put_response_hop_limit)
        }
    };
    let ipv6 = only_ipv6.then_some("enabled");
    json!({"httpProtocolIpv6": ipv6, "httpTokens": tokens, "httpPutResponseHopLimit": limit})
}

/// Cores and threads are used only together.
fn cpu_options_value(options: &CpuOptions) -> Value {
    let CpuOptions { core_count, threads_per_core, amd_sev_snp } = options;
    let (cores, threads) = core_count.zip(*threads_per_core).unzip();
    json!({"coreCount": cores, "threadsPerCore": threads, "amdSevSnp": amd_sev_snp})
}
