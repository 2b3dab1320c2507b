//! What watches show of the objects that are about images.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::join_all;
use futures::future::{BoxFuture, FutureExt};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tracing::warn;

use crate::api::capa::AwsMachineTemplate;
use crate::api::image_objects::{ImageLookup, ImageSelection, MachineImage};
use crate::cluster::decode_guard::Guarded;
use crate::cluster::store::Store;
use crate::cluster::watches::follow_all;
use crate::images::objects::Objects;

/// One kind.
pub(super) type Kind<K> = Arc<Store<Guarded<K>>>;

/// All kinds. Clones are the same.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) images: Kind<MachineImage>,
    pub(super) lookups: Kind<ImageLookup>,
    pub(super) selections: Kind<ImageSelection>,
    /// Only where they are followed.
    pub(super) templates: Option<Kind<AwsMachineTemplate>>,
}

impl Stores {
    pub(super) fn new(with_templates: bool) -> Self {
        let templates = with_templates.then(Kind::default);
        Self { images: Kind::default(), lookups: Kind::default(), selections: Kind::default(), templates }
    }

    /// Fills the stores for ever; `changed` is notified of what others have done.
    pub(super) async fn follow(&self, client: &Client, changed: &Notify) {
        let mut all = vec![
            follow(client, &self.images, changed),
            follow(client, &self.lookups, changed),
            follow(client, &self.selections, changed),
        ];
        all.extend(self.templates.as_ref().map(|templates| follow(client, templates, changed)));
        join_all(all).await;
    }

    /// Whether all of them have everything there is. Of what is missing, something would be taken for gone.
    pub(super) fn are_fresh(&self) -> bool {
        let templates = self.templates.as_ref().is_none_or(|templates| templates.is_fresh());
        self.images.is_fresh() && self.lookups.is_fresh() && self.selections.is_fresh() && templates
    }

    /// The objects as they are now.
    pub(super) fn objects(&self) -> Objects {
        Objects {
            images: decoded(&self.images),
            lookups: decoded(&self.lookups),
            selections: decoded(&self.selections),
            templates: self.templates.as_ref().map(decoded).unwrap_or_default(),
        }
    }
}

fn follow<'a, K>(client: &'a Client, store: &Kind<K>, changed: &'a Notify) -> BoxFuture<'a, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    follow_all(client, Arc::clone(store), || changed.notify_one()).boxed()
}

/// The objects of a kind, by name. One that can't be decoded is nobody's.
fn decoded<K>(store: &Kind<K>) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut objects = store.all();
    objects.sort_by_key(|object| (object.namespace().to_owned(), object.name_any()));
    let decode = |guarded: &Arc<Guarded<K>>| match guarded.object() {
        Ok(object) => Some(Arc::unwrap_or_clone(object)),
        Err(error) => {
            warn!(kind = %K::kind(&()), name = guarded.name_any(), error, "an object can't be decoded");
            None
        }
    };
    objects.iter().filter_map(decode).collect()
}
