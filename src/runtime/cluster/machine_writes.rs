//! I/O: writes and deletes machine objects of one namespace and updates the store immediately. Otherwise the next
//! reconcile could use stale objects and repeat the write.

use std::sync::Arc;

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::cache::SeedCache;
use crate::cluster::error::WriteError;
use crate::cluster::identity::Identity;
use crate::cluster::machine_objects::{Cached, DeploymentText, Readable};
use crate::cluster::store::Read;
use decisions::provider::Provider;
use decisions::worker::machines::machine_objects::{DigestedObject, LiveDeployment};
use decisions::worker::plan::changes::Write;

/// Writes and deletes machine objects of one namespace.
#[derive(Clone)]
pub struct MachineObjectWriter {
    client: Client,
    namespace: String,
    cache: Arc<SeedCache>,
    provider: &'static dyn Provider,
}

impl MachineObjectWriter {
    #[must_use]
    pub(crate) fn new(
        client: Client,
        namespace: String,
        cache: Arc<SeedCache>,
        provider: &'static dyn Provider,
    ) -> Self {
        Self { client, namespace, cache, provider }
    }

    /// Writes the Secret of a class. An existing one without the label of the watch is replaced, because the name is
    /// reserved for the controller.
    ///
    /// # Errors
    /// When the API server rejects the request.
    pub async fn write_secret(&self, name: &str, write: Write<Secret>) -> Result<(), WriteError> {
        let unseen = if let Write::Create(secret) = &write { Some(secret.clone()) } else { None };
        match (self.write::<DigestedObject<Secret>, _>(name, write).await, unseen) {
            (Err(error), Some(secret)) if error.is_outdated() => {
                let requests = self.requests_of::<DigestedObject<Secret>>();
                let live: Secret = self.client.request(requests.get(name, &GetParams::default())?).await?;
                let ObjectMeta { resource_version, finalizers, .. } = live.metadata;
                let metadata = ObjectMeta { resource_version, finalizers, ..secret.metadata };
                let write = Write::Replace(Secret { metadata, ..secret });
                self.write::<DigestedObject<Secret>, _>(name, write).await.map(drop)
            }
            (result, _) => result.map(drop),
        }
    }

    /// Writes a machine class.
    ///
    /// # Errors
    /// When the API server rejects the request.
    pub async fn write_class(&self, name: &str, write: Write<Value>) -> Result<(), WriteError> {
        self.write::<DigestedObject<Value>, _>(name, write).await.map(drop)
    }

    /// Writes a machine deployment and returns it from the response.
    ///
    /// # Errors
    /// When the API server rejects the request.
    pub async fn write_deployment(&self, name: &str, write: Write<Value>) -> Result<LiveDeployment, WriteError> {
        let text = self.write::<DeploymentText, _>(name, write).await?;
        Ok(DeploymentText::live_of(&text, self.provider)?)
    }

    /// Applies a JSON merge patch. A deleted object needs no change, so 404 is not an error.
    ///
    /// # Errors
    /// When the API server rejects the request.
    pub async fn patch<T: Cached>(&self, name: &str, patch: Value) -> Result<(), WriteError> {
        match self.write::<T, Value>(name, Write::Patch { patch, after: Value::Null }).await {
            Err(WriteError::Api(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
            result => result.map(drop),
        }
    }

    /// Deletes an object with a UID precondition. 404 is not an error.
    ///
    /// # Errors
    /// When the API server rejects the request.
    pub async fn delete<T: Cached>(&self, name: &str, uid: Option<&str>) -> Result<(), WriteError> {
        let mut parameters = DeleteParams::default();
        if let Some(uid) = uid {
            let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
            parameters = parameters.preconditions(preconditions);
        }
        let requested = T::store(&self.cache.machine_objects).read();
        match self.send(self.requests_of::<T>().delete(name, &parameters)?).await {
            Ok(text) => match Deleted::read::<T>(&text, uid)? {
                Deleted::Held => self.note::<T>(requested, &text)?,
                Deleted::Removed => self.record_deletion::<T>(name, uid),
            },
            Err(kube::Error::Api(status)) if status.is_not_found() => self.record_deletion::<T>(name, uid),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn write<T: Cached, D: Serialize>(&self, name: &str, write: Write<D>) -> Result<String, WriteError> {
        let requests = self.requests_of::<T>();
        let parameters = PostParams::default();
        let request = match write {
            Write::Create(document) => requests.create(&parameters, serde_json::to_vec(&document)?)?,
            Write::Replace(document) => requests.replace(name, &parameters, serde_json::to_vec(&document)?)?,
            Write::Patch { patch, .. } => requests.patch(name, &PatchParams::default(), &Patch::Merge(patch))?,
        };
        let requested = T::store(&self.cache.machine_objects).read();
        let text = self.send(request).await?;
        self.note::<T>(requested, &text)?;
        Ok(text)
    }

    fn requests_of<T: Cached>(&self) -> Request {
        Request::new(<T::Kind as kube::Resource>::url_path(&(), Some(&self.namespace)))
    }

    async fn send(&self, request: axum::http::Request<Vec<u8>>) -> Result<String, kube::Error> {
        // The semaphore is never closed.
        let _permit = self.cache.writes.acquire().await.ok();
        self.client.request_text(request).await
    }

    fn note<T: Cached>(&self, requested: Read<'_, Readable<T>>, text: &str) -> Result<(), serde_json::Error> {
        requested.of_write(Identity::read(text)?, || self.cache.machine_objects.kept(text));
        Ok(())
    }

    fn record_deletion<T: Cached>(&self, name: &str, uid: Option<&str>) {
        if let Some(uid) = uid {
            T::store(&self.cache.machine_objects).own_deletion(&self.namespace, name, uid, Instant::now());
        }
    }
}

/// Result of a deletion.
enum Deleted {
    /// Finalizers keep the object; the response is its current version.
    Held,
    Removed,
}

impl Deleted {
    /// Parses the response to the deletion of the object with this UID.
    fn read<T: Cached>(text: &str, uid: Option<&str>) -> Result<Self, WriteError> {
        #[derive(Deserialize)]
        struct Reply {
            kind: String,
            #[serde(default)]
            status: Value,
            #[serde(default)]
            details: Details,
        }
        #[derive(Default, Deserialize)]
        struct Details {
            uid: Option<String>,
        }
        let Reply { kind, status, details } = serde_json::from_str(text)?;
        let is_of_it = details.uid.is_none() || uid.is_none() || details.uid.as_deref() == uid;
        match kind.as_str() {
            kind if kind == T::Kind::KIND => Ok(Self::Held),
            "Status" if status == "Success" && is_of_it => Ok(Self::Removed),
            _ => Err(WriteError::NotDeleted),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body as ResponseBody;
    use axum::http::Response;
    use serde_json::json;

    use super::*;
    use crate::cluster::test_support::{ApiServer, Requested, document, refusal};
    use decisions::provider::Providers;
    use decisions::provider::azure::Azure;
    use decisions::worker::machines::live_machine::{LiveMachine, LiveMachineSet};

    #[test]
    fn rejects_unrelated_deletion_responses() {
        let read =
            |text: &str| Deleted::read::<LiveMachineSet>(text, Some("u")).ok().map(|it| matches!(it, Deleted::Removed));
        assert_eq!(read(r#"{"kind": "Status", "status": "Success", "details": {"uid": "u"}}"#), Some(true));
        assert_eq!(read(r#"{"kind": "Status", "status": "Success"}"#), Some(true), "nothing speaks against it");
        assert_eq!(read(r#"{"kind": "MachineSet", "metadata": {}}"#), Some(false), "held by finalizers");
        for lie in [
            "",
            "{}",
            r#"{"kind": "Status", "status": "Failure"}"#,
            r#"{"kind": "Status"}"#,
            r#"{"kind": "Status", "status": "Success", "details": {"uid": "another"}}"#,
            r#"{"kind": "Machine", "metadata": {}}"#,
        ] {
            assert_eq!(read(lie), None, "{lie}");
        }
    }

    type Reply = fn(&Requested) -> Response<ResponseBody>;

    /// Access to a namespace in an API server that gives these responses.
    fn namespace(response: Reply) -> (ApiServer, Arc<SeedCache>, MachineObjectWriter) {
        let server = ApiServer::new(response);
        let cache = Arc::new(SeedCache::new(Providers::SHIPPED, false));
        let apis = MachineObjectWriter::new(server.client.clone(), "ns".to_owned(), Arc::clone(&cache), &Azure);
        (server, cache, apis)
    }

    /// The response of an API server to a written document.
    fn written(requested: &Requested, name: &str) -> Response<ResponseBody> {
        let mut written = requested.body.clone();
        for (member, value) in [("name", name), ("namespace", "ns"), ("uid", "u"), ("resourceVersion", "5")] {
            written["metadata"][member] = value.into();
        }
        document(&written)
    }

    fn secret() -> Secret {
        let labels = [("gardener.cloud/purpose".to_owned(), "machineclass".to_owned())].into();
        let metadata = ObjectMeta { name: Some("s".to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        Secret { metadata, ..Secret::default() }
    }

    #[tokio::test]
    async fn replaces_unlabelled_secret_keeping_finalizers() {
        let (server, cache, apis) = namespace(|requested| match requested.line.split(' ').next() {
            Some("POST") => refusal(409, "AlreadyExists"),
            Some("GET") => document(&json!({"metadata": {"name": "s", "resourceVersion": "4", "finalizers": ["f"],
                "labels": {"foreign": "true"}}})),
            _ => written(requested, "s"),
        });
        apis.write_secret("s", Write::Create(secret())).await.unwrap();
        let requested = server.requested();
        let lines: Vec<&str> = requested.iter().map(|requested| requested.line.as_str()).collect();
        let [all, one] = ["/api/v1/namespaces/ns/secrets", "/api/v1/namespaces/ns/secrets/s"];
        assert_eq!(lines, [format!("POST {all}"), format!("GET {one}"), format!("PUT {one}")]);
        let expected = json!({"name": "s", "labels": {"gardener.cloud/purpose": "machineclass"}, "resourceVersion": "4",
            "finalizers": ["f"]});
        assert_eq!(requested[2].body["metadata"], expected);
        assert_eq!(cache.machine_objects.class_secrets.version("ns", "s"), Some(5));
    }

    #[tokio::test]
    async fn does_not_replace_secret_on_other_errors() {
        let (server, _, apis) = namespace(|_| refusal(403, "Forbidden"));
        let error = apis.write_secret("s", Write::Create(secret())).await.unwrap_err().to_string();
        assert_eq!(error, "the API server answers 403 Forbidden");
        assert_eq!(server.lines(), ["POST /api/v1/namespaces/ns/secrets"]);
    }

    #[tokio::test]
    async fn ignores_not_found_on_patch_and_delete() {
        let cases: [(Reply, Option<&str>); 3] = [
            (|_| refusal(404, "NotFound"), None),
            (|_| refusal(403, "Forbidden"), Some("the API server answers 403 Forbidden")),
            (|_| refusal(409, "Conflict"), Some("the API server answers 409 Conflict")),
        ];
        for (response, expected) in cases {
            let (server, _, apis) = namespace(response);
            let error = |result: Result<(), WriteError>| result.err().map(|error| error.to_string());
            let patch = json!({"metadata": {"labels": {"a": "b"}}});
            assert_eq!(error(apis.patch::<LiveMachine>("m", patch.clone()).await).as_deref(), expected);
            assert_eq!(error(apis.delete::<LiveMachine>("m", Some("u")).await).as_deref(), expected);
            let requested = server.requested();
            let [patched, deleted] = &*requested else { panic!("{requested:?}") };
            let path = "/apis/machine.sapcloud.io/v1alpha1/namespaces/ns/machines/m";
            assert_eq!((&patched.line, &patched.body), (&format!("PATCH {path}"), &patch));
            assert_eq!(deleted.line, format!("DELETE {path}"));
            assert_eq!(deleted.body["preconditions"], json!({"uid": "u"}), "not one that was made anew");
        }
    }

    #[tokio::test]
    async fn stores_own_write_immediately() {
        let (_server, cache, apis) =
            namespace(|requested| match (requested.line.split(' ').next(), requested.last()) {
                (Some("DELETE"), "held") => document(&json!({"kind": "MachineClass", "metadata": {"name": "held",
                "namespace": "ns", "uid": "u", "resourceVersion": "6", "deletionTimestamp": "2026-11-25T10:00:00Z"}})),
                (Some("DELETE"), "gone") => refusal(404, "NotFound"),
                (Some("DELETE"), _) => {
                    document(&json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}}))
                }
                _ => written(requested, requested.body["metadata"]["name"].as_str().unwrap_or("held")),
            });
        let classes = || cache.machine_objects.classes.names("ns");
        let names = ["deleted", "gone", "held"];
        for name in names {
            apis.write_class(name, Write::Create(json!({"metadata": {"name": name}}))).await.unwrap();
        }
        assert_eq!(classes(), names);
        apis.patch::<DigestedObject<Value>>("held", json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
        for name in names {
            apis.delete::<DigestedObject<Value>>(name, Some("u")).await.unwrap();
        }
        assert_eq!(classes(), ["held"], "finalizers hold it");
        let held = cache.machine_objects.classes.get("ns", "held").unwrap();
        assert!((*held).as_ref().unwrap().is_being_deleted);
    }
}
