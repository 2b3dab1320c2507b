//! Writes objects for images, each bound to the version that the decision was based on, and stores the responses.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;
use tracing::info;

use super::events::note_of;
use super::stores::{Kind, Stores};
use profiles::images::objects::write::{ImageEvent, Write};
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::events::EventRecorder;
use runtime::cluster::identity::Identity;
use runtime::process::failure_reason::reason;
use wire::api::capa::AwsMachineTemplate;
use wire::api::image_objects::{ImageSelection, MachineImage};

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// The API server refused the request or did not respond.
    #[error("{}", reason(.0))]
    Request(#[from] kube::Error),
    /// The object is invalid.
    #[error("{0}")]
    Object(String),
}

impl From<String> for WriteError {
    fn from(problem: String) -> Self {
        Self::Object(problem)
    }
}

/// Writes one object.
pub(super) async fn write(
    write: Write,
    client: &Client,
    stores: &Stores,
    events: &EventRecorder,
) -> Result<(), WriteError> {
    let parameters = PostParams::default();
    match write {
        Write::CreateImage(image) => {
            let image = image.object()?;
            info!(image = image.name_any(), "a new image");
            stores.own_image(Api::all(client.clone()).create(&parameters, &image)).await?;
        }
        Write::ReplaceImage(image) => {
            let event = image.event();
            let image = image.object()?;
            publish(events, &image, event).await;
            stores.own_image(Api::all(client.clone()).replace(&image.name_any(), &parameters, &image)).await?;
        }
        Write::DeleteImage(image) => delete(&image.object()?, client, stores).await?,
        Write::LookupStatus(lookup, event) => {
            publish(events, &lookup, event).await;
            let api = Api::all(client.clone());
            keep(&stores.lookups, api.replace_status(&lookup.name_any(), &parameters, &lookup)).await?;
        }
        Write::CreateSelection(selection) => {
            let api = selections(&selection, client);
            keep(&stores.selections, api.create(&parameters, &selection)).await?;
        }
        Write::ReplaceSelection(selection) => {
            let api = selections(&selection, client);
            keep(&stores.selections, api.replace(&selection.name_any(), &parameters, &selection)).await?;
        }
        Write::SelectionStatus(selection, event) => {
            publish(events, &selection, event).await;
            let api = selections(&selection, client);
            keep(&stores.selections, api.replace_status(&selection.name_any(), &parameters, &selection)).await?;
        }
        Write::TemplateLabels(template, labels) => {
            let version = template.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version, "labels": labels}});
            let api: Api<AwsMachineTemplate> =
                Api::namespaced(client.clone(), &template.namespace().unwrap_or_default());
            let name = template.name_any();
            let parameters = PatchParams::default();
            let patch = Patch::Merge(patch);
            if let Some(templates) = &stores.templates {
                keep(templates, api.patch(&name, &parameters, &patch)).await?;
            }
        }
    }
    Ok(())
}

/// Publishes the event of a status before the status is written. The other way round, a crash between the two would
/// lose the event.
async fn publish<K: Resource<DynamicType = ()>>(events: &EventRecorder, object: &K, event: Option<ImageEvent>) {
    if let (Some(event), Some(identity)) = (event, Identity::of(object)) {
        events.publish::<K>(&identity, note_of(&event)).await;
    }
}

fn selections(selection: &ImageSelection, client: &Client) -> Api<ImageSelection> {
    Api::namespaced(client.clone(), &selection.namespace().unwrap_or_default())
}

async fn delete(image: &MachineImage, client: &Client, stores: &Stores) -> Result<(), WriteError> {
    let name = image.name_any();
    let uid = image.uid();
    info!(image = name, "no source has the image any more, and no selection uses it");
    let preconditions = Preconditions { uid: uid.clone(), resource_version: image.resource_version() };
    let parameters = DeleteParams::default().preconditions(preconditions);
    let response = Api::<MachineImage>::all(client.clone()).delete(&name, &parameters).await?;
    // Otherwise a finalizer still blocks the deletion.
    if response.is_right() {
        stores.images.own_deletion("", &name, &uid.unwrap_or_default(), Instant::now());
    }
    Ok(())
}

/// Waits for the response to a write, and stores the result.
async fn keep<K>(store: &Kind<K>, response: impl Future<Output = kube::Result<K>>) -> kube::Result<()>
where
    K: Resource<DynamicType = ()>,
{
    let requested = store.read();
    let written = response.await?;
    if let Some(identity) = Identity::of(&written) {
        requested.of_write(identity, || LazyObject::decoded(Arc::new(written)));
    }
    Ok(())
}
