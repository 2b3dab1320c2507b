//! `images fetch azure`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::{Query, Target, fetch, help};
use crate::cli::evidence::Reply;
use crate::cli::exit::wrong_usage;
use decisions::provider::azure::credentials::{ClientAuthentication, Credentials};
use profiles::images::query::ImageQuery;
use runtime::cloud::azure::{Addresses, Galleries, GalleryKind, Origin};
use runtime::process::threads::block_on;
use runtime::reader::files::text_of_file;
use wire::api::secret::Sensitive;

/// Name of the environment variable with the client secret. An argument would be visible in the process list.
const CLIENT_SECRET: &str = "AZURE_CLIENT_SECRET";

#[derive(Debug, Args)]
#[command(after_help = help("\
Examples:
  gardener-extension-worker images fetch azure --location westeurope --community-gallery gardenlinux-13e998fe --to images/azure.yaml
  gardener-extension-worker images fetch azure --location westeurope,northeurope --shared-gallery 0000-ours

The client secret is read from AZURE_CLIENT_SECRET. Images are only found in the regions that you query. Query all regions of the
CloudProfile, or `images check` reports missing images in the others."))]
pub(super) struct AzureArguments {
    /// Regions to query. They also select the Azure cloud.
    #[arg(long = "location", value_name = "REGION", value_delimiter = ',', required = true)]
    locations: Vec<String>,
    /// Public names of community galleries.
    #[arg(long = "community-gallery", value_name = "NAME", value_delimiter = ',')]
    community_galleries: Vec<String>,
    /// Unique names of galleries that are shared with the subscription or its tenant.
    #[arg(long = "shared-gallery", value_name = "NAME", value_delimiter = ',')]
    shared_galleries: Vec<String>,
    /// Subscription that sends the requests.
    #[arg(long, env = "AZURE_SUBSCRIPTION_ID", value_name = "ID")]
    subscription: String,
    /// Tenant of the subscription.
    #[arg(long, env = "AZURE_TENANT_ID", value_name = "ID")]
    tenant: String,
    /// Client (application) ID.
    #[arg(long, env = "AZURE_CLIENT_ID", value_name = "ID")]
    client: String,
    /// File with the token of a workload identity, instead of a client secret.
    #[arg(long, env = "AZURE_FEDERATED_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// URL of Azure's resource manager.
    #[arg(long, env = "AZURE_RESOURCE_MANAGER_URL", value_name = "URL")]
    resource_manager_url: Option<Origin>,
    /// URL for Azure's access tokens.
    #[arg(long, env = "AZURE_AUTHORITY_HOST", value_name = "URL")]
    authority_url: Option<Origin>,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(arguments: &AzureArguments) -> anyhow::Result<Reply> {
    let galleries =
        [(GalleryKind::Community, &arguments.community_galleries), (GalleryKind::Shared, &arguments.shared_galleries)];
    if galleries.iter().all(|(_, names)| names.is_empty()) {
        return Err(wrong_usage("name --community-gallery or --shared-gallery (see --help)"));
    }
    let credentials = credentials(arguments)?;
    let addresses = Addresses {
        resource_manager: arguments.resource_manager_url.clone(),
        authority: arguments.authority_url.clone(),
    };
    let mut queries: Vec<Query> = Vec::new();
    for (kind, names) in galleries.into_iter().filter(|(_, names)| !names.is_empty()) {
        for location in &arguments.locations {
            let source = Galleries::new(addresses.clone(), &credentials, location, kind)?;
            queries.push((Box::new(source), vec![ImageQuery::of_owners(names.clone())]));
        }
    }
    block_on(fetch(&queries, &arguments.target))
}

fn credentials(arguments: &AzureArguments) -> anyhow::Result<Credentials> {
    let proof = match &arguments.token_file {
        Some(file) => ClientAuthentication::Assertion(Sensitive::from(text_of_file(file)?.trim())),
        None => {
            let secret = std::env::var(CLIENT_SECRET).ok().filter(|secret| !secret.is_empty());
            let secret = secret.with_context(|| format!("{CLIENT_SECRET} is not set, and neither is --token-file"))?;
            ClientAuthentication::ClientSecret(Sensitive::from(secret.as_str()))
        }
    };
    Ok(Credentials {
        subscription: arguments.subscription.clone(),
        tenant: arguments.tenant.clone(),
        client: arguments.client.clone(),
        proof,
    })
}
