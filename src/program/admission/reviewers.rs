//! Selects the check for a request and reads its inputs from the garden.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::expirations::warn_of_shoot;
use super::garden::{Garden, ProfileError};
use super::garden_shoots::GardenShoots;
use super::node_warnings::warn_of_nodes;
use super::pool_warnings::warn_of_pools;
use super::profile_reference::ProfileReference;
use super::refusal::verdict;
use super::subject::Subject;
use super::{cloud_profile, image, namespaced, shoot};
use decisions::provider::Providers;
use runtime::webhook::{Denial, Operation, ReviewRequest, Reviewer, Verdict, WebhookKind};
use wire::api::gardener::ProfileSpec;
use wire::api::gotext::field::{FieldErrors, FieldPath};

pub(super) const GROUP: &str = "core.gardener.cloud";
pub(super) const CLOUD_PROFILES: &str = "cloudprofiles";
pub(super) const NAMESPACED_CLOUD_PROFILES: &str = "namespacedcloudprofiles";
pub(super) const SHOOTS: &str = "shoots";
/// Subresource through which Gardener writes merged profiles.
pub(super) const STATUS: &str = "status";

/// Denies invalid objects, or patches the generic part of a profile.
#[derive(Clone)]
pub(super) struct GardenReviewer {
    pub(super) kind: WebhookKind,
    pub(super) providers: Providers,
    pub(super) garden: Garden,
    /// Whether edits of Shoots return warnings about nodes.
    pub(super) warns_of_nodes: bool,
    /// The garden's Shoots, if edits of CloudProfiles return warnings about pools.
    pub(super) shoots: Option<GardenShoots>,
}

impl Reviewer for GardenReviewer {
    fn review(&self, request: Arc<ReviewRequest>) -> BoxFuture<'_, Verdict> {
        async move {
            let verdict = self.verdict(&request).await.unwrap_or_else(|verdict| verdict);
            let is_denied = self.kind == WebhookKind::Mutating && matches!(verdict, Verdict::Denied(_));
            if is_denied && is_spec_unchanged(&request).await { Verdict::ALLOWED } else { verdict }
        }
        .boxed()
    }
}

/// Whether the spec is unchanged. Stored objects can always be labelled and finalized, even if patching them fails.
/// This excludes the status of a profile, because an unpatched status would lose the images of the project.
async fn is_spec_unchanged(request: &Arc<ReviewRequest>) -> bool {
    let stays = on_thread(request, |subject, _| Ok(subject.is_spec_unchanged()));
    request.sub_resource.is_empty() && stays.await.unwrap_or_default()
}

/// Resource and subresource of requests to review; empty for others.
fn resource(request: &ReviewRequest) -> (&str, &str) {
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    if request.group == GROUP && is_written { (&request.resource, &request.sub_resource) } else { ("", "") }
}

impl GardenReviewer {
    /// `Err` is an early verdict that needs no further check.
    async fn verdict(&self, request: &Arc<ReviewRequest>) -> Result<Verdict, Verdict> {
        use WebhookKind::{Mutating, Validating};
        let providers = self.providers;
        match (self.kind, resource(request)) {
            (Validating, (CLOUD_PROFILES, "")) => {
                let now = Timestamp::now();
                let verdict =
                    on_thread(request, move |subject, what| cloud_profile::validate(subject, what, providers, now))
                        .await?;
                self.with_pools(request, verdict, None, now).await
            }
            (Mutating, (CLOUD_PROFILES, "")) => {
                on_thread(request, move |subject, what| cloud_profile::mutate(subject, what, providers)).await
            }
            (Validating, (NAMESPACED_CLOUD_PROFILES, "")) => {
                let parent = on_thread(request, |subject, what| namespaced::parent(subject, what, false)).await?;
                let parent = Arc::new(self.parent(request, &parent).await?);
                let now = Timestamp::now();
                let spec = Arc::clone(&parent);
                let validate =
                    move |subject: Subject<'_>, what: &str| namespaced::validate(subject, &spec, what, providers, now);
                let verdict = on_thread(request, validate).await?;
                self.with_pools(request, verdict, Some(parent), now).await
            }
            (Mutating, (NAMESPACED_CLOUD_PROFILES, "")) => {
                let parent = on_thread(request, |subject, what| match namespaced::has_images(subject) {
                    true => namespaced::parent(subject, what, true),
                    false => Err(Verdict::ALLOWED),
                });
                let parent = self.parent(request, &parent.await?).await?;
                on_thread(request, move |subject, what| namespaced::mutate(subject, &parent, what, providers)).await
            }
            (Mutating, (NAMESPACED_CLOUD_PROFILES, STATUS)) => {
                on_thread(request, move |subject, what| namespaced::merge_status(subject, what, providers)).await
            }
            (Validating, (SHOOTS, "")) => {
                let verdict = self.shoot(request).await.unwrap_or_else(|verdict| verdict);
                if !self.warns_of_nodes {
                    return Ok(verdict);
                }
                on_thread(request, move |subject, _| Ok(warn_of_nodes(verdict, subject, providers))).await
            }
            _ => Ok(Verdict::ALLOWED),
        }
    }

    /// Adds the effect of an edited profile on pools, if enabled. Failing to list Shoots never blocks a profile.
    async fn with_pools(
        &self,
        request: &Arc<ReviewRequest>,
        mut verdict: Verdict,
        parent: Option<Arc<ProfileSpec>>,
        now: Timestamp,
    ) -> Result<Verdict, Verdict> {
        if request.operation != Operation::Update {
            return Ok(verdict);
        }
        let Some(shoots) = &self.shoots else { return Ok(verdict) };
        let Verdict::Allowed { warnings, .. } = &mut verdict else { return Ok(verdict) };
        let pools = match shoots.pools().await {
            Ok(pools) => pools,
            Err(error) => {
                warnings.push(format!("what happens to pools is not known: {error}"));
                return Ok(verdict);
            }
        };
        let providers = self.providers;
        let warn = move |subject: Subject<'_>, _: &str| {
            Ok(warn_of_pools(verdict, subject, parent.as_deref(), &pools, providers, now))
        };
        on_thread(request, warn).await
    }

    /// The parent, or the verdict if it is not available.
    async fn parent(&self, request: &ReviewRequest, parent: &ProfileReference) -> Result<ProfileSpec, Verdict> {
        self.garden.profile(parent).await.map_err(|error| match error {
            ProfileError::Missing(ProfileReference::CloudProfile(name) | ProfileReference::Namespaced { name, .. }) => {
                let mut errors = FieldErrors::default();
                let detail = "no such CloudProfile exists; create it first, or name another one";
                errors.invalid(FieldPath::new("spec.parent.name"), &name, detail);
                verdict(&what(request), &errors, Vec::new())
            }
            // The object is not at fault, so the client may retry.
            ProfileError::Other(error) => Verdict::Denied(Denial::internal(format!("{}: {error:#}", what(request)))),
        })
    }

    /// Checks a Shoot, and compares it with its profile if a pool needs another image or changes versions. An
    /// unavailable profile does not block the Shoot, because Gardener itself checks the generic part.
    async fn shoot(&self, request: &Arc<ReviewRequest>) -> Result<Verdict, Verdict> {
        let providers = self.providers;
        let left = on_thread(request, move |subject, what| shoot::validate(subject, what, providers)).await?;
        let profile = self.garden.profile(&left.profile).await.map_err(|error| {
            let warnings = left.warnings.iter().cloned().chain(left.not_compared(&error));
            verdict(&what(request), &left.errors, warnings.collect())
        })?;
        let now = Timestamp::now();
        on_thread(request, move |subject, what| {
            let verdict = image::compare(left, &profile, what, providers, now);
            Ok(warn_of_shoot(verdict, subject, profile, now))
        })
        .await
    }
}

fn what(request: &ReviewRequest) -> String {
    let kind = match request.resource.as_str() {
        CLOUD_PROFILES => "CloudProfile",
        NAMESPACED_CLOUD_PROFILES => "NamespacedCloudProfile",
        SHOOTS => "Shoot",
        other => other,
    };
    format!("{kind} {}", request.object_name())
}

/// Stops the check of a review that is given up: sets the flag when dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a check on a blocking thread, because it takes milliseconds.
async fn on_thread<T: Send + 'static>(
    request: &Arc<ReviewRequest>,
    evaluate: impl FnOnce(Subject<'_>, &str) -> Result<T, Verdict> + Send + 'static,
) -> Result<T, Verdict> {
    let request = Arc::clone(request);
    // Set when the review is given up at its deadline, which drops this.
    let stop = StopOnDrop::default();
    let is_stopped = Arc::clone(&stop.0);
    let evaluated = spawn_blocking(move || {
        let object = request.object.as_deref().and_then(|object| std::str::from_utf8(object).ok());
        // Create and update requests always have an object.
        let Some(object) = object else { return Err(Verdict::ALLOWED) };
        let old = request.old_object.as_deref().and_then(|object| std::str::from_utf8(object).ok());
        evaluate(Subject { object, old, stop: Some(&is_stopped) }, &what(&request))
    });
    evaluated.await.unwrap_or_else(|_| {
        let message = "the review failed; see the log of the webhook".to_owned();
        Err(Verdict::Denied(Denial::internal(message)))
    })
}
