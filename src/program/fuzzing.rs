//! Gives fuzz targets (`fuzz/`) access to private modules: one function for each decoder. Compiled only with the
//! feature
//! `fuzzing`, which the targets enable.

use std::sync::LazyLock;

use axum::body::Bytes;
use clap::{ArgMatches, Command};
use jiff::Timestamp;
use json_patch::Patch;
use kube::core::PartialObjectMeta;
use serde_json::Value;

use crate::admission::subject::Subject;
use crate::admission::{cloud_profile, image, namespaced, node_warnings, shoot};
use crate::cli::{Program, configuration_file};
use crate::sidecar::container::Sidecar;
use crate::sidecar::injection::{into_autoscaler, into_deployment};
use crate::sidecar::surroundings::{Surroundings, is_self_hosted};
use decisions::provider::Providers;
use decisions::provider::azure::Azure;
use decisions::worker::machines::live_machine::{LiveMachine, LiveMachineSet};
use decisions::worker::machines::machine_objects::DigestedObject;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::machine_objects::{Cached, DeploymentText};
use runtime::cluster::trimmed::UndecodedObject;
use runtime::webhook::{ReviewRequest, Verdict};
use wire::api::gardener::{Cluster, ProfileObject, ProfileSpec, Worker};
use wire::api::gotext::json::decode_lenient;

/// The body of a request to the webhooks of the garden: the answers of all checks of its resource. The parent of a
/// NamespacedCloudProfile and the profile of a Shoot are the object before, where that is one. `None` when it is no review.
#[must_use]
pub fn review(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let request = ReviewRequest::parse(&Bytes::copy_from_slice(body)).ok()?;
    let _ = request.object_name();
    let object = std::str::from_utf8(request.object.as_deref()?).ok()?;
    let old = request.old_object.as_deref().and_then(|old| std::str::from_utf8(old).ok());
    let subject = Subject { object, old, stop: None };
    let profile = subject.old.and_then(|old| decode_lenient::<ProfileObject>(old).ok());
    let profile = profile.map_or_else(ProfileSpec::default, |profile| profile.spec);
    let verdicts = verdicts(&request.resource, subject, &profile).into_iter();
    Some(verdicts.map(|verdict| request.response(verdict.unwrap_or_else(|verdict| verdict))).collect())
}

fn verdicts(resource: &str, subject: Subject<'_>, profile: &ProfileSpec) -> Vec<Result<Verdict, Verdict>> {
    let what = "fuzz";
    let providers = Providers::SHIPPED;
    let now = Timestamp::UNIX_EPOCH;
    match resource {
        "cloudprofiles" => vec![
            cloud_profile::validate(subject, what, providers, now),
            cloud_profile::mutate(subject, what, providers),
        ],
        "namespacedcloudprofiles" => vec![
            namespaced::parent(subject, what, namespaced::has_images(subject)).map(|_| Verdict::ALLOWED),
            namespaced::validate(subject, profile, what, providers, now),
            namespaced::mutate(subject, profile, what, providers),
            namespaced::merge_status(subject, what, providers),
        ],
        _ => {
            let compared = shoot::validate(subject, what, providers)
                .map(|left| image::compare(left, profile, what, providers, now))
                .unwrap_or_else(|verdict| verdict);
            vec![Ok(node_warnings::warn_of_nodes(compared, subject, providers))]
        }
    }
}

/// A Deployment or VerticalPodAutoscaler as it is after the webhook of `sidecar`; `None` when no such patch can be applied to it.
#[must_use]
pub fn inject(object: &Value) -> Option<Value> {
    let sidecar =
        Sidecar { provider_type: "azure".to_owned(), image: "mcm-azure:v1".to_owned(), arguments: &["--of-azure=1"] };
    let surroundings = Surroundings { self_hosted: false, workload_identity: true };
    let patched = patched(object, into_deployment(object, &sidecar, "shoot--p--s", surroundings))?;
    let policy = into_autoscaler(&patched, &sidecar);
    self::patched(&patched, policy)
}

fn patched(object: &Value, patch: Patch) -> Option<Value> {
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).ok()?;
    Some(object)
}

/// An object as a watch brings it, for each kind that is watched. `None` when it is not an object of Kubernetes; else whether it is
/// a Worker when it is decoded later, and when it is decoded at once.
#[must_use]
pub fn watched(text: &str) -> Option<[bool; 2]> {
    let _ = is_self_hosted(text);
    let _ = serde_json::from_str::<PartialObjectMeta<Cluster>>(text);
    if let Some(deployment) = kept::<DeploymentText>(text) {
        let _ = deployment.live(&Azure);
    }
    let _ = (kept::<LiveMachineSet>(text), kept::<LiveMachine>(text));
    let _ = kept::<DigestedObject<Value>>(text);
    let _ = kept::<DigestedObject<k8s_openapi::api::core::v1::Secret>>(text);
    let guarded: LazyObject<Worker> = serde_json::from_str(text).ok()?;
    Some([guarded.object().is_ok(), decode_lenient::<Worker>(text).is_ok()])
}

/// Decodes an object as a store does.
fn kept<T: Cached>(text: &str) -> Option<T> {
    let trimmed: UndecodedObject = serde_json::from_str(text).ok()?;
    T::read(trimmed.text.get(), Providers::SHIPPED).ok()
}

/// The commands that read a file, each with its arguments from an empty command line.
static COMMANDS: LazyLock<Vec<(Command, ArgMatches)>> = LazyLock::new(|| {
    let program = Program::SHIPPED.command().ignore_errors(true);
    let serving = ["controller", "admission", "sidecar"].into_iter();
    let command = |name| {
        let read = program.clone().try_get_matches_from(["gardener-extension-worker", name]).ok()?;
        Some((program.find_subcommand(name)?.clone(), read.subcommand_matches(name)?.clone()))
    };
    serving.filter_map(command).collect()
});

/// The text of a file for `--config`, as arguments of each command that takes one; without those that refuse it.
#[must_use]
pub fn configuration(text: &str) -> Vec<Vec<String>> {
    let typed = |(command, matches): &(Command, ArgMatches)| configuration_file::typed(command, matches, text).ok();
    COMMANDS.iter().filter_map(typed).collect()
}
