//! The archive that `container-image` writes: identical bytes each time, complete, and with the image that the
//! Dockerfile describes. `cargo test --test container_image`. `test/node` tests whether it runs.

#![allow(clippy::expect_used, reason = "a test may end where its own input is not what it expects")]

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use container_image::Image;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Archive, EntryType};

const NAME: &str = "registry.example.org/gardener-extension-worker:0.1.0";
const CREATED: i64 = 1_700_000_000;
const DOCKERFILE: &str = include_str!("../../Dockerfile");

/// The header of a program that needs no other file, for a processor.
fn program(machine: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..18].copy_from_slice(&2_u16.to_le_bytes());
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[20..24].copy_from_slice(&1_u32.to_le_bytes());
    bytes[52..54].copy_from_slice(&64_u16.to_le_bytes());
    bytes
}

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

fn image_of(binary: &[u8]) -> Result<Vec<u8>> {
    Image { binary, name: NAME, created: CREATED }.archive()
}

/// A file of an archive: content, permissions, owner, time.
type Entry = (Vec<u8>, u32, u64, u64);

fn files(archive: &[u8]) -> Result<BTreeMap<String, Entry>> {
    let mut files = BTreeMap::new();
    for entry in Archive::new(archive).entries()? {
        let mut entry = entry?;
        let (path, header) = (entry.path()?.display().to_string(), entry.header().clone());
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if header.entry_type() != EntryType::Directory {
            files.insert(path, (content, header.mode()?, header.uid()? + header.gid()?, header.mtime()?));
        }
    }
    Ok(files)
}

/// An image as a container runtime reads it. The content of each digest is verified.
struct Unpacked {
    descriptor: Value,
    config: Value,
    files: BTreeMap<String, Entry>,
}

fn unpacked(archive: &[u8]) -> Result<Unpacked> {
    let layout = files(archive)?;
    let document = |path: &str| -> Result<Value> {
        let (content, ..) = layout.get(path).with_context(|| format!("no {path}"))?;
        Ok(serde_json::from_slice(content)?)
    };
    let blob = |descriptor: &Value| -> Result<&[u8]> {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        let digest = digest.context("no digest")?;
        let (content, ..) = layout.get(&format!("blobs/sha256/{digest}")).context("no blob")?;
        ensure!(hex::encode(Sha256::digest(content)) == digest, "{descriptor} has other bytes");
        ensure!(descriptor["size"] == content.len(), "{descriptor} has {} bytes", content.len());
        Ok(content)
    };
    ensure!(document("oci-layout")? == json!({"imageLayoutVersion": "1.0.0"}));
    let index = document("index.json")?;
    ensure!(index["manifests"].as_array().is_some_and(|manifests| manifests.len() == 1), "{index}");
    let descriptor = index["manifests"][0].clone();
    let manifest: Value = serde_json::from_slice(blob(&descriptor)?)?;
    let config: Value = serde_json::from_slice(blob(&manifest["config"])?)?;
    let mut of_layers = BTreeMap::new();
    let layers = manifest["layers"].as_array().context("no layers")?;
    let digests = config["rootfs"]["diff_ids"].as_array().context("no digests")?;
    ensure!(layers.len() == digests.len(), "{manifest}, {config}");
    for (layer, digest) in layers.iter().zip(digests) {
        let mut content = Vec::new();
        GzDecoder::new(blob(layer)?).read_to_end(&mut content)?;
        ensure!(
            *digest == format!("sha256:{}", hex::encode(Sha256::digest(&content))),
            "{layer} unpacks to other bytes"
        );
        of_layers.extend(files(&content)?);
    }
    Ok(Unpacked { descriptor, config, files: of_layers })
}

#[test]
fn the_same_binary_gives_the_same_bytes() -> Result<()> {
    let first = image_of(&program(X86_64))?;
    for _ in 0..8 {
        ensure!(image_of(&program(X86_64))? == first, "another image of the same binary");
    }
    ensure!(image_of(&program(AARCH64))? != first, "the same image of another binary");
    Ok(())
}

#[test]
fn the_image_is_the_one_of_the_dockerfile() -> Result<()> {
    let image = unpacked(&image_of(&program(X86_64))?)?;
    let last_stage = DOCKERFILE.rsplit("FROM ").next().context("no stage")?;
    let mut lines = last_stage.lines();
    ensure!(lines.next() == Some("scratch"), "the Dockerfile has a base image");
    let (mut copied, mut config) = (Vec::new(), json!({}));
    for line in lines.filter(|line| !line.is_empty()) {
        match line.split_once(' ').context("no instruction")? {
            ("COPY", files) => copied.extend(files.rsplit(' ').next().map(|to| to.trim_start_matches('/').to_owned())),
            ("USER", user) => config["User"] = json!(user),
            ("ENTRYPOINT", words) => config["Entrypoint"] = serde_json::from_str(words)?,
            other => anyhow::bail!("the image without Docker lacks {other:?}"),
        }
    }
    copied.sort();
    ensure!(image.config["config"] == config, "{}, not {config}", image.config["config"]);
    ensure!(image.files.keys().eq(&copied), "{:?}, not {copied:?}", image.files.keys());
    Ok(())
}

#[test]
fn what_the_dockerfile_builds_with_is_pinned() -> Result<()> {
    let argument = |line: &'static str| line.strip_prefix("ARG ").and_then(|argument| argument.split_once('='));
    let defaults: Vec<(&str, &str)> = DOCKERFILE.lines().filter_map(argument).collect();
    let mut stages = DOCKERFILE.lines().filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next()).peekable();
    ensure!(stages.peek().is_some(), "no stage");
    for stage in stages.filter(|stage| *stage != "scratch") {
        let name = stage.trim_start_matches("${").trim_end_matches('}');
        let image = defaults.iter().find(|(argument, _)| *argument == name).map_or(stage, |(_, image)| image);
        let digest = image.split_once("@sha256:").with_context(|| format!("{image} has no digest"))?.1;
        ensure!(digest.len() == 64 && digest.chars().all(|digit| digit.is_ascii_hexdigit()), "{digest}");
    }
    Ok(())
}

#[test]
fn files_belong_to_root_and_are_as_old_as_the_image() -> Result<()> {
    let image = unpacked(&image_of(&program(X86_64))?)?;
    let created = CREATED.unsigned_abs();
    let (binary, ..) = &image.files["gardener-extension-worker"];
    ensure!(*binary == program(X86_64), "another program");
    let rest = |name: &str| image.files.get(name).map(|(_, mode, owner, time)| (*mode, *owner, *time));
    ensure!(rest("gardener-extension-worker") == Some((0o755, 0, created)), "{:?}", rest("gardener-extension-worker"));
    let certificates = "etc/ssl/certs/ca-certificates.crt";
    ensure!(rest(certificates) == Some((0o644, 0, created)), "{:?}", rest(certificates));
    ensure!(image.config["created"] == "2023-11-14T22:13:20Z", "{}", image.config["created"]);
    Ok(())
}

#[test]
fn public_authorities_are_known() -> Result<()> {
    let image = unpacked(&image_of(&program(X86_64))?)?;
    let (certificates, ..) = &image.files["etc/ssl/certs/ca-certificates.crt"];
    let certificates = pem::parse_many(certificates)?;
    ensure!(certificates.len() > 100, "only {} certificates", certificates.len());
    for certificate in certificates {
        ensure!(certificate.tag() == "CERTIFICATE", "{}", certificate.tag());
        x509_parser::parse_x509_certificate(certificate.contents())?;
    }
    Ok(())
}

#[test]
fn the_image_is_for_the_processor_of_its_program() -> Result<()> {
    for (machine, architecture) in [(X86_64, "amd64"), (AARCH64, "arm64")] {
        let image = unpacked(&image_of(&program(machine))?)?;
        let platform = json!({"architecture": architecture, "os": "linux"});
        ensure!(image.descriptor["platform"] == platform, "{}", image.descriptor);
        ensure!(image.config["architecture"] == architecture && image.config["os"] == "linux", "{}", image.config);
        let names = json!({"io.containerd.image.name": NAME, "org.opencontainers.image.ref.name": "0.1.0"});
        ensure!(image.descriptor["annotations"] == names, "{}", image.descriptor);
    }
    Ok(())
}

/// A program that could not run is rejected before it is shipped.
#[test]
fn what_can_not_run_alone_is_refused() -> Result<()> {
    let of_this_test = std::fs::read(std::env::current_exe()?)?;
    let tests: [(&[u8], &str); 4] = [
        (&of_this_test, "build it with --target x86_64-unknown-linux-musl"),
        (b"#!/bin/sh\n", "no program for 64-bit Linux"),
        (&[], "no program for 64-bit Linux"),
        (&program(243), "processor with the number 243"),
    ];
    for (binary, word) in tests {
        let error = format!("{:#}", image_of(binary).expect_err("it is refused"));
        ensure!(error.contains(word), "{word:?} is missing in {error:?}");
    }
    let without_tag = Image { binary: &program(X86_64), name: "registry.example.org/worker", created: CREATED };
    let error = format!("{:#}", without_tag.archive().expect_err("it is refused"));
    ensure!(error.contains("no tag"), "{error}");
    Ok(())
}
