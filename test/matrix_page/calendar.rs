//! The page of `forecast --html`: a calendar of versions and shoots.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::browser::{Browser, Key, View};
use super::{Page, opened};

/// Output of `forecast` for documents on standard input.
pub(crate) fn forecast(arguments: &[&str], documents: &str) -> String {
    let fixed = ["--at", "2026-02-01", "--until", "2026-08-01"];
    forecast_of(&[&fixed, arguments].concat(), documents)
}

/// The same with other times.
pub(crate) fn forecast_of(arguments: &[&str], documents: &str) -> String {
    let mut child = test_support::program::command()
        .args(["forecast", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let documents = documents.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(documents.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(!output.stdout.is_empty(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn example() -> String {
    let file = |name: &str| {
        std::fs::read_to_string(format!("{}/example/versions/{name}.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    format!("{}\n---\n{}", file("shoots"), file("cloudprofile"))
}

pub(crate) fn calendar(documents: &str) -> Option<Page> {
    opened(&forecast(&["--html"], documents))
}

/// Names of a list's rows, and the number of matching elements in each row.
pub(crate) fn rows(browser: &Browser, list: &str, drawn: &str) -> Vec<(String, u64)> {
    let script = format!(
        "return [...document.querySelectorAll('#{list} .row')].map((row) => \
         [row.querySelector('.name').textContent, row.querySelectorAll('{drawn}').length])"
    );
    let rows = browser.run(&script);
    let row = |row: &Value| (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap());
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn every_move_and_every_end_is_on_the_calendar() {
    let Some(Page { browser, .. }) = calendar(&example()) else { return };
    let document: Value = serde_json::from_str(&forecast(&["-o", "json"], &example())).unwrap();
    for (member, drawn) in [("steps", ".move"), ("stuck", ".end")] {
        let count = |shoot: &Value| {
            (shoot["shoot"].as_str().unwrap().to_owned(), shoot[member].as_array().unwrap().len() as u64)
        };
        let expected: BTreeMap<_, _> = document["shoots"].as_array().unwrap().iter().map(count).collect();
        let rows = rows(&browser, "shoots", drawn);
        assert_eq!((rows.len(), rows.into_iter().collect()), (expected.len(), expected), "{member}");
    }
    let versions = rows(&browser, "versions", ".stage");
    assert!(versions.contains(&("gardenlinux 1592.9.0".to_owned(), 1)), "{versions:?}");
    assert!(versions.contains(&("Kubernetes 1.33.6".to_owned(), 2)), "supported, then expired: {versions:?}");
    assert_eq!(
        browser.text("#summary"),
        "2026-02-01 to 2026-08-01: 2 of 3 shoots move, 2 are stuck; 6 to 13 nodes are replaced or updated, most on \
         2026-05-01 (4 to 7)."
    );
    assert_eq!(browser.text("#most"), "Nodes replaced or updated per day, most on 2026-05-01: 4 to 7");
    let widths = "return [...document.querySelectorAll('.key > span')].map(mark => mark.getBoundingClientRect().width)";
    let widths = browser.run(widths);
    let widths: Vec<f64> = widths.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(widths.len() == 4 && widths.iter().all(|width| *width > 8.0), "the legend shows its marks: {widths:?}");
    assert_eq!(browser.complaints(), Vec::<Value>::new(), "no errors, and nothing that the policy forbids");
    assert_eq!(browser.run("return performance.getEntriesByType('resource').length"), 0, "nothing is loaded");
}

#[test]
fn it_filters_by_shoot_version_day_and_kind() {
    let Some(Page { browser, .. }) = calendar(&example()) else { return };
    let names = || rows(&browser, "shoots", ".move").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    browser.type_into("#text", "gardenlinux 1592.12.0");
    assert_eq!(names(), ["garden-farm/web"], "whom a version concerns");
    browser.click("button[type=reset]");
    browser.click("#stuck");
    assert_eq!(names(), ["garden-farm/careful", "garden-farm/behind"]);
    browser.click("#moving");
    assert_eq!(names(), ["garden-farm/careful"]);
    browser.click("button[type=reset]");
    browser.click("#day option:nth-child(3)");
    assert_eq!(names(), ["garden-farm/careful"], "who rolls on the day with the most nodes");
    assert_eq!(browser.text("#status"), "1 shoot of 3, 9 versions of 9");
    assert_eq!(browser.elements(".bar.chosen").len(), 1);
    browser.click(".bar:not(.chosen)");
    assert_eq!(names(), ["garden-farm/web"], "a bar chooses its day");
}

#[test]
fn a_keyboard_and_a_screen_reader_are_enough_for_the_calendar() {
    let Some(Page { browser, .. }) = calendar(&example()) else { return };
    assert_eq!(browser.spoken(&browser.element("#shoots")), ("listbox".to_owned(), "Shoots".to_owned()));
    let unnamed =
        browser.elements(":is(input, select, button, [role=listbox], section):not([hidden] *, #back)").into_iter();
    let unnamed: Vec<_> =
        unnamed.map(|element| browser.spoken(&element)).filter(|(_, label)| label.is_empty()).collect();
    assert_eq!(unnamed, [], "everything that can have the focus has a name");
    browser.run("document.getElementById('shoots').focus()");
    browser.press(&[Key::Down, Key::Down]);
    assert_eq!(browser.text("#detailsTitle"), "garden-farm/careful");
    let details = browser.text("#detailsBody");
    for part in
        ["2026-05-01", "control plane 1.33.6 to 1.34.5, forced: expired", "Stuck from 2026-06-15 on", "suse-chost"]
    {
        assert!(details.contains(part), "{part} is missing in {details}");
    }
    let current = browser.run("return document.getElementById('shoots').getAttribute('aria-activedescendant')");
    let (role, label) = browser.spoken(&browser.element(&format!("#{}", current.as_str().unwrap())));
    assert_eq!(
        (role.as_str(), label.as_str()),
        ("option", "garden-farm/careful: 1 day with moves, stuck from 2026-06-15 on")
    );
    browser.run("document.getElementById('versions').focus()");
    browser.press(&[Key::Home]);
    assert_eq!(browser.text("#detailsTitle"), "Kubernetes 1.35.1");
    browser.type_into("#text", "nobody");
    assert_eq!(browser.text("#detailsTitle"), "Nothing selected", "what is filtered out is not explained");
}

#[test]
fn names_stay_text_on_the_calendar() {
    let hostile = "</script><img src=x onerror=document.title=1>";
    let documents = example().replace("name: web", &format!("name: \"{hostile}\\u202e\""));
    let Some(Page { browser, .. }) = calendar(&documents) else { return };
    browser.click("#shoots-0");
    assert_eq!(browser.text("#detailsTitle"), format!("garden-farm/{hostile}\\u{{202e}}"));
    assert_eq!(
        browser.run("return [document.title, document.images.length, document.scripts.length]"),
        json!(["Maintenance forecast", 0, 2])
    );
}

#[test]
fn a_landscape_has_a_page_of_bounded_size_that_draws_only_what_is_seen() {
    const SHOOTS: usize = 10_000;
    let all = example();
    let part = |expected: &str| all.split("\n---\n").find(|document| document.contains(expected)).unwrap();
    let (shoot, mut documents) = (part("name: careful"), part("\nkind: CloudProfile").to_owned());
    for number in 0..SHOOTS {
        documents.push_str("\n---\n");
        documents.push_str(&shoot.replace("name: careful", &format!("name: s{number:05}")));
    }
    let page = forecast(&["--html"], &documents);
    assert!(page.len() < 400 * SHOOTS, "{} bytes", page.len());
    let Some(Page { browser, .. }) = opened(&page) else { return };
    assert!(browser.text("#status").starts_with("10000 shoots of 10000"), "{}", browser.text("#status"));
    let nodes = || browser.run("return document.getElementsByTagName('*').length").as_u64().unwrap();
    assert!(nodes() < 1_000, "{} elements", nodes());
    browser.run("document.getElementById('shoots').focus()");
    browser.press(&[Key::End]);
    assert_eq!(browser.text("#detailsTitle"), "garden-farm/s09999");
    assert!(nodes() < 1_000);
    eprintln!("{} bytes for {SHOOTS} shoots", page.len());
}

#[test]
fn displays_the_calendar_on_a_phone() {
    let Some(Page { browser, file }) = calendar(&example()) else { return };
    browser.show_as(View::PHONE);
    browser.open_location(file.path(), "");
    assert_eq!(browser.run("return document.documentElement.scrollWidth"), 390, "nothing is wider than the phone");
    assert_eq!(rows(&browser, "shoots", ".move").len(), 3);
}
