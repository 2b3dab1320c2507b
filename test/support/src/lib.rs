//! What the tests, the benchmarks and the demo share.
//!
//! ```text
//! cluster           a real control plane: etcd, kube-apiserver, machine-controller-manager or its stand-in
//! cloud_server      the socket of a stand-in for a cloud
//! arm               a stand-in for Azure over HTTP
//! ec2, moto         stand-ins for EC2 over HTTP: ours for signatures and pages, another one for filters
//! form              pairs of queries and forms
//! openstack         a stand-in for OpenStack's Keystone and Nova over HTTP and HTTPS
//! proxy             between a controller and the API server: faults, delays, counts
//! program           the program under test, as a command and as a controller
//! webhooks          the webhooks under test, for a garden or a seed
//! http, https       requests to a port, also such as no well-behaved client sends
//! shoot             the namespace of one shoot, and what gardenlet writes there
//! migration         gardenlet's part when a control plane moves to another seed
//! image_objects     objects for images: definitions, listings, a controller beside them
//! leaks             secrets that no log, status or event may contain
//! garden            a garden with CloudProfiles and Shoots; garden_objects: objects to begin with
//! broken            documents with one thing wrong, as tables
//! edited_shoots     Shoots of every cloud, and what people change in them
//! left_by_go        what the Go extensions leave behind in a seed
//! conformance       what holds for every provider of machines
//! tier              which tests of a target run
//! measured          cases measured from the Go extensions, and what differs from them
//! ```

pub mod arm;
pub mod broken;
mod cloud_server;
pub mod cluster;
pub mod conformance;
pub mod ec2;
pub mod edited_shoots;
mod form;
pub mod garden;
pub mod garden_objects;
pub mod http;
pub mod https;
pub mod image_objects;
pub mod leaks;
pub mod left_by_go;
pub mod measured;
pub mod migration;
pub mod moto;
pub mod openstack;
pub mod program;
pub mod proxy;
pub mod shoot;
pub mod tier;
pub mod webhooks;

use std::path::Path;

/// The folder of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    let support = Path::new(env!("CARGO_MANIFEST_DIR"));
    support.ancestors().nth(2).unwrap_or(support)
}
