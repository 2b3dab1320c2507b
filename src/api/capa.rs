//! What is read of an `AWSMachineTemplate` of Cluster API's provider for AWS.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;
use crate::api::metadata::without_managers;

/// What machines of Cluster API on AWS are made of.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AwsMachineTemplate {
    /// Name, namespace, labels.
    #[serde(default, deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: TemplateSpec,
    /// What its controller found out.
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
    /// The machine.
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
    /// Operating system of the images that are meant.
    #[serde(rename = "imageLookupBaseOS", default, deserialize_with = "null_as_default")]
    pub image_lookup_base_os: String,
    /// Owner of the images that are meant.
    #[serde(default, deserialize_with = "null_as_default")]
    pub image_lookup_org: String,
}

/// `AWSMachineTemplate.spec.template.spec.ami`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FixedImage {
    /// Its id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
}

/// `AWSMachineTemplate.status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateStatus {
    /// What its machines are.
    #[serde(default, deserialize_with = "null_as_default")]
    pub node_info: NodeInfo,
}

/// `AWSMachineTemplate.status.nodeInfo`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeInfo {
    /// `amd64` or `arm64`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub architecture: String,
}
