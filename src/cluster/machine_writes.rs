//! I/O: machine objects of one namespace are written and deleted here, and the store learns of it at once. Else the next
//! reconcile could see what was before, and write it again.

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
use crate::provider::Provider;
use crate::worker::changes::Write;
use crate::worker::machine_objects::{Digested, LiveDeployment};

/// Writes and deletes machine objects of one namespace.
#[derive(Clone)]
pub(crate) struct MachineApis {
    client: Client,
    namespace: String,
    cache: Arc<SeedCache>,
    provider: &'static dyn Provider,
}

impl MachineApis {
    /// Those of a namespace.
    #[must_use]
    pub(crate) fn new(
        client: Client,
        namespace: String,
        cache: Arc<SeedCache>,
        provider: &'static dyn Provider,
    ) -> Self {
        Self { client, namespace, cache, provider }
    }

    /// Writes the Secret of a class. One that is there without the label by which it is found is replaced: its name is ours.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(crate) async fn write_secret(&self, name: &str, write: Write<Secret>) -> Result<(), WriteError> {
        let unseen = if let Write::Create(secret) = &write { Some(secret.clone()) } else { None };
        match (self.write::<Digested<Secret>, _>(name, write).await, unseen) {
            (Err(error), Some(secret)) if error.is_outdated() => {
                let requests = self.requests_of::<Digested<Secret>>();
                let live: Secret = self.client.request(requests.get(name, &GetParams::default())?).await?;
                let ObjectMeta { resource_version, finalizers, .. } = live.metadata;
                let metadata = ObjectMeta { resource_version, finalizers, ..secret.metadata };
                let write = Write::Replace(Secret { metadata, ..secret });
                self.write::<Digested<Secret>, _>(name, write).await.map(drop)
            }
            (result, _) => result.map(drop),
        }
    }

    /// Writes a machine class.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(crate) async fn write_class(&self, name: &str, write: Write<Value>) -> Result<(), WriteError> {
        self.write::<Digested<Value>, _>(name, write).await.map(drop)
    }

    /// Writes a machine deployment. Returns it as the API server has it now.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(crate) async fn write_deployment(&self, name: &str, write: Write<Value>) -> Result<LiveDeployment, WriteError> {
        let text = self.write::<DeploymentText, _>(name, write).await?;
        Ok(DeploymentText::live_of(&text, self.provider)?)
    }

    /// Changes an object by a JSON merge patch; one that is gone needs no change.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(crate) async fn patch<T: Cached>(&self, name: &str, patch: Value) -> Result<(), WriteError> {
        match self.write::<T, Value>(name, Write::Patch { patch, after: Value::Null }).await {
            Err(WriteError::Api(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
            result => result.map(drop),
        }
    }

    /// Deletes an object of that uid; one that is gone is deleted already.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(crate) async fn delete<T: Cached>(&self, name: &str, uid: Option<&str>) -> Result<(), WriteError> {
        let mut parameters = DeleteParams::default();
        if let Some(uid) = uid {
            let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
            parameters = parameters.preconditions(preconditions);
        }
        let asked = T::store(&self.cache.machine_objects).read();
        match self.send(self.requests_of::<T>().delete(name, &parameters)?).await {
            Ok(text) => match Deleted::read::<T>(&text, uid)? {
                Deleted::Held => self.note::<T>(asked, &text)?,
                Deleted::Gone => self.note_deleted::<T>(name, uid),
            },
            Err(kube::Error::Api(status)) if status.is_not_found() => self.note_deleted::<T>(name, uid),
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
        let asked = T::store(&self.cache.machine_objects).read();
        let text = self.send(request).await?;
        self.note::<T>(asked, &text)?;
        Ok(text)
    }

    fn requests_of<T: Cached>(&self) -> Request {
        Request::new(<T::Kind as kube::Resource>::url_path(&(), Some(&self.namespace)))
    }

    async fn send(&self, request: axum::http::Request<Vec<u8>>) -> Result<String, kube::Error> {
        // It is closed only when nobody is left who could ask.
        let _permit = self.cache.writes.acquire().await.ok();
        self.client.request_text(request).await
    }

    fn note<T: Cached>(&self, asked: Read<'_, Readable<T>>, text: &str) -> Result<(), serde_json::Error> {
        asked.of_write(Identity::read(text)?, || self.cache.machine_objects.kept(text));
        Ok(())
    }

    fn note_deleted<T: Cached>(&self, name: &str, uid: Option<&str>) {
        if let Some(uid) = uid {
            T::store(&self.cache.machine_objects).own_deletion(&self.namespace, name, uid, Instant::now());
        }
    }
}

/// What the answer to a deletion says.
enum Deleted {
    /// Finalizers hold the object: the answer is the object as it is now.
    Held,
    /// It is gone.
    Gone,
}

impl Deleted {
    /// Reads the answer to the deletion of an object of that uid.
    fn read<T: Cached>(text: &str, uid: Option<&str>) -> Result<Self, WriteError> {
        #[derive(Deserialize)]
        struct Answer {
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
        let Answer { kind, status, details } = serde_json::from_str(text)?;
        let is_of_it = details.uid.is_none() || uid.is_none() || details.uid.as_deref() == uid;
        match kind.as_str() {
            kind if kind == T::Kind::KIND => Ok(Self::Held),
            "Status" if status == "Success" && is_of_it => Ok(Self::Gone),
            _ => Err(WriteError::NotDeleted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::live_machine::LiveMachineSet;

    #[test]
    fn only_what_says_so_is_an_answer_to_a_deletion() {
        let read =
            |text: &str| Deleted::read::<LiveMachineSet>(text, Some("u")).ok().map(|it| matches!(it, Deleted::Gone));
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
}
