//! The proposal's goals, stories and open questions. Each test is named after one. `test/cli/images.rs` tests the
//! commands.

use gardener_extension_worker::images::catalogue::Catalogue;
use gardener_extension_worker::images::lock::{Cause, UpdatePolicy};
use gardener_extension_worker::images::lock_file::{self, LockDocument};
use gardener_extension_worker::images::promotion::promote;
use gardener_extension_worker::images::resolution::{Policy, resolve};
use gardener_extension_worker::images::sources::{ImageList, read};
use serde_json::json;

use crate::amis::{ami, at, catalogue, explained, ids, locked, lookup, policy, resolved, with};

const V1: &str = "capa-ami-ubuntu-24.04-v1.34.2-1790000000";
const V2: &str = "capa-ami-ubuntu-24.04-v1.34.2-1795000000";

#[test]
fn goal_all_machines_of_a_version_get_the_same_ami_also_later_ones() {
    let first = [ami("a", V1, "2026-09-22")];
    let both = [first[0].clone(), ami("b", V2, "2026-11-18")];
    let mut lock = locked(&first);
    let catalogue = catalogue(&both);
    assert!(lock.add(&resolved(&catalogue, &lookup(json!({}))), at("2026-11-20")).is_empty());
    assert_eq!(ids(&lock), ["1.34.2 a"]);
}

#[test]
fn goal_the_choice_is_deterministic_whatever_the_order_of_a_listing() {
    let amis = [ami("c", V2, "2026-11-18"), ami("a", V1, "2026-09-22"), ami("b", V2, "2026-11-18")];
    let result = explained(&amis, json!({}));
    assert_eq!(
        result,
        ["ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; c as old, and its id comes later; a older"]
    );
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(explained(&order.map(|index: usize| amis[index].clone()), json!({})), result);
    }
}

#[test]
fn goal_an_upgrade_is_announced_and_happens_on_request() {
    let both = [ami("a", V1, "2026-09-22"), ami("b", V2, "2026-11-18")];
    let mut lock = locked(&both[..1]);
    let catalogue = catalogue(&both);
    let resolved = resolved(&catalogue, &lookup(json!({})));
    let available = lock.available(&resolved, &catalogue, at("2026-11-20"));
    assert_eq!(available.iter().map(|change| change.cause.clone()).collect::<Vec<_>>(), [Cause::Newer]);
    assert_eq!(ids(&lock), ["1.34.2 a"], "to announce moves nothing");
    let moved = lock.update(&resolved, &catalogue, UpdatePolicy::All, None, at("2026-11-20"));
    assert_eq!((moved.len(), ids(&lock)), (1, vec!["1.34.2 b".to_owned()]));
}

#[test]
fn goal_a_cve_is_rolled_out_within_one_kubernetes_version() {
    let next = [
        ami("a", V1, "2026-09-22"),
        ami("b", V2, "2026-11-18"),
        ami("c", "capa-ami-ubuntu-24.04-v1.35.0-1795000001", "2026-11-18"),
        ami("d", "capa-ami-ubuntu-24.04-v1.34.9-1795000001", "2026-11-18"),
    ];
    let updated = |policy, image| {
        let mut lock = locked(&next[..1]);
        let catalogue = catalogue(&next);
        lock.update(&resolved(&catalogue, &lookup(json!({}))), &catalogue, policy, image, at("2026-11-20"));
        ids(&lock)
    };
    assert_eq!(updated(UpdatePolicy::Security, None), ["1.34.2 b"]);
    assert_eq!(updated(UpdatePolicy::All, None), ["1.34.2 b", "1.35.0 c"], "of new versions the newest");
    assert_eq!(updated(UpdatePolicy::All, Some("flatcar")), ["1.34.2 a"]);
}

#[test]
fn goal_public_and_own_images_are_found_by_their_owners() {
    let amis = [
        ami("a", V1, "2026-09-22"),
        with(ami("b", V2, "2026-11-18"), json!({"OwnerId": "222222222222", "Public": true})),
    ];
    assert_eq!(
        explained(&amis, json!({"owners": ["111111111111", "222222222222"]}))[0],
        "ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a older"
    );
    assert_eq!(
        explained(&amis, json!({}))[0],
        "ubuntu-24.04 1.34.2 (amd64): a chosen: the newest; b its owner \"222222222222\" is not allowed"
    );
}

#[test]
fn goal_air_gapped_fetched_file_equals_the_cloud() {
    let amis = [
        with(ami("a", V1, "2026-09-22"), json!({"BootMode": "uefi", "Tags": [{"Key": "channel", "Value": "stable"}]})),
        with(ami("b", V2, "2026-11-18"), json!({"DeprecationTime": "2026-11-20T00:00:00.000Z"})),
        with(ami("c", V2, "2026-11-19"), json!({"State": "pending"})),
    ];
    let cloud = catalogue(&amis);
    let file = serde_json::to_value(ImageList::new(cloud.images())).unwrap();
    let kept = Catalogue::new(vec![read(&file, None).unwrap()]).unwrap();
    let results = |catalogue: &Catalogue| {
        let lookup = lookup(json!({"facts": ["bootMode"], "filters": [{"name": "tag:channel", "values": ["stable"]}]}));
        resolved(catalogue, &lookup).iter().map(|resolved| format!("{resolved:?}")).collect::<Vec<_>>()
    };
    assert!(!results(&cloud).is_empty());
    assert_eq!(results(&cloud), results(&kept));
}

#[test]
fn question_an_organisation_restricts_owners_whatever_a_lookup_allows() {
    let amis = [ami("a", V1, "2026-09-22"), with(ami("b", V2, "2026-11-18"), json!({"OwnerId": "222222222222"}))];
    let catalogue = catalogue(&amis);
    let lookups = [lookup(json!({"owners": ["111111111111", "222222222222"]}))];
    let chosen = |owners: &[&str]| {
        let owners = owners.iter().map(|owner| (*owner).to_owned()).collect();
        let resolved = resolve(&catalogue, &lookups, &Policy { owners, ..policy() });
        resolved[0].chosen().map(|image| image.owner.clone())
    };
    assert_eq!(chosen(&[]).as_deref(), Some("222222222222"));
    assert_eq!(chosen(&["111111111111"]).as_deref(), Some("111111111111"));
    assert_eq!(chosen(&["333333333333"]), None);
}

#[test]
fn story_one_template_never_stands_for_several_amis() {
    // Both spellings of the version, several builds, two architectures: one image for each flavor and version.
    let amis = [
        ami("a", V1, "2026-09-22"),
        ami("b", "capa-ami-ubuntu-24.04-1.34.2-1790000001", "2026-09-23"),
        with(ami("c", "capa-ami-ubuntu-24.04-v1.34.2-1790000002", "2026-09-24"), json!({"Architecture": "arm64"})),
    ];
    assert_eq!(
        explained(&amis, json!({"arch": ["amd64", "arm64"]})),
        [
            "ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a older",
            "ubuntu-24.04 1.34.2 (arm64): c chosen: the newest"
        ]
    );
}

#[test]
fn story_a_lock_is_reviewed_and_read_again_as_it_was_written() {
    let lock =
        locked(&[ami("a", V1, "2026-09-22"), ami("b", "capa-ami-ubuntu-24.04-v1.33.6-1790000000", "2026-09-22")]);
    let text = serde_json::to_value(LockDocument::from(&lock)).unwrap();
    assert_eq!(lock_file::read(&text).unwrap(), lock);
    let versions: Vec<_> = text["images"].as_array().unwrap().iter().map(|image| image["version"].clone()).collect();
    assert_eq!(versions, ["1.33.6", "1.34.2"], "sorted, whatever the order of the source");
    let mut twice = text.clone();
    let region = twice["images"][0]["regions"][0].clone();
    twice["images"][0]["regions"].as_array_mut().unwrap().push(region);
    assert_eq!(
        lock_file::read(&twice).unwrap_err().to_string(),
        "images[0].regions[1]: this flavor has an image in this region already"
    );
}

#[test]
fn story_an_image_reaches_production_after_days_in_development() {
    let dev = locked(&[ami("a", V1, "2026-09-22")]);
    let nothing = gardener_extension_worker::images::lock::Lock::default();
    let early = promote(&dev, &nothing, 7, at("2026-11-07"));
    assert_eq!((early.changes.len(), early.too_young.len(), early.lock), (0, 1, nothing.clone()));
    let later = promote(&dev, &nothing, 7, at("2026-11-08"));
    assert_eq!((ids(&later.lock), later.too_young.len()), (vec!["1.34.2 a".to_owned()], 0));
    assert!(promote(&dev, &later.lock, 7, at("2026-11-09")).changes.is_empty());
}

#[test]
fn question_the_same_flavor_in_two_accounts_is_decided_by_date_and_owner() {
    let amis = [with(ami("b", V1, "2026-09-22"), json!({"OwnerId": "222222222222"})), ami("a", V1, "2026-09-22")];
    let owners = json!({"owners": ["111111111111", "222222222222"]});
    assert_eq!(
        explained(&amis, owners)[0],
        "ubuntu-24.04 1.34.2 (amd64): a chosen: the newest; b as old, and its owner comes later in the lookup"
    );
    assert_eq!(
        explained(&amis, json!({"owners": ["222222222222", "111111111111"]}))[0],
        "ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a as old, and its owner comes later in the lookup"
    );
    let newer = [ami("a", V1, "2026-09-22"), with(ami("b", V2, "2026-11-18"), json!({"OwnerId": "222222222222"}))];
    let in_order = |owners: [&str; 2]| explained(&newer, json!({"owners": owners, "ownersInOrder": true})).remove(0);
    assert_eq!(
        in_order(["111111111111", "222222222222"]),
        "ubuntu-24.04 1.34.2 (amd64): a chosen: the newest of the first owner in the lookup; b its owner comes later in the lookup"
    );
    assert_eq!(
        in_order(["222222222222", "111111111111"]),
        "ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a its owner comes later in the lookup"
    );
}

#[test]
fn question_a_deleted_ami_is_reported_and_replaced_on_update() {
    let amis = [ami("a", V1, "2026-09-22"), ami("b", V2, "2026-11-18")];
    let mut lock = locked(&amis[1..]);
    let rest = catalogue(&amis[..1]);
    assert_eq!(lock.gone(&rest).count(), 1);
    let moved =
        lock.update(&resolved(&rest, &lookup(json!({}))), &rest, UpdatePolicy::Security, None, at("2026-11-20"));
    assert_eq!((moved[0].cause.clone(), ids(&lock)), (Cause::Gone, vec!["1.34.2 a".to_owned()]));
}

#[test]
fn question_only_versions_in_the_range_are_resolved() {
    let amis = ["v1.32.9", "v1.33.0", "1.35.9", "v1.36.0"].map(|version| {
        ami(&version.replace(['v', '.'], ""), &format!("capa-ami-ubuntu-24.04-{version}-1"), "2026-09-22")
    });
    let versions: Vec<String> =
        resolved(&catalogue(&amis), &lookup(json!({}))).into_iter().map(|resolved| resolved.key.version).collect();
    assert_eq!(versions, ["1.33.0", "1.35.9"]);
}
