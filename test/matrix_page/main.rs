//! The pages of `cloudprofile matrix --html` and, in `calendar`, of `forecast --html` in a real browser: their
//! appearance, keyboard input, and texts for screen readers.
//!
//! Without Chromium and its driver, the tests print a message and are skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod browser;
mod calendar;
mod large;
mod sight;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

use browser::{Browser, Key, View};
use serde_json::{Value, json};

/// Output of `cloudprofile matrix`.
fn matrix(arguments: &[&str], profile: &str) -> String {
    let mut child = test_support::program::command()
        .args(["cloudprofile", "matrix", "-", "--at", "2026-11-21T00:00:00Z"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(profile.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A page in a browser, and its file.
struct Page {
    browser: Browser,
    file: tempfile::NamedTempFile,
}

fn page(profile: &str) -> Option<Page> {
    opened(&matrix(&["--html"], profile))
}

fn opened(page: &str) -> Option<Page> {
    let browser = Browser::start()?;
    let mut file = tempfile::Builder::new().suffix(".html").tempfile().unwrap();
    file.write_all(page.as_bytes()).unwrap();
    browser.open(file.path());
    Some(Page { browser, file })
}

fn example(name: &str) -> String {
    std::fs::read_to_string(format!("{}/example/cloudprofiles/{name}.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The texts of all drawn cells, by row and column of the grid.
fn cells(browser: &Browser) -> BTreeMap<(u64, u64), String> {
    let drawn = browser.run(
        "return [...document.querySelectorAll('.cell')].map((cell) => \
         [...cell.id.split('-').slice(1).map(Number), cell.firstChild.textContent])",
    );
    let cell = |cell: &Value| {
        let position = (cell[0].as_u64().unwrap(), cell[1].as_u64().unwrap());
        (position, cell[2].as_str().unwrap().to_owned())
    };
    drawn.as_array().unwrap().iter().map(cell).collect()
}

fn titles(browser: &Browser) -> Vec<String> {
    cells(browser).into_iter().filter(|((row, column), _)| *row > 0 && *column == 0).map(|(_, text)| text).collect()
}

#[test]
fn every_cell_matches_the_matrix() {
    let profile = example("azure");
    let Some(Page { browser, .. }) = page(&profile) else { return };
    let document: Value = serde_json::from_str(&matrix(&["-o", "json"], &profile)).unwrap();
    let cells = cells(&browser);
    let images = document["images"].as_array().unwrap();
    for (row, image) in images.iter().enumerate() {
        let title = format!("{} {}", image["name"].as_str().unwrap(), image["version"].as_str().unwrap());
        assert_eq!(cells[&(row as u64 + 1, 0)], title);
        for choice in image["choices"].as_array().unwrap() {
            let cell = &cells[&(row as u64 + 1, choice["group"].as_u64().unwrap() + 1)];
            match choice["flavor"].as_u64() {
                Some(flavor) => {
                    let reference = image["flavors"][flavor as usize]["reference"]["value"].as_str().unwrap();
                    let parts: Vec<&str> = cell.split('/').collect();
                    assert!(parts.iter().all(|part| reference.contains(part)), "{title}: {cell} of {reference}");
                }
                None => assert_eq!(cell, "no flavor fits", "{title}"),
            }
        }
    }
    assert_eq!(cells.len(), (images.len() + 1) * (document["groups"].as_array().unwrap().len() + 1));
    assert_eq!(browser.text("#status"), "3 image versions of 3, 6 machine types of 6 in 3 columns");
    assert_eq!(browser.complaints(), Vec::<Value>::new(), "no errors, and nothing that the policy forbids");
    assert_eq!(browser.run("return performance.getEntriesByType('resource').length"), 0, "nothing is loaded");
}

#[test]
fn it_filters_like_a_dashboard() {
    let Some(Page { browser, .. }) = page(&example("azure")) else { return };
    browser.type_into("#type", "Standard_D4ps_v5");
    assert_eq!(titles(&browser), ["gardenlinux 2001.1.0", "gardenlinux 1877.3.0", "gardenlinux 1592.9.0"]);
    browser.click("#selectable");
    assert_eq!(
        titles(&browser),
        ["gardenlinux 2001.1.0", "gardenlinux 1877.3.0"],
        "no flavor of the third is for arm64"
    );
    browser.click("#is-preview");
    assert_eq!(titles(&browser), ["gardenlinux 1877.3.0"]);
    let face = browser.text("#cell-1-1");
    let is_whole = face.replace('\n', "").contains("gardenlinux-arm64/Versions/1877.3.0");
    assert!(is_whole, "one column has room for the reference: {face}");
    browser.click("button[type=reset]");
    browser.type_into("#text", "gen1:1592");
    assert_eq!(titles(&browser), ["gardenlinux 1592.9.0"]);
    browser.type_into("#type", "no such type");
    assert_eq!(browser.text("#status"), "1 image version of 3, 0 machine types of 6 in 0 columns");
}

#[test]
fn a_choice_is_explained_in_both_directions() {
    let Some(Page { browser, .. }) = page(&example("aws")) else { return };
    browser.click("#cell-2-1");
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1592.9.0 on 2 machine types");
    let details = browser.text("#detailsBody");
    assert!(details.contains("eu-west-1 ami ami-0a11aaaa00000008"), "{details}");
    browser.click("#cell-1-0");
    assert_eq!(browser.text("#detailsTitle"), "Who gets gardenlinux 1877.3.0");
    let details = browser.text("#detailsBody");
    let order =
        ["Flavor 0: 2 machine types", "m7i.large", "Flavor 1: 1 machine type", "m4.large", "Flavor 2", "m7g.large"];
    let found: Vec<_> =
        order.iter().map(|text| details.find(text).unwrap_or_else(|| panic!("{text}: {details}"))).collect();
    assert!(found.is_sorted(), "{details}");
    browser.click("#region option[value=eu-west-1]");
    browser.click("#cell-1-1");
    let details = browser.text("#detailsBody");
    assert!(details.contains("ami-0a11aaaa00000002") && !details.contains("ami-0a11aaaa00000001"), "{details}");
}

#[test]
fn a_keyboard_and_a_screen_reader_are_enough() {
    let Some(Page { browser, .. }) = page(&example("azure")) else { return };
    assert_eq!(
        browser.spoken(&browser.element("#grid")),
        ("grid".to_owned(), "Image versions by machine types".to_owned())
    );
    assert_eq!(browser.spoken(&browser.element("#type")).1, "Machine type");
    let unnamed =
        browser.elements(":is(input, select, button, [role=grid], section):not([hidden] *, #back)").into_iter();
    let unnamed: Vec<_> =
        unnamed.map(|element| browser.spoken(&element)).filter(|(_, label)| label.is_empty()).collect();
    assert_eq!(unnamed, [], "everything that can have the focus has a name");

    // From the top of the page with the keyboard only: the first link skips the filters.
    browser.press(&[Key::Tab, Key::Enter, Key::Tab]);
    if browser.run("return document.activeElement.id") != json!("grid") {
        browser.run("document.getElementById('grid').focus()");
    }
    browser.press(&[Key::Right, Key::Down, Key::Enter]);
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1877.3.0 on Standard_A4_v2");
    let current = browser.run("return document.getElementById('grid').getAttribute('aria-activedescendant')");
    assert_eq!(current, "cell-2-2");
    let (role, label) = browser.spoken(&browser.element("#cell-2-2"));
    assert_eq!(role, "gridcell");
    let reference = "/CommunityGalleries/gardenlinux-example/Images/gardenlinux-gen1/Versions/1877.3.0";
    assert_eq!(label, format!("flavor 1, communityGalleryImageID {reference}, supported"));
    assert_eq!(browser.spoken(&browser.element("#cell-2-0")).0, "rowheader");
    assert_eq!(browser.spoken(&browser.element("#cell-0-2")).0, "columnheader");
    assert_eq!(browser.spoken(&browser.element("#status")).0, "status", "changes are announced");
    browser.press(&[Key::Home, Key::Enter]);
    assert_eq!(browser.text("#detailsTitle"), "Who gets gardenlinux 1877.3.0");
}

#[test]
fn names_stay_text() {
    let hostile = "<img src=x onerror=document.title=1>";
    let profile = example("azure")
        .replace("name: Standard_D4s_v5", &format!("name: \"{hostile}\""))
        .replace("urn: example:gardenlinux:gen2:1592.9.0", "urn: \"</script><script>document.title=1</script>\"");
    let Some(Page { browser, .. }) = page(&profile) else { return };
    browser.click("#cell-3-1");
    let details = browser.text("#detailsBody");
    assert!(details.contains("urn </script><script>document.title=1</script>"), "{details}");
    assert!(details.contains(hostile), "{details}");
    assert_eq!(
        browser.run("return [document.title, document.images.length, document.scripts.length]"),
        json!(["Images of CloudProfile azure", 0, 2])
    );
}

#[test]
fn a_large_profile_draws_only_what_is_seen() {
    let Some(Page { browser, .. }) = page(&large::profile().to_string()) else { return };
    let status =
        format!("{0} image versions of {0}, {1} machine types of {1} in {1} columns", large::VERSIONS, large::TYPES);
    assert_eq!(browser.text("#status"), status);
    let nodes =
        || browser.run("return document.getElementById('space').getElementsByTagName('*').length").as_u64().unwrap();
    assert!(nodes() < 2_000, "{} of {} cells", nodes(), large::TYPES * large::VERSIONS);
    browser.run("document.getElementById('grid').focus()");
    browser.press(&[Key::PageDown, Key::PageDown, Key::Right]);
    assert!(browser.run("return document.getElementById('grid').scrollTop").as_f64().unwrap() > 0.0);
    let current = browser.run("return document.getElementById('grid').getAttribute('aria-activedescendant')");
    assert!(!browser.elements(&format!("#{}", current.as_str().unwrap())).is_empty(), "the current cell is drawn");
    // For docs/performance-evidence.md. The speed of this machine does not affect the result of the test.
    let times = browser.run(
        "const grid = document.getElementById('grid'); const type = document.getElementById('type'); \
         const measure = (act) => { const start = performance.now(); act(); return performance.now() - start; }; \
         const times = { filter: measure(() => { type.value = 'type-39'; type.dispatchEvent(new Event('input')); }) }; \
         type.value = ''; times.everything = measure(() => type.dispatchEvent(new Event('input'))); \
         grid.scrollTop = grid.scrollHeight; grid.scrollLeft = grid.scrollWidth; \
         times.details = measure(() => document.querySelector('.cell[role=gridcell]').click()); return times;",
    );
    eprintln!("milliseconds: {times}");
    assert!(nodes() < 2_000);
}

/// The example with an expired version, and a version that core's half lists for machines without a flavor.
fn with_problems() -> String {
    let reference = "/CommunityGalleries/gardenlinux-example/Images/gardenlinux-arm64/Versions/1877.3.0";
    let flavor =
        "        - capabilities: {architecture: [arm64], hypervisorType: [gen2]}\n          communityGalleryImageID: ";
    let profile = example("azure").replace(&format!("{flavor}{reference}\n"), "").replace("2027-03-31", "2026-03-31");
    // The expired version comes first in the document.
    let (head, rest) = profile.split_once("    - version: 2001.1.0\n      classification").unwrap();
    let (versions, tail) = rest.split_once("    - version: 1592.9.0\n").unwrap();
    let (expired, tail) = tail.split_once("  providerConfig:").unwrap();
    format!(
        "{head}    - version: 1592.9.0\n{expired}    - version: 2001.1.0\n      classification{versions}  providerConfig:{tail}"
    )
}

#[test]
fn counts_problems_and_filters_by_them() {
    let Some(Page { browser, .. }) = page(&with_problems()) else { return };
    assert_eq!(
        titles(&browser),
        ["gardenlinux 2001.1.0", "gardenlinux 1877.3.0", "gardenlinux 1592.9.0"],
        "what has expired stands last"
    );
    assert!(browser.text("#cell-3-0").contains("expired, since 2026-03-31"));
    assert_eq!(browser.text("#problemsLabel"), "Only problems: admitted, and no image (2)");
    let colour = |selector: &str| {
        browser.run(&format!("return getComputedStyle(document.querySelector('{selector}')).backgroundColor"))
    };
    assert_eq!(colour("#cell-2-3"), colour(".check.tied"), "the red of a cell is in the legend");
    browser.click("#problems");
    assert_eq!((titles(&browser), cells(&browser).len()), (vec!["gardenlinux 1877.3.0".to_owned()], 4));
    browser.click("button[type=reset]");
    assert_eq!(titles(&browser).len(), 3);
}

#[test]
fn a_cell_has_an_address() {
    let Some(Page { browser, file }) = page(&with_problems()) else { return };
    browser.click("#cell-2-3");
    let location = browser.run("return location.hash");
    assert_eq!(location, "#gardenlinux%401877.3.0/Standard_D4ps_v5");
    browser.open_location(file.path(), location.as_str().unwrap());
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1877.3.0 on 2 machine types");
    assert!(browser.text("#detailsBody").contains("their machines are not created"));
    browser.open_location(file.path(), "#%zz/<b>");
    assert_eq!(browser.text("#detailsTitle"), "Nothing selected");
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn details_follow_the_filters() {
    let Some(Page { browser, .. }) = page(&example("azure")) else { return };
    browser.click("#cell-2-3");
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1877.3.0 on 2 machine types");
    browser.type_into("#type", "Standard_D8ps_v5");
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1877.3.0 on Standard_D8ps_v5");
    browser.type_into("#type", "Standard_A4_v2");
    assert_eq!(browser.text("#detailsTitle"), "Nothing selected", "what is filtered out is not explained");
}

#[test]
fn displays_versions_and_types_on_a_phone() {
    let Some(Page { browser, file }) = page(&with_problems()) else { return };
    browser.show_as(View::PHONE);
    browser.open_location(file.path(), "");
    assert_eq!(browser.run("return document.documentElement.scrollWidth"), 390, "nothing is wider than the phone");
    assert_eq!(titles(&browser), ["2001.1.0", "1877.3.0", "1592.9.0"], "a version has room for its number");
    let cut = browser.run(
        "return [...document.querySelectorAll('.cell.first .beginning')].filter((line) => line.scrollWidth > line.clientWidth).length",
    );
    assert_eq!(cut, 0);
    let seen = browser.run(
        "const grid = document.getElementById('grid').getBoundingClientRect(); \
         return [...document.querySelectorAll('.row:nth-child(2) .cell')].filter((cell) => cell.getBoundingClientRect().right <= grid.right).length",
    );
    assert_eq!(seen, 3, "two groups of types beside the versions");
}

#[test]
fn paper_gets_everything() {
    let Some(Page { browser, .. }) = page(&large::profile().to_string()) else { return };
    let printed = browser.run(
        "dispatchEvent(new Event('beforeprint')); const paper = document.getElementById('paper'); \
         const tables = [...paper.querySelectorAll('table')]; \
         return [tables.reduce((sum, table) => sum + table.querySelectorAll('thead th').length - 1, 0), \
         tables.every((table) => table.querySelectorAll('tbody tr').length === Number(document.getElementById('grid').getAttribute('aria-rowcount')) - 1)]",
    );
    assert_eq!(printed, json!([large::TYPES, true]), "every column once, every row in each table");
    browser.run("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.run("return document.getElementById('paper').children.length"), 0);
}
