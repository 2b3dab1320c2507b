//! The garden: parents of NamespacedCloudProfiles.

use std::time::Duration;

use anyhow::Context;
use kube::Client;
use kube::api::GetParams;
use kube::core::Request;
use tokio::time::timeout;

use crate::api::gardener::{ProfileObject, ProfileSpec};
use crate::api::gotext::json::decode_lenient;

/// What reading a parent may take; an API server waits ten seconds for the whole answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where CloudProfiles are.
const CLOUD_PROFILES: &str = "/apis/core.gardener.cloud/v1beta1/cloudprofiles";

/// Why a parent can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParentError {
    /// There is none of that name.
    #[error("CloudProfile {0:?} does not exist")]
    Missing(String),
    /// The garden does not answer, or something else.
    #[error("{0:#}")]
    Other(anyhow::Error),
}

/// Reads from the garden. Parents are read each time, because a NamespacedCloudProfile is rarely written, and often right
/// after its parent.
#[derive(Clone)]
pub(super) struct Garden {
    client: Client,
}

impl Garden {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The CloudProfile of that name, which must be a name.
    pub(super) async fn parent(&self, name: &str) -> Result<ProfileSpec, ParentError> {
        let read = async {
            let request = Request::new(CLOUD_PROFILES).get(name, &GetParams::default()).context("the name")?;
            match self.client.request_text(request).await {
                Ok(text) => Ok(Some(text)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => {
                    Err(error).with_context(|| format!("CloudProfile {name:?} can't be read from the garden"))
                }
            }
        };
        let slow =
            || ParentError::Other(anyhow::anyhow!("the garden did not give CloudProfile {name:?} within {PATIENCE:?}"));
        let text = timeout(PATIENCE, read).await.map_err(|_| slow())?.map_err(ParentError::Other)?;
        let text = text.ok_or_else(|| ParentError::Missing(name.to_owned()))?;
        // Large profiles take milliseconds.
        let decoded = tokio::task::spawn_blocking(move || decode_lenient::<ProfileObject>(&text)).await;
        let unreadable = |error: anyhow::Error| {
            ParentError::Other(error.context(format!("CloudProfile {name:?} can't be understood")))
        };
        let profile = decoded.map_err(|error| unreadable(error.into()))?.map_err(|error| unreadable(error.into()))?;
        Ok(profile.spec)
    }
}
