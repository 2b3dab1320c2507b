//! `images fetch glance`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::{Query, Target, fetch, help};
use crate::cli::evidence::Reply;
use crate::cli::exit::wrong_usage;
use decisions::provider::openstack::credentials::{Credentials, Identity};
use profiles::images::query::ImageQuery;
use runtime::cloud::openstack::Glance;
use runtime::process::threads::block_on;
use runtime::reader::files::text_of_file;
use wire::api::secret::Sensitive;

/// Names of the environment variables with secrets. Arguments would be visible in the process list.
const APPLICATION_CREDENTIAL_SECRET: &str = "OS_APPLICATION_CREDENTIAL_SECRET";
const PASSWORD: &str = "OS_PASSWORD";

#[derive(Debug, Args)]
#[command(after_help = help("\
Examples:
  gardener-extension-worker images fetch glance --region eu-de-1,eu-de-2 --owner 4f6a0f2e --to images/openstack.yaml

Credentials are those of OpenStack's own tools: an application credential with OS_APPLICATION_CREDENTIAL_SECRET, or a user with
OS_PASSWORD. They only need to list images. Hidden images are not listed."))]
pub(super) struct GlanceArguments {
    /// Regions to query.
    #[arg(long = "region", env = "OS_REGION_NAME", value_name = "REGION", value_delimiter = ',', required = true)]
    regions: Vec<String>,
    /// Ids of the projects whose images are fetched. By default, all images that the credentials can see.
    #[arg(long = "owner", value_name = "ID", value_delimiter = ',')]
    owners: Vec<String>,
    /// URL of Keystone.
    #[arg(long, env = "OS_AUTH_URL", value_name = "URL")]
    auth_url: String,
    /// Id of an application credential, instead of a user.
    #[arg(long, env = "OS_APPLICATION_CREDENTIAL_ID", value_name = "ID")]
    application_credential: Option<String>,
    /// Name of the user.
    #[arg(long, env = "OS_USERNAME", value_name = "NAME")]
    user: Option<String>,
    /// Name of the domain of user and project.
    #[arg(long, env = "OS_USER_DOMAIN_NAME", value_name = "NAME")]
    domain: Option<String>,
    /// Name of the project of the user.
    #[arg(long, env = "OS_PROJECT_NAME", value_name = "NAME")]
    project: Option<String>,
    /// File with CA certificates to trust instead of those of the system.
    #[arg(long, env = "OS_CACERT", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(arguments: &GlanceArguments) -> anyhow::Result<Reply> {
    let credentials = credentials(arguments)?;
    let mut queries: Vec<Query> = Vec::new();
    for region in &arguments.regions {
        let source = Glance::new(credentials.clone(), &arguments.auth_url, region)?;
        queries.push((Box::new(source), vec![ImageQuery::of_owners(arguments.owners.clone())]));
    }
    block_on(fetch(&queries, &arguments.target))
}

fn credentials(arguments: &GlanceArguments) -> anyhow::Result<Credentials> {
    let ca_certificates = arguments.ca_file.as_deref().map(text_of_file).transpose()?;
    Ok(Credentials { identity: identity(arguments)?, identity_url: None, ca_certificates, insecure: false })
}

fn identity(arguments: &GlanceArguments) -> anyhow::Result<Identity> {
    if let Some(id) = &arguments.application_credential {
        return Ok(Identity::ApplicationCredential { id: id.clone(), secret: secret(APPLICATION_CREDENTIAL_SECRET)? });
    }
    let GlanceArguments { user: Some(user), domain: Some(domain), project: Some(project), .. } = arguments else {
        return Err(wrong_usage("name --application-credential, or --user, --domain and --project (see --help)"));
    };
    let (user, domain, project) = (user.clone(), domain.clone(), project.clone());
    Ok(Identity::Password { user, password: secret(PASSWORD)?, domain, project })
}

fn secret(variable: &str) -> anyhow::Result<Sensitive> {
    let secret = std::env::var(variable).ok().filter(|secret| !secret.is_empty());
    let secret = secret.with_context(|| format!("{variable} is not set"))?;
    Ok(Sensitive::from(secret.as_str()))
}
