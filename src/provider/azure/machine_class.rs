//! The provider spec of a machine class, as machine-controller-manager's Azure driver reads it
//! (spec/azure-worker.md section 10.2).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::documents::ImageReference;

/// `MachineClass.providerSpec`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderSpec {
    pub(super) cloud_configuration: Name,
    pub(super) location: String,
    pub(super) resource_group: String,
    pub(super) subnet_info: SubnetInfo,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) properties: Properties,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Name {
    pub(super) name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubnetInfo {
    pub(super) vnet_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) vnet_resource_group: Option<String>,
    pub(super) subnet_name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security_profile: Option<SecurityProfile>,
    /// A number where the zone is one: the driver declares an integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) machine_set: Option<MachineSetReference>,
    #[serde(rename = "identityID", skip_serializing_if = "Option::is_none")]
    pub(super) identity_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network_profile: Option<NetworkProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diagnostics_profile: Option<DiagnosticsProfile>,
    pub(super) hardware_profile: HardwareProfile,
    pub(super) os_profile: OsProfile,
    pub(super) storage_profile: StorageProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capacity_reservation: Option<CapacityReservation>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecurityProfile {
    pub(super) security_type: String,
    pub(super) uefi_settings: UefiSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UefiSettings {
    pub(super) vtpm_enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MachineSetReference {
    pub(super) id: String,
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NetworkProfile {
    pub(super) accelerated_networking: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DiagnosticsProfile {
    pub(super) enabled: bool,
    #[serde(rename = "storageURI", skip_serializing_if = "Option::is_none")]
    pub(super) storage_uri: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HardwareProfile {
    pub(super) vm_size: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OsProfile {
    pub(super) admin_username: &'static str,
    pub(super) linux_configuration: LinuxConfiguration,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinuxConfiguration {
    pub(super) disable_password_authentication: bool,
    pub(super) ssh: Ssh,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ssh {
    /// One key, not a list: the driver declares an object.
    pub(super) public_keys: PublicKey,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicKey {
    pub(super) path: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_data: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StorageProfile {
    pub(super) image_reference: BTreeMap<&'static str, Value>,
    pub(super) os_disk: OsDisk,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) data_disks: Vec<DataDisk>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OsDisk {
    pub(super) caching: String,
    pub(super) create_option: String,
    #[serde(rename = "diskSizeGB")]
    pub(super) disk_size_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) managed_disk: Option<ManagedDisk>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManagedDisk {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_account_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security_profile: Option<SecurityProfileOfDisk>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecurityProfileOfDisk {
    pub(super) security_encryption_type: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DataDisk {
    pub(super) name: String,
    pub(super) lun: i32,
    pub(super) caching: String,
    #[serde(rename = "diskSizeGB")]
    pub(super) disk_size_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_account_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_ref: Option<DataDiskImage>,
}

/// One member such as `{communityGalleryImageID: …}`.
pub(super) type DataDiskImage = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CapacityReservation {
    #[serde(rename = "capacityReservationGroupID")]
    pub(super) capacity_reservation_group_id: String,
}

/// The image of the root disk. The capital `P` is the Go extension's; the driver reads names in any case.
pub(super) fn image_reference(
    reference: ImageReference<'_>,
    skip_marketplace_agreement: bool,
) -> BTreeMap<&'static str, Value> {
    let mut members = BTreeMap::from([(reference.member(), Value::from(reference.value()))]);
    if skip_marketplace_agreement && matches!(reference, ImageReference::Urn(_)) {
        members.insert("skipMarketPlaceAgreement", Value::Bool(true));
    }
    members
}

/// A zone as the driver wants it.
pub(super) fn zone_value(zone: &str) -> Value {
    let is_number = !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| zone.parse::<i32>().ok()).flatten();
    number.map_or_else(|| Value::from(zone), Value::from)
}

/// Whether machines of this type are confidential: `Standard_DC…` and `Standard_EC…`.
pub(super) fn is_confidential(machine_type: &str) -> bool {
    let machine_type = machine_type.to_lowercase();
    machine_type.starts_with("standard_ec") || machine_type.starts_with("standard_dc")
}
