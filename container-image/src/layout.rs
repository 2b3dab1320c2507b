//! Digests, manifest and index around the layers: an OCI image layout.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};
use oci_spec::image::{
    ANNOTATION_REF_NAME, Descriptor, DescriptorBuilder, ImageConfiguration, ImageIndex, ImageIndexBuilder,
    ImageManifestBuilder, MediaType, OciLayoutBuilder, PlatformBuilder, SCHEMA_VERSION, Sha256Digest,
};
use serde::Serialize;

use crate::archive::{Archive, Mode};
use crate::digest::digest;
use crate::layer::Layer;

/// The whole name, for containerd; the other annotation has only the tag, as the specification says.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Files by their path.
#[derive(Default)]
pub(crate) struct Layout(BTreeMap<String, Vec<u8>>);

impl Layout {
    /// Adds the image of one platform.
    pub(crate) fn manifest(&mut self, layers: &[Layer], config: &ImageConfiguration) -> Result<Descriptor> {
        let platform =
            PlatformBuilder::default().architecture(config.architecture().clone()).os(config.os().clone()).build()?;
        let of_layers = layers
            .iter()
            .map(|layer| self.blob(MediaType::ImageLayerGzip, layer.compressed.clone()))
            .collect::<Result<Vec<_>>>()?;
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageManifest)
            .config(self.blob(MediaType::ImageConfig, json(config)?)?)
            .layers(of_layers)
            .build()?;
        let mut descriptor = self.blob(MediaType::ImageManifest, json(&manifest)?)?;
        descriptor.set_platform(Some(platform));
        Ok(descriptor)
    }

    /// Adds an index of images for several platforms.
    pub(crate) fn index(&mut self, manifests: Vec<Descriptor>) -> Result<Descriptor> {
        let index = index_of(manifests)?;
        self.blob(MediaType::ImageIndex, json(&index)?)
    }

    /// Names the only image of the layout.
    pub(crate) fn named(mut self, mut descriptor: Descriptor, name: &str) -> Result<Self> {
        let (_, tag) =
            name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).context("the name of the image has no tag")?;
        let names = [(ANNOTATION_REF_NAME, tag), (CONTAINERD_NAME, name)];
        descriptor.set_annotations(Some(HashMap::from(names.map(|(key, name)| (key.to_owned(), name.to_owned())))));
        self.0.insert("index.json".to_owned(), json(&index_of(vec![descriptor])?)?);
        let version = OciLayoutBuilder::default().image_layout_version("1.0.0").build()?;
        self.0.insert("oci-layout".to_owned(), json(&version)?);
        Ok(self)
    }

    /// All files in one.
    pub(crate) fn archive(&self, created: i64) -> Result<Vec<u8>> {
        let mut archive = Archive::new(created)?;
        for (path, content) in &self.0 {
            archive.file(path, content, Mode::Read)?;
        }
        archive.finish()
    }

    fn blob(&mut self, kind: MediaType, content: Vec<u8>) -> Result<Descriptor> {
        let digest = digest(&content);
        let descriptor = DescriptorBuilder::default()
            .media_type(kind)
            .size(u64::try_from(content.len())?)
            .digest(digest.parse::<Sha256Digest>()?)
            .build()?;
        self.0.insert(format!("blobs/sha256/{digest}"), content);
        Ok(descriptor)
    }
}

fn index_of(manifests: Vec<Descriptor>) -> Result<ImageIndex> {
    let index = ImageIndexBuilder::default().schema_version(SCHEMA_VERSION).media_type(MediaType::ImageIndex);
    Ok(index.manifests(manifests).build()?)
}

/// JSON with sorted members: those of the specification's maps come in any order otherwise.
fn json(document: &impl Serialize) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(&serde_json::to_value(document)?)?)
}
