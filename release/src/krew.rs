//! The manifest with which krew installs the program as `kubectl worker`.

use std::collections::BTreeMap;

use container_image::digest;

use crate::NAME;
use crate::program::Platform;
use crate::source::Source;

/// The manifest for the archives among the files of a release.
pub(crate) fn manifest(source: &Source, downloads: &str, files: &BTreeMap<String, Vec<u8>>) -> String {
    let version = &source.version;
    let mut platforms = String::new();
    for platform in Platform::ALL {
        let file = format!("{NAME}-{version}-{}.tar.gz", platform.name());
        let Some(archive) = files.get(&file) else { continue };
        platforms.push_str(&format!(
            "    - selector:
        matchLabels:
          os: linux
          arch: {}
      uri: {downloads}/{file}
      sha256: {}
      bin: kubectl-worker
      files:
        - from: {NAME}
          to: kubectl-worker
        - from: LICENSE
          to: .
",
            platform.architecture(),
            digest(archive),
        ));
    }
    let homepage = source.homepage.as_ref().or(source.repository.as_ref());
    let homepage = homepage.map(|homepage| format!("  homepage: {homepage}\n")).unwrap_or_default();
    format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: worker
spec:
  version: v{version}
{homepage}  shortDescription: Preview and explain rolls of Gardener's worker nodes
  description: |
    Shows which nodes a change to a Shoot, a CloudProfile or a Worker rolls, when Gardener's maintenance rolls them,
    and why a past roll happened. Run `kubectl worker help` for all commands.
  platforms:
{platforms}"
    )
}
