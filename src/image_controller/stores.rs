//! What watches show of the objects that are about images. There may be thousands of images, so each is kept once and in few
//! bytes; decisions borrow it.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use futures::future::{BoxFuture, FutureExt};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tracing::warn;

use crate::api::capa::AwsMachineTemplate;
use crate::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use crate::cluster::decode_guard::Guarded;
use crate::cluster::identity::Identity;
use crate::cluster::store::{Kept, Store};
use crate::cluster::watches::follow_all;
use crate::images::objects::Objects;
use crate::images::objects::image::ImageObject;
use crate::images::shared::Shared;

impl Kept for ImageObject {}

/// One kind.
pub(super) type Kind<K> = Arc<Store<Guarded<K>>>;

/// All kinds. Clones are the same.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) images: Arc<Store<ImageObject>>,
    pub(super) lookups: Kind<ImageLookup>,
    pub(super) selections: Kind<ImageSelection>,
    /// Only where they are followed.
    pub(super) templates: Option<Kind<AwsMachineTemplate>>,
    /// What images have in common.
    shared: Arc<Mutex<Shared>>,
}

impl Stores {
    pub(super) fn new(with_templates: bool) -> Self {
        let templates = with_templates.then(Kind::default);
        let (images, lookups, selections, shared) = Default::default();
        Self { images, lookups, selections, templates, shared }
    }

    /// Fills the stores for ever; `changed` is notified of what others have done.
    pub(super) async fn follow(&self, client: &Client, changed: &Notify) {
        let image = |identity: &Identity, text: &str| {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            Some(ImageObject::read(&identity.name, text, &mut shared))
        };
        let images =
            follow_all::<MachineImage, _>(client, Arc::clone(&self.images), image, || changed.notify_one()).boxed();
        let mut all = vec![images, follow(client, &self.lookups, changed), follow(client, &self.selections, changed)];
        all.extend(self.templates.as_ref().map(|templates| follow(client, templates, changed)));
        join_all(all).await;
    }

    /// Whether all of them have everything there is. Of what is missing, something would be taken for gone.
    pub(super) fn are_fresh(&self) -> bool {
        let templates = self.templates.as_ref().is_none_or(|templates| templates.is_fresh());
        self.images.is_fresh() && self.lookups.is_fresh() && self.selections.is_fresh() && templates
    }

    /// The lookups, if all of them are known.
    pub(super) fn known_lookups(&self) -> Option<Vec<Arc<ImageLookup>>> {
        self.lookups.is_fresh().then(|| decoded(&self.lookups))
    }

    /// The objects as they are now.
    pub(super) fn objects(&self) -> Objects {
        let mut images = self.images.all();
        images.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Objects {
            images,
            lookups: decoded(&self.lookups),
            selections: decoded(&self.selections),
            templates: self.templates.as_ref().map(decoded).unwrap_or_default(),
        }
    }

    /// Waits for the answer to the write of an image. What was written is known before a watch shows it.
    pub(super) async fn own_image(&self, answer: impl Future<Output = kube::Result<MachineImage>>) -> kube::Result<()> {
        let asked = self.images.read();
        let written = answer.await?;
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = Identity::of(&written) {
            asked.of_write(identity, || ImageObject::new(&written, &mut shared));
        }
        Ok(())
    }
}

fn follow<'a, K>(client: &'a Client, store: &Kind<K>, changed: &'a Notify) -> BoxFuture<'a, ()>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let guarded = |identity: &Identity, text: &str| {
        let read = serde_json::from_str(text);
        read.inspect_err(|error| warn!(kind = %K::kind(&()), name = identity.name, %error, "an object can't be read"))
            .ok()
    };
    follow_all::<K, _>(client, Arc::clone(store), guarded, || changed.notify_one()).boxed()
}

/// The objects of a kind, by name. One that can't be decoded is nobody's.
fn decoded<K>(store: &Kind<K>) -> Vec<Arc<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut objects = store.all();
    objects.sort_by(|a, b| (a.namespace(), &a.meta().name).cmp(&(b.namespace(), &b.meta().name)));
    let decode = |guarded: &Arc<Guarded<K>>| {
        let decoded = guarded.object();
        decoded
            .inspect_err(|error| {
                let name = guarded.meta().name.as_deref().unwrap_or_default();
                warn!(kind = %K::kind(&()), name, error, "an object can't be decoded");
            })
            .ok()
    };
    objects.iter().filter_map(decode).collect()
}
