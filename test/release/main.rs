//! A release with the binary of the tests: its files, their contents, and identical bytes each time.
//! `cargo test --test release`. `test/charts` tests the installation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod book;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use container_image::digest;
use flate2::read::GzDecoder;
use gardener_extension_worker::api::gotext::yaml;
use release::Release;
use release::program::{Platform, Program};
use release::source::Source;
use serde_json::{Value, json};
use tar::Archive;

const IMAGE: &str = "registry.example.org/farm/worker";
const DOWNLOADS: &str = "https://downloads.example.org/v0.1.0";
const HOMEPAGE: &str = "https://docs.example.org/worker";

type Files = BTreeMap<String, Vec<u8>>;

/// The header of a static program, in place of a release build.
fn program(machine: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..18].copy_from_slice(&2_u16.to_le_bytes());
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[20..24].copy_from_slice(&1_u32.to_le_bytes());
    bytes[52..54].copy_from_slice(&64_u16.to_le_bytes());
    bytes
}

fn source() -> Source {
    Source {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        time: 1_700_000_000,
        homepage: Some(HOMEPAGE.to_owned()),
        repository: Some("https://git.example.org/worker".to_owned()),
        image: IMAGE.to_owned(),
    }
}

fn make(platforms: &[(Platform, u16)]) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let programs = platforms.iter().map(|(platform, machine)| {
        let path = folder.path().join(platform.name());
        std::fs::write(&path, program(*machine)).unwrap();
        Program { platform: *platform, path }
    });
    let release = Release {
        root: env!("CARGO_MANIFEST_DIR").into(),
        source: source(),
        image: IMAGE.to_owned(),
        downloads: DOWNLOADS.to_owned(),
        programs: programs.collect(),
        runnable: test_support::program::binary(),
    };
    release.files().unwrap()
}

const BOTH: [(Platform, u16); 2] = [(Platform::Amd64, 62), (Platform::Arm64, 183)];

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| make(&BOTH))
}

/// A file of an archive: content, permissions, owner, time.
type Entry = (Vec<u8>, u32, u64, u64);

fn unpacked(name: &str) -> BTreeMap<String, Entry> {
    let archive = &files()[name];
    let mut bytes = Vec::new();
    if name.ends_with("gz") {
        GzDecoder::new(archive.as_slice()).read_to_end(&mut bytes).unwrap();
    } else {
        bytes.clone_from(archive);
    }
    let mut entries = BTreeMap::new();
    for entry in Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let header = entry.header();
        let (mode, owner) = (header.mode().unwrap(), header.uid().unwrap() + header.gid().unwrap());
        let time = header.mtime().unwrap();
        entries.insert(entry.path().unwrap().display().to_string(), (content, mode, owner, time));
    }
    entries
}

fn text(entries: &BTreeMap<String, Entry>, path: &str) -> String {
    let (content, ..) = entries.get(path).unwrap_or_else(|| panic!("no {path} in {:?}", entries.keys()));
    String::from_utf8(content.clone()).unwrap()
}

fn document(name: &str) -> Value {
    serde_json::from_slice(&files()[name]).unwrap()
}

fn yaml_document(text: &str) -> Value {
    yaml::documents(text).unwrap().pop().unwrap()
}

#[test]
fn release_has_every_file_with_its_checksum() {
    let names: Vec<&str> = files().keys().map(String::as_str).collect();
    let expected = [
        "SHA256SUMS",
        "gardener-extension-worker-0.1.0-image.tar",
        "gardener-extension-worker-0.1.0-linux-amd64.tar.gz",
        "gardener-extension-worker-0.1.0-linux-arm64.tar.gz",
        "gardener-extension-worker-0.1.0.cdx.json",
        "gardener-extension-worker-0.1.0.provenance.json",
        "gardener-extension-worker-0.1.0.tgz",
        "gardener-extension-worker-admission-application-0.1.0.tgz",
        "gardener-extension-worker-admission-runtime-0.1.0.tgz",
        "worker.yaml",
    ];
    assert_eq!(names, expected);
    let sums = String::from_utf8(files()["SHA256SUMS"].clone()).unwrap();
    assert_eq!(sums.lines().count(), expected.len() - 1);
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        assert_eq!(sum, digest(&files()[name]), "{name}");
    }
}

#[test]
fn release_has_the_same_bytes_each_time() {
    let again = make(&BOTH);
    for (name, content) in files() {
        assert!(again[name] == *content, "{name} differs");
    }
}

#[test]
fn one_platform_is_enough() {
    let only = make(&BOTH[..1]);
    assert!(!only.keys().any(|name| name.contains("arm64")), "{:?}", only.keys());
    assert!(!String::from_utf8_lossy(&only["worker.yaml"]).contains("arm64"));
}

#[test]
fn archive_has_program_completions_and_manuals() {
    for (platform, machine) in BOTH {
        let entries = unpacked(&format!("gardener-extension-worker-0.1.0-{}.tar.gz", platform.name()));
        assert_eq!(entries["gardener-extension-worker"], (program(machine), 0o755, 0, 1_700_000_000));
        assert!(text(&entries, "completions/gardener-extension-worker.bash").contains("takeover"));
        let page = text(&entries, "man/gardener-extension-worker-preview.1");
        assert!(page.contains("Exit codes"), "{page}");
        for file in ["LICENSE", "README.md", "CHANGELOG.md", "completions/_gardener-extension-worker"] {
            assert_eq!(entries[file].1, 0o644, "{file}");
        }
        let commands = entries.keys().filter(|path| path.starts_with("man/")).count();
        assert!(commands > 20, "{commands} manual pages");
    }
}

#[test]
fn charts_use_the_image_of_the_release() {
    for name in ["gardener-extension-worker", "gardener-extension-worker-admission-runtime"] {
        let entries = unpacked(&format!("{name}-0.1.0.tgz"));
        let values = yaml_document(&text(&entries, &format!("{name}/values.yaml")));
        assert_eq!(values["image"]["repository"], IMAGE);
        assert_eq!(values["image"]["tag"], "0.1.0");
        assert_eq!(values["metrics"]["prometheusRule"]["runbookUrl"], "", "the page of the documentation");
    }
    for name in ["", "-admission-runtime", "-admission-application"] {
        let name = format!("gardener-extension-worker{name}");
        let entries = unpacked(&format!("{name}-0.1.0.tgz"));
        let chart = yaml_document(&text(&entries, &format!("{name}/Chart.yaml")));
        assert_eq!((&chart["name"], &chart["home"]), (&json!(name), &json!(HOMEPAGE)));
        assert_eq!((&chart["version"], &chart["appVersion"]), (&json!("0.1.0"), &json!("0.1.0")));
        assert!(entries.contains_key(&format!("{name}/values.schema.json")));
    }
}

#[test]
fn each_chart_describes_its_values() {
    for name in ["", "-admission-runtime", "-admission-application"] {
        let name = format!("gardener-extension-worker{name}");
        let page = text(&unpacked(&format!("{name}-0.1.0.tgz")), &format!("{name}/README.md"));
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() >= 5, "{page}");
        for row in &rows {
            let meaning = row.rsplit(" | ").next().unwrap();
            let is_switch = row.contains("enabled`") || row.contains(".requests.");
            assert!(is_switch || meaning.len() > 10, "{row}");
        }
    }
    let page = text(&unpacked("gardener-extension-worker-0.1.0.tgz"), "gardener-extension-worker/README.md");
    assert!(page.contains(&format!("| `image.repository` | `\"{IMAGE}\"` | Registry and name")), "{page}");
    assert!(page.contains("| `workers.types` | `[azure]` | Types of Workers"), "{page}");
}

#[test]
fn image_is_for_both_platforms() {
    let layout = unpacked("gardener-extension-worker-0.1.0-image.tar");
    let read = |path: &str| -> Value { serde_json::from_str(&text(&layout, path)).unwrap() };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
        read(&digest)
    };
    let index = read("index.json");
    let named = &index["manifests"][0];
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1);
    assert_eq!(named["annotations"]["io.containerd.image.name"], format!("{IMAGE}:0.1.0"));
    let platforms: Vec<Value> = blob(named)["manifests"].as_array().unwrap().clone();
    let architectures: Vec<&Value> = platforms.iter().map(|manifest| &manifest["platform"]["architecture"]).collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
    for manifest in &platforms {
        let config = blob(&blob(manifest)["config"]);
        assert_eq!(config["architecture"], manifest["platform"]["architecture"]);
    }
}

#[test]
fn krew_finds_the_archives() {
    let manifest = yaml_document(&String::from_utf8(files()["worker.yaml"].clone()).unwrap());
    assert_eq!((&manifest["metadata"]["name"], &manifest["spec"]["version"]), (&json!("worker"), &json!("v0.1.0")));
    assert_eq!(manifest["spec"]["homepage"], HOMEPAGE);
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        let name = platform["uri"].as_str().unwrap().strip_prefix(DOWNLOADS).unwrap().trim_start_matches('/');
        assert_eq!(platform["sha256"], digest(&files()[name]));
        let entries = unpacked(name);
        for file in platform["files"].as_array().unwrap() {
            assert!(entries.contains_key(file["from"].as_str().unwrap()), "{file}");
        }
        assert_eq!(
            (&platform["bin"], &platform["files"][0]["to"]),
            (&json!("kubectl-worker"), &json!("kubectl-worker"))
        );
    }
}

#[test]
fn materials_are_crates_of_the_lock() {
    let materials = document("gardener-extension-worker-0.1.0.cdx.json");
    assert_eq!((&materials["bomFormat"], &materials["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
    assert_eq!(materials["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    let components = materials["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().map(|component| component["name"].as_str().unwrap()).collect();
    assert!(names.contains("kube") && names.contains("tikv-jemalloc-sys"), "{names:?}");
    // Neither dependencies of tests nor those of optional features.
    for absent in ["gardener-extension-worker", "proptest", "criterion", "aws-config", "opentelemetry"] {
        assert!(!names.contains(absent), "{absent}");
    }
    let references: BTreeSet<&str> =
        components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(references.len(), components.len());
    for component in components {
        // Our own crates are part of the release and have no archive with a checksum.
        let is_own = component["name"].as_str().is_some_and(|name| name.starts_with("gardener-extension-worker-"));
        let checksum = component["hashes"][0]["content"].as_str().map(str::len);
        assert_eq!(checksum, if is_own { None } else { Some(64) }, "{component}");
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
    }
    for dependency in materials["dependencies"].as_array().unwrap() {
        for uses in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(uses.as_str().unwrap()), "{uses}");
        }
    }
    let text = String::from_utf8_lossy(&files()["gardener-extension-worker-0.1.0.cdx.json"]);
    assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "a path of this machine");
}

#[test]
fn provenance_lists_files_and_image() {
    let statement = document("gardener-extension-worker-0.1.0.provenance.json");
    let subjects = statement["subject"].as_array().unwrap();
    let by_name =
        |name: &str| subjects.iter().find(|subject| subject["name"] == name).map(|subject| &subject["digest"]);
    for name in files().keys().filter(|name| *name != "SHA256SUMS" && !name.contains("provenance")) {
        assert_eq!(by_name(name).unwrap()["sha256"], digest(&files()[name]), "{name}");
    }
    let index: Value =
        serde_json::from_str(&text(&unpacked("gardener-extension-worker-0.1.0-image.tar"), "index.json")).unwrap();
    let image = by_name(IMAGE).unwrap()["sha256"].as_str().unwrap();
    assert_eq!(index["manifests"][0]["digest"], format!("sha256:{image}"));
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(definition["resolvedDependencies"][0]["digest"]["gitCommit"], source().commit);
}

#[test]
fn commit_and_version_come_from_the_repository() {
    let read = Source::read(Path::new(env!("CARGO_MANIFEST_DIR")), true).unwrap();
    assert_eq!(read.version, env!("CARGO_PKG_VERSION"));
    assert!(read.commit.trim_end_matches("-dirty").len() == 40 && read.time > 1_700_000_000, "{read:?}");
    assert!(!read.image.is_empty() && !read.image.ends_with('/'), "{read:?}");
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    release::ensure_empty(&folder.path().join("dist")).unwrap();
    std::fs::write(folder.path().join("dist/file"), "").unwrap();
    let refusal = release::ensure_empty(&folder.path().join("dist")).unwrap_err();
    assert!(refusal.to_string().contains("is not empty"), "{refusal}");
}
