//! Every provider that comes with `gardener-extension-worker`, and the made-up cloud [Pebble](pebble).

use gardener_extension_worker::cli::Program;
use gardener_extension_worker::provider::Providers;
use gardener_extension_worker::provider::alicloud::AliCloud;
use gardener_extension_worker::provider::aws::Aws;
use gardener_extension_worker::provider::azure::Azure;
use gardener_extension_worker::provider::gcp::Gcp;
use gardener_extension_worker::provider::openstack::OpenStack;

/// Who serves Workers, and whose CloudProfiles are understood.
pub const PROVIDERS: Providers =
    Providers { of_machines: &[&Azure, &Aws, &Gcp, &AliCloud, &OpenStack, &pebble::Pebble] };

/// The program. Pebble's pools depend on nothing at their cloud, so it has the clouds that `gardener-extension-worker` has.
pub const PROGRAM: Program = Program { providers: PROVIDERS, clouds: Program::SHIPPED.clouds };
