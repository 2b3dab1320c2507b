//! Reviews Shoots: whether machines can be created for their pools (docs/contract.md#pools-of-a-shoot).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::image::{PendingComparison, pools_configured, pools_to_compare};
use super::profile_reference::ProfileReference;
use super::refusal::verdict;
use super::standing_problems::standing_problems;
use super::subject::{Subject, read, same};
use decisions::provider::Providers;
use runtime::webhook::Verdict;
use wire::api::gardener::{
    CloudProfileReference, KubernetesOfPool, OrderedShoot, OrderedShootSpec, ShootPools, VersionedShoot,
};
use wire::api::gotext::field::FieldErrors;
use wire::api::gotext::json::decode_lenient;

/// A Shoot of which only the reviewed parts are decoded.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    spec: Option<OutlineSpec<'a>>,
}

#[derive(Deserialize)]
struct OutlineSpec<'a> {
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
}

/// Checks the pools of a Shoot. Unchanged pools never block a change elsewhere in the Shoot. Returns the comparison
/// with the profile that remains, including the errors so far, or the verdict. Also compares pools whose versions
/// changed. For a provider type whose Workers are not served, only the images are compared.
pub(crate) fn validate(subject: Subject<'_>, what: &str, providers: Providers) -> Result<PendingComparison, Verdict> {
    let shoot: OrderedShoot = subject.to_validate()?;
    let OrderedShootSpec { region, cloud_profile, cloud_profile_name, provider: pools } = shoot.spec;
    let Some(format) = providers.profile_format(&pools.provider_type) else { return Err(Verdict::ALLOWED) };
    if pools.workers.is_empty() {
        return Err(Verdict::ALLOWED);
    }
    let (errors, warnings, positions, configured) = match keeps_its_pools(subject) {
        true => Default::default(),
        false => {
            let old: Option<OrderedShoot> = subject.old.map(read).transpose()?;
            let old = old.as_ref().map(|old| &old.spec.provider);
            let rules = providers.for_worker_type(&pools.provider_type);
            let problems = |pools: &ShootPools, old: Option<&ShootPools>| {
                let rules = rules.as_ref().ok();
                rules.map_or_else(FieldErrors::default, |rules| rules.validate_shoot_pools(pools, old))
            };
            let mut errors = problems(&pools, old);
            let warnings = standing_problems(subject, &mut errors, || {
                old.map_or_else(FieldErrors::default, |old| problems(old, Some(old)))
            });
            let configured = if format.compares_pools() { pools_configured(&pools, old) } else { Vec::new() };
            (errors, warnings, pools_to_compare(&pools, old), configured)
        }
    };
    let namespace = shoot.metadata.namespace.unwrap_or_default();
    let profile = match (cloud_profile, cloud_profile_name) {
        (Some(reference), _) if reference.kind == "NamespacedCloudProfile" => {
            ProfileReference::Namespaced { namespace, name: reference.name }
        }
        (Some(reference), _) => ProfileReference::CloudProfile(reference.name),
        (None, name) => ProfileReference::CloudProfile(name.unwrap_or_default()),
    };
    let is_the_same = || versions(subject.object) == subject.old.and_then(versions);
    if !profile.is_a_name() || positions.is_empty() && configured.is_empty() && is_the_same() {
        return Err(verdict(what, &errors, warnings));
    }
    Ok(PendingComparison { errors, warnings, pools, positions, configured, region, profile })
}

fn keeps_its_pools(subject: Subject<'_>) -> bool {
    let provider = |object| serde_json::from_str::<Outline<'_>>(object).ok().and_then(|outline| outline.spec?.provider);
    subject.old.is_some_and(|old| same(provider(old), provider(subject.object)))
}

/// The inputs that determine the Kubernetes versions of a Shoot.
fn versions(shoot: &str) -> Option<(Vec<KubernetesOfPool>, Option<CloudProfileReference>, Option<String>)> {
    let VersionedShoot { spec, .. } = decode_lenient(shoot).ok()?;
    let of_pools = spec.provider.workers.into_iter().map(|pool| pool.kubernetes);
    Some((of_pools.chain([spec.kubernetes]).collect(), spec.cloud_profile, spec.cloud_profile_name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::garden::ProfileError;
    use super::*;

    /// The warning if the profile cannot be read; the outer `None` if no comparison is needed.
    fn not_compared(provider: &str, old: &Value, new: &Value) -> Option<Option<String>> {
        let shoot = |pool: &Value| {
            let provider = json!({"type": provider, "workers": [pool]});
            json!({"spec": {"region": "r", "cloudProfileName": "p", "provider": provider}}).to_string()
        };
        let object = shoot(new);
        let old = shoot(old);
        let left = validate(Subject { object: &object, old: Some(&old), stop: None }, "Shoot a/b", Providers::SHIPPED);
        let error = ProfileError::Other(anyhow::anyhow!("silence"));
        left.ok().map(|left| left.not_compared(&error))
    }

    #[test]
    fn the_profile_is_read_only_where_it_decides_and_its_absence_is_named() {
        let pool = |provider: &str, config: Value, version: &str| {
            let api_version = format!("{provider}.provider.extensions.gardener.cloud/v1alpha1");
            let mut config = config;
            config["apiVersion"] = api_version.into();
            config["kind"] = "WorkerConfig".into();
            json!({"name": "a", "zones": ["z"], "volume": {"size": "50Gi", "type": "gp3"}, "providerConfig": config,
                "machine": {"type": "t", "image": {"name": "os", "version": version}}})
        };
        let none = json!({});
        let aws = pool("aws", none.clone(), "1");
        let aws_configured = pool("aws", json!({"iamInstanceProfile": {"name": "x"}}), "1");
        assert_eq!(not_compared("aws", &aws, &aws_configured), None, "AWS profiles say nothing about provider configs");
        let images = "images of the pools were not compared with machine types: silence";
        assert_eq!(not_compared("aws", &aws, &pool("aws", none.clone(), "2")), Some(Some(images.to_owned())));
        let openstack = pool("openstack", none.clone(), "1");
        let grouped = pool("openstack", json!({"serverGroup": {"policy": "affinity"}}), "1");
        let configs = "provider configs of the pools were not compared with the CloudProfile: silence";
        assert_eq!(not_compared("openstack", &openstack, &grouped), Some(Some(configs.to_owned())));
        assert_eq!(not_compared("openstack", &openstack, &openstack), None);
    }
}
