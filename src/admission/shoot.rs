//! Shoots: whether machines can be made for their pools (gardener-core sections 2.7 and 2.8).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::refusal::verdict;
use super::subject::{Subject, read, same};
use crate::api::gardener::OrderedShoot;
use crate::provider::Providers;
use crate::runtime::webhook::Verdict;

/// A Shoot of which only the part that is judged is looked at.
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

/// Judges the pools of a Shoot. A change elsewhere in the Shoot is not held up by pools that stay as they are.
pub(crate) fn validate(subject: Subject<'_>, what: &str, providers: Providers) -> Verdict {
    let shoot: OrderedShoot = match subject.to_judge() {
        Ok(shoot) => shoot,
        Err(verdict) => return verdict,
    };
    let pools = &shoot.spec.provider;
    let Ok(provider) = providers.for_worker_type(&pools.provider_type) else { return Verdict::ALLOWED };
    if pools.workers.is_empty() || keeps_its_pools(subject) {
        return Verdict::ALLOWED;
    }
    let old: Option<OrderedShoot> = match subject.old.map(read).transpose() {
        Ok(old) => old,
        Err(verdict) => return verdict,
    };
    let old = old.as_ref().map(|old| &old.spec.provider);
    verdict(what, &provider.validate_shoot_pools(pools, old), Vec::new())
}

fn keeps_its_pools(subject: Subject<'_>) -> bool {
    let provider = |object| serde_json::from_str::<Outline<'_>>(object).ok().and_then(|outline| outline.spec?.provider);
    subject.old.is_some_and(|old| same(provider(old), provider(subject.object)))
}
