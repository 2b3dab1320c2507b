//! Images of different products under one flavor, from one lookup or from two lookups with the same image.

use gardener_extension_worker::images::lock::Lock;
use gardener_extension_worker::images::lookup::Lookup;
use gardener_extension_worker::images::resolution::resolve;
use serde_json::{Value, json};

use crate::amis::{ami, at, catalogue, lookup, policy, with};

const PLAIN: &str = "os-1.34.2-x86_64-v1.39.0";
const FIPS: &str = "os-1.34.2-fips-x86_64-v1.39.0";

fn os(name: &str, format: &str) -> Lookup {
    let spec =
        json!({"image": "os", "imagePrefix": "os", "lookupFormat": format, "os": [], "arch": ["x86_64", "aarch64"]});
    Lookup { name: name.to_owned(), ..lookup(spec) }
}

/// The error of a resolution, if the lock has earlier images.
fn error(earlier: &[Value], amis: &[Value], lookups: &[Lookup]) -> Option<String> {
    let mut lock = Lock::default();
    lock.add(&resolve(&catalogue(earlier), lookups, &policy()), at("2026-11-01"));
    let catalogue = catalogue(amis);
    let resolved = resolve(&catalogue, lookups, &policy());
    lock.ensure_separate(&resolved, lookups).err().map(|error| error.to_string())
}

#[test]
fn inner_wildcard_must_not_mix_products() {
    let any = [os("any", "-{{.K8sVersion}}-*{{.ARCH}}-v*")];
    let (plain, fips) = (ami("1", PLAIN, "2026-09-22"), ami("2", FIPS, "2026-09-23"));
    let reported = error(&[], &[plain.clone(), fips.clone()], &any).unwrap();
    for part in [
        "os 1.34.2 (amd64) of aws in eu-central-1 has images of 2 variants",
        "lookup any: os-{{.K8sVersion}}-{{.ARCH}}-v* matches os-1.34.2-x86_64-v1.39.0",
        "lookup any: os-{{.K8sVersion}}-fips-{{.ARCH}}-v* matches os-1.34.2-fips-x86_64-v1.39.0",
    ] {
        assert!(reported.contains(part), "{reported}");
    }
    let newer = ami("3", "os-1.34.2-x86_64-v1.40.0", "2026-10-22");
    assert_eq!(error(&[], &[plain.clone(), newer], &any), None);
    // Even an unusable image proves that another product is not its successor.
    let pending = with(plain.clone(), json!({"State": "pending"}));
    assert!(error(&[], &[pending, fips.clone()], &any).is_some());
    assert!(
        error(std::slice::from_ref(&plain), std::slice::from_ref(&fips), &any).is_some(),
        "only the lock has the other product"
    );
    // Images of other accounts are ignored.
    let foreign = with(fips, json!({"OwnerId": "999999999999"}));
    assert_eq!(error(&[], &[plain, foreign], &any), None);
}

#[test]
fn lookups_of_one_image_must_not_mix_products() {
    let (plain, fips) =
        (os("plain", "-{{.K8sVersion}}-{{.ARCH}}-v*"), os("fips", "-{{.K8sVersion}}-fips-{{.ARCH}}-v*"));
    let amis = [ami("1", PLAIN, "2026-09-22"), ami("2", FIPS, "2026-09-23")];
    let reported = error(&[], &amis, &[plain.clone(), fips]).unwrap();
    assert!(reported.contains("lookup plain: ") && reported.contains("lookup fips: "), "{reported}");
    let other_account = Lookup { owners: vec!["999999999999".to_owned()], ..plain.clone() };
    let amis = [ami("1", PLAIN, "2026-09-22"), with(ami("2", PLAIN, "2026-09-23"), json!({"OwnerId": "999999999999"}))];
    assert_eq!(error(&[], &amis, &[plain, other_account]), None);
}
