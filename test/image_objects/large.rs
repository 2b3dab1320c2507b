//! Memory for 20,000 images. `CONTROLLER=FILE` measures another build of the program.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use test_support::cluster::{CONTROLLER, Process, eventually};
use test_support::image_objects::{SOON, Stage, ami};
use test_support::program;

const IMAGES: u32 = 20_000;
/// MiB besides the program itself (docs/performance-evidence.md).
const MOST_MEMORY: f64 = 100.0;
/// Peak in MiB including the program, as built by tests.
const MOST_AT_ANY_TIME: f64 = 200.0;

#[tokio::test]
#[ignore = "takes minutes; docs/performance-evidence.md has its figures"]
async fn memory_for_twenty_thousand_images_does_not_grow() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.control_plane.namespace("capi").await?;
    let amis: Vec<Value> = (1..=IMAGES)
        .map(|id| ami(id, &format!("capa-ami-ubuntu-24.04-v1.{}.{}-{id}", 33 + id % 3, id % 50), "2026-09-22"))
        .collect();
    stage.list(&amis)?;
    stage.lookup().await?;
    stage.selection(&namespace, "nodes", json!({})).await?;
    let controller = start(&stage, "controller")?;
    eventually(SOON * 15, "all images are there", async || {
        let images = stage.count_images().await?;
        ensure!(images == IMAGES as usize, "{images}");
        Ok(())
    })
    .await?;
    // One round after the last write.
    stage.reads(&controller, 1).await?;
    has_little_memory(&controller, "all images written").await?;
    controller.stop(SOON).await?;
    let controller = start(&stage, "another")?;
    stage.reads(&controller, 3).await?;
    has_little_memory(&controller, "started with all images").await
}

fn start(stage: &Stage, name: &str) -> Result<Process> {
    let kubeconfig = stage.control_plane.kubeconfig_file(CONTROLLER)?;
    let program = program::controller(name, program::measured(), kubeconfig).env("RUST_LOG", program::DEBUG_LOG);
    let program = stage.arguments().iter().fold(program, |program, argument| program.arg(argument));
    Process::start(program, stage.control_plane.folder())
}

/// Excludes pages of the program's file: in a debug build they need as much memory as everything else, regardless of
/// images.
#[allow(clippy::print_stderr, reason = "the measurement is for who runs it")]
async fn has_little_memory(controller: &Process, when: &str) -> Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", controller.id().await?))?;
    let mebibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        let kibibytes: f64 = line.trim().split(' ').next().context("no number")?.parse()?;
        anyhow::Ok(kibibytes / 1024.0)
    };
    let (held, program, all) = (mebibytes("RssAnon:")?, mebibytes("RssFile:")?, mebibytes("VmRSS:")?);
    let peak = mebibytes("VmHWM:")?;
    eprintln!(
        "{IMAGES} images, {when}: {held:.0} MiB, with the program itself ({program:.0}) {all:.0}, {peak:.0} at most"
    );
    ensure!(held < MOST_MEMORY && peak < MOST_AT_ANY_TIME, "{when}: {held:.0} MiB, {peak:.0} at most");
    Ok(())
}
