//! The load of `fleet` for the Go extension of Azure and for this controller, one after the other on the same machine. Only with
//! `GO_EXTENSION=FILE`, and without capabilities, so that versions may be measured that don't know them.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::controller::Controller;
use crate::fleet;
use crate::load;

pub(crate) async fn run() -> Result<()> {
    let Some(binary) = std::env::var_os("GO_EXTENSION").map(PathBuf::from) else {
        println!("\nGO_EXTENSION names no program: nothing is measured beside it");
        return Ok(());
    };
    let theirs =
        fleet::measure("Go: 100 Workers", &Controller::GoExtension(binary), load::without_capabilities).await?;
    let ours = fleet::measure("Ours: 100 Workers", &Controller::Ours, load::without_capabilities).await?;
    for what in ["machinedeployments", "machineclasses", "secrets"] {
        ensure!(theirs.get(what) == ours.get(what), "the {what} differ from those of the Go extension");
    }
    Ok(())
}
