//! The provider spec of a machine class, as machine-controller-manager's AWS driver reads it (spec/aws-worker.md
//! section 4).

use std::collections::BTreeMap;

use serde::Serialize;

use super::documents::{
    CapacityReservation, CpuOptions, InstanceMarketOptions, InstanceProfileConfig, MetadataOptions, Placement,
};

/// `MachineClass.providerSpec`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderSpec {
    pub(super) ami: String,
    pub(super) region: String,
    pub(super) machine_type: String,
    pub(super) src_and_dst_checks_enabled: bool,
    pub(super) iam: InstanceProfileConfig,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) key_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) network_interfaces: Vec<NetworkInterface>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) block_devices: Vec<BlockDevice>,
    pub(super) instance_metadata_options: InstanceMetadataOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_options: Option<CpuOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capacity_reservation: Option<CapacityReservation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance_market_options: Option<InstanceMarketOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) placement: Option<Placement>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NetworkInterface {
    #[serde(rename = "subnetID")]
    pub(super) subnet_id: String,
    #[serde(rename = "securityGroupIDs")]
    pub(super) security_group_ids: Vec<String>,
    /// Only for interfaces that the provider config lists.
    #[serde(flatten)]
    pub(super) listed: Option<ListedInterface>,
    #[serde(flatten)]
    pub(super) ipv6: Option<Ipv6Addresses>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedInterface {
    #[serde(rename = "associatePublicIPAddress")]
    pub(super) associate_public_ip_address: bool,
    pub(super) delete_on_termination: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) interface_type: String,
    pub(super) network_card_index: i32,
    pub(super) device_index: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ipv6Addresses {
    pub(super) ipv6_address_count: i32,
    pub(super) ipv6_prefix_count: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDevice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device_name: Option<String>,
    pub(super) ebs: ElasticVolume,
}

/// A volume of the elastic block store. The driver takes a missing number as zero and a missing flag as false.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ElasticVolume {
    pub(super) delete_on_termination: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) encrypted: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) iops: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) throughput: Option<i32>,
    #[serde(rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub(super) snapshot_id: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) volume_size: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) volume_type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstanceMetadataOptions {
    #[serde(rename = "httpProtocolIpv6", skip_serializing_if = "Option::is_none")]
    pub(super) http_protocol_ipv6: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) http_tokens: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) http_put_response_hop_limit: Option<i32>,
}

/// Without a word about it, machines ask for metadata with a token, and containers on them can ask, too.
pub(super) fn metadata_options(given: Option<&MetadataOptions>, only_ipv6: bool) -> InstanceMetadataOptions {
    let http_protocol_ipv6 = only_ipv6.then_some("enabled");
    match given {
        None => InstanceMetadataOptions {
            http_protocol_ipv6,
            http_tokens: Some("required".to_owned()),
            http_put_response_hop_limit: Some(2),
        },
        Some(given) => InstanceMetadataOptions {
            http_protocol_ipv6,
            http_tokens: given.http_tokens.clone(),
            http_put_response_hop_limit: given.http_put_response_hop_limit,
        },
    }
}

/// Cores and threads count only together.
pub(super) fn cpu_options(given: &CpuOptions) -> CpuOptions {
    let both = given.core_count.zip(given.threads_per_core);
    CpuOptions {
        core_count: both.map(|(cores, _)| cores),
        threads_per_core: both.map(|(_, threads)| threads),
        amd_sev_snp: given.amd_sev_snp.clone(),
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero<Number: Copy + Into<i64>>(number: &Number) -> bool {
    (*number).into() == 0
}
