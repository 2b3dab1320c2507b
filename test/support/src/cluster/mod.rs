//! A real control plane for tests and the demo: etcd, kube-apiserver and machine-controller-manager. Also a real
//! garden.
//!
//! ```text
//! binaries            built once from ../control-plane (Go), stored in a cache folder
//!    │
//! control_plane       etcd + kube-apiserver on loopback: users, clients, kubeconfigs, namespaces
//!    ├── crds         Gardener's and machine-controller-manager's, from Gardener's Go module
//!    ├── copies       copies one namespace to thousands
//!    ├── audit        which requests a user made
//!    ├── garden_servers   aggregated Gardener API server (with front_proxy), and gardener-controller-manager
//!    │
//! machine_controller_manager    the real one; its VMs are Nodes of the same cluster
//! faker                         a fake for tests that need many machines but no real behaviour
//! sharder                       of kubernetes-controller-sharding: assigns Workers to processes
//! gardener_part                 a part of Gardener with line-based I/O: Shoot to Worker, maintenance, Worker client
//! ```
//!
//! `process` ensures that no child process outlives the test process.
//!
//! A test begins with `let cluster = cluster::shared().await?;` and `let namespace =
//! cluster.namespace("shoot--foo--bar").await?;`.

mod audit;
mod binaries;
mod control_plane;
mod copies;
mod crds;
mod eventually;
mod faked_machines;
mod faker;
mod front_proxy;
mod garden_servers;
mod gardener_part;
mod go_build;
mod machine_controller_manager;
mod process;
mod run_folder;
mod sharder;
mod usage;
mod users;

pub use audit::{AuditLog, Mark, Request};
pub use binaries::{PodPrograms, cache, go_program, helm, pod_programs};
pub use control_plane::{ControlPlane, SERVICE, free_ports};
pub use crds::{install_files, module_folder};
pub use eventually::eventually;
pub use faker::Faker;
pub use garden_servers::GardenServers;
pub use gardener_part::GardenerPart;
pub use machine_controller_manager::{Deletion, MachineControllerManager};
pub use process::{Process, Program};
pub use run_folder::RunFolder;
pub use sharder::{RING, Sharder};
pub use usage::{memory, processor_seconds};
pub use users::{ADMIN, CONTROLLER, FAKER, GARDENER, MACHINE_CONTROLLER_MANAGER, READER, RESTRICTED, SHARDER, SHARDS};

/// Builds and downloads everything that a control plane with pods and machines needs, for runs without a network.
pub async fn build_for_pods() -> anyhow::Result<()> {
    binaries::control_plane().await?;
    binaries::machine_controller_manager().await?;
    binaries::pod_programs().await?;
    crds::gardener_module("crds").await.map(drop)
}

/// The control plane shared by all tests of a binary. The first caller starts it, and it ends with the process.
///
/// Each test uses its own namespaces. Clients are not shared, because they belong to the runtime in which they were
/// created, and each `#[tokio::test]` has its own.
pub async fn shared() -> anyhow::Result<&'static ControlPlane> {
    static SHARED: tokio::sync::OnceCell<ControlPlane> = tokio::sync::OnceCell::const_new();
    SHARED.get_or_try_init(ControlPlane::start).await
}
