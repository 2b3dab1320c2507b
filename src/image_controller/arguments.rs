//! Arguments of the controllers for images, beside those of the command `controller`.

use clap::Args;

use crate::images::source_path::SourcePath;

/// What is done for objects of images.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImageArguments {
    /// Keep objects for machine images: MachineImages that ImageLookups find, and ImageSelections that record which image a consumer
    /// uses. Their definitions have to be installed.
    #[arg(long, env = "IMAGES")]
    pub(crate) images: bool,
    /// File or folder with listings of images, as for `images list`; may be given several times. Without it nothing is discovered.
    #[arg(long = "image-source", env = "IMAGE_SOURCE", value_name = "[REGION=]FILE", value_delimiter = ',')]
    pub(super) sources: Vec<SourcePath>,
    /// Seconds after which these files are read again if one has changed.
    #[arg(long, env = "IMAGE_INTERVAL_SECONDS", value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) image_interval_seconds: u32,
    /// Asked for the images of ImageLookups with `spec.ec2`, instead of AWS's own addresses. Only in a program that was built with the
    /// feature `live-images`.
    #[cfg(feature = "live-images")]
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2", value_name = "URL")]
    image_ec2_endpoint_url: Option<String>,
    /// Record images also for AWSMachineTemplates of Cluster API that opt in by a label.
    #[arg(long, env = "IMAGE_MACHINE_TEMPLATES")]
    pub(super) image_machine_templates: bool,
}

impl ImageArguments {
    /// Where EC2 is, if it is not where AWS says.
    pub(super) fn ec2_endpoint(&self) -> Option<&str> {
        #[cfg(feature = "live-images")]
        return self.image_ec2_endpoint_url.as_deref();
        #[cfg(not(feature = "live-images"))]
        None
    }
}
