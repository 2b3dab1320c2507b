//! The text output of `preview` for two files, and its exit codes.

use gardener_extension_worker::api::gardener::Shoot;
use gardener_extension_worker::pool::hash::node_agent_secret_name;
use tempfile::TempDir;

use crate::binary::{Outcome, command, example, outcome, run};
use crate::golden::assert_same;

pub(crate) type Replacements<'a> = &'a [(&'a str, &'a str)];

/// One pool rolls in all its zones and grows, and the other one only grows.
pub(crate) const ROLL: Replacements<'_> = &[
    ("77ac3aaaf0a1b2c3", "1111111111111111"),
    ("maximum: 10", "maximum: 12"),
    ("minimum: 3\n      maximum: 3", "minimum: 3\n      maximum: 4"),
];
const SCALE: Replacements<'_> = &[("maximum: 10", "maximum: 12")];
/// An image that fits no machine of the pool.
pub(crate) const UNPLANNABLE: Replacements<'_> = &[
    ("1877.3.0}\n      architecture: amd64", "1592.9.0}"),
    ("machineType: Standard_D4s_v5", "machineType: Standard_D4ps_v5"),
];

/// Files with the example and a changed copy.
struct Pair {
    old: String,
    new: String,
    _folder: TempDir,
}

impl Pair {
    #[track_caller]
    fn new(replacements: Replacements<'_>) -> Self {
        Self::of(&[], replacements)
    }

    #[track_caller]
    fn of(old: Replacements<'_>, new: Replacements<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        Self { old: file("old.yaml", &example(old)), new: file("new.yaml", &example(new)), _folder: folder }
    }

    fn arguments<'a>(&'a self, options: &[&'a str]) -> Vec<&'a str> {
        [&["preview", &self.old, &self.new], options].concat()
    }

    fn preview(&self, options: &[&str]) -> Outcome {
        run(&self.arguments(options))
    }
}

/// An image that is rebuilt in the gallery with the same version.
const REBUILT: (&str, &str) = ("gardenlinux-gen2/Versions/1877.3.0", "gardenlinux-gen2-rebuilt/Versions/1877.3.0");

#[test]
fn a_controller_that_pins_images_keeps_those_of_classes_that_stay() {
    let findings = |replacements: Replacements<'_>, options: &[&str]| {
        let printed = Pair::new(replacements).preview(&[&["-o", "json"], options].concat());
        let worker = &printed.json()["workers"][0];
        let kinds = worker["findings"].as_array().unwrap().iter();
        let kinds = kinds.filter_map(|finding| {
            finding["kind"].as_str().map(|kind| (kind.to_owned(), finding["message"].to_string()))
        });
        (printed.code, kinds.collect::<std::collections::BTreeMap<_, _>>())
    };
    let (code, follows) = findings(&[REBUILT], &[]);
    assert!(code == 4 && follows.contains_key("new-nodes-differ"), "{follows:?}");
    let (code, pins) = findings(&[REBUILT], &["--pin-images"]);
    assert!(code < 4 && !pins.contains_key("new-nodes-differ"), "{code} {pins:?}");
    let reported = &pins["image-pinned"];
    assert!(
        reported.contains("gardenlinux-gen2/Versions") && reported.contains("gardenlinux-gen2-rebuilt/Versions"),
        "{reported}"
    );
    assert!(reported.contains("keeps it until it is replaced"), "{reported}");
    // A replaced class has no image to keep.
    let rolls = [REBUILT, ROLL[0]];
    let (code, rolled) = findings(&rolls, &["--pin-images"]);
    let (same_code, same) = findings(&rolls, &[]);
    let of_rolled = |findings: &std::collections::BTreeMap<String, String>| findings.get("roll-pace").cloned();
    assert_eq!((code, same_code, of_rolled(&rolled)), (5, 5, of_rolled(&same)));
}

#[test]
fn zones_that_roll_one_after_the_other_add_up() {
    const NAMED: (&str, &str) = (
        "metadata: {name: prod, namespace: garden-garden}",
        "metadata: {name: prod, namespace: garden-garden, annotations: {gardener-extension-worker/zone-by-zone: workers}}",
    );
    let between = |old: Replacements<'_>, new: Replacements<'_>| {
        let printed = Pair::of(old, new).preview(&["-o", "json"]).json();
        let findings = printed["workers"][0]["findings"].as_array().unwrap().clone();
        let texts = findings.iter().map(|finding| {
            (finding["kind"].as_str().unwrap().to_owned(), finding["message"].as_str().unwrap().to_owned())
        });
        texts.collect::<std::collections::BTreeMap<_, _>>()
    };
    let messages = |replacements: Replacements<'_>| between(&[], replacements);
    let named = messages(&[NAMED, ROLL[0]]);
    assert!(named["zone-by-zone"].starts_with("zone by zone: +2 -0 over the pool"), "{named:?}");
    assert!(!named.contains_key("zones-at-once") && !named.contains_key("surge-and-unavailable-zero"), "{named:?}");
    assert!(named["roll-pace"].contains("in 4 rounds, about 20 min"), "2 + 1 + 1 rounds: {named:?}");
    assert!(!named.contains_key("zones-exceed-wait"), "{named:?}");
    const LARGE: (&str, &str) = ("minimum: 4\n      maximum: 10", "minimum: 400\n      maximum: 1000");
    let large = between(&[LARGE], &[NAMED, LARGE, ROLL[0]]);
    assert!(large["zones-exceed-wait"].contains("a zone waits for 6 h at most"), "{large:?}");
    let other = messages(&[ROLL[0]]);
    assert!(other.contains_key("zones-at-once") && !other.contains_key("zone-by-zone"), "{other:?}");
}

#[test]
fn roll_budget_holds_unrequested_rolls() {
    const SECRET: &str = "gardener-node-agent-workers-77ac3aaaf0a1b2c3";
    let line = format!("      nodeAgentSecretName: {SECRET}\n");
    let labelled = format!("{line}      labels: {{worker.gardener.cloud/gardener-node-agent-secret-name: {SECRET}}}\n");
    let label = (line.as_str(), labelled.as_str());
    const IDENTITY: (&str, &str) = ("identities/nodes", "identities/other");
    const RELEASED: (&str, &str) = (
        "metadata: {name: prod, namespace: garden-garden}",
        "metadata: {name: prod, namespace: garden-garden, annotations: {gardener-extension-worker/let-roll: workers}}",
    );
    let held = |old: Replacements<'_>, new: Replacements<'_>, options: &[&str]| {
        let printed = Pair::of(old, new).preview(&[&["-o", "json"], options].concat()).json();
        let worker = &printed["workers"][0];
        assert_eq!(worker["placements"][0]["verdict"], "ROLL", "{worker}");
        let findings = worker["findings"].as_array().unwrap();
        let held = findings.iter().find(|finding| finding["kind"] == "roll-held");
        held.map(|finding| (finding["pool"].to_string(), finding["message"].as_str().unwrap().to_owned()))
    };
    let budget = &["--roll-budget", "2"];
    let (pool, message) = held(&[label], &[label, IDENTITY], budget).unwrap();
    assert!(pool == "\"workers\"" && message.contains("while 2 other pools of the seed use the slots"), "{message}");
    let (_, message) = held(&[label], &[label, IDENTITY], &["--roll-budget", "0"]).unwrap();
    assert!(message.contains("until the annotation gardener-extension-worker/let-roll names it"), "{message}");

    assert_eq!(held(&[label], &[label, IDENTITY], &[]), None, "no budget");
    assert_eq!(held(&[], &[IDENTITY], budget), None, "without its label, the Secret is not known to stay");
    assert_eq!(held(&[label], &[label, IDENTITY, ("size: 20Gi", "size: 30Gi")], budget), None, "the owner's edit");
    assert_eq!(held(&[label], &[label, IDENTITY, ROLL[0]], budget), None, "another Secret");
    assert_eq!(
        held(&[label], &[label, IDENTITY, ("1877.3.0}", "1592.9.0}")], budget),
        None,
        "gardenlet's other Secret"
    );
    assert_eq!(held(&[label], &[label, IDENTITY, RELEASED], budget), None, "released");
}

#[test]
fn source_of_estimate_is_printed_on_request() {
    let source = "the shortest time assumes 5 min for each round; by the pool's settings, in each round new nodes take \
                  up to 20 min to join and old ones up to 2 h to drain";
    let printed = |options: &[&str]| {
        let output = Pair::new(ROLL).preview(options).stdout;
        output.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(!printed(&[]).contains("the shortest time"));
    for options in [&["--all"][..], &["-o", "wide"]] {
        let output = printed(options);
        assert!(output.contains(source), "{options:?}: {output}");
    }
}

#[test]
fn a_table() {
    let printed = Pair::new(ROLL).preview(&[]);
    assert_eq!((printed.code, printed.stderr.as_str()), (5, ""), "{printed:?}");
    assert_same("test/cli/golden/preview.txt", &printed.stdout);
}

#[test]
fn markdown() {
    let printed = Pair::new(ROLL).preview(&["-o", "markdown"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (5, ""), "{printed:?}");
    assert_same("test/cli/golden/preview.md", &printed.stdout);
}

#[test]
fn exit_codes_follow_the_result() {
    for (replacements, code) in [(&[][..], 0), (SCALE, 1), (ROLL, 5), (UNPLANNABLE, 7)] {
        let pair = Pair::new(replacements);
        for output in ["table", "markdown", "json"] {
            let printed = pair.preview(&["-o", output]);
            assert_eq!((printed.code, printed.stderr.as_str()), (code, ""), "{output}: {printed:?}");
            assert!(!printed.stdout.is_empty(), "{output}: {printed:?}");
        }
        assert_eq!(pair.preview(&["-o", "json"]).json()["exitCode"], code);
    }
}

/// The example without one of its pools.
fn without_a_pool() -> String {
    let text = example(&[]);
    let start = text.find("    - name: database\n").unwrap();
    let end = start + text[start..].find("---").unwrap();
    format!("{}{}", &text[..start], &text[end..])
}

#[test]
fn deleted_machines_are_a_hazard_with_a_code_above_that_of_a_roll() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (file("old.yaml", &example(&[])), file("new.yaml", &without_a_pool()));
    let printed = run(&["preview", &old, &new]);
    assert_eq!((printed.code, printed.stderr.as_str()), (6, ""), "{printed:?}");
    assert_same("test/cli/golden/preview-delete.txt", &printed.stdout);
    let printed = run(&["preview", &old, &new, "-o", "json"]).json();
    let findings = printed["workers"][0]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|it| it["kind"] == "machines-deleted" && it["severity"] == "hazard"), "{printed:#}");
    assert_eq!(printed["exitCode"], 6);

    // A Worker that only OLD has is deleted with all its machines.
    file("before/a.yaml", &example(&[]));
    file("before/b.yaml", &example(&[("shoot--garden--prod", "shoot--garden--other")]));
    file("after/a.yaml", &example(&[]));
    let folders = ["before", "after"].map(|side| folder.path().join(side).to_str().unwrap().to_owned());
    let printed = run(&["preview", &folders[0], &folders[1]]);
    assert_eq!(printed.code, 6, "{printed:?}");
}

#[test]
fn an_empty_input_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_str().unwrap();
    for (arguments, side) in
        [(["preview", "test/cli", empty], "NEW"), (["preview", empty, "test/cli/azure.yaml"], "OLD")]
    {
        let printed = run(&arguments);
        assert_eq!((printed.code, printed.stdout.as_str()), (3, ""), "{printed:?}");
        assert!(printed.stderr.contains(&format!("no Worker in {side}")), "{printed:?}");
    }
}

#[test]
fn a_gate_names_what_it_fails_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.yaml");
    std::fs::write(&path, without_a_pool()).unwrap();
    let deleted = path.to_str().unwrap();
    let code = |new: &str, fail_on: &str| run(&["preview", "test/cli/azure.yaml", new, "--fail-on", fail_on]).code;
    for (fail_on, expected) in
        [("roll", 0), ("delete", 6), ("hazard", 6), ("error", 0), ("roll,delete,hazard,error", 6)]
    {
        assert_eq!(code(deleted, fail_on), expected, "{fail_on}");
    }
    let (roll, broken, scale) = (Pair::new(ROLL), Pair::new(UNPLANNABLE), Pair::new(SCALE));
    for (fail_on, expected) in [("roll", 5), ("delete", 0), ("error", 0)] {
        assert_eq!(code(&roll.new, fail_on), expected, "{fail_on}");
    }
    assert_eq!((code(&broken.new, "error"), code(&scale.new, "roll,delete,hazard,error")), (7, 0));
    assert_eq!(code("no/such/file", "roll"), 3, "an incomplete preview passes no gate");
    assert_eq!(code(deleted, "rol"), 2);
}

#[test]
fn what_can_not_be_read_is_no_change() {
    let kubeconfig = ["preview", "test/cli/azure.yaml", "test/cli/azure.yaml", "--kubeconfig", "seed"];
    for (arguments, message, code) in [
        (&["preview", "test/cli/azure.yaml"][..], "OLD and NEW", 2),
        (
            &["preview", "--live", "--kubeconfig", "no-such-kubeconfig"],
            "kubeconfig no-such-kubeconfig can't be read",
            3,
        ),
        (&kubeconfig, "--kubeconfig is for --live", 2),
    ] {
        let printed = run(arguments);
        assert_eq!((printed.code, printed.stdout.as_str()), (code, ""), "{arguments:?}: {printed:?}");
        assert!(printed.stderr.contains(message), "{arguments:?}: {printed:?}");
    }
    let missing = run(&["preview", "test/cli/azure.yaml", "no/such/file"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(missing.stderr.contains("no/such/file"), "{missing:?}");
    let missing = run(&["preview", "no/such/file", "test/cli/azure.yaml"]);
    assert!(!missing.stdout.contains("CREATE"), "an unreadable side is no empty one: {missing:?}");
}

#[test]
fn colours_follow_the_environment() {
    let pair = Pair::new(ROLL);
    let plain = pair.preview(&[]).stdout;
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let mut forced = command(&pair.arguments(&[]));
    forced.env("CLICOLOR_FORCE", "1");
    assert!(outcome(forced, "").stdout.contains('\u{1b}'));
    let mut without = command(&pair.arguments(&[]));
    without.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert_eq!(outcome(without, "").stdout, plain);
}

#[test]
fn tables_fit_the_width() {
    let pair = Pair::new(ROLL);
    for columns in [80, 120] {
        let mut narrow = command(&pair.arguments(&[]));
        narrow.env("COLUMNS", columns.to_string());
        for line in outcome(narrow, "").stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn what_no_garden_lets_through_is_warned_of() {
    let mistakes: Replacements<'_> = &[
        ("maximum: 10", "maximum: 1"),
        ("minimum: 3\n      maximum: 3", "minimum: -4\n      maximum: 3\n      maxSurg: 1"),
        ("size: 20Gi", "size: 64GB"),
        ("zones: [\"2\"]", "zones: [\"2\", \"2\"]"),
    ];
    let pair = Pair::new(mistakes);
    let expected = [
        "spec.pools[workers].minimum: 4 is above the maximum 1",
        "spec.pools[workers].dataVolumes[logs].size: \"64GB\" is no quantity such as \"50Gi\"",
        "spec.pools[database].minimum: -4 is below 0",
        "spec.pools[database].zones: \"2\" is in the list several times",
        "spec.pools[database].maxSurg: no such field; it is ignored",
    ];
    for printed in [pair.preview(&[]), run(&["render", &pair.new])] {
        for warning in expected {
            let is_named = |line: &str| line.starts_with("warning: ") && line.ends_with(warning);
            assert!(printed.stderr.lines().any(is_named), "{warning}: {printed:?}");
        }
    }
    // Mistakes in OLD produce no warnings.
    assert_eq!(run(&["preview", &pair.new, &pair.old]).stderr, "");
    let twice = format!("{}---\n{}", example(&[]), example(&[]));
    for arguments in [&["render", "-"][..], &["preview", "test/cli/azure.yaml", "-"]] {
        let printed = outcome(command(arguments), &twice);
        assert!(printed.stderr.contains("several Workers have this name"), "{printed:?}");
    }
}

#[test]
fn many_workers_are_grouped_by_cause() {
    let folder = tempfile::tempdir().unwrap();
    let side = |side: &str, replacements: Replacements<'_>| {
        let path = folder.path().join(side);
        std::fs::create_dir_all(&path).unwrap();
        for index in 0..60 {
            let text = example(replacements).replace("shoot--garden--prod", &format!("shoot--p--{index:03}"));
            std::fs::write(path.join(format!("{index:03}.yaml")), text).unwrap();
        }
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (side("old", &[]), side("new", ROLL));
    let printed = run(&["preview", &old, &new]);
    assert_eq!((printed.code, printed.stderr.as_str()), (5, ""), "{printed:?}");
    assert_same("test/cli/golden/preview-groups.txt", &printed.stdout);
    assert!(printed.stdout.lines().count() < 40, "it fits a screen: {printed:?}");
    let all = run(&["preview", &old, &new, "--all"]).stdout;
    assert!((0..60).all(|index| all.contains(&format!("shoot--p--{index:03}/prod"))), "{all}");
    let markdown = run(&["preview", &old, &new, "-o", "markdown"]).stdout;
    assert!(markdown.lines().count() < 20 && markdown.contains("| ROLL | 60 | 60 |"), "{markdown}");
    let document = run(&["preview", &old, &new, "-o", "json"]).json();
    assert_eq!(document["workers"].as_array().unwrap().len(), 60);
    let group = &document["groups"][0];
    assert_eq!((&group["verdict"], &group["workers"], &group["pools"]), (&"ROLL".into(), &60.into(), &60.into()));
    assert_eq!(group["examples"].as_array().unwrap().len(), 5);
}

#[test]
fn one_worker_is_no_plural() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, expected) in [
        ("azure", "note: 1 Worker uses a CloudProfile that is not called \"mine\""),
        ("aws", "note: 1 Worker is of another type than the CloudProfile and keeps its own"),
    ] {
        let profile = folder.path().join("profile.yaml");
        std::fs::write(&profile, format!("{{kind: CloudProfile, metadata: {{name: mine}}, spec: {{type: {kind}}}}}"))
            .unwrap();
        let printed = run(&["preview", "test/cli/azure.yaml", "--cloudprofile-new", profile.to_str().unwrap()]);
        assert!(printed.stderr.contains(expected), "{printed:?}");
    }
}

/// The preview of the next maintenance window, for the example with changes in its Cluster.
fn maintained(changes: Replacements<'_>, more: &[&str]) -> Outcome {
    let mut text = std::fs::read_to_string("example/azure.yaml").unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    outcome(command(&[&["preview", "--maintenance", "-", "--at", "2026-02-01"], more].concat()), &text)
}

const NO_IMAGE_UPDATES: (&str, &str) = ("machineImageVersion: true", "machineImageVersion: false");

#[test]
fn the_next_window_rolls_what_it_moves() {
    let printed = maintained(&[], &["-o", "json"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (5, ""), "{printed:?}");
    let worker = &printed.json()["workers"][0];
    let verdicts = worker["placements"].as_array().unwrap().iter().map(|placement| &placement["verdict"]);
    assert!(verdicts.clone().count() == 5 && verdicts.into_iter().all(|verdict| verdict == "ROLL"), "{worker}");
    let finding = &worker["findings"][0];
    assert_eq!((&finding["kind"], &finding["pool"]), (&"maintenance".into(), &"builds".into()), "{worker}");
    let message = finding["message"].as_str().unwrap();
    assert_eq!(
        message,
        "in the window of 2026-02-01 22:00 +01:00 gardenlinux goes from 1992.3.0 to 1992.6.0 (automatic)"
    );
}

#[test]
fn the_next_window_names_the_secrets_that_gardenlet_will_make() {
    let text = std::fs::read_to_string("example/azure.yaml").unwrap();
    let documents = gardener_extension_worker::api::gotext::yaml::documents(&text).unwrap();
    let of = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    let shoot: Shoot = serde_json::from_value(of("Cluster")["spec"]["shoot"].clone()).unwrap();
    let pool = &of("Worker")["spec"]["pools"][0];
    let name_of = |version: &str| {
        let mut pool = pool.clone();
        pool["machineImage"]["version"] = version.into();
        node_agent_secret_name(&serde_json::from_value(pool).unwrap(), &shoot).unwrap()
    };
    let invented = pool["nodeAgentSecretName"].as_str().unwrap();
    let printed = maintained(&[(invented, &name_of("1992.3.0"))], &["-o", "json"]);
    let placements = printed.json()["workers"][0]["placements"].to_string();
    assert!(
        placements.contains(&name_of("1992.6.0")) && !placements.contains(&format!("{invented}-next")),
        "{placements}"
    );
}

#[test]
fn a_window_can_touch_no_node_or_nothing_at_all() {
    let nothing = maintained(&[NO_IMAGE_UPDATES], &[]);
    assert_eq!((nothing.code, nothing.stdout.contains("NONE")), (0, true), "{nothing:?}");
    let patch =
        maintained(&[NO_IMAGE_UPDATES, ("- version: 1.34.3", "- version: 1.34.9\n        - version: 1.34.3")], &[]);
    assert_eq!(patch.code, 1, "{patch:?}");
    assert!(patch.stdout.contains("Kubernetes goes from 1.34.3 to 1.34.9 (automatic)"), "{}", patch.stdout);
    let minor = maintained(&[NO_IMAGE_UPDATES, ("- version: 1.34.3", "- version: 1.35.1")], &[]);
    assert_eq!(minor.code, 5, "{minor:?}");
    assert!(minor.stdout.contains("Kubernetes goes from 1.34.3 to 1.35.1 (forced"), "{}", minor.stdout);
}

/// An update results in another class, even without nodes to replace.
#[test]
fn a_window_gives_new_classes_to_pools_without_nodes() {
    let text = std::fs::read_to_string("example/azure.yaml").unwrap();
    let text = text.replacen(
        "    spec:\n      cloudProfile:\n        kind",
        "    spec:\n      hibernation: {enabled: true}\n      cloudProfile:\n        kind",
        1,
    );
    assert!(text.contains("hibernation"));
    let printed =
        outcome(command(&["preview", "--maintenance", "-", "--at", "2026-02-01", "-o", "json"]), &text).json();
    let worker = &printed["workers"][0];
    for placement in worker["placements"].as_array().unwrap() {
        assert_ne!(placement["class"]["old"], placement["class"]["new"], "{worker:#}");
    }
    assert!(!worker["findings"].to_string().contains("node-agent-secret-unchanged"), "{worker:#}");
}

/// Changes that an owner defers to the next window also roll.
#[test]
fn a_window_rolls_what_its_operation_rolls() {
    let rolled = |operation: &str, more: &[(&str, &str)]| {
        let annotated = format!(
            "name: riverside\n      namespace: garden-meadow\n      annotations:\n        \
            maintenance.gardener.cloud/operation: \"{operation}\""
        );
        let mut changes = vec![
            NO_IMAGE_UPDATES,
            ("name: riverside\n      namespace: garden-meadow", annotated.as_str()),
            (
                "    status:\n      technicalID:",
                "    status:\n      lastOperation: {type: Reconcile, state: Succeeded}\n      technicalID:",
            ),
        ];
        changes.extend(more);
        let printed = maintained(&changes, &["-o", "json"]);
        let placements = printed.json()["workers"][0]["placements"].as_array().unwrap().clone();
        let rolled = placements.iter().filter(|placement| placement["verdict"] == "ROLL");
        let mut pools: Vec<String> = rolled.map(|placement| placement["pool"].as_str().unwrap().to_owned()).collect();
        pools.dedup();
        (printed.code, pools)
    };
    let both = || (5, vec!["services".to_owned(), "builds".to_owned()]);
    for all in [
        "rotate-credentials-start",
        "rotate-ca-start;reconcile",
        "rotate-serviceaccount-key-start",
        "rollout-workers=*",
    ] {
        assert_eq!(rolled(all, &[]), both(), "{all}");
    }
    for one in ["rollout-workers=services", "rotate-rollout-workers=services,none"] {
        assert_eq!(rolled(one, &[]), (5, vec!["services".to_owned()]), "{one}");
    }
    for none in ["rotate-credentials-start-without-workers-rollout", "rotate-ssh-keypair", "rollout-workers=none"] {
        assert_eq!(rolled(none, &[]), (1, vec![]), "{none}");
    }
    let in_place = [
        ("updateStrategy: AutoRollingUpdate", "updateStrategy: AutoInPlaceUpdate"),
        ("        - name: services\n", "        - name: services\n          updateStrategy: AutoInPlaceUpdate\n"),
        ("        - name: builds\n", "        - name: builds\n          updateStrategy: AutoInPlaceUpdate\n"),
    ];
    assert_eq!(rolled("rotate-ca-start", &in_place).1, Vec::<String>::new());
}

#[test]
fn a_window_that_finds_no_version_is_a_hazard() {
    let stuck = maintained(&[NO_IMAGE_UPDATES, ("- version: 1.34.3", "- version: 1.36.1")], &[]);
    assert_eq!(stuck.code, 4, "{stuck:?}");
    assert!(stuck.stdout.contains("(!) stuck at Kubernetes 1.34.3"), "{}", stuck.stdout);
    assert!(stuck.stdout.contains("needs a version 1.35.x"), "{}", stuck.stdout);
}

#[test]
fn a_window_needs_the_shoot_and_makes_the_new_side_itself() {
    let missing = maintained(&[("  shoot:\n    apiVersion: core", "  shot:\n    apiVersion: core")], &[]);
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(missing.stdout.contains("its Cluster has no Shoot, which decides over maintenance"), "{}", missing.stdout);
    assert_eq!(maintained(&[], &["example/azure.yaml"]).code, 2);
    assert_eq!(run(&["preview", "example/azure.yaml", "--at", "2026-02-01"]).code, 2);
}
