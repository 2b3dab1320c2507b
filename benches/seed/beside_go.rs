//! Compares the Go extension for Azure with this controller, under a part of the load of `fleet`, one after the other
//! on the same machine. Requires `GO_EXTENSION=FILE`.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::controller::Controller;
use crate::fleet::{Load, measure};

pub(crate) async fn run() -> Result<()> {
    let Some(binary) = std::env::var_os("GO_EXTENSION").map(PathBuf::from) else {
        println!("\nGO_EXTENSION names no program: nothing is measured beside it");
        return Ok(());
    };
    let theirs = measure("Go: 100 Workers", &Controller::GoExtension(binary), Load::BesideGo).await?;
    let ours = measure("Ours: 100 Workers", &Controller::Ours, Load::BesideGo).await?;
    for what in ["machinedeployments", "machineclasses", "secrets"] {
        ensure!(theirs.get(what) == ours.get(what), "the {what} differ from those of the Go extension");
    }
    Ok(())
}
