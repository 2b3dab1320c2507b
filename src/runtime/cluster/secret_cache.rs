//! I/O: caches the Secrets that Workers refer to. They stay cached for the duration of an operation. A new operation
//! requests all their versions at once and rereads the changed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use parking_lot::{Mutex, MutexGuard};

use crate::cluster::PARALLEL_REQUESTS;
use crate::cluster::error::ReadError;
use wire::api::gardener::Worker;
use wire::api::secret::{PackedSecret, SecretContent, Secrets};

/// Up to this number, Secrets are read individually instead of comparing versions, because the list covers all Secrets
/// in the namespace.
const MAX_SINGLE_READS: usize = 2;
/// Limit in bytes for Secrets cached between operations.
const MAX_CACHED_BYTES: usize = 8 * 1024 * 1024;

/// Cache of Secrets.
#[derive(Default)]
pub struct SecretCache {
    cached: Mutex<BTreeMap<Reference, ReadSecret>>,
    /// Last references of each Worker, by its UID. The names of boot scripts change often, and earlier ones are not
    /// needed again.
    of_workers: Mutex<BTreeMap<String, BTreeSet<Reference>>>,
}

type Reference = (String, String);

struct ReadSecret {
    version: String,
    content: Kept,
}

/// Content of a Secret: unpacked during an operation, packed afterwards.
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

    /// Whether a reconcile uses it now.
    fn is_in_use(&self) -> bool {
        self.open.as_ref().is_some_and(|content| Arc::strong_count(content) > 1)
    }

    fn size(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |content| content.size());
        open + self.packed.as_ref().map_or(0, PackedSecret::size)
    }
}

impl SecretCache {
    /// The current Secrets that a Worker refers to: credentials and user data, each once. Missing ones are left out.
    ///
    /// # Errors
    /// When one can't be read.
    pub async fn read(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        let references = self.referred(worker, references(worker));
        let namespaces: BTreeSet<&String> = references.iter().map(|(namespace, _)| namespace).collect();
        // Take the Secrets out of the cache until their versions are compared. If that request fails, the next
        // reconcile must not use them.
        let cached = self.take(&references);
        let is_worth_it =
            references.len() > MAX_SINGLE_READS && cached.len() == references.len() && namespaces.len() == 1;
        if let Some(namespace) = namespaces.first()
            && is_worth_it
        {
            self.keep_current(cached, &versions(client, namespace).await?);
        }
        self.complete(client, references).await
    }

    /// Like [`read`](Self::read), but uses cached Secrets without comparing versions.
    ///
    /// # Errors
    /// When one can't be read.
    pub(crate) async fn read_unknown(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        self.complete(client, self.referred(worker, references(worker))).await
    }

    /// Only the credentials, always read from the API server.
    ///
    /// # Errors
    /// When they can't be read.
    pub(crate) async fn read_credentials(&self, client: &Client, worker: &Worker) -> Result<Secrets, ReadError> {
        let references = self.referred(worker, credentials(worker).into_iter().collect());
        self.forget_all(&references);
        self.complete(client, references).await
    }

    /// Packs the Secrets of an operation that has ended, and drops them if the cache is full.
    pub(crate) fn pack(&self, secrets: &Secrets) {
        for reference in secrets.references() {
            if let Some(read) = self.cached().get_mut(reference) {
                read.content.pack();
            }
        }
        if self.size() > MAX_CACHED_BYTES {
            self.pack_waiting();
        }
        if self.size() > MAX_CACHED_BYTES {
            self.forget(secrets);
        }
    }

    fn size(&self) -> usize {
        self.cached().values().map(|read| read.content.size()).sum()
    }

    /// Packs the Secrets of operations that wait for machines. Their next reconcile unpacks them, instead of reading
    /// again what an ended operation had to drop for them.
    fn pack_waiting(&self) {
        self.cached().values_mut().filter(|read| !read.content.is_in_use()).for_each(|read| read.content.pack());
    }

    /// Removes Secrets that are no longer needed or may be outdated.
    pub(crate) fn forget(&self, secrets: &Secrets) {
        self.forget_all(secrets.references());
    }

    /// Removes the Secrets of a deleted Worker.
    pub fn forget_worker(&self, uid: &str) {
        let references = self.of_workers().remove(uid);
        self.forget_all(references.iter().flatten());
    }

    /// Records the references of a Worker and drops the Secrets of its earlier references.
    fn referred(&self, worker: &Worker, references: BTreeSet<Reference>) -> BTreeSet<Reference> {
        let uid = worker.metadata.uid.clone().unwrap_or_default();
        let before = self.of_workers().insert(uid, references.clone());
        self.forget_all(before.iter().flatten().filter(|reference| !references.contains(*reference)));
        references
    }

    /// Reads all Secrets that are not cached. On failure, drops all of them, so that the next attempt rereads them.
    async fn complete(&self, client: &Client, references: BTreeSet<Reference>) -> Result<Secrets, ReadError> {
        let mut secrets = Secrets::default();
        let mut unknown = Vec::new();
        for reference in &references {
            match self.cached().get_mut(reference).and_then(|read| read.content.opened()) {
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
            self.cached().insert(reference, ReadSecret { version, content: Kept::open(content) });
        }
        Ok(secrets)
    }

    fn forget_all<'a>(&self, references: impl IntoIterator<Item = &'a Reference>) {
        let mut cached = self.cached();
        references.into_iter().for_each(|reference| drop(cached.remove(reference)));
    }

    fn take(&self, references: &BTreeSet<Reference>) -> BTreeMap<Reference, ReadSecret> {
        let mut cached = self.cached();
        references.iter().filter_map(|reference| cached.remove_entry(reference)).collect()
    }

    fn keep_current(&self, read: BTreeMap<Reference, ReadSecret>, versions: &BTreeMap<String, String>) {
        let current = read.into_iter().filter(|((_, name), read)| versions.get(name) == Some(&read.version));
        self.cached().extend(current);
    }

    fn cached(&self) -> MutexGuard<'_, BTreeMap<Reference, ReadSecret>> {
        self.cached.lock()
    }

    fn of_workers(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<Reference>>> {
        self.of_workers.lock()
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

/// Resource versions of all Secrets in a namespace, by name.
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::CREDENTIALS;
    use crate::cluster::test_support::{ApiServer, document, incompressible, refusal};

    /// A Worker with credentials in this namespace, and with a pool for each of these Secrets.
    fn worker(credentials: &str, scripts: &[&str]) -> Worker {
        let pool = |name: &&str| json!({"name": name, "userDataSecretRef": {"name": name, "key": "script"}});
        let pools: Vec<Value> = scripts.iter().map(pool).collect();
        let secret_ref = json!({"namespace": credentials, "name": CREDENTIALS});
        let spec = json!({"type": "azure", "region": "r", "secretRef": secret_ref, "pools": pools});
        serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": "w"}, "spec": spec})).unwrap()
    }

    /// Secrets of an API server, by name, with their versions, which are also their content.
    type There = Arc<Mutex<BTreeMap<String, u32>>>;

    fn api_server(names: &[&str]) -> (There, ApiServer) {
        let there: There = Arc::new(Mutex::new(names.iter().map(|name| ((*name).to_owned(), 1)).collect()));
        let served = Arc::clone(&there);
        let server = ApiServer::new(move |requested| {
            let there = served.lock();
            let metadata = |(name, version): (&String, &u32)| json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
            match (requested.last(), there.get_key_value(requested.last())) {
                ("secrets", _) if requested.accept.contains("PartialObjectMetadataList") => {
                    let items: Vec<Value> = there.iter().map(metadata).collect();
                    document(&json!({"kind": "PartialObjectMetadataList", "metadata": {}, "items": items}))
                }
                (_, Some((name, version))) => {
                    let mut secret = metadata((name, version));
                    secret["data"] = json!({"version": ByteString(version.to_string().into_bytes())});
                    document(&secret)
                }
                _ => refusal(404, "NotFound"),
            }
        });
        (there, server)
    }

    fn requests(server: &ApiServer) -> Vec<String> {
        let mut lines = server.lines();
        lines.sort_unstable();
        lines
    }

    fn one(namespace: &str, name: &str) -> String {
        format!("GET /api/v1/namespaces/{namespace}/secrets/{name}")
    }

    fn version(secrets: &Secrets, name: &str) -> Option<String> {
        let value = secrets.get("ns", name)?.non_empty("version")?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    #[tokio::test]
    async fn lists_versions_instead_of_reading_all_secrets() {
        const VERSIONS: &str = "GET /api/v1/namespaces/ns/secrets";
        let a = one("ns", "a");
        let b = one("ns", "b");
        let credentials = one("ns", CREDENTIALS);
        for (what, worker, at_first, expected) in [
            ("few", worker("ns", &["a"]), &["a", "b", CREDENTIALS][..], vec![&a, &credentials]),
            ("all known", worker("ns", &["a", "b"]), &["a", "b", CREDENTIALS], vec![&VERSIONS.to_owned(), &b]),
            ("one unknown", worker("ns", &["a", "b"]), &["a", CREDENTIALS], vec![&a, &b, &credentials]),
            (
                "two namespaces",
                worker("other", &["a", "b"]),
                &["a", "b", CREDENTIALS],
                vec![&a, &b, &one("other", CREDENTIALS)],
            ),
        ] {
            let (there, server) = api_server(at_first);
            let cache = SecretCache::default();
            cache.read(&server.client, &worker).await.unwrap();
            let all = worker.spec.pools.len() + 1;
            assert_eq!(requests(&server).len(), all, "{what}: an operation that knows nothing");
            there.lock().insert("b".to_owned(), 2);
            let secrets = cache.read(&server.client, &worker).await.unwrap();
            assert_eq!(requests(&server).iter().collect::<Vec<_>>(), expected, "{what}");
            assert_eq!(version(&secrets, "a").as_deref(), Some("1"), "{what}");
            let changed = (all > MAX_SINGLE_READS).then_some("2");
            assert_eq!(version(&secrets, "b").as_deref(), changed, "{what}");
            cache.read_unknown(&server.client, &worker).await.unwrap();
            assert_eq!(requests(&server), [""; 0], "{what}: while it goes on");
        }
    }

    #[tokio::test]
    async fn rereads_secrets_if_versions_are_unavailable() {
        let worker = worker("ns", &["a", "b"]);
        let cache = SecretCache::default();
        let (there, server) = api_server(&["a", "b", CREDENTIALS]);
        cache.read(&server.client, &worker).await.unwrap();
        there.lock().insert("b".to_owned(), 2);
        let silent = ApiServer::new(|_| refusal(403, "Forbidden"));
        cache.read(&silent.client, &worker).await.unwrap_err();
        let secrets = cache.read_unknown(&server.client, &worker).await.unwrap();
        assert_eq!(version(&secrets, "b").as_deref(), Some("2"), "it was changed before the operation began");
    }

    #[tokio::test]
    async fn rereads_secrets_after_cancelled_version_request() {
        let worker = worker("ns", &["a", "b"]);
        let cache = SecretCache::default();
        let (there, server) = api_server(&["a", "b", CREDENTIALS]);
        cache.read(&server.client, &worker).await.unwrap();
        there.lock().insert("b".to_owned(), 2);
        assert!(cache.read(&server.client, &worker).now_or_never().is_none());
        let secrets = cache.read_unknown(&server.client, &worker).await.unwrap();
        assert_eq!(version(&secrets, "b").as_deref(), Some("2"), "it was changed before the operation began");
    }

    #[tokio::test]
    async fn caches_secrets_until_forgotten() {
        let (_, server) = api_server(&["a", CREDENTIALS]);
        let cache = SecretCache::default();
        let worker = worker("ns", &["a"]);
        let read = async || {
            let secrets = cache.read_unknown(&server.client, &worker).await.unwrap();
            assert_eq!(version(&secrets, "a").as_deref(), Some("1"));
            (secrets, server.lines().len())
        };
        assert_eq!(read().await.1, 2);
        let (secrets, requests) = read().await;
        assert_eq!(requests, 0);
        cache.pack(&secrets);
        assert_eq!(read().await.1, 0, "from one operation to the next");
        cache.forget(&secrets);
        assert_eq!(read().await.1, 2, "they are not what they are taken for");
        cache.forget_worker("");
        assert_eq!(read().await.1, 2, "the Worker was made anew");
    }

    #[tokio::test]
    async fn drops_renamed_boot_scripts() {
        let (_, server) = api_server(&["a", "b", "c", "d", CREDENTIALS]);
        let cache = SecretCache::default();
        let of = |uid: &str, scripts: &[&str]| {
            let mut worker = worker("ns", scripts);
            worker.metadata.uid = Some(uid.to_owned());
            worker
        };
        let cached = || cache.cached().keys().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        cache.read(&server.client, &of("u", &["a", "b"])).await.unwrap();
        cache.read(&server.client, &of("v", &["d"])).await.unwrap();
        cache.read(&server.client, &of("u", &["b", "c"])).await.unwrap();
        assert_eq!(cached(), ["b", "c", CREDENTIALS, "d"]);
        cache.forget_worker("u");
        assert_eq!(cached(), ["d"], "credentials are read again, which costs a request");
        cache.forget_worker("v");
        assert!(cached().is_empty() && cache.of_workers().is_empty());
    }

    #[tokio::test]
    async fn always_reads_current_credentials() {
        let (there, server) = api_server(&["a", CREDENTIALS]);
        let cache = SecretCache::default();
        let worker = worker("ns", &["a"]);
        cache.read(&server.client, &worker).await.unwrap();
        server.requested();
        there.lock().insert(CREDENTIALS.to_owned(), 2);
        let secrets = cache.read_credentials(&server.client, &worker).await.unwrap();
        assert_eq!((version(&secrets, CREDENTIALS).as_deref(), version(&secrets, "a")), (Some("2"), None));
        assert_eq!(server.lines(), [one("ns", CREDENTIALS)]);
        there.lock().clear();
        let secrets = cache.read_credentials(&server.client, &worker).await.unwrap();
        assert_eq!(secrets.references().count(), 0, "they are missing");
    }

    /// A Secret with this name and value, read by an operation under way.
    fn open(cache: &SecretCache, name: &str, value: Vec<u8>) -> Secrets {
        let data = Some([("script".to_owned(), ByteString(value))].into());
        let content = Arc::new(SecretContent::from(Secret { data, ..Secret::default() }));
        let mut secrets = Secrets::default();
        secrets.insert("ns", name, Arc::clone(&content));
        let read = ReadSecret { version: "1".to_owned(), content: Kept::open(content) };
        cache.cached().insert(("ns".to_owned(), name.to_owned()), read);
        secrets
    }

    /// Whether the Secret is available without being read.
    async fn is_kept(cache: &SecretCache, name: &str) -> bool {
        let (_, server) = api_server(&[]);
        let secrets = cache.read_unknown(&server.client, &worker("ns", &[name])).await.unwrap();
        secrets.get("ns", name).is_some()
    }

    #[tokio::test]
    async fn drops_secrets_if_cache_is_full() {
        for (what, value, expected) in [
            ("small", b"echo hello".to_vec(), true),
            ("large until it is packed", vec![0; MAX_CACHED_BYTES + 1], true),
            ("large", incompressible(MAX_CACHED_BYTES + MAX_CACHED_BYTES / 8), false),
        ] {
            let cache = SecretCache::default();
            let secrets = open(&cache, "a", value);
            cache.pack(&secrets);
            assert_eq!(is_kept(&cache, "a").await, expected, "{what}");
        }
    }

    #[tokio::test]
    async fn full_cache_packs_secrets_of_waiting_operations() {
        let cache = SecretCache::default();
        let ended = open(&cache, "ended", b"echo hello".to_vec());
        drop(open(&cache, "waiting", vec![0; 2 * MAX_CACHED_BYTES]));
        cache.pack(&ended);
        assert!(cache.size() < MAX_CACHED_BYTES, "{}", cache.size());
        assert!(is_kept(&cache, "ended").await && is_kept(&cache, "waiting").await);
    }

    #[tokio::test]
    async fn counts_secrets_of_running_operations() {
        for (beyond, expected) in [(0, true), (1, false)] {
            let cache = SecretCache::default();
            let ended = open(&cache, "ended", b"echo hello".to_vec());
            let packed = ended.get("ns", "ended").unwrap().pack().size();
            let _in_use = open(&cache, "under-way", vec![0; MAX_CACHED_BYTES - packed + beyond]);
            cache.pack(&ended);
            assert_eq!(is_kept(&cache, "ended").await, expected, "{beyond} bytes too many");
            assert!(is_kept(&cache, "under-way").await);
        }
    }
}
