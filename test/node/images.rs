//! The images of the node as archives, because there is no registry.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use container_image::Image;
use test_support::cluster::module_folder;
use test_support::program;

/// Registry and name of the program's image.
pub(crate) const REPOSITORY: &str = "registry.example.org/gardener-extension-worker";
/// Tags with which the chart is installed and then upgraded.
pub(crate) const TAGS: [&str; 2] = ["0.1.0", "0.1.1"];
/// The image of the container that holds the namespaces of a pod.
pub(crate) const PAUSE: &str = "registry.example.org/pause:1";

/// The full name of the program's image.
pub(crate) fn image_name(tag: &str) -> String {
    format!("{REPOSITORY}:{tag}")
}

/// Writes all images to a folder.
pub(crate) async fn write(folder: &Path) -> Result<()> {
    let file = binary()?;
    let binary = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    for (created, tag) in (0..).zip(TAGS) {
        // Created a second later, so that the digest differs.
        let image = Image { binary: &binary, name: &image_name(tag), created };
        std::fs::write(archive(folder, tag), image.archive().with_context(|| file.display().to_string())?)?;
    }
    let pause = std::fs::read(pause(folder).await?)?;
    std::fs::write(archive(folder, "pause"), Image { binary: &pause, name: PAUSE, created: 0 }.archive()?)?;
    Ok(())
}

/// The archives in a folder.
pub(crate) fn archives(folder: &Path) -> [PathBuf; 3] {
    [archive(folder, TAGS[0]), archive(folder, TAGS[1]), archive(folder, "pause")]
}

fn archive(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.tar"))
}

/// The program as it is released: the file in `NODE_BINARY`, or a build as described in docs/operations.md.
fn binary() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("NODE_BINARY") {
        return Ok(named.into());
    }
    let target = format!("{ARCH}-unknown-linux-musl");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--bin", "gardener-extension-worker", "--target", &target]);
    succeeds(cargo.current_dir(test_support::repository()))?;
    let built = program::binary();
    let targets = built.ancestors().nth(2).context("cargo builds into a folder")?;
    Ok(targets.join(target).join("release/gardener-extension-worker"))
}

/// The pause container of Kubernetes, built from the sources of kubelet.
async fn pause(folder: &Path) -> Result<PathBuf> {
    let source = module_folder("kubernetes", "k8s.io/kubernetes").await?.join("build/pause/linux/pause.c");
    let pause = folder.join("pause");
    succeeds(Command::new("cc").args(["-Os", "-static", "-DVERSION=1", "-o"]).arg(&pause).arg(source))?;
    Ok(pause)
}

fn succeeds(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
