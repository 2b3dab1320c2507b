//! The image of the program as an archive with an [OCI image layout](https://github.com/opencontainers/image-spec), as the
//! Dockerfile describes it: one static binary and the certificates of public authorities. Without Docker, and with the same bytes
//! for the same binary wherever it is written: nothing is read of the machine, and no clock.
//!
//! ```text
//! archive   files as an archive, for layers and releases
//! digest    what everything is named by
//! elf       for which processor a binary is, and whether it needs other files
//! layer     one layer of an image
//! layout    manifest and index around the layers
//! ```

pub mod archive;
mod digest;
mod elf;
mod layer;
mod layout;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use oci_spec::image::{
    Arch, ConfigBuilder, Descriptor, ImageConfiguration, ImageConfigurationBuilder, Os, RootFsBuilder,
};
use pem::{EncodeConfig, LineEnding, Pem};

pub use digest::digest;

use archive::Mode;
use layer::Layer;
use layout::Layout;

/// Where the program is.
const PROGRAM: &str = "/gardener-extension-worker";
/// Where programs look for the certificates of public authorities.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// A user and a group without rights, by number so that a kubelet can see that it is not root.
const USER: &str = "65532:65532";

/// What is written.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    /// The program, linked statically.
    pub binary: &'a [u8],
    /// Registry, name and tag.
    pub name: &'a str,
    /// When it was made, in seconds since 1970: not the time of day, which is never the same twice.
    pub created: i64,
}

impl Image<'_> {
    /// The whole archive, for `ctr images import`, `skopeo copy oci-archive:…` or `docker load`.
    ///
    /// # Errors
    ///
    /// If the binary is none that can run in an image without any other file.
    pub fn archive(self) -> Result<Vec<u8>> {
        Ok(archive(&[self])?.archive)
    }

    /// Adds the image of the binary to a layout.
    fn manifest(self, layout: &mut Layout) -> Result<Descriptor> {
        let architecture = elf::architecture_of_static(self.binary)?;
        // What changes least goes first, so that a node has it already.
        let layers = [
            Layer::of_file(CERTIFICATES, certificates().as_bytes(), Mode::Read, self.created)?,
            Layer::of_file(PROGRAM, self.binary, Mode::Execute, self.created)?,
        ];
        let configuration = self.configuration(architecture, &layers)?;
        layout.manifest(&layers, &configuration)
    }

    fn configuration(self, architecture: Arch, layers: &[Layer]) -> Result<ImageConfiguration> {
        let created = Timestamp::from_second(self.created).context("the time of creation")?;
        let files: Vec<String> = layers.iter().map(Layer::uncompressed_digest).collect();
        let config = ConfigBuilder::default().user(USER).entrypoint([PROGRAM.to_owned()]).build()?;
        Ok(ImageConfigurationBuilder::default()
            .created(created.to_string())
            .architecture(architecture)
            .os(Os::Linux)
            .config(config)
            .rootfs(RootFsBuilder::default().typ("layers").diff_ids(files).build()?)
            .build()?)
    }
}

/// An image in an archive.
pub struct Written {
    /// The archive with the OCI image layout.
    pub archive: Vec<u8>,
    /// The digest by which a registry names the image, `sha256:…`.
    pub digest: String,
}

/// The archive of one image for the platforms of several binaries, with the name and time of the first.
///
/// # Errors
///
/// As [`Image::archive`]; also without any image.
pub fn archive(images: &[Image<'_>]) -> Result<Written> {
    let first = images.first().context("no binary was given")?;
    let mut layout = Layout::default();
    let mut manifests = images.iter().map(|image| image.manifest(&mut layout)).collect::<Result<Vec<_>>>()?;
    // One platform needs no index.
    let descriptor = match manifests.pop() {
        Some(only) if manifests.is_empty() => only,
        last => layout.index(manifests.into_iter().chain(last).collect())?,
    };
    let digest = descriptor.digest().to_string();
    Ok(Written { archive: layout.named(descriptor, first.name)?.archive(first.created)?, digest })
}

/// Mozilla's authorities, in the version that `Cargo.lock` pins.
fn certificates() -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let pems = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|certificate| Pem::new("CERTIFICATE", certificate.to_vec()));
    pem::encode_many_config(&pems.collect::<Vec<_>>(), lines)
}
