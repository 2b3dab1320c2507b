//! `images fetch ec2`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use super::{Question, Target, fetch, help};
use crate::cli::evidence::{Answer, Evidence};
use crate::cli::exit::wrong_usage;
use crate::cli::images::input::lookups;
use profiles::images::identity::Identity;
use profiles::images::lookup::Lookup;
use profiles::images::query::ImageQuery;
use runtime::cloud::aws::Ec2;
use runtime::cloud::image_source::ImageSource;
use runtime::process::threads::block_on;

#[derive(Debug, Args)]
#[command(after_help = help("\
Examples:
  gardener-extension-worker images fetch ec2 --region eu-central-1,eu-west-1 --owner self --to images/aws.yaml
  gardener-extension-worker images fetch ec2 --region eu-central-1 --lookups lookups.yaml --image-version 1.35

Credentials and endpoint are found as in AWS's own tools, from the environment, a profile, SSO, a workload identity or the
instance. A lookup with spec.identityRef uses the Secret or role that it names. They only need the permission ec2:DescribeImages. Deprecated images are included."))]
pub(super) struct Ec2Arguments {
    /// Regions to query.
    #[arg(long = "region", value_name = "REGION", value_delimiter = ',', required = true)]
    regions: Vec<String>,
    /// Accounts whose images are fetched, as numbers or `self`.
    #[arg(long = "owner", value_name = "OWNER", value_delimiter = ',')]
    owners: Vec<String>,
    /// Files or folders with ImageLookups. Fetches images that match their owners and names.
    #[arg(long, value_name = "FILE")]
    lookups: Vec<PathBuf>,
    /// Version prefixes for --lookups, such as 1.35. Also matches names with v1.35.
    #[arg(long, value_name = "VERSION", value_delimiter = ',', requires = "lookups")]
    image_version: Vec<String>,
    /// Folder with the Secrets that lookups use in `spec.identityRef`, each in a folder of its name with the files
    /// accessKeyID and secretAccessKey.
    #[arg(long, value_name = "FOLDER", requires = "lookups")]
    identities: Option<PathBuf>,
    /// Endpoint that replaces AWS's own endpoints.
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2", value_name = "URL")]
    endpoint_url: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(arguments: &Ec2Arguments) -> anyhow::Result<Answer> {
    let queries = queries(arguments)?;
    block_on(async {
        let mut questions: Vec<Question> = Vec::new();
        for (identity, queries) in &queries {
            let (endpoint, secrets) = (arguments.endpoint_url.as_deref(), arguments.identities.as_deref());
            for region in Ec2::in_regions(&arguments.regions, endpoint, identity, secrets).await? {
                questions.push((Box::new(region) as Box<dyn ImageSource>, queries.clone()));
            }
        }
        fetch(&questions, &arguments.target).await
    })
}

/// The queries of each identity.
fn queries(arguments: &Ec2Arguments) -> anyhow::Result<BTreeMap<Identity, Vec<ImageQuery>>> {
    if arguments.owners.is_empty() && arguments.lookups.is_empty() {
        return Err(wrong_usage("name --owner or --lookups: the images of everybody are too many (see --help)"));
    }
    let of_aws = |lookup: &Lookup| lookup.provider == "aws";
    let mut evidence = Evidence::of("ImageLookup");
    let lookups = lookups(&arguments.lookups, &[], &mut evidence)?.into_iter().filter(of_aws);
    if let Some(problem) = evidence.problems().next() {
        anyhow::bail!("{problem}");
    }
    let mut queries: BTreeMap<Identity, Vec<ImageQuery>> = BTreeMap::new();
    for lookup in lookups {
        let query = ImageQuery::of_lookup(&lookup, &arguments.image_version);
        queries.entry(lookup.identity).or_default().push(query);
    }
    if !arguments.owners.is_empty() {
        let query = ImageQuery::of_owners(arguments.owners.clone());
        queries.entry(Identity::OfProgram).or_default().push(query);
    }
    anyhow::ensure!(!queries.is_empty(), "no ImageLookup for aws in the files");
    Ok(queries)
}
