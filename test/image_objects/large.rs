//! 20,000 images: what they cost in memory.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use test_support::cluster::{CONTROLLER, eventually};

use crate::stage::{SOON, Stage, ami};

const IMAGES: u32 = 20_000;
/// MiB: what was measured with a debug build, and a quarter more. Less than 100 are wanted (docs/performance.md).
const MOST_MEMORY: f64 = 560.0;

#[tokio::test]
#[ignore = "takes minutes; docs/performance.md has its figures"]
async fn memory_for_twenty_thousand_images_does_not_grow() -> Result<()> {
    let stage = Stage::new().await?;
    let amis: Vec<Value> = (1..=IMAGES)
        .map(|id| ami(id, &format!("capa-ami-ubuntu-24.04-v1.{}.{}-{id}", 33 + id % 3, id % 50), "2026-09-22"))
        .collect();
    stage.list(&amis)?;
    stage.lookup().await?;
    let controller = stage.controller("controller", CONTROLLER, &[])?;
    eventually(SOON * 15, "all images are there", async || {
        let images = stage.images().await?.len();
        ensure!(images == IMAGES as usize, "{images}");
        Ok(())
    })
    .await?;
    // A round after the last write.
    stage.reads(&controller, 1).await?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", controller.id().await?))?;
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).map(str::to_owned);
    let (now, peak) = (line("VmRSS:").context("no VmRSS")?, line("VmHWM:").context("no VmHWM")?);
    eprintln!("{IMAGES} images: {now} now, {peak} at most");
    let kibibytes: f64 = now.split(' ').next().context("a number")?.parse()?;
    ensure!(kibibytes / 1024.0 < MOST_MEMORY, "{now}");
    Ok(())
}
