//! I/O: the Secrets that Workers refer to. What was read is kept while an operation goes on; a new operation asks for the
//! versions of all with one request, and reads those that have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::api::gardener::Worker;
use crate::api::secret::{PackedSecret, SecretContent, Secrets};
use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::error::ReadError;

/// References up to this number are read one by one rather than asked for their versions: the list tells of all Secrets in
/// the namespace.
const FEW: usize = 2;
/// Bytes of packed Secrets that are kept between operations.
const KEPT: usize = 8 * 1024 * 1024;

/// What is known of Secrets.
#[derive(Default)]
pub(crate) struct SecretCache(Mutex<BTreeMap<Reference, ReadSecret>>);

type Reference = (String, String);

struct ReadSecret {
    version: String,
    content: Kept,
}

/// What is kept of a Secret: as it is while an operation is under way, and packed from its end on.
struct Kept {
    open: Option<Arc<SecretContent>>,
    packed: Option<PackedSecret>,
}

impl Kept {
    fn open(content: Arc<SecretContent>) -> Self {
        Self { open: Some(content), packed: None }
    }

    fn opened(&mut self) -> Option<Arc<SecretContent>> {
        if self.open.is_none() {
            self.open = self.packed.as_ref()?.unpack().map(Arc::new);
        }
        self.open.clone()
    }

    fn pack(&mut self) {
        if let Some(content) = self.open.take() {
            self.packed.get_or_insert_with(|| content.pack());
        }
    }

    fn size(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |content| content.size());
        open + self.packed.as_ref().map_or(0, PackedSecret::size)
    }
}

impl SecretCache {
    /// The Secrets that a Worker refers to, as they are now: credentials and user data, each once. Missing ones are left
    /// out.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) async fn read(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        let references = references(worker);
        let namespaces: BTreeSet<&String> = references.iter().map(|(namespace, _)| namespace).collect();
        let known = references.iter().filter(|reference| self.known().contains_key(*reference)).count();
        if references.len() <= FEW || known < references.len() || namespaces.len() > 1 {
            self.forget_all(&references);
        } else if let Some(namespace) = namespaces.first() {
            self.forget_outdated(&references, &versions(client, namespace).await?);
        }
        self.complete(client, references).await
    }

    /// The same, without a request for what was read before.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) async fn read_unknown(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        self.complete(client, references(worker)).await
    }

    /// Only the credentials, as they are now.
    ///
    /// # Errors
    /// When they can't be read.
    pub(crate) async fn read_credentials(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        let references = credentials(worker).into_iter().collect();
        self.forget_all(&references);
        self.complete(client, references).await
    }

    /// An operation has ended: what it needed is kept for the next one as long as there is room.
    pub(crate) fn pack(&self, secrets: &Secrets) {
        for reference in secrets.references() {
            if let Some(read) = self.known().get_mut(reference) {
                read.content.pack();
            }
        }
        let size: usize = self.known().values().map(|read| read.content.size()).sum();
        if size > KEPT {
            self.forget(secrets);
        }
    }

    /// These are not needed any more, or can't be what they are taken for.
    pub(crate) fn forget(&self, secrets: &Secrets) {
        self.forget_all(secrets.references());
    }

    /// A Worker is gone.
    pub(crate) fn forget_worker(&self, worker: &Worker) {
        self.forget_all(&references(worker));
    }

    /// What was read before is known; when a read fails, nothing of it is, so that the next one asks anew.
    async fn complete(&self, client: &Client, references: BTreeSet<Reference>) -> Result<Secrets, ReadError> {
        let mut secrets = Secrets::default();
        let mut unknown = Vec::new();
        for reference in &references {
            match self.known().get_mut(reference).and_then(|read| read.content.opened()) {
                Some(content) => secrets.insert(&reference.0, &reference.1, content),
                None => unknown.push(reference.clone()),
            }
        }
        let reads: Vec<_> = unknown.into_iter().map(|reference| read(client, reference)).collect();
        let mut reads = stream::iter(reads).buffer_unordered(PARALLEL_REQUESTS);
        while let Some(read) = reads.next().await {
            let (reference, secret) = read.inspect_err(|_| self.forget_all(&references))?;
            let Some(secret) = secret else { continue };
            let version = secret.resource_version().unwrap_or_default();
            let content = Arc::new(SecretContent::from(secret));
            secrets.insert(&reference.0, &reference.1, Arc::clone(&content));
            self.known().insert(reference, ReadSecret { version, content: Kept::open(content) });
        }
        Ok(secrets)
    }

    fn forget_all<'a>(&self, references: impl IntoIterator<Item = &'a Reference>) {
        let mut known = self.known();
        references.into_iter().for_each(|reference| drop(known.remove(reference)));
    }

    fn forget_outdated(&self, references: &BTreeSet<Reference>, versions: &BTreeMap<String, String>) {
        let mut known = self.known();
        for reference in references {
            if known.get(reference).is_some_and(|read| versions.get(&reference.1) != Some(&read.version)) {
                known.remove(reference);
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Reference, ReadSecret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(client: &Client, reference: Reference) -> Result<(Reference, Option<Secret>), ReadError> {
    let (namespace, name) = &reference;
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let read = api.get_opt(name).await;
    let what = format!("Secret {namespace}/{name}");
    let secret = read.map_err(|source| ReadError::Api { what, source })?;
    Ok((reference, secret))
}

/// The versions of all Secrets in a namespace, by name.
async fn versions(client: &Client, namespace: &str) -> Result<BTreeMap<String, String>, ReadError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let list = api.list_metadata(&ListParams::default()).await;
    let list = list.map_err(|source| ReadError::Api { what: "metadata of Secrets".to_owned(), source })?;
    Ok(list.items.into_iter().map(|item| (item.name_any(), item.resource_version().unwrap_or_default())).collect())
}

fn references(worker: &Worker) -> BTreeSet<Reference> {
    let namespace = worker.namespace().unwrap_or_default();
    let scripts = worker.spec.pools.iter().map(|pool| (namespace.clone(), pool.user_data_secret_ref.name.clone()));
    scripts.filter(|(_, name)| !name.is_empty()).chain(credentials(worker)).collect()
}

fn credentials(worker: &Worker) -> Option<Reference> {
    let reference = &worker.spec.secret_ref;
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Some((set(&reference.namespace)?, set(&reference.name)?))
}
