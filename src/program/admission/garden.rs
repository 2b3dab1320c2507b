//! Reads profiles referenced by reviewed objects from the garden.

use std::time::Duration;

use anyhow::Context;
use kube::Client;
use kube::api::GetParams;
use kube::core::Request;
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::profile_reference::ProfileReference;
use runtime::process::failure_reason::reason;
use wire::api::gardener::{ProfileObject, ProfileSpec};
use wire::api::gotext::json::{DecodeError, decode_lenient, null_as_default};

/// Time limit for reading a profile; an API server waits ten seconds for the whole response.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
const API: &str = "/apis/core.gardener.cloud/v1beta1";

/// Why a profile is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    #[error("{0} does not exist")]
    Missing(ProfileReference),
    #[error("{}", reason(.0.as_ref()))]
    Other(anyhow::Error),
}

/// Reads from the garden without a cache, because few requests need a profile and often one that was just written.
#[derive(Clone)]
pub(super) struct Garden {
    client: Client,
}

/// A NamespacedCloudProfile with the merged profile.
#[derive(Deserialize)]
struct Merged {
    #[serde(default, deserialize_with = "null_as_default")]
    status: MergedStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergedStatus {
    #[serde(default, deserialize_with = "null_as_default")]
    cloud_profile_spec: ProfileSpec,
}

impl Garden {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads the profile; the reference must be [a valid name](ProfileReference::is_a_name).
    pub(super) async fn profile(&self, reference: &ProfileReference) -> Result<ProfileSpec, ProfileError> {
        let read = async {
            let (path, name) = match reference {
                ProfileReference::CloudProfile(name) => (format!("{API}/cloudprofiles"), name),
                ProfileReference::Namespaced { namespace, name } => {
                    (format!("{API}/namespaces/{namespace}/namespacedcloudprofiles"), name)
                }
            };
            let request = Request::new(path).get(name, &GetParams::default()).context("the name")?;
            match self.client.request_text(request).await {
                Ok(text) => Ok(Some(text)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(error).with_context(|| format!("{reference} can't be read from the garden")),
            }
        };
        let slow =
            || ProfileError::Other(anyhow::anyhow!("the garden did not give {reference} within {READ_TIMEOUT:?}"));
        let text = timeout(READ_TIMEOUT, read).await.map_err(|_| slow())?.map_err(ProfileError::Other)?;
        let text = text.ok_or_else(|| ProfileError::Missing(reference.clone()))?;
        let decode = match reference {
            ProfileReference::CloudProfile(_) => cloud_profile,
            ProfileReference::Namespaced { .. } => merged_profile,
        };
        // Large profiles take milliseconds to decode.
        let decoded = spawn_blocking(move || decode(&text)).await;
        let unreadable =
            |error: anyhow::Error| ProfileError::Other(error.context(format!("{reference} can't be understood")));
        decoded.map_err(|error| unreadable(error.into()))?.map_err(|error| unreadable(error.into()))
    }
}

fn cloud_profile(text: &str) -> Result<ProfileSpec, DecodeError> {
    decode_lenient::<ProfileObject>(text).map(|profile| profile.spec)
}

fn merged_profile(text: &str) -> Result<ProfileSpec, DecodeError> {
    decode_lenient::<Merged>(text).map(|profile| profile.status.cloud_profile_spec)
}
