//! The program under test: the binary that cargo built, as a process that acts as its own user.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result};

use test_support::arm::Arm;
use test_support::cluster::{self, CONTROLLER, ControlPlane, Process};
use test_support::openstack::OpenStack;
use test_support::program;

/// The shared control plane with the shared program.
pub(crate) async fn shared() -> Result<&'static ControlPlane> {
    static SHARED: tokio::sync::OnceCell<Process> = tokio::sync::OnceCell::const_new();
    let control_plane = cluster::shared().await?;
    SHARED.get_or_try_init(async || start(control_plane)).await?.ensure_running()?;
    Ok(control_plane)
}

/// The Azure of all programs; each test uses its own resource group.
pub(crate) fn azure() -> Result<&'static Arm> {
    static AZURE: OnceLock<Arm> = OnceLock::new();
    once(&AZURE, Arm::start)
}

/// The OpenStack of all Workers; each test uses its own project.
pub(crate) fn openstack() -> Result<&'static OpenStack> {
    static OPENSTACK: OnceLock<OpenStack> = OnceLock::new();
    once(&OPENSTACK, OpenStack::start)
}

/// The same with a certificate of an unknown CA.
pub(crate) fn openstack_tls() -> Result<&'static OpenStack> {
    static OPENSTACK: OnceLock<OpenStack> = OnceLock::new();
    once(&OPENSTACK, OpenStack::start_tls)
}

fn once<T>(cell: &'static OnceLock<T>, start: impl FnOnce() -> Result<T>) -> Result<&'static T> {
    match cell.get() {
        Some(started) => Ok(started),
        None => {
            let started = start()?;
            // A concurrent caller may have been first; use its value.
            Ok(cell.get_or_init(|| started))
        }
    }
}

/// Starts another process.
pub(crate) fn start(control_plane: &ControlPlane) -> Result<Process> {
    start_with(control_plane, "controller", &[])
}

/// Starts another process with its own name and further arguments.
pub(crate) fn start_with(control_plane: &ControlPlane, name: &str, arguments: &[&str]) -> Result<Process> {
    let azure = azure()?.url();
    let program = program::controller(name, program::binary(), control_plane.kubeconfig_file(CONTROLLER)?);
    let program = arguments
        .iter()
        .fold(program, |program, argument| program.arg(argument))
        .env("AZURE_RESOURCE_MANAGER_URL", &azure)
        .env("AZURE_AUTHORITY_HOST", &azure)
        .env("RUST_LOG", program::DEBUG_LOG);
    Process::start(program, control_plane.folder())
}

/// Kills a process as in a crash or node failure.
pub(crate) async fn kill(program: Process) -> Result<()> {
    program.signal("KILL")?;
    program.wait(Duration::from_secs(10)).await?;
    Ok(())
}

/// The log of the shared program.
pub(crate) fn log(control_plane: &ControlPlane) -> Result<String> {
    let file = control_plane.folder().join("controller.log");
    let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
