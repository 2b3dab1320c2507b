//! The provider config of AWS CloudProfiles.

use super::Aws;
use super::documents::{API_VERSION, CloudProfileConfig, ImageRegion};
use crate::provider::profile::{ConfigType, ProfileFormat, RegionImage, Repeated, SameVersion};

impl ProfileFormat for Aws {
    fn provider_type(&self) -> &'static str {
        "aws"
    }

    /// An AMI has exactly one architecture, which machine classes contain.
    fn needs_architecture(&self) -> bool {
        true
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Replaced)
    }
}

impl RegionImage for ImageRegion {
    const API_VERSION: &'static str = API_VERSION;
    const MEMBER: &'static str = "ami";
    const REPEATED_VERSIONS: Repeated = Repeated::Last;

    fn region(&self) -> &str {
        &self.name
    }

    fn image(&self) -> &str {
        &self.ami
    }

    fn architecture(&self) -> Option<&str> {
        self.architecture.as_deref()
    }
}
