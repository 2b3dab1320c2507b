//! The controller as it is shipped: built by `cargo bench` as for a release.

use std::path::Path;

use anyhow::Result;

use crate::cluster::{ControlPlane, Process, Program};

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_gardener-extension-worker");

/// Starts one that reaches the API server as a kubeconfig says.
pub(crate) fn start(control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Process> {
    let program = Program::new("controller", BINARY)
        .arg("controller")
        .flag("kubeconfig", kubeconfig)
        .env("RUST_LOG", "info,kube_runtime=warn")
        .env("NO_COLOR", "1");
    Process::start(program, control_plane.folder())
}
