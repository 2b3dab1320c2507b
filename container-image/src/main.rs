//! `cargo run -p container-image`: writes the image of the program. See the library.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use container_image::Image;

/// Writes the image of the program as an archive with an OCI image layout. Needs no Docker.
#[derive(Parser)]
struct Arguments {
    /// The program, linked statically.
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Where the archive goes.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Name of the image, such as registry.example.org/gardener-extension-worker:0.1.0.
    #[arg(long)]
    name: String,
    /// When it was made, in seconds since 1970.
    #[arg(long, env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: i64,
}

fn main() -> Result<()> {
    let Arguments { binary, output, name, created } = Arguments::parse();
    let file = binary.display();
    let binary = std::fs::read(&binary).with_context(|| format!("reading {file}"))?;
    let archive = Image { binary: &binary, name: &name, created }.archive().with_context(|| file.to_string())?;
    std::fs::write(&output, archive).with_context(|| format!("writing {}", output.display()))
}
