//! The provider spec of a machine class, as machine-controller-manager's Azure driver reads it
//! (spec/azure-worker.md section 10.2).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::documents::ImageReference;

/// `MachineClass.providerSpec`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSpec {
    pub cloud_configuration: Name,
    pub location: String,
    pub resource_group: String,
    pub subnet_info: SubnetInfo,
    pub tags: BTreeMap<String, String>,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Name {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetInfo {
    pub vnet_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vnet_resource_group: Option<String>,
    pub subnet_name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_profile: Option<SecurityProfile>,
    /// A number where the zone is one: the driver declares an integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_set: Option<MachineSetReference>,
    #[serde(rename = "identityID", skip_serializing_if = "Option::is_none")]
    pub identity_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_profile: Option<NetworkProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics_profile: Option<DiagnosticsProfile>,
    pub hardware_profile: HardwareProfile,
    pub os_profile: OsProfile,
    pub storage_profile: StorageProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation: Option<CapacityReservation>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityProfile {
    pub security_type: String,
    pub uefi_settings: UefiSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UefiSettings {
    pub vtpm_enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineSetReference {
    pub id: String,
    pub kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProfile {
    pub accelerated_networking: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiagnosticsProfile {
    pub enabled: bool,
    #[serde(rename = "storageURI", skip_serializing_if = "Option::is_none")]
    pub storage_uri: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareProfile {
    pub vm_size: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OsProfile {
    pub admin_username: &'static str,
    pub linux_configuration: LinuxConfiguration,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxConfiguration {
    pub disable_password_authentication: bool,
    pub ssh: Ssh,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ssh {
    /// One key, not a list: the driver declares an object.
    pub public_keys: PublicKey,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicKey {
    pub path: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_data: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfile {
    pub image_reference: BTreeMap<&'static str, Value>,
    pub os_disk: OsDisk,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_disks: Vec<DataDisk>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OsDisk {
    pub caching: String,
    pub create_option: String,
    #[serde(rename = "diskSizeGB")]
    pub disk_size_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_disk: Option<ManagedDisk>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedDisk {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_account_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_profile: Option<SecurityProfileOfDisk>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityProfileOfDisk {
    pub security_encryption_type: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataDisk {
    pub name: String,
    pub lun: i32,
    pub caching: String,
    #[serde(rename = "diskSizeGB")]
    pub disk_size_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_account_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_ref: Option<DataDiskImage>,
}

/// One member such as `{communityGalleryImageID: …}`.
pub type DataDiskImage = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityReservation {
    #[serde(rename = "capacityReservationGroupID")]
    pub capacity_reservation_group_id: String,
}

/// The image of the root disk. The capital `P` is the Go extension's; the driver reads names in any case.
pub fn image_reference(reference: ImageReference<'_>, skip_marketplace_agreement: bool) -> BTreeMap<&'static str, Value> {
    let mut members = BTreeMap::from([(reference.member(), Value::from(reference.value()))]);
    if skip_marketplace_agreement && matches!(reference, ImageReference::Urn(_)) {
        members.insert("skipMarketPlaceAgreement", Value::Bool(true));
    }
    members
}

/// A zone as the driver wants it.
pub fn zone_value(zone: &str) -> Value {
    if !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = zone.parse::<i32>() {
            return Value::from(number);
        }
    }
    Value::from(zone)
}

/// Whether machines of this type are confidential: `Standard_DC…` and `Standard_EC…`.
pub fn is_confidential(machine_type: &str) -> bool {
    let machine_type = machine_type.to_lowercase();
    machine_type.starts_with("standard_ec") || machine_type.starts_with("standard_dc")
}
