//! The relevant members of an `AWSMachineTemplate` of Cluster API's AWS provider.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// Template for machines of Cluster API on AWS.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AwsMachineTemplate {
    /// Name, namespace, labels.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// Target state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: TemplateSpec,
    /// Observed state.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: TemplateStatus,
}

kubernetes_kind!(
    AwsMachineTemplate,
    "infrastructure.cluster.x-k8s.io",
    "v1beta2",
    "AWSMachineTemplate",
    "awsmachinetemplates",
    NamespaceResourceScope
);

/// `AWSMachineTemplate.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TemplateSpec {
    /// The machine template.
    #[serde(default, deserialize_with = "null_as_default")]
    pub template: MachineTemplate,
}

/// `AWSMachineTemplate.spec.template`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineTemplate {
    /// The machine.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: MachineSpec,
}

/// `AWSMachineTemplate.spec.template.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// A fixed image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ami: FixedImage,
    /// Operating system for the image lookup.
    #[serde(rename = "imageLookupBaseOS", default, deserialize_with = "null_as_default")]
    pub image_lookup_base_os: String,
    /// Owner account for the image lookup.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image_lookup_org: String,
}

/// `AWSMachineTemplate.spec.template.spec.ami`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FixedImage {
    /// Id of the image.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
}

/// `AWSMachineTemplate.status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateStatus {
    /// Information about the nodes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub node_info: NodeInfo,
}

/// `AWSMachineTemplate.status.nodeInfo`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeInfo {
    /// CPU architecture: `amd64` or `arm64`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub architecture: String,
}
