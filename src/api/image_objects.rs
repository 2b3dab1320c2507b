//! Objects for machine images in a group of our own (docs/images.md#objects): an image, a lookup that finds images, and which
//! images a consumer uses. Their definitions, with schemas, are made from these types.
//!
//! Members of `MachineImage.spec` are those of an `ImageList`; `ImageLookup.spec` is the same in a file and in a cluster.

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

/// Declares an object with metadata and spec, and perhaps a status.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $plural:literal, $scope:ty, $spec:ty $(, $status:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, PartialEq)]
        pub struct $name {
            /// Name, labels, generation.
            #[serde(default, deserialize_with = "without_managers")]
            pub metadata: ObjectMeta,
            /// What is wanted or known.
            pub spec: $spec,
            $(
                /// What was found.
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
    /// An image at a cloud, in a region or everywhere.
    MachineImage, "MachineImage", "machineimages", ClusterResourceScope, MachineImageSpec
);
object!(
    /// Which names of images mean which version and flavor, and whose images may be used.
    ImageLookup, "ImageLookup", "imagelookups", ClusterResourceScope, ImageLookupSpec, ImageLookupStatus
);
object!(
    /// Which image a consumer uses for each version.
    ImageSelection, "ImageSelection", "imageselections", NamespaceResourceScope, ImageSelectionSpec, ImageSelectionStatus
);
object!(
    /// Which images may be used at all: owners and ids. Each policy of a provider has to be met.
    ImageAdmissionPolicy, "ImageAdmissionPolicy", "imageadmissionpolicies", ClusterResourceScope, ImageAdmissionPolicySpec
);

/// `MachineImage.spec`: what an `ImageList` says of an image.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineImageSpec {
    /// Type of CloudProfiles that can have it, such as aws.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Which of the provider's clouds; public where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// The region; absent where the image has one name everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Where it is to be had, if it has one name everywhere and is not everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// How machines name it: one member, as in a CloudProfile, such as ami.
    #[cfg_attr(test, schemars(extend("minProperties" = 1, "maxProperties" = 1)))]
    pub reference: BTreeMap<String, String>,
    /// What CloudProfiles call it, or its operating system.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub image: String,
    /// The version: of Kubernetes for images of Cluster API, else of the operating system.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub version: String,
    /// Its name at the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Account, project or gallery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When it was made.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// From when on its owner advises against it.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Whether machines can start from it: available, or what the cloud says instead. gone: no source lists it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether it can be read only with a key of its account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// Architecture, boot mode and others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<String>>,
    /// Tags or labels at the cloud.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// `ImageLookup.spec`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageLookupSpec {
    /// Type of CloudProfiles that the images are for.
    pub provider: String,
    /// Name of the image in CloudProfiles; without it, the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What names begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_prefix: String,
    /// How names go on, with `{{.OS}}` or `{{.BaseOS}}`, `{{.ARCH}}`, `{{.K8sVersion}}` or `{{.K8sMinor}}`, and custom
    /// fields.
    #[cfg_attr(test, schemars(length(min = 1, max = 1024)))]
    pub lookup_format: String,
    /// Operating systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    /// Architectures.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub arch: Vec<String>,
    /// Further variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_fields: Vec<CustomField>,
    /// Comparators with commas between them, such as `>=1.33, <1.36`.
    #[cfg_attr(test, schemars(length(min = 2, max = 256)))]
    pub versions: String,
    /// Accounts, projects or galleries whose images may be used.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub owners: Vec<String>,
    /// Conditions besides the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<ImageFilter>,
    /// Facts of the image that make a flavor of its own, such as bootMode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Whether encrypted images are meant, or those that are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// EC2 is asked for the images, instead of the listings that the controller reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ec2: Option<Ec2Source>,
}

/// Where EC2 is asked for images.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ec2Source {
    /// The regions.
    #[cfg_attr(test, schemars(length(min = 1, max = 64)))]
    pub regions: Vec<String>,
}

/// A variable of names.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomField {
    /// Its name.
    pub name: String,
    /// What it may stand for.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub valid_values: Vec<String>,
}

/// A condition on an image besides its name: one of the values has to be there.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageFilter {
    /// A fact, such as `bootMode`, or `tag:` with a name.
    pub name: String,
    /// The values.
    pub values: Vec<String>,
}

/// `ImageLookup.status`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageLookupStatus {
    /// Generation of the spec that was used.
    #[serde(default)]
    pub observed_generation: i64,
    /// When the sources were read last; where nothing else differs it is renewed once an hour.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// How many images it finds that can be used.
    #[serde(default)]
    pub found: i64,
    /// What is wrong with it, or with the sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Since when something is wrong.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
}

/// `ImageSelection.spec`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageSelectionSpec {
    /// Who uses the images, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Consumer>,
    /// Type of CloudProfiles.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Which of the provider's clouds; public where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// The region; absent where images have one name everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// `spec.image` of the MachineImages.
    #[cfg_attr(test, schemars(length(min = 1, max = 256)))]
    pub image: String,
    /// Architecture of the machines.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub architecture: String,
    /// Comparators with commas between them, such as `>=1.33, <1.36`.
    #[cfg_attr(test, schemars(length(min = 2, max = 256)))]
    pub versions: String,
    /// Accounts, projects or galleries whose images may be used.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub owners: Vec<String>,
    /// Further conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<ImageFilter>,
    /// Whether encrypted images are meant, or those that are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// The MachineImage of each version. What is missing is added once; what is there is never changed. Write the name of a
    /// newer one to move.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
}

/// Who uses images.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// Kind, such as AWSMachineTemplate.
    pub kind: String,
    /// Name, in the same namespace.
    pub name: String,
}

/// `ImageSelection.status`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageSelectionStatus {
    /// Generation of the spec that was used.
    #[serde(default)]
    pub observed_generation: i64,
    /// Newer images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrades: Vec<ImageUpgrade>,
    /// Resolved, and UpgradeAvailable.
    #[cfg_attr(test, schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ImageCondition>,
}

/// A newer image than the one that is used.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageUpgrade {
    /// The version.
    pub version: String,
    /// The MachineImage that is used.
    pub image: String,
    /// The MachineImage that could be used.
    pub newer: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for ImageUpgrade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} after {}", self.version, self.newer, self.image)
    }
}

/// A condition, as Kubernetes writes them.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// When the status became what it is.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// Generation of the spec that was used.
    #[serde(default)]
    pub observed_generation: i64,
}

/// `ImageAdmissionPolicy.spec`. What is empty allows nothing by itself: an image has to be of an owner, or one of the ids.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageAdmissionPolicySpec {
    /// Type of CloudProfiles whose images it is about.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub provider: String,
    /// Accounts, projects or galleries whose images may be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_owners: Vec<String>,
    /// Images that may be used whoever owns them, by their names at the cloud.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "allowedIDs")]
    pub allowed_ids: Vec<String>,
}
