//! Stores of the watched objects for images. There may be thousands of images, so each is stored once and compactly,
//! and decisions borrow it.

use std::sync::Arc;

use futures::future::join_all;
use futures::future::{BoxFuture, FutureExt};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tracing::warn;

use profiles::images::objects::Objects;
use profiles::images::objects::image::ImageObject;
use profiles::images::shared::Shared;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::identity::Identity;
use runtime::cluster::store::Store;
use runtime::cluster::watches::follow_all;
use wire::api::capa::AwsMachineTemplate;
use wire::api::image_objects::{ImageLookup, ImageSelection, MachineImage};

/// Store of one kind.
pub(super) type Kind<K> = Arc<Store<LazyObject<K>>>;

/// Stores of all kinds. Clones share their state.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) images: Arc<Store<ImageObject>>,
    pub(super) lookups: Kind<ImageLookup>,
    pub(super) selections: Kind<ImageSelection>,
    /// `None` if templates are not followed.
    pub(super) templates: Option<Kind<AwsMachineTemplate>>,
    /// Values that many images share.
    shared: Arc<Mutex<Shared>>,
}

impl Stores {
    pub(super) fn new(with_templates: bool) -> Self {
        let templates = with_templates.then(Kind::default);
        Self {
            images: Arc::default(),
            lookups: Kind::default(),
            selections: Kind::default(),
            templates,
            shared: Arc::default(),
        }
    }

    /// Fills the stores indefinitely. Notifies `changed` of changes by other clients.
    pub(super) async fn follow(&self, client: &Client, changed: &Notify) {
        let image = |identity: &Identity, text: &str| {
            let mut shared = self.shared.lock();
            Some(ImageObject::read(&identity.name, text, &mut shared))
        };
        let images =
            follow_all::<MachineImage, _>(client, Arc::clone(&self.images), image, || changed.notify_one()).boxed();
        let mut all = vec![images, follow(client, &self.lookups, changed), follow(client, &self.selections, changed)];
        all.extend(self.templates.as_ref().map(|templates| follow(client, templates, changed)));
        join_all(all).await;
    }

    /// Whether all stores are synced. Otherwise missing objects would look deleted.
    pub(super) fn are_fresh(&self) -> bool {
        let templates = self.templates.as_ref().is_none_or(|templates| templates.is_fresh());
        self.images.is_fresh() && self.lookups.is_fresh() && self.selections.is_fresh() && templates
    }

    /// The lookups; `None` until they are synced.
    pub(super) fn cached_lookups(&self) -> Option<Vec<Arc<ImageLookup>>> {
        self.lookups.is_fresh().then(|| decoded(&self.lookups))
    }

    /// Snapshot of all objects.
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

    /// Waits for the response to an image write, and stores the result before a watch reports it.
    pub(super) async fn own_image(
        &self,
        response: impl Future<Output = kube::Result<MachineImage>>,
    ) -> kube::Result<()> {
        let requested = self.images.read();
        let written = response.await?;
        let mut shared = self.shared.lock();
        if let Some(identity) = Identity::of(&written) {
            requested.of_write(identity, || ImageObject::new(&written, &mut shared));
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

/// The decoded objects of a kind, sorted by name. Skips invalid ones.
fn decoded<K>(store: &Kind<K>) -> Vec<Arc<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut objects = store.all();
    objects.sort_by(|a, b| (a.namespace(), &a.meta().name).cmp(&(b.namespace(), &b.meta().name)));
    let decode = |guarded: &Arc<LazyObject<K>>| {
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
