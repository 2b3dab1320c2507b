//! `WorkerStatus`: what this extension keeps in `status.providerStatus` of the Worker. Strict.

use serde::Serialize;

use crate::api::gardener::Capabilities;
use crate::provider::document::{Document, documents};

documents! { strict
    /// Images that pools use.
    pub struct WorkerStatus {
        _api_version: Option<String>,
        _kind: Option<String>,
        /// Resolved images; they are used on when they leave the CloudProfile.
        pub machine_images: Vec<StatusImage>,
    }

    /// A resolved image: with an architecture where the CloudProfile declares no capabilities, else with capabilities.
    #[derive(PartialEq, Eq, Serialize)]
    pub struct StatusImage {
        /// Name of the image.
        pub name: String,
        /// Version of the image.
        pub version: String,
        /// Path of the image.
        pub image: String,
        /// CPU architecture.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub architecture: Option<String>,
        /// Capabilities of the flavor.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub capabilities: Option<Capabilities>,
    }
}

impl Document for WorkerStatus {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = super::API_VERSION;
    const STRICT: bool = true;
}
