//! The attributes of an image at EC2 that only filters use. The table has their members in the output of the command-line
//! tool, their elements in EC2's XML, and the names that filters use.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use wire::api::bounded_text::beginning;
use wire::api::gardener::Capabilities;

/// Maximum length of a value.
const LONGEST: usize = 256;

/// Generates the struct, the list of names and the conversion from one table.
macro_rules! attributes {
    ($($field:ident = $json:literal, $xml:literal, $name:literal;)*) => {
        /// The attributes with one value.
        #[derive(Debug, Default, Deserialize)]
        #[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
        pub(super) struct Ec2Attributes {
            $(
                #[serde(rename = $json, alias = $xml, default, deserialize_with = "scalar")]
                #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
                $field: Option<String>,
            )*
        }

        /// The names of the attributes with one value.
        const SINGLE: &[&str] = &[$($name),*];

        impl Ec2Attributes {
            /// Adds the known attributes to those of an image.
            pub(super) fn add_to(&self, attributes: &mut Capabilities) {
                $(add(attributes, $name, self.$field.as_deref());)*
            }
        }
    };
}

attributes! {
    description = "Description", "description", "description";
    image_location = "ImageLocation", "imageLocation", "imageLocation";
    image_owner_alias = "ImageOwnerAlias", "imageOwnerAlias", "imageOwnerAlias";
    public = "Public", "isPublic", "public";
    platform = "Platform", "platform", "platform";
    platform_details = "PlatformDetails", "platformDetails", "platformDetails";
    usage_operation = "UsageOperation", "usageOperation", "usageOperation";
    virtualization_type = "VirtualizationType", "virtualizationType", "virtualizationType";
    hypervisor = "Hypervisor", "hypervisor", "hypervisor";
    root_device_type = "RootDeviceType", "rootDeviceType", "rootDeviceType";
    root_device_name = "RootDeviceName", "rootDeviceName", "rootDeviceName";
    ena_support = "EnaSupport", "enaSupport", "enaSupport";
    sriov_net_support = "SriovNetSupport", "sriovNetSupport", "sriovNetSupport";
    tpm_support = "TpmSupport", "tpmSupport", "tpmSupport";
    imds_support = "ImdsSupport", "imdsSupport", "imdsSupport";
    kernel_id = "KernelId", "kernelId", "kernelId";
    ramdisk_id = "RamdiskId", "ramdiskId", "ramdiskId";
    source_instance_id = "SourceInstanceId", "sourceInstanceId", "sourceInstanceId";
    source_image_id = "SourceImageId", "sourceImageId", "sourceImageId";
    source_image_region = "SourceImageRegion", "sourceImageRegion", "sourceImageRegion";
    last_launched_time = "LastLaunchedTime", "lastLaunchedTime", "lastLaunchedTime";
    deregistration_protection = "DeregistrationProtection", "deregistrationProtection", "deregistrationProtection";
    image_allowed = "ImageAllowed", "imageAllowed", "imageAllowed";
    free_tier_eligible = "FreeTierEligible", "freeTierEligible", "freeTierEligible";
}

/// The names of attributes of block devices and products, which may have several values, and of the record itself.
const OTHERS: &[&str] = &[
    "architecture",
    "blockDeviceMapping.deleteOnTermination",
    "blockDeviceMapping.deviceName",
    "blockDeviceMapping.encrypted",
    "blockDeviceMapping.snapshotId",
    "blockDeviceMapping.volumeSize",
    "blockDeviceMapping.volumeType",
    "bootMode",
    "creationDate",
    "imageId",
    "imageType",
    "name",
    "ownerId",
    "productCode",
    "productCode.type",
    "state",
    "stateReasonCode",
    "stateReasonMessage",
    "tagKey",
];

/// Names of EC2's filters that differ from those of the attribute.
const FILTERS: [(&str, &str); 3] =
    [("is-public", "public"), ("owner-alias", "imageOwnerAlias"), ("manifest-location", "imageLocation")];

/// Whether filters can use an attribute, even if no image has it.
#[must_use]
pub fn is_attribute(name: &str) -> bool {
    SINGLE.contains(&name) || OTHERS.contains(&name)
}

/// The name of an attribute for a filter of EC2, such as `virtualizationType` for `virtualization-type`. Other names stay
/// unchanged.
#[must_use]
pub fn attribute_name(filter: &str) -> String {
    if let Some((_, name)) = FILTERS.iter().find(|(known, _)| *known == filter) {
        return (*name).to_owned();
    }
    let mut parts = filter.split('-');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    if is_attribute(&name) { name } else { filter.to_owned() }
}

/// Adds a value of an attribute, once.
pub(super) fn add(attributes: &mut Capabilities, name: &str, value: Option<&str>) {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return };
    let values = attributes.0.entry(name.to_owned()).or_default();
    let value = beginning(value, LONGEST);
    if !values.contains(&value) {
        values.push(value);
    }
}

/// A block device of an image.
#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
#[serde(rename_all = "PascalCase")]
pub(super) struct BlockDevice {
    #[serde(alias = "deviceName")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    device_name: Option<String>,
    #[serde(alias = "ebs")]
    ebs: Option<Ebs>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
#[serde(rename_all = "PascalCase")]
struct Ebs {
    #[serde(default, alias = "encrypted")]
    encrypted: bool,
    #[serde(alias = "volumeType", default, deserialize_with = "scalar")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    volume_type: Option<String>,
    #[serde(alias = "volumeSize", default, deserialize_with = "scalar")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    volume_size: Option<String>,
    #[serde(alias = "snapshotId", default, deserialize_with = "scalar")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    snapshot_id: Option<String>,
    #[serde(alias = "deleteOnTermination", default, deserialize_with = "scalar")]
    #[cfg_attr(any(test, feature = "testing"), serde(skip_serializing_if = "Option::is_none"))]
    delete_on_termination: Option<String>,
}

impl BlockDevice {
    pub(super) fn is_encrypted(&self) -> bool {
        self.ebs.as_ref().is_some_and(|ebs| ebs.encrypted)
    }

    pub(super) fn add_to(&self, attributes: &mut Capabilities) {
        add(attributes, "blockDeviceMapping.deviceName", self.device_name.as_deref());
        let Some(ebs) = &self.ebs else { return };
        add(attributes, "blockDeviceMapping.encrypted", Some(if ebs.encrypted { "true" } else { "false" }));
        for (name, value) in [
            ("volumeType", &ebs.volume_type),
            ("volumeSize", &ebs.volume_size),
            ("snapshotId", &ebs.snapshot_id),
            ("deleteOnTermination", &ebs.delete_on_termination),
        ] {
            add(attributes, &format!("blockDeviceMapping.{name}"), value.as_deref());
        }
    }
}

/// The product of an image from a marketplace.
#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
pub(super) struct ProductCode {
    #[serde(rename = "ProductCodeId", alias = "productCode", default, deserialize_with = "scalar")]
    code: Option<String>,
    #[serde(rename = "ProductCodeType", alias = "type", default, deserialize_with = "scalar")]
    code_type: Option<String>,
}

impl ProductCode {
    pub(super) fn add_to(&self, attributes: &mut Capabilities) {
        add(attributes, "productCode", self.code.as_deref());
        add(attributes, "productCode.type", self.code_type.as_deref());
    }
}

/// Why an image is in its state.
#[derive(Debug, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(serde::Serialize))]
pub(super) struct StateReason {
    #[serde(rename = "Code", alias = "code", default, deserialize_with = "scalar")]
    code: Option<String>,
    #[serde(rename = "Message", alias = "message", default, deserialize_with = "scalar")]
    message: Option<String>,
}

impl StateReason {
    pub(super) fn add_to(&self, attributes: &mut Capabilities) {
        add(attributes, "stateReasonCode", self.code.as_deref());
        add(attributes, "stateReasonMessage", self.message.as_deref());
    }
}

/// Decodes a text, a number or a truth value, from JSON or XML.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Scalar;

    impl<'de> Visitor<'de> for Scalar {
        type Value = Option<String>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a text, a number, true or false")
        }

        fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
            Ok(Some(value.to_owned()))
        }

        fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
            Ok(Some(value.to_string()))
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(Some(value.to_string()))
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok(Some(value.to_string()))
        }

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
            Ok(Some(value.to_string()))
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        /// An element of XML with its text.
        fn visit_map<A: MapAccess<'de>>(self, mut element: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some((key, value)) = element.next_entry::<String, String>()? {
                if key == "$text" {
                    found = Some(value);
                }
            }
            Ok(found)
        }
    }

    deserializer.deserialize_any(Scalar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_names_of_ec2_or_ours() {
        for (filter, name) in [
            ("virtualization-type", "virtualizationType"),
            ("rootDeviceType", "rootDeviceType"),
            ("is-public", "public"),
            ("boot-mode", "bootMode"),
            ("block-device-mapping.volume-type", "blockDeviceMapping.volumeType"),
            ("product-code.type", "productCode.type"),
            ("disk-controller", "disk-controller"),
            ("secure-", "secure-"),
        ] {
            assert_eq!(attribute_name(filter), name);
        }
        assert!(is_attribute("enaSupport") && !is_attribute("ena"));
    }
}
