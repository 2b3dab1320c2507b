//! Wire formats of objects: handwritten serde types without behaviour beyond (de)serialisation.
//!
//! * [`gardener`]: `Worker`, `Cluster`, and relevant members of `CloudProfile` and `Shoot`;
//! * [`capa`]: relevant members of machine templates of Cluster API's AWS provider;
//! * [`image_objects`]: images, lookups and selections in this project's API group;
//! * [`machine`]: `MachineClass`, `MachineDeployment`, `MachineSet`, `Machine`;
//! * [`metadata`]: metadata of all objects, without unused members;
//! * [`packed_text`]: compressed long-lived texts;
//! * [`deployment`]: `Deployment`, used for machine-controller-manager;
//! * [`secret`]: Secrets that are never printed;
//! * [`decoded_once`]: cache for decoded documents that many objects share;
//! * `bounded_unpacking`: bounded decompression of JSON;
//! * [`bounded_text`]: escaped and bounded texts for people;
//! * [`gotext`]: text in the formats of Go (JSON, YAML, durations, quantities, versions, times).
//!
//! Types declare only the members that the project reads or writes. If an object must be preserved as a whole (a live
//! `MachineDeployment` that is patched), the raw document is kept alongside.

pub mod bounded_text;
pub mod bounded_unpacking;
#[doc(hidden)]
pub mod capa;
pub mod decoded_once;
pub mod deployment;
pub mod gardener;
pub mod gotext;
#[doc(hidden)]
#[cfg(test)]
mod image_object_definitions;
pub mod image_objects;
pub mod machine;
pub mod metadata;
pub mod packed_text;
pub mod secret;

/// Implements the `k8s-openapi` traits with group, version, kind and scope, which clients require.
macro_rules! kubernetes_kind {
    ($type:ty, $group:literal, $version:literal, $kind:literal, $plural:literal, $scope:ty) => {
        impl k8s_openapi::Resource for $type {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $scope;
        }

        impl k8s_openapi::Metadata for $type {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use kubernetes_kind;
