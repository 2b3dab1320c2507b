//! The charts as archives for a registry. Their default image is the image of the same release.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use container_image::archive::{Archive, Mode, gzip};

use crate::read;
use crate::source::Source;

/// Folders of the charts.
pub const CHARTS: [&str; 3] = [
    "gardener-extension-worker",
    "gardener-extension-worker-admission/application",
    "gardener-extension-worker-admission/runtime",
];

/// A chart in an archive.
pub struct Packaged {
    /// Name of the file, as `helm package` chooses it.
    pub file: String,
    /// Its content.
    pub archive: Vec<u8>,
}

/// Packages a chart with the version and the image of a release.
///
/// # Errors
///
/// If a file can't be read or has another form than expected.
pub fn package(folder: &Path, source: &Source, image: &str) -> Result<Packaged> {
    let text = |file: &str| Ok::<_, anyhow::Error>(String::from_utf8(read(&folder.join(file))?)?);
    let (metadata, values) = (text("Chart.yaml")?, text("values.yaml")?);
    let name = metadata.lines().find_map(|line| line.strip_prefix("name: ")).context("the chart has no name")?;
    let values = values_of(&values, &source.version, image).with_context(|| folder.display().to_string())?;
    let mut archive = Archive::new(source.time)?;
    for path in paths(folder, "")? {
        let content = match path.as_str() {
            "Chart.yaml" => metadata_of(&metadata, source).into_bytes(),
            "values.yaml" => values.clone().into_bytes(),
            _ => read(&folder.join(&path))?,
        };
        archive.file(&format!("{name}/{path}"), &content, Mode::Read)?;
    }
    archive.file(&format!("{name}/README.md"), readme(&metadata, &values).as_bytes(), Mode::Read)?;
    Ok(Packaged { file: format!("{name}-{}.tgz", source.version), archive: gzip(&archive.finish()?)? })
}

/// Chart.yaml with the version of the release, and the URL of the documentation, which alerts link to.
fn metadata_of(metadata: &str, source: &Source) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in metadata.lines() {
        lines.push(match line.split_once(": ") {
            Some((key @ ("version" | "appVersion"), _)) => format!("{key}: {}", source.version),
            _ => line.to_owned(),
        });
    }
    lines.extend(source.homepage.iter().map(|homepage| format!("home: {homepage}")));
    lines.extend(source.repository.iter().map(|repository| format!("sources: [{repository}]")));
    lines.join("\n") + "\n"
}

/// values.yaml with the image of the release, if the chart has one.
fn values_of(values: &str, version: &str, image: &str) -> Result<String> {
    if !values.contains("\nimage:\n") {
        return Ok(values.to_owned());
    }
    let mut values = values.to_owned();
    for (from, to) in [("repository", image), ("tag", version)] {
        let from = format!("\n  {from}: \"\"\n");
        ensure!(values.matches(&from).count() == 1, "values.yaml has not one line {:?}", from.trim());
        values = values.replace(&from, &from.replace("\"\"", &format!("\"{to}\"")));
    }
    Ok(values)
}

/// A page with a table of all values, from the comments of values.yaml.
#[must_use]
pub fn readme(metadata: &str, values: &str) -> String {
    let of = |key: &str| metadata.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let mut page = format!("# {}\n\n{}\n\n", of("name: "), of("description: "));
    page.push_str("| value | default | meaning |\n|---|---|---|\n");
    for Value { path, default, meaning } in described(values) {
        let escaped = |text: &str| text.replace('|', "\\|");
        let default = if default.is_empty() { default } else { format!("`{}`", escaped(&default)) };
        page.push_str(&format!("| `{path}` | {default} | {} |\n", escaped(&meaning)));
    }
    page
}

/// One member of values.yaml.
struct Value {
    path: String,
    default: String,
    meaning: String,
}

/// The members that have a default, each with the comment above it.
fn described(values: &str) -> Vec<Value> {
    let (mut above, mut comment, mut described): (Vec<&str>, Vec<&str>, Vec<Value>) = Default::default();
    for line in values.lines() {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        if let Some(words) = text.strip_prefix("# ") {
            comment.push(words);
        } else if let Some((item, last)) = text.strip_prefix("- ").zip(described.last_mut()) {
            // A list: its items are the default of the key above.
            let items = last.default.trim_matches(['[', ']']);
            last.default = if items.is_empty() { format!("[{item}]") } else { format!("[{items}, {item}]") };
        } else if let Some((key, default)) = text.split_once(':') {
            above.truncate(depth);
            above.push(key);
            let meaning = comment.join(" ");
            described.push(Value { path: above.join("."), default: default.trim().to_owned(), meaning });
            comment.clear();
        } else {
            comment.clear();
        }
    }
    described.retain(|value| !value.default.is_empty() || !value.meaning.is_empty());
    described
}

/// Paths of all files below a folder, sorted.
fn paths(folder: &Path, below: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.join(below)).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file has no name in UTF-8")?;
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            found.extend(paths(folder, &path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
