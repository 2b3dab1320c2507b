//! `cargo run -p release -- dist/`: writes a release. See the library.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use release::program::{Platform, Program, build_all};
use release::source::Source;
use release::{NAME, Release, ensure_empty};

/// Writes a release from a clean tree: static binaries with completions and manual pages, the image, the charts, a krew
/// manifest, a bill of materials, a provenance statement and checksums.
#[derive(Parser)]
struct Arguments {
    /// Empty or new folder for the files.
    #[arg(value_name = "FOLDER")]
    output: PathBuf,
    /// Registry and name of the image, without a tag. Defaults to package.metadata.release.image in Cargo.toml.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// URL of the folder that the files are published in. Defaults to the release in the repository of Cargo.toml.
    #[arg(long, value_name = "URL")]
    downloads: Option<String>,
    /// Existing static program for amd64, instead of building one, such as that of .ci/release.
    #[arg(long, value_name = "FILE")]
    amd64: Option<PathBuf>,
    /// Existing static program for arm64. Only with --amd64.
    #[arg(long, value_name = "FILE", requires = "amd64")]
    arm64: Option<PathBuf>,
    /// Program of the same commit that runs on this machine and prints completions. Defaults to that of this platform.
    #[arg(long, value_name = "FILE")]
    runnable: Option<PathBuf>,
    /// Accept files that differ from the commit.
    #[arg(long)]
    allow_dirty: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate is in the repository")?;
    ensure_empty(&arguments.output)?;
    let source = Source::read(root, arguments.allow_dirty)?;
    let programs = match &arguments.amd64 {
        None => build_all(root, &source)?,
        Some(_) => existing(&arguments),
    };
    let runnable = arguments.runnable.or_else(|| for_this_machine(&programs));
    let release = Release {
        root: root.to_owned(),
        image: arguments.image.unwrap_or_else(|| source.image.clone()),
        downloads: arguments.downloads.map_or_else(|| downloads(&source), Ok)?,
        runnable: runnable.context("no program runs on this machine; name one with --runnable")?,
        programs,
        source,
    };
    release.write(&arguments.output)?;
    println!("{}: {NAME} {} of commit {}", arguments.output.display(), release.source.version, release.source.commit);
    Ok(())
}

fn existing(arguments: &Arguments) -> Vec<Program> {
    let paths = [(Platform::Amd64, &arguments.amd64), (Platform::Arm64, &arguments.arm64)];
    let programs = paths.into_iter().filter_map(|(platform, path)| Some(Program { platform, path: path.clone()? }));
    programs.collect()
}

fn for_this_machine(programs: &[Program]) -> Option<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let program = programs.iter().find(|program| program.platform.target() == target)?;
    Some(program.path.clone())
}

/// Where a release of the repository is published.
fn downloads(source: &Source) -> Result<String> {
    let repository = source.repository.as_deref().unwrap_or("https://git.example.org/gardener-extension-worker");
    ensure!(repository.starts_with("https://"), "`repository` in Cargo.toml is no https URL: {repository}");
    Ok(format!("{}/releases/download/v{}", repository.trim_end_matches('/'), source.version))
}
