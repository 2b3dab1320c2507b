//! Objects as they are on the wire: hand-written serde types, no behaviour beyond (de)serialising.
//!
//! * [`gardener`]: `Worker`, `Cluster` and what is read of `CloudProfile` and `Shoot`;
//! * [`capa`]: what is read of machine templates of Cluster API's provider for AWS;
//! * [`image_objects`]: images, lookups and selections in a group of our own;
//! * [`machine`]: `MachineClass`, `MachineDeployment`, `MachineSet`, `Machine`;
//! * [`metadata`]: metadata of all of them, without what nobody reads;
//! * [`packed_text`]: texts that are kept for long, in less memory;
//! * [`deployment`]: `Deployment`, of which the one of machine-controller-manager is read;
//! * [`secret`]: Secrets that can not be printed by accident;
//! * [`decoded_once`]: raw documents that many objects share;
//! * `bounded_unpacking`: packed JSON, bounded as it is unpacked;
//! * [`bounded_text`]: texts for people, escaped and bounded;
//! * [`gotext`]: text as Go prints and parses it (JSON, YAML, durations, quantities, versions, times).
//!
//! Only the members that the project reads or writes are declared. Where an object must survive as a whole
//! (a live `MachineDeployment` that is patched), the untouched document is kept beside the typed view.

pub mod bounded_text;
pub(crate) mod bounded_unpacking;
#[doc(hidden)]
pub mod capa;
pub mod decoded_once;
pub mod deployment;
pub mod gardener;
pub mod gotext;
#[doc(hidden)]
pub mod image_objects;
pub mod machine;
pub mod metadata;
pub mod packed_text;
pub mod secret;

/// Declares group, version, kind and scope of a type for `k8s-openapi`, and thereby for every client.
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
