//! Requests for objects of a seed, as documents with their kind.

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource};
use serde_json::Value;

use crate::cli::target::Reading;

/// The parameters of a list of Workers.
pub(super) fn list_params(reading: &Reading) -> ListParams {
    let all = ListParams::default();
    match &reading.selector {
        Some(selector) => all.labels(selector.as_str()),
        None => all,
    }
}

pub(super) fn resource<T: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<T>(&())
}

/// Lists the objects of a kind in a namespace, or in all of them.
pub(super) async fn list<T: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<Vec<Value>, kube::Error> {
    let resource = resource::<T>();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let listed = api.list(params).await?;
    // Items of a list may omit their kind.
    listed.items.into_iter().map(|object| document(object, &resource.kind)).collect()
}

pub(super) fn document(object: DynamicObject, kind: &str) -> Result<Value, kube::Error> {
    let mut document = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    document["kind"] = kind.into();
    Ok(document)
}
