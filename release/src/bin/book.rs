//! `cargo run -p release --bin book -- target/book`: builds the documentation as a site and checks its links.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use release::book::{build, check};
use release::source::repository;

/// Builds the documentation as a site and checks its links.
#[derive(Parser)]
struct Arguments {
    /// Folder for the site. Existing files in it are deleted.
    #[arg(value_name = "FOLDER")]
    output: PathBuf,
    /// mdbook.
    #[arg(long, value_name = "FILE", default_value = "mdbook")]
    mdbook: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { output, mdbook } = Arguments::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate is in the repository")?;
    build(root, &mdbook, &output, repository(root)?.as_deref())?;
    let pages = check(&output)?;
    println!("{}: {pages} pages, no broken link", output.display());
    Ok(())
}
