//! AWS's half of CloudProfiles.

use serde_json::Value;
use serde_json::value::RawValue;

use super::Aws;
use super::documents::{API_VERSION, CloudProfileConfig, ImageRegion};
use crate::provider::document::DocumentError;
use crate::provider::profile::{
    ProfileConfig, ProfileFormat, RegionImage, Repeated, SameVersion, merge_documents, open_config,
};

impl ProfileFormat for Aws {
    fn provider_type(&self) -> &'static str {
        "aws"
    }

    /// An AMI is for one architecture, and machine classes name it.
    fn needs_architecture(&self) -> bool {
        true
    }

    fn open(&self, raw: Option<&RawValue>) -> Result<Box<dyn ProfileConfig>, DocumentError> {
        open_config::<CloudProfileConfig>(raw)
    }

    fn merge(&self, parent: &RawValue, namespaced: &RawValue) -> Result<Value, DocumentError> {
        merge_documents::<CloudProfileConfig>(parent, namespaced, SameVersion::Replaced, |_| {})
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
