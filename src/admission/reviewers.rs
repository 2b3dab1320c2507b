//! Which judgement a request gets, with what it needs from the garden.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio::task::spawn_blocking;

use super::garden::{Garden, ParentError};
use super::refusal::verdict;
use super::subject::Subject;
use super::{cloud_profile, namespaced, shoot};
use crate::api::gardener::ProfileSpec;
use crate::api::gotext::field::{FieldErrors, FieldPath};
use crate::provider::Providers;
use crate::runtime::webhook::{Denial, Operation, ReviewRequest, Reviewer, Verdict};

/// Group of all objects.
pub(super) const GROUP: &str = "core.gardener.cloud";
/// Plural names of the resources.
pub(super) const CLOUD_PROFILES: &str = "cloudprofiles";
pub(super) const NAMESPACED_CLOUD_PROFILES: &str = "namespacedcloudprofiles";
pub(super) const SHOOTS: &str = "shoots";
/// Sub-resource that Gardener writes merged profiles through.
pub(super) const STATUS: &str = "status";

/// What both reviewers judge with.
#[derive(Clone)]
pub(super) struct Court {
    pub(super) providers: Providers,
    pub(super) garden: Garden,
}

/// Refuses what is wrong.
pub(super) struct Validator(pub(super) Court);

/// Writes what follows from the provider's half.
pub(super) struct Mutator(pub(super) Court);

impl Reviewer for Validator {
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict> {
        async move {
            let providers = self.0.providers;
            match resource(&request) {
                (CLOUD_PROFILES, "") => {
                    on_thread(request, move |subject, _| cloud_profile::validate(subject, providers)).await
                }
                (SHOOTS, "") => {
                    on_thread(request, move |subject, what| shoot::validate(subject, what, providers)).await
                }
                (NAMESPACED_CLOUD_PROFILES, "") => {
                    let parent =
                        on_thread_for(&request, |subject, what| namespaced::parent(subject, what, false)).await;
                    let parent = match self.0.parent(&request, parent).await {
                        Ok(parent) => parent,
                        Err(verdict) => return verdict,
                    };
                    on_thread(request, move |subject, what| namespaced::validate(subject, &parent, what, providers))
                        .await
                }
                _ => Verdict::ALLOWED,
            }
        }
        .boxed()
    }
}

impl Reviewer for Mutator {
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict> {
        async move {
            let providers = self.0.providers;
            match resource(&request) {
                (CLOUD_PROFILES, "") => {
                    on_thread(request, move |subject, _| cloud_profile::mutate(subject, providers)).await
                }
                (NAMESPACED_CLOUD_PROFILES, "") => {
                    let parent = on_thread_for(&request, |subject, what| {
                        if namespaced::has_images(subject) {
                            namespaced::parent(subject, what, true)
                        } else {
                            Err(Verdict::ALLOWED)
                        }
                    });
                    let parent = match self.0.parent(&request, parent.await).await {
                        Ok(parent) => parent,
                        Err(verdict) => return verdict,
                    };
                    on_thread(request, move |subject, what| namespaced::mutate(subject, &parent, what, providers)).await
                }
                (NAMESPACED_CLOUD_PROFILES, STATUS) => {
                    on_thread(request, move |subject, what| namespaced::merge_status(subject, what, providers)).await
                }
                _ => Verdict::ALLOWED,
            }
        }
        .boxed()
    }
}

/// Resource and sub-resource of requests that are judged.
fn resource(request: &ReviewRequest) -> (&str, &str) {
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    if request.group == GROUP && is_written { (&request.resource, &request.sub_resource) } else { ("", "") }
}

impl Court {
    /// The parent of that name, or the verdict that there is without it.
    async fn parent(&self, request: &ReviewRequest, name: Result<String, Verdict>) -> Result<ProfileSpec, Verdict> {
        let name = name?;
        self.garden.parent(&name).await.map_err(|error| match error {
            ParentError::Missing(_) => {
                let mut errors = FieldErrors::default();
                let detail = "no such CloudProfile exists; create it first, or name another one";
                errors.invalid(FieldPath::new("spec.parent.name"), &name, detail);
                verdict(&what(request), &errors, Vec::new())
            }
            // It is not the object's fault, so it may be tried again.
            ParentError::Other(error) => Verdict::Denied(Denial::internal(format!("{}: {error:#}", what(request)))),
        })
    }
}

/// Kind and name of the object, for messages.
fn what(request: &ReviewRequest) -> String {
    let kind = match request.resource.as_str() {
        CLOUD_PROFILES => "CloudProfile",
        NAMESPACED_CLOUD_PROFILES => "NamespacedCloudProfile",
        SHOOTS => "Shoot",
        other => other,
    };
    format!("{kind} {}", request.object_name())
}

/// Judges on a thread for work that takes milliseconds.
async fn on_thread(
    request: Arc<ReviewRequest>,
    judge: impl FnOnce(Subject<'_>, &str) -> Verdict + Send + 'static,
) -> Verdict {
    on_thread_for(&request, |subject, what| Ok(judge(subject, what))).await.unwrap_or_else(|verdict| verdict)
}

async fn on_thread_for<T: Send + 'static>(
    request: &Arc<ReviewRequest>,
    judge: impl FnOnce(Subject<'_>, &str) -> Result<T, Verdict> + Send + 'static,
) -> Result<T, Verdict> {
    let request = Arc::clone(request);
    let judged = spawn_blocking(move || {
        let object = request.object.as_deref().and_then(|object| std::str::from_utf8(object).ok());
        // Nothing is written without an object.
        let Some(object) = object else { return Err(Verdict::ALLOWED) };
        let old = request.old_object.as_deref().and_then(|object| std::str::from_utf8(object).ok());
        judge(Subject { object, old }, &what(&request))
    });
    judged.await.unwrap_or_else(|_| {
        let message = "the review has failed; the log of the webhook says why".to_owned();
        Err(Verdict::Denied(Denial::internal(message)))
    })
}
