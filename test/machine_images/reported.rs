//! Cases that users of lookups by name have reported.

use gardener_extension_worker::images::lock::UpdatePolicy;
use serde_json::json;

use crate::amis::{ami, at, catalogue, explained, ids, locked, lookup, resolved, with};

const V1: &str = "capa-ami-ubuntu-24.04-v1.34.2-1790000000";
const V2: &str = "capa-ami-ubuntu-24.04-v1.34.2-1795000000";

#[test]
fn a_name_that_clashes_in_one_account_is_decided_by_date() {
    let amis = [ami("a", V1, "2026-09-22"), ami("b", V1, "2026-09-23")];
    assert_eq!(explained(&amis, json!({})), ["ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a older"]);
}

#[test]
fn an_image_that_is_as_old_as_the_locked_one_is_no_upgrade() {
    let amis = [ami("b", V2, "2026-11-18"), ami("a", V1, "2026-11-18")];
    let mut lock = locked(&amis[..1]);
    let catalogue = catalogue(&amis);
    let resolved = resolved(&catalogue, &lookup(json!({})));
    assert_eq!(resolved[0].chosen().unwrap().reference.value, "ami-0000000a", "whoever locks now gets the smaller id");
    assert!(lock.update(&resolved, &catalogue, UpdatePolicy::All, None, at("2026-11-20")).is_empty());
    assert_eq!(ids(&lock), ["1.34.2 b"]);
}

#[test]
fn images_that_all_vanished_leave_the_lock_as_it_is() {
    let mut lock = locked(&[ami("a", V1, "2026-09-22")]);
    let before = lock.clone();
    let empty = catalogue(&[]);
    assert!(
        lock.update(&resolved(&empty, &lookup(json!({}))), &empty, UpdatePolicy::All, None, at("2026-11-20"))
            .is_empty()
    );
    assert_eq!(lock, before);
    assert_eq!(before.gone(&empty).count(), 1);
}

#[test]
fn arm64_names_with_a_suffix_are_a_flavor_of_their_own() {
    let arm = with(ami("b", "capa-ami-ubuntu-24.04-arm64-v1.34.2-1", "2026-11-18"), json!({"Architecture": "arm64"}));
    let amis = [ami("a", V1, "2026-09-22"), arm];
    assert_eq!(
        explained(&amis, json!({"arch": ["amd64", "arm64"]})).len(),
        1,
        "the name without suffix does not mean it"
    );
    let both = json!({"arch": ["amd64", "arm64"], "image": "ubuntu", "lookupFormat": "-{{.OS}}{{.suffix}}-?{{.K8sVersion}}-*",
        "customFields": [{"name": "suffix", "validValues": ["", "-arm64"]}]});
    let explained = explained(&amis, both);
    assert_eq!(explained.len(), 2, "{explained:?}");
    assert!(explained.iter().all(|flavor| flavor.contains("chosen")), "{explained:?}");
}

#[test]
fn a_name_that_lies_about_its_architecture_is_not_used() {
    let amis = [with(ami("a", V1, "2026-09-22"), json!({"Architecture": "arm64"}))];
    assert_eq!(explained(&amis, json!({})), ["ubuntu-24.04 1.34.2 (amd64): a its architecture is arm64, not amd64"]);
}

#[test]
fn a_copy_with_an_older_date_does_not_replace_what_is_locked() {
    let amis = [ami("b", V2, "2026-11-18"), ami("a", V1, "2026-01-01")];
    let mut lock = locked(&amis[..1]);
    let catalogue = catalogue(&amis);
    assert!(
        lock.update(&resolved(&catalogue, &lookup(json!({}))), &catalogue, UpdatePolicy::All, None, at("2026-11-20"))
            .is_empty()
    );
    assert_eq!(ids(&lock), ["1.34.2 b"]);
}

#[test]
fn encrypted_copies_are_used_only_on_request() {
    let copy = with(
        ami("b", V1, "2026-11-18"),
        json!({"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": true}}]}),
    );
    let amis = [ami("a", V1, "2026-09-22"), copy];
    assert_eq!(explained(&amis, json!({})), ["ubuntu-24.04 1.34.2 (amd64): a chosen: the newest; b it is encrypted"]);
    assert_eq!(
        explained(&amis, json!({"encrypted": true})),
        ["ubuntu-24.04 1.34.2 (amd64): b chosen: the newest; a it is not encrypted"]
    );
}

#[test]
fn a_locked_image_that_became_deprecated_is_replaced_by_an_older_one_that_is_not() {
    let good = ami("a", V1, "2026-09-22");
    let bad = ami("b", V2, "2026-11-18");
    let mut lock = locked(std::slice::from_ref(&bad));
    let catalogue = catalogue(&[good, with(bad, json!({"DeprecationTime": "2026-11-19T00:00:00.000Z"}))]);
    let moved = lock.update(
        &resolved(&catalogue, &lookup(json!({}))),
        &catalogue,
        UpdatePolicy::Security,
        None,
        at("2026-11-22"),
    );
    assert_eq!(moved[0].cause.text(), "the locked image can't be used: deprecated since 2026-11-19");
    assert_eq!(ids(&lock), ["1.34.2 a"]);
}

#[test]
fn filters_and_facts_choose_among_images_of_one_name() {
    let tag = |ami, value: &str| with(ami, json!({"Tags": [{"Key": "channel", "Value": value}]}));
    let amis = [tag(ami("a", V1, "2026-09-22"), "stable"), tag(ami("b", V2, "2026-11-18"), "beta")];
    let filters = json!({"filters": [{"name": "tag:channel", "values": ["stable"]}]});
    assert_eq!(
        explained(&amis, filters),
        ["ubuntu-24.04 1.34.2 (amd64): a chosen: the newest; b its tag:channel does not pass the filter"]
    );
    let mode = |ami, mode: &str| with(ami, json!({"BootMode": mode}));
    let amis = [mode(ami("a", V1, "2026-09-22"), "uefi"), mode(ami("b", V2, "2026-11-18"), "legacy-bios")];
    let flavors = explained(&amis, json!({"facts": ["bootMode"]}));
    assert_eq!(flavors.len(), 2, "each boot mode is a flavor: {flavors:?}");
}

#[test]
fn a_prerelease_of_an_excluded_version_does_not_come_into_a_lock() {
    let next = [
        ami("a", V1, "2026-09-22"),
        ami("b", "capa-ami-ubuntu-24.04-v1.36.0-rc.1-1795000001", "2026-11-18"),
        ami("c", "capa-ami-ubuntu-24.04-v1.36.0-alpha.2-1795000001", "2026-11-18"),
    ];
    let updated = |versions: &str| {
        let mut lock = locked(&next[..1]);
        let catalogue = catalogue(&next);
        let resolved = resolved(&catalogue, &lookup(json!({"versions": versions})));
        lock.update(&resolved, &catalogue, UpdatePolicy::All, None, at("2026-11-20"));
        ids(&lock)
    };
    assert_eq!(updated(">=1.33, <1.36"), ["1.34.2 a"]);
    assert_eq!(updated(">=1.33, <1.37"), ["1.34.2 a", "1.36.0-rc.1 b"]);
    assert_eq!(updated(">=1.33, <1.36.0-rc.0"), ["1.34.2 a", "1.36.0-alpha.2 c"]);
}
