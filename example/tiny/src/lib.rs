//! Every provider that comes with `gardener-extension-worker`, and the made-up cloud [Pebble](pebble).

use gardener_extension_worker::cli::Program;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::provider::alicloud::AliCloud;
use gardener_extension_worker::provider::aws::Aws;
use gardener_extension_worker::provider::azure::Azure;
use gardener_extension_worker::provider::gcp::Gcp;
use gardener_extension_worker::provider::openstack::OpenStack;

/// Providers for Workers and CloudProfiles.
pub const PROVIDERS: Providers =
    Providers { of_machines: &[&Azure, &Aws, &Gcp, &AliCloud, &OpenStack, &pebble::Pebble] };

/// The program. Pebble's pools depend on no object at their cloud, so the clouds are those of
/// `gardener-extension-worker`.
pub const PROGRAM: Program = Program { providers: PROVIDERS, clouds: Program::SHIPPED.clouds };
