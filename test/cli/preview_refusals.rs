//! `preview` of Shoots that the garden would reject, and of smaller maxima.

use crate::binary::{Outcome, run};

/// The preview of an edit of the old Shoot.
fn preview(profile: &str, old: &str, replacements: &[(&str, &str)]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let [profile, old] = [profile, old].map(|name| format!("test/cli/refusals/{name}.yaml"));
    let mut shoot = std::fs::read_to_string(&old).unwrap();
    for (before, after) in replacements {
        assert!(shoot.contains(before), "{before:?} is not in {old}");
        shoot = shoot.replacen(before, after, 1);
    }
    let new = folder.path().join("new.yaml");
    std::fs::write(&new, shoot).unwrap();
    run(&["preview", "--profiles", &profile, &old, new.to_str().unwrap()])
}

fn is_refused(output: &Outcome, why: &str) {
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.code, 7, "{output:?}");
    assert!(text.contains("the garden would refuse this: ") && text.contains(why), "{why}: {text}");
    assert!(!text.contains("ROLL") && !text.contains("CREATE"), "nothing of it happens: {text}");
}

#[test]
fn refuses_versions_that_the_garden_refuses() {
    let image = ("version: 1592.2.0", "version: 1592.1.0");
    for (replacement, why) in [
        (image, "machine.image.version: Invalid value: \"1592.1.0\": it has expired"),
        (("version: 1592.2.0", "version: 1592.9.0"), "\"1592.9.0\": the CloudProfile does not list it"),
        (("\"1.34\"", "1.33.2"), "spec.kubernetes.version: Forbidden: kubernetes version downgrade is not supported"),
        (("\"1.34\"", "1.34.9"), "spec.kubernetes.version: Unsupported value: \"1.34.9\""),
        (("\"1.34\"", "\"1.35\""), "spec.kubernetes.version"),
    ] {
        is_refused(&preview("versions-profile", "versions", &[replacement]), why);
    }
    let allowed = preview("versions-profile", "versions", &[("version: 1592.2.0", "version: 1592.3.0")]);
    assert!(!allowed.stdout.contains("refuse"), "{allowed:?}");
    let unchanged = preview("versions-profile", "versions", &[("maximum: 3", "maximum: 4")]);
    assert!(!unchanged.stdout.contains("refuse"), "{unchanged:?}");
}

#[test]
fn refuses_pools_that_the_webhook_denies() {
    let edited = run(&[
        "preview",
        "--profiles",
        "test/cli/refusals/profile.yaml",
        "test/cli/refusals/old.yaml",
        "test/cli/refusals/reservation.yaml",
    ]);
    is_refused(&edited, "capacityReservationGroupID");
    let zone = preview("profile", "old", &[("zones: [\"1\"]", "zones: [\"1\", \"9\"]")]);
    is_refused(&zone, "spec.provider.workers[0].zones[1]: Unsupported value: \"9\"");
}

#[test]
fn new_shoots_get_no_expired_version() {
    let folder = tempfile::tempdir().unwrap();
    let shoot = std::fs::read_to_string("test/cli/refusals/versions.yaml").unwrap();
    let other = shoot.replacen("name: canary", "name: another", 1).replacen("1592.2.0", "1592.1.0", 1);
    let new = folder.path().join("new.yaml");
    std::fs::write(&new, format!("{shoot}\n---\n{other}")).unwrap();
    let old = "test/cli/refusals/versions.yaml";
    let output = run(&["preview", "--profiles", "test/cli/refusals/versions-profile.yaml", old, new.to_str().unwrap()]);
    is_refused(&output, "it has expired");
}

#[test]
fn a_falling_maximum_of_a_zone_is_a_hazard() {
    let output = run(&[
        "preview",
        "--profiles",
        "test/cli/refusals/profile.yaml",
        "test/cli/refusals/old.yaml",
        "test/cli/refusals/more-zones.yaml",
    ]);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let bounds =
        "minimum and maximum of the zone change from 3 and 30 to 1 and 10: the nodes above 10 are removed, up to 20";
    assert!(text.contains(bounds), "{text}");
    assert_eq!(output.code, 4, "{output:?}");
    let rises = preview("profile", "old", &[("maximum: 30", "maximum: 31")]);
    assert!(rises.code == 1 && !rises.stdout.contains("are removed"), "{rises:?}");
    let hibernated = [("maximum: 30", "maximum: 20"), ("spec:\n", "spec:\n  hibernation: {enabled: true}\n")];
    let both = preview("profile", "old", &hibernated[..1]);
    let text = both.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(both.code == 4 && text.contains("up to 10"), "{both:?}");
    assert!(!preview("profile", "old", &hibernated).stdout.contains("are removed"));
}
