//! Writes objects of images, each behind the version that it was decided from, and keeps the answers.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;
use tracing::info;

use super::stores::{Kind, Stores};
use crate::api::capa::AwsMachineTemplate;
use crate::api::image_objects::{ImageSelection, MachineImage};
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::images::objects::write::Write;

/// Writes one object.
pub(super) async fn write(write: Write, client: &Client, stores: &Stores) -> kube::Result<()> {
    let parameters = PostParams::default();
    match write {
        Write::CreateImage(image) => {
            info!(image = image.name_any(), "a new image");
            keep(&stores.images, Api::all(client.clone()).create(&parameters, &image).await?);
        }
        Write::ReplaceImage(image) => {
            keep(&stores.images, Api::all(client.clone()).replace(&image.name_any(), &parameters, &image).await?);
        }
        Write::DeleteImage(image) => delete(&image, client, stores).await?,
        Write::LookupStatus(lookup) => {
            keep(
                &stores.lookups,
                Api::all(client.clone()).replace_status(&lookup.name_any(), &parameters, &lookup).await?,
            );
        }
        Write::CreateSelection(selection) => {
            keep(&stores.selections, selections(&selection, client).create(&parameters, &selection).await?);
        }
        Write::ReplaceSelection(selection) => {
            let api = selections(&selection, client);
            keep(&stores.selections, api.replace(&selection.name_any(), &parameters, &selection).await?);
        }
        Write::SelectionStatus(selection) => {
            let api = selections(&selection, client);
            keep(&stores.selections, api.replace_status(&selection.name_any(), &parameters, &selection).await?);
        }
        Write::TemplateLabels(template, labels) => {
            let version = template.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version, "labels": labels}});
            let api: Api<AwsMachineTemplate> =
                Api::namespaced(client.clone(), &template.namespace().unwrap_or_default());
            let written = api.patch(&template.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            stores.templates.iter().for_each(|templates| keep(templates, written.clone()));
        }
    }
    Ok(())
}

fn selections(selection: &ImageSelection, client: &Client) -> Api<ImageSelection> {
    Api::namespaced(client.clone(), &selection.namespace().unwrap_or_default())
}

async fn delete(image: &MachineImage, client: &Client, stores: &Stores) -> kube::Result<()> {
    let (name, uid) = (image.name_any(), image.uid());
    info!(image = name, "no source has the image any more, and nobody uses it");
    let preconditions = Preconditions { uid: uid.clone(), resource_version: image.resource_version() };
    let parameters = DeleteParams::default().preconditions(preconditions);
    let answer = Api::<MachineImage>::all(client.clone()).delete(&name, &parameters).await?;
    // Somebody's finalizer holds it otherwise.
    if answer.is_right() {
        stores.images.own_deletion("", &name, &uid.unwrap_or_default(), Instant::now());
    }
    Ok(())
}

/// What this process has written is known before a watch shows it.
fn keep<K: Resource<DynamicType = ()> + Clone + Debug>(store: &Kind<K>, written: K) {
    if let Some(identity) = Identity::of(&written) {
        store.own_write(identity, Guarded::decoded(Arc::new(written)));
    }
}
