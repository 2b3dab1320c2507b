//! The bill of materials: the crates in the program, in the format of CycloneDX.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use container_image::digest;
use serde_json::{Value, json};

use crate::NAME;
use crate::program::Platform;
use crate::source::{Source, output};

/// A crate, and what it uses.
#[derive(Default)]
struct Crate {
    license: String,
    uses: BTreeSet<String>,
}

/// The document for the crates of the default features.
pub(crate) fn document(root: &Path, source: &Source) -> Result<Value> {
    let target = Platform::Amd64.target();
    let format = ["--prefix", "depth", "--no-dedupe", "--format", "\t{p}\t{l}"];
    let tree = ["tree", "--locked", "--package", NAME, "--edges", "normal", "--target", target];
    let tree = output(root, "cargo", &[&tree[..], &format].concat())?;
    let crates = crates(&tree)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let checksums = checksums(&lock);
    let own = reference(NAME, &source.version);
    let component = |(name, found): (&String, &Crate)| component(name, found, &checksums);
    let components: Vec<Value> = crates.iter().filter(|(name, _)| **name != own).map(component).collect();
    let dependencies: Vec<Value> =
        crates.iter().map(|(name, found)| json!({"ref": name, "dependsOn": found.uses})).collect();
    let serial = digest(tree.as_bytes());
    let serial = [&serial[..8], &serial[8..12], &serial[12..16], &serial[16..20], &serial[20..32]].join("-");
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "serialNumber": format!("urn:uuid:{serial}"),
        "metadata": {
            "timestamp": source.date()?,
            "component": {"type": "application", "bom-ref": own, "name": NAME, "version": source.version, "purl": own},
        },
        "components": components, "dependencies": dependencies,
    }))
}

/// Reads the tree of Cargo: a depth, the package, its license.
fn crates(tree: &str) -> Result<BTreeMap<String, Crate>> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines() {
        let mut columns = line.split('\t');
        let depth: usize = columns.next().unwrap_or_default().parse().with_context(|| format!("reading {line:?}"))?;
        let mut words = columns.next().unwrap_or_default().split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().and_then(|version| version.strip_prefix('v'));
        let reference = reference(name, version.with_context(|| format!("reading {line:?}"))?);
        above.truncate(depth);
        if let Some(user) = above.last() {
            crates.entry(user.clone()).or_default().uses.insert(reference.clone());
        }
        crates.entry(reference.clone()).or_default().license = columns.next().unwrap_or_default().to_owned();
        above.push(reference);
    }
    Ok(crates)
}

fn component(reference: &str, found: &Crate, checksums: &BTreeMap<String, String>) -> Value {
    let (name, version) = reference.trim_start_matches("pkg:cargo/").split_once('@').unwrap_or((reference, ""));
    let mut component =
        json!({"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference});
    if !found.license.is_empty() {
        // Old crates separate alternatives by a slash, which is no expression of SPDX.
        component["licenses"] = json!([{"expression": found.license.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksums.get(reference) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// Checksums in Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let of = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)).map(|text| text.trim_matches('"'));
        if let (Some(name), Some(version), Some(checksum)) = (of("name = "), of("version = "), of("checksum = ")) {
            checksums.insert(reference(name, version), checksum.to_owned());
        }
    }
    checksums
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}
