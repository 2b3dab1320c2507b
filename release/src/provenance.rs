//! What was built from what: an in-toto statement with the SLSA predicate. It is not signed.

use std::collections::BTreeMap;

use container_image::digest;
use serde_json::{Value, json};

use crate::Release;

/// The statement about all files of a release, and the image by its digest.
pub(crate) fn statement(release: &Release, files: &BTreeMap<String, Vec<u8>>, image: &str) -> Value {
    let source = &release.source;
    let mut subjects: Vec<Value> =
        files.iter().map(|(name, content)| json!({"name": name, "digest": {"sha256": digest(content)}})).collect();
    subjects.push(json!({"name": release.image, "digest": {"sha256": image.trim_start_matches("sha256:")}}));
    let platforms: Vec<&str> = release.programs.iter().map(|program| program.platform.name()).collect();
    let repository = source.repository.as_deref().unwrap_or("file:.");
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "cargo run -p release",
                "externalParameters": {
                    "version": source.version, "image": release.image, "downloads": release.downloads,
                    "platforms": platforms,
                },
                "resolvedDependencies": [{"uri": format!("git+{repository}"), "digest": {"gitCommit": source.commit}}],
            },
            "runDetails": {"builder": {"id": "cargo run -p release"}},
        },
    })
}
