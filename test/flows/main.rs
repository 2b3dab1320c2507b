//! Flows measured from the Go extension, compared with the shipped controller against a real API server: deleting,
//! restoring, waiting, hibernating, changing existing objects, and several steps in sequence.
//!
//! ```text
//! case           given objects, steps, measured results
//!   │ location      its own namespaces and subscription
//!   │ machines      machine-controller-manager of the case
//!   │ azure         scale sets of the case
//!   │ openstack     server groups of the case
//!   │ garden        ShootStates
//!   ▼
//! run            one operation after the other, each to its end  ──►  compare_flow, by the rules of deliberate.yaml
//! ```
//!
//! Reads the flows in `cases`, the families of `test/parity/cases` whose result depends on more than the plan, and
//! every case below the folders in `FLOW_CASES` (separated by colons). Prints the folders, how many cases of each
//! family are equal, every difference, and the line `N passed, N failed` at the end.
//! `cargo test --test flows -- restore/` runs only cases whose family or name contains these words.

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(clippy::expect_used, reason = "a test may end where its own input is not what it expects")]

mod azure;
mod case;
mod compare_flow;
mod garden;
mod location;
mod machines;
mod openstack;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use futures::StreamExt as _;
use kube::Client;

use azure::Azure;
use case::Case;
use location::Location;
use run::Outcome;
use test_support::arm::Arm;
use test_support::cluster::{ADMIN, CONTROLLER, ControlPlane, Process};
use test_support::measured::cases;
use test_support::measured::compare::Difference;
use test_support::measured::deliberate::Rules;
use test_support::measured::report::{self, Folder, Total};
use test_support::openstack::OpenStack;
use test_support::program;
use test_support::tier::without_deep_tests;

/// Number of cases that run concurrently.
const SIDE_BY_SIDE: usize = 12;
/// Families of `test/parity/cases` whose result depends on more than the plan.
const FAMILIES: [&str; 11] = [
    "azure/delete",
    "azure/existing-objects",
    "azure/hibernation",
    "azure/mcm-waiting",
    "azure/restore",
    "azure/vmss-flex",
    "aws/existing",
    "gcp/existing",
    "alicloud/existing",
    "openstack/existing",
    "openstack/server-groups",
];

/// The stand-ins for clouds.
struct Clouds {
    azure: Azure,
    openstack: OpenStack,
}

#[tokio::main]
async fn main() -> ExitCode {
    if let Some(code) = without_deep_tests() {
        return code;
    }
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("test");
    let rules = match report::rules(&["parity", "flows"].map(|of| test.join(of).join("deliberate.yaml"))) {
        Ok(rules) => rules,
        Err(failure) => return failure,
    };
    let mut own = vec![test.join("flows/cases")];
    own.extend(FAMILIES.map(|family| cases::own().join(family).with_extension("yaml")));
    match run_all(report::folders(own, "FLOW_CASES"), &rules).await {
        Ok(code) => code,
        Err(error) => {
            println!("{error:#}\n\n0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

async fn run_all(folders: Vec<PathBuf>, rules: &Rules) -> Result<ExitCode> {
    let cluster = ControlPlane::start().await?;
    let client = cluster.client(ADMIN).await?;
    garden::install(&client).await?;
    let clouds = Clouds { azure: Azure(Arm::start()?), openstack: OpenStack::start()? };
    let controller = start(&cluster, &clouds.azure)?;
    let (mut total, mut number, mut refused) = (Total::default(), 0, 0);
    for folder in folders {
        refused += run_folder(&folder, rules, &mut total, &mut number, &client, &clouds).await;
    }
    controller.ensure_running()?;
    println!("\nrefused by the API server: {refused}");
    let code = total.end();
    if code == ExitCode::SUCCESS {
        cluster.stop().await?;
    } else {
        println!("log of the controller: {} (until the next run)", controller.log().display());
        // Keeps the cluster's folder, which the next run removes.
        std::mem::forget(cluster);
    }
    Ok(code)
}

fn start(cluster: &ControlPlane, azure: &Azure) -> Result<Process> {
    let kubeconfig = cluster.kubeconfig_file(CONTROLLER)?;
    let program = program::controller("controller", program::binary(), &kubeconfig)
        .flag("azure-resource-manager-url", azure.0.url())
        .flag("azure-authority-url", azure.0.url())
        .env("GARDEN_KUBECONFIG", &kubeconfig)
        .env("AZURE_RESOURCE_MANAGER_URL", azure.0.url())
        .env("AZURE_AUTHORITY_HOST", azure.0.url());
    Process::start(program, cluster.folder())
}

/// Runs the cases of a folder. Returns the number of those that the API server refuses.
async fn run_folder(
    folder: &Path,
    rules: &Rules,
    total: &mut Total,
    number: &mut usize,
    client: &Client,
    clouds: &Clouds,
) -> usize {
    println!("\ncases in {}", folder.display());
    let cases = match case::collect(folder) {
        Ok(cases) if cases.is_empty() => Err("no cases in it".to_owned()),
        outcome => outcome,
    };
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_requested = |case: &Case| {
        let name = format!("{}/{}", case.family, case.name);
        let reports = |word: &str| name.contains(word);
        words.is_empty() || words.iter().any(|word| reports(word))
    };
    let cases: Vec<Case> = match cases {
        Ok(cases) => cases.into_iter().filter(is_requested).collect(),
        Err(problem) => {
            total.unreadable(&problem);
            return 0;
        }
    };
    println!("  {} cases", cases.len());
    let (mut compared, mut refused) = (Folder::default(), 0);
    let first = *number;
    *number += cases.len();
    let runs = futures::stream::iter(cases.into_iter().enumerate()).map(|(index, case)| async move {
        let location = Location::new(client.clone(), first + index, &case.given);
        (differences(&case, location, clouds).await, case)
    });
    let mut runs = runs.buffered(SIDE_BY_SIDE);
    while let Some((differences, case)) = runs.next().await {
        match differences {
            None => refused += 1,
            Some(differences) => total.add(&mut compared, rules, [&case.family, &case.name], differences),
        }
    }
    total.close(compared);
    refused
}

/// The differences of a case; `None` for one that no API server would store.
async fn differences(case: &Case, location: Location, clouds: &Clouds) -> Option<Vec<Difference>> {
    match run::run(case, location, clouds).await {
        Ok(Outcome::NotStorable(reason)) => {
            println!("  {}/{}: {}", case.family, case.name, reason.chars().take(160).collect::<String>());
            None
        }
        Ok(Outcome::Ran(found)) => {
            let steps = case.steps.iter().zip(&found);
            Some(
                steps.flat_map(|(step, found)| compare_flow::compare(&step.operation, &step.expected, found)).collect(),
            )
        }
        Err(error) => Some(vec![Difference::of_case(format!("{error:#}"))]),
    }
}
