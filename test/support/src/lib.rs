//! Code shared by tests, benchmarks and the demo.
//!
//! ```text
//! cluster           a real control plane: etcd, kube-apiserver, machine-controller-manager or a fake of it
//! cloud_server      the HTTP server of fake clouds
//! arm               a fake Azure over HTTP
//! ec2, moto         fake EC2 servers: ours for signatures and pages, moto for filters
//! form              decodes queries and forms
//! openstack         fakes of OpenStack's Keystone and Nova over HTTP and HTTPS
//! proxy             between a controller and the API server: faults, delays, counts
//! program           the program under test, as a command and as a controller
//! webhooks          the webhooks under test, for a garden or a seed
//! http, https       requests to a port, including malformed ones
//! shoot             the namespace of one shoot with gardenlet's objects
//! migration         gardenlet's part when a control plane moves to another seed
//! image_objects     objects for images: definitions, lists, and the controller
//! leaks             searches logs, statuses and events for secrets
//! garden            a garden with CloudProfiles and Shoots; garden_objects: objects to start from
//! broken            tables of documents with one mistake
//! edited_shoots     Shoots of every cloud, and typical edits
//! left_by_go        the state of a seed after the Go extensions
//! conformance       conformance tests for machine providers
//! tier              which tests of a target run
//! measured          cases measured from the Go extensions, and the comparison with them
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

/// The root folder of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    let support = Path::new(env!("CARGO_MANIFEST_DIR"));
    support.ancestors().nth(2).unwrap_or(support)
}
