//! The controller under test: with `CONTROLLER=FILE` that program, such as the one that is shipped; else the one that
//! `cargo bench` has built, which has all optional features.

use std::path::Path;

use anyhow::Result;

use test_support::cluster::{ControlPlane, Process};
use test_support::program;

/// Starts one that reaches the API server as a kubeconfig says.
pub(crate) fn start(control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Process> {
    let program =
        program::controller("controller", program::measured(), kubeconfig).env("RUST_LOG", "info,kube_runtime=warn");
    Process::start(program, control_plane.folder())
}
