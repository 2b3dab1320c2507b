//! Objects for machine images in an API group of this project (docs/images.md#objects). They describe an image, a
//! lookup that finds images, and the images of a consumer. The CRDs and their schemas are generated from these types.
//!
//! `MachineImage.spec` has the members of an `ImageList`. `ImageLookup.spec` is the same in a file and in a cluster.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// Version of the group.
pub const API_VERSION: &str = "images.gardener-extension-worker/v1alpha1";

/// Declares an object with metadata, a spec and an optional status.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $plural:literal, $scope:ty, $spec:ty $(, $status:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, PartialEq)]
        pub struct $name {
            /// Name, labels and generation.
            #[serde(default, deserialize_with = "without_managers")]
            pub metadata: ObjectMeta,
            /// Desired or known state.
            pub spec: $spec,
            $(
                /// Observed state.
                #[serde(default, deserialize_with = "null_as_default")]
                pub status: $status,
            )?
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct($kind, 5)?;
                object.serialize_field("apiVersion", API_VERSION)?;
                object.serialize_field("kind", $kind)?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                $(object.serialize_field::<$status>("status", &self.status)?;)?
                object.end()
            }
        }

        kubernetes_kind!($name, "images.gardener-extension-worker", "v1alpha1", $kind, $plural, $scope);
    };
}

object!(
    /// A machine image at a cloud, in one region or in all.
    MachineImage, "MachineImage", "machineimages", ClusterResourceScope, MachineImageSpec
);
object!(
    /// Maps image names to versions and flavors, and lists the owners whose images may be used.
    ImageLookup, "ImageLookup", "imagelookups", ClusterResourceScope, ImageLookupSpec, ImageLookupStatus
);
object!(
    /// The image that a consumer uses for each version.
    ImageSelection, "ImageSelection", "imageselections", NamespaceResourceScope, ImageSelectionSpec, ImageSelectionStatus
);
object!(
    /// Images that may be used, by owner and ID. An image must satisfy every policy of its provider.
    ImageAdmissionPolicy, "ImageAdmissionPolicy", "imageadmissionpolicies", ClusterResourceScope, ImageAdmissionPolicySpec
);

/// `MachineImage.spec`, with the members of an image in an `ImageList`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineImageSpec {
    /// Type of the CloudProfiles that can use the image, such as aws.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Cloud of the provider, such as public or china. Defaults to public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// Region of the image. Absent if the image has the same reference in all regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Regions that have the image, if it has the same reference everywhere but is not in all regions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// Reference for machines, as one member of a CloudProfile, such as ami.
    #[cfg_attr(test, schemars(extend("minProperties" = 1, "maxProperties" = 1)))]
    pub reference: BTreeMap<String, String>,
    /// Name of the image in CloudProfiles, or its operating system.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub image: String,
    /// Kubernetes version for images of Cluster API. Otherwise, the version of the operating system.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub version: String,
    /// Name of the image at the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Account, project or gallery that owns the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Creation time.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Time from which the owner advises against the image.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// State of the image, `available` if machines can start from it. Otherwise, the state at the cloud, or a mark that
    /// no source lists the image any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether reading the image requires a key of its account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// Facts, such as the architecture and the boot mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<String>>,
    /// Other attributes at the cloud, such as virtualizationType. Filters use them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Vec<String>>,
    /// Tags or labels at the cloud.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// `ImageLookup.spec`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageLookupSpec {
    /// Type of the CloudProfiles that use the images.
    pub provider: String,
    /// Name of the image in CloudProfiles. Defaults to the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Prefix of the image names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_prefix: String,
    /// Template for the rest of the name, with `{{.OS}}` or `{{.BaseOS}}`, `{{.ARCH}}`, `{{.K8sVersion}}` or
    /// `{{.K8sMinor}}`, and custom fields.
    #[cfg_attr(test, schemars(length(min = 1, max = 1024)))]
    pub lookup_format: String,
    /// Operating systems to find.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    /// Architectures to find.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub arch: Vec<String>,
    /// Custom fields of the template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_fields: Vec<CustomField>,
    /// Version range as comparators separated by commas, such as `>=1.33, <1.36`.
    #[cfg_attr(test, schemars(length(min = 2, max = 256)))]
    pub versions: String,
    /// Accounts, projects or galleries whose images may be used.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub owners: Vec<String>,
    /// Conditions on facts and tags, in addition to the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<ImageFilter>,
    /// Facts that distinguish flavors, such as bootMode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Select encrypted images. By default, select images that are not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// Use the images of the first owner that has one. By default, the newest image of all owners is used, and the order of
    /// owners only decides between images of the same age.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owners_in_order: bool,
    /// Query EC2 for the images, instead of the listings that the controller reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ec2: Option<Ec2Source>,
    /// Identity for requests to EC2. By default, the identity of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityRef>,
}

/// Identity for requests to a cloud.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IdentityRef {
    /// `Secret` with access keys, `Role` to assume, or `WorkloadIdentity` of the program's pod.
    pub kind: String,
    /// Name of the Secret, which is mounted into the controller. Its keys are accessKeyID, secretAccessKey and optionally
    /// sessionToken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// ARN of the role to assume with STS. Required for Role and WorkloadIdentity. With a Secret, its keys assume the role.
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// External ID that the role requires. Not for WorkloadIdentity.
    #[serde(rename = "externalID", skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

/// EC2 regions to query for images.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ec2Source {
    /// Regions to query.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub regions: Vec<String>,
}

/// A custom field of the name template.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomField {
    /// Name of the custom field.
    pub name: String,
    /// Values that the custom field matches.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub valid_values: Vec<String>,
}

/// A condition on an image. The fact or tag must have one of the values.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageFilter {
    /// Fact such as `bootMode`, attribute of EC2 such as `virtualizationType` or `virtualization-type`, or `tag:` followed
    /// by the name of a tag.
    pub name: String,
    /// Accepted values.
    pub values: Vec<String>,
}

/// `ImageLookup.status`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageLookupStatus {
    /// Generation of the spec that was processed.
    #[serde(default)]
    pub observed_generation: i64,
    /// Time of the last read of the sources. Without other changes, it is updated once per hour.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// Number of usable images that the lookup finds.
    #[serde(default)]
    pub found: i64,
    /// Problems of the lookup or its sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Time since which there are problems.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
}

/// `ImageSelection.spec`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageSelectionSpec {
    /// Consumer of the images, for information only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Consumer>,
    /// Type of the CloudProfiles.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Cloud of the provider, such as public or china. Defaults to public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// Region of the images. Absent if images have the same reference in all regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// `spec.image` of the MachineImages.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub image: String,
    /// Architecture of the machines.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub architecture: String,
    /// Version range as comparators separated by commas, such as `>=1.33, <1.36`.
    #[cfg_attr(test, schemars(length(min = 2, max = 256)))]
    pub versions: String,
    /// Accounts, projects or galleries whose images may be used.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub owners: Vec<String>,
    /// Further conditions on facts and tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<ImageFilter>,
    /// Select encrypted images. By default, select images that are not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// Use the images of the first owner that has one, instead of the newest image of all owners.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owners_in_order: bool,
    /// MachineImage for each version. The controller adds missing entries and never changes existing ones. To upgrade,
    /// write the name of a newer MachineImage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
}

/// A consumer of images.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// Kind of the consumer, such as AWSMachineTemplate.
    pub kind: String,
    /// Name of the consumer in the same namespace.
    pub name: String,
}

/// `ImageSelection.status`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageSelectionStatus {
    /// Generation of the spec that was processed.
    #[serde(default)]
    pub observed_generation: i64,
    /// Available upgrades.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrades: Vec<ImageUpgrade>,
    /// The conditions Resolved and UpgradeAvailable.
    #[cfg_attr(test, schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ImageCondition>,
}

/// A newer image than the selected one.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageUpgrade {
    /// Version of the image.
    pub version: String,
    /// MachineImage in use.
    pub image: String,
    /// Newer MachineImage that could be used.
    pub newer: String,
    /// Reason for the recommendation.
    pub reason: String,
}

impl fmt::Display for ImageUpgrade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} after {}", self.version, self.newer, self.image)
    }
}

/// A condition in the format of Kubernetes.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// True, False or Unknown.
    pub status: String,
    /// Reason in one word.
    pub reason: String,
    /// Message for users.
    pub message: String,
    /// Time of the last change of the status.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// Generation of the spec that was processed.
    #[serde(default)]
    pub observed_generation: i64,
}

/// `ImageAdmissionPolicy.spec`. An empty list allows no images. An image needs an allowed owner or an allowed ID.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageAdmissionPolicySpec {
    /// Type of the CloudProfiles to which the policy applies.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Accounts, projects or galleries whose images may be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_owners: Vec<String>,
    /// Images that are allowed for any owner, by their names at the cloud.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "allowedIDs")]
    pub allowed_ids: Vec<String>,
}
