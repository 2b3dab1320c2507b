//! Arguments of the controllers for machine images, in addition to those of the command `controller`.

use std::path::{Path, PathBuf};

use clap::Args;

use profiles::images::source_path::SourcePath;

/// Arguments for objects for machine images.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImageArguments {
    /// Maintain objects for machine images. It writes a MachineImage for each image that an ImageLookup finds, and
    /// records the image of each consumer in ImageSelections. Requires their CRDs.
    #[arg(long, env = "IMAGES")]
    pub(crate) images: bool,
    /// File or folder with image listings in the formats of `images list`. Repeatable. Without it, the controller
    /// discovers no images.
    #[arg(long = "image-source", env = "IMAGE_SOURCE", value_name = "[REGION=]FILE", value_delimiter = ',')]
    pub(super) sources: Vec<SourcePath>,
    /// Interval in seconds after which changed listings are read again.
    #[arg(long, env = "IMAGE_INTERVAL_SECONDS", value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) image_interval_seconds: u32,
    /// Endpoint for ImageLookups with `spec.ec2`, instead of AWS's own endpoints. Requires a build with the feature
    /// `live-images`.
    #[cfg(feature = "live-images")]
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2", value_name = "URL")]
    image_ec2_endpoint_url: Option<String>,
    /// Folder with the Secrets that ImageLookups use in `spec.identityRef`, each in a folder of its name. Requires a build
    /// with the feature `live-images`.
    #[arg(long, env = "IMAGE_IDENTITIES", value_name = "FOLDER")]
    image_identities: Option<PathBuf>,
    /// Also record images for AWSMachineTemplates of Cluster API that opt in with a label.
    #[arg(long, env = "IMAGE_MACHINE_TEMPLATES")]
    pub(super) image_machine_templates: bool,
}

impl ImageArguments {
    /// Folder with the Secrets of identities.
    pub(super) fn secrets(&self) -> Option<&Path> {
        self.image_identities.as_deref()
    }

    /// EC2 endpoint that replaces AWS's default.
    pub(super) fn ec2_endpoint(&self) -> Option<&str> {
        #[cfg(feature = "live-images")]
        return self.image_ec2_endpoint_url.as_deref();
        #[cfg(not(feature = "live-images"))]
        None
    }
}
