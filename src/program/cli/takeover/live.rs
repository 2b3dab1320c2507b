//! Surveys a seed with the permissions of the kubeconfig's user.

use anyhow::Context;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource};
use serde_json::json;

use super::permissions;
use super::survey::Survey;
use super::writers::{Writers, deployment_name, lease_name};
use crate::cli::evidence::{Evidence, no_match};
use crate::cli::preview::live::observe_workers;
use crate::cli::preview::pairs::Observed;
use crate::cli::target::{Fallback, Given, Reading, Scope, live_scope};
use controllers::controller::run::served::Served;
use explanations::preview::CloudProfiles;
use runtime::process::election::LEASE;
use runtime::process::failure_reason::reason;
use runtime::process::threads::block_on;
use wire::api::deployment::Deployment;

/// Surveys a seed, optionally impersonating another user.
pub(super) fn survey(
    reading: &Reading,
    given: &Given,
    user: Option<&str>,
    served: &Served,
    profiles: &CloudProfiles,
) -> anyhow::Result<Survey> {
    block_on(async {
        let client = reading.seed.client_as(user).await?;
        // Check permissions first, because missing ones explain later read errors.
        let permissions = permissions::check(&client).await.context("permissions can't be asked for")?;
        let observed = match selected(&client, reading, given, profiles).await {
            Ok(observed) => observed,
            Err(error) if !permissions.missing.is_empty() => {
                let missing = permissions.missing.iter();
                let missing: Vec<String> =
                    missing.map(|missing| format!("{} {}", missing.verb, missing.resource)).collect();
                return Err(error.context(format!("not allowed: {}", missing.join(", "))));
            }
            Err(error) => return Err(error),
        };
        if observed.is_empty() {
            let everything = Reading::default();
            let known = observe_workers(&client, &everything, &Scope::All, |_| false, profiles).await?.other_namespaces;
            let selected = reading.namespace.as_deref().unwrap_or("(all namespaces)");
            return Err(no_match("Worker in namespace", selected, known.iter().map(String::as_str)));
        }
        let writers = writers(&client, served).await;
        Survey::of(observed, Evidence::of("Worker"), writers, Some(permissions), served, profiles)
    })
}

async fn selected(
    client: &Client,
    reading: &Reading,
    given: &Given,
    profiles: &CloudProfiles,
) -> anyhow::Result<Observed> {
    let scope = live_scope(client, reading, &given.names, Fallback::All).await?;
    observe_workers(client, reading, &scope, |_| true, profiles).await
}

/// Finds other writers. Objects that the user cannot read become unknowns, because the controller itself needs no
/// access to them.
async fn writers(client: &Client, served: &Served) -> Writers {
    let mut writers = Writers::default();
    for worker_type in served.type_list() {
        see::<Deployment>(client, &deployment_name(worker_type), served, &mut writers).await;
        see::<Lease>(client, &lease_name(worker_type), served, &mut writers).await;
    }
    see::<Lease>(client, LEASE, served, &mut writers).await;
    writers
}

/// Adds the objects with that name from all namespaces.
async fn see<Kind: Resource<DynamicType = ()>>(client: &Client, name: &str, served: &Served, writers: &mut Writers) {
    let resource = ApiResource::erase::<Kind>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let kind = resource.kind;
    match api.list(&ListParams::default().fields(&format!("metadata.name={name}"))).await {
        Ok(listed) => {
            for object in listed.items {
                let mut object = json!(object);
                object["kind"] = json!(kind);
                writers.see(&object, served.type_list());
            }
        }
        Err(error) => writers.unknown.push(format!("{kind} {name}: {}", reason(&error))),
    }
}
