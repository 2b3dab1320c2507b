//! The controller under test: with `CONTROLLER=FILE` that program, such as the one that is shipped; else the one that
//! `cargo bench` has built, which has all optional features.

use std::path::Path;

use anyhow::Result;

use crate::cluster::{ControlPlane, Process, Program};

/// The program under test.
pub(crate) fn binary() -> String {
    std::env::var("CONTROLLER").unwrap_or_else(|_| env!("CARGO_BIN_EXE_gardener-extension-worker").to_owned())
}

/// Starts one that reaches the API server as a kubeconfig says.
pub(crate) fn start(control_plane: &ControlPlane, kubeconfig: &Path) -> Result<Process> {
    let program = Program::new("controller", binary())
        .arg("controller")
        .flag("kubeconfig", kubeconfig)
        .env("RUST_LOG", "info,kube_runtime=warn")
        .env("NO_COLOR", "1");
    Process::start(program, control_plane.folder())
}
