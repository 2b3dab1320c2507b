//! Writes a release: everything that an operator or a user installs, from one commit, with the same bytes each time.
//! docs/install.md describes the files.
//!
//! ```text
//! source      commit, and what Cargo.toml says
//! program     builds the program for each platform
//! completions completions for shells, and manual pages
//! chart       the charts, with the image of the release
//! krew        manifest of the plugin for kubectl
//! materials   bill of materials (CycloneDX)
//! provenance  what was built from what
//! book        the documentation as a site
//! ```

pub mod book;
pub mod chart;
mod completions;
mod krew;
mod materials;
pub mod program;
mod provenance;
pub mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use container_image::archive::{Archive, Mode, gzip};
use container_image::{Image, digest};

use program::Program;
use source::Source;

/// Name of the program, its image and its chart.
pub const NAME: &str = "gardener-extension-worker";

/// What a release is made from.
pub struct Release {
    /// The repository.
    pub root: PathBuf,
    /// Commit and version.
    pub source: Source,
    /// Registry and name of the image, without a tag.
    pub image: String,
    /// URL of the folder that the files are published in.
    pub downloads: String,
    /// The program for each platform.
    pub programs: Vec<Program>,
    /// A program of the same commit that runs here. It prints completions and manual pages.
    pub runnable: PathBuf,
}

impl Release {
    /// All files of the release by name.
    ///
    /// # Errors
    ///
    /// If a file can't be read, or a binary can't run in an image.
    pub fn files(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let version = &self.source.version;
        let mut files = BTreeMap::new();
        let binaries = self.programs.iter().map(|program| Ok((program, read(&program.path)?)));
        let binaries = binaries.collect::<Result<Vec<_>>>()?;
        let extras = self.extras()?;
        for (program, binary) in &binaries {
            let name = format!("{NAME}-{version}-{}.tar.gz", program.platform.name());
            files.insert(name, self.archive(binary, &extras)?);
        }
        let name = format!("{}:{version}", self.image);
        let images = binaries.iter().map(|(_, binary)| Image { binary, name: &name, created: self.source.time });
        let image = container_image::archive(&images.collect::<Vec<_>>())?;
        files.insert(format!("{NAME}-{version}-image.tar"), image.archive);
        for chart in chart::CHARTS {
            let packaged = chart::package(&self.root.join("charts").join(chart), &self.source, &self.image)?;
            files.insert(packaged.file, packaged.archive);
        }
        files.insert("worker.yaml".to_owned(), krew::manifest(&self.source, &self.downloads, &files).into_bytes());
        let materials = materials::document(&self.root, &self.source)?;
        files.insert(format!("{NAME}-{version}.cdx.json"), pretty(&materials)?);
        let provenance = provenance::statement(self, &files, &image.digest);
        files.insert(format!("{NAME}-{version}.provenance.json"), pretty(&provenance)?);
        files.insert("SHA256SUMS".to_owned(), checksums(&files).into_bytes());
        Ok(files)
    }

    /// Writes all files into an empty folder.
    ///
    /// # Errors
    ///
    /// As [`Release::files`]; also if the folder is not empty.
    pub fn write(&self, folder: &Path) -> Result<()> {
        ensure_empty(folder)?;
        for (name, content) in self.files()? {
            let path = folder.join(name);
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    /// Files next to the program in each archive.
    fn extras(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut extras = completions::files(&self.runnable)?;
        for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
            extras.insert(name.to_owned(), read(&self.root.join(name))?);
        }
        Ok(extras)
    }

    fn archive(&self, binary: &[u8], extras: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>> {
        let mut archive = Archive::new(self.source.time)?;
        archive.file(NAME, binary, Mode::Execute)?;
        for (path, content) in extras {
            archive.file(path, content, Mode::Read)?;
        }
        gzip(&archive.finish()?)
    }
}

/// Creates a folder, or checks that it is empty.
///
/// # Errors
///
/// If it has files or can't be created.
pub fn ensure_empty(folder: &Path) -> Result<()> {
    let output = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("creating {output}"))?;
    let mut entries = std::fs::read_dir(folder).with_context(|| format!("reading {output}"))?;
    ensure!(entries.next().is_none(), "{output} is not empty; remove it first");
    Ok(())
}

/// One line for each file, as `sha256sum --check` reads it.
fn checksums(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.iter().map(|(name, content)| format!("{}  {name}\n", digest(content))).collect()
}

fn pretty(document: &serde_json::Value) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    Ok(text)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}
