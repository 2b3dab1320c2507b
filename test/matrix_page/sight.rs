//! The appearance of both pages: at 1400 and 390 pixels, in light and dark colours.

use serde_json::{Value, json};

use super::browser::{Browser, Device, View};
use super::calendar::{calendar, example, forecast, rows};
use super::{Page, large, opened, page, titles, with_problems};

/// Minimum contrast of text according to WCAG 2.2 (AA).
const LEAST_CONTRAST: f64 = 4.5;

/// Texts with too little contrast, and their contrast.
fn pale(browser: &Browser) -> Vec<Value> {
    let script = format!(
        "const canvas = document.createElement('canvas').getContext('2d', {{ willReadFrequently: true }}); \
         const parsed = (colour) => {{ canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); \
           return [...canvas.getImageData(0, 0, 1, 1).data]; }}; \
         const light = ([red, green, blue]) => [red, green, blue].map((one) => one / 255) \
           .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)) \
           .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0); \
         const ground = (element) => {{ for (let one = element; one; one = one.parentElement) {{ \
           const colour = parsed(getComputedStyle(one).backgroundColor); if (colour[3] === 255) return colour; }} return [255, 255, 255]; }}; \
         const found = []; \
         for (const element of document.body.querySelectorAll('*')) {{ \
           const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join(''); \
           if (!text || !element.checkVisibility() || !element.getClientRects().length || element.tagName === 'SCRIPT') continue; \
           const [one, other] = [light(parsed(getComputedStyle(element).color)), light(ground(element))]; \
           const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05); \
           if (contrast < {LEAST_CONTRAST}) found.push([text, contrast]); }} \
         return found;"
    );
    browser.run(&script).as_array().unwrap().clone()
}

/// Texts that are cut off without an ellipsis, and labels that extend beyond their box.
fn clipped(browser: &Browser) -> Vec<Value> {
    let script = "const found = []; \
         for (const element of document.body.querySelectorAll('span, label, button, h1, h2, h3, li, td, p')) { \
           if (!element.checkVisibility() || !element.textContent.trim() || !element.getClientRects().length) continue; \
           const style = getComputedStyle(element); \
           if (style.display === 'inline' || style.textOverflow === 'ellipsis' || element.classList.contains('text')) continue; \
           if (element.scrollWidth > element.clientWidth + 1) found.push(element.textContent.slice(0, 80)); } \
         for (const label of document.querySelectorAll('.month, .count, .scale .today')) { \
           const [box, inner] = [label.closest('.line').getBoundingClientRect(), label.getBoundingClientRect()]; \
           if (inner.left < box.left - 1 || inner.right > box.right + 1) found.push(label.textContent); } \
         return found;";
    browser.run(script).as_array().unwrap().clone()
}

/// Top and bottom of an element in the window.
fn extent(browser: &Browser, selector: &str) -> [f64; 2] {
    let script = format!(
        "const box = document.querySelector({selector:?}).getBoundingClientRect(); return [box.top, box.bottom]"
    );
    let extent = browser.run(&script);
    [0, 1].map(|index| extent[index].as_f64().unwrap())
}

fn colour(browser: &Browser, selector: &str, property: &str) -> Value {
    browser.run(&format!("return getComputedStyle(document.querySelector({selector:?})).{property}"))
}

/// Checks the page in every view, before and after a selection.
fn check_views(Page { browser, file }: &Page, name: &str, selected: &str) {
    for view in View::ALL {
        browser.show_as(view);
        browser.open_location(file.path(), "");
        for state in ["start", "selected"] {
            if state == "selected" {
                browser.click(selected);
            }
            browser.picture(&format!("{name}-{:?}-{:?}-{state}", view.device, view.colours).to_lowercase());
            let width = browser.run("return document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(width <= view.device.size()[0], "{view:?} {state}: {width} pixels wide");
            assert_eq!(pale(browser), Vec::<Value>::new(), "{view:?} {state}");
            assert_eq!(clipped(browser), Vec::<Value>::new(), "{view:?} {state}");
        }
    }
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn matrix_is_readable_in_every_view() {
    for (name, profile) in [("matrix", with_problems()), ("large-matrix", large::profile().to_string())] {
        let Some(page) = page(&profile) else { return };
        check_views(&page, name, "#cell-2-1");
    }
}

#[test]
fn calendar_is_readable_in_every_view() {
    let Some(page) = calendar(&landscape()) else { return };
    check_views(&page, "calendar", "#shoots-0");
    let Some(page) = calendar(&format!("{}\n---\n{}", example(), without_profile())) else { return };
    check_views(&page, "calendar-with-problem", "#groups-0");
}

fn without_profile() -> String {
    part("name: web").replace("name: az}", "name: missing}")
}

/// The document of the example that contains this text.
fn part(text: &str) -> String {
    let all = example();
    all.split("\n---\n").find(|document| document.contains(text)).unwrap().to_owned()
}

/// Shoots of several projects, most of them stuck, with long names that are partly equal.
fn landscape() -> String {
    let mut documents = vec![part("\nkind: CloudProfile")];
    for (number, name) in ["careful", "behind", "web", "behind", "behind"].into_iter().cycle().take(60).enumerate() {
        let shoot = part(&format!("name: {name}, namespace"));
        let new = format!("name: production-eu-west-{}, namespace: garden-project-{}", number % 7, number % 3);
        documents.push(shoot.replace(&format!("name: {name}, namespace: garden-farm"), &new));
    }
    documents.join("\n---\n")
}

#[test]
fn zero_problems_are_not_red() {
    for view in View::ALL {
        let Some(Page { browser, file }) = page(&super::example("azure")) else { return };
        browser.show_as(view);
        browser.open_location(file.path(), "");
        assert_eq!(browser.text("#problemsLabel"), "Only problems: admitted, and no image (0)");
        assert_eq!(colour(&browser, "#problemsBox", "backgroundColor"), "rgba(0, 0, 0, 0)");
        assert_eq!(colour(&browser, "#problemsLabel", "color"), colour(&browser, "label[for=text]", "color"));
    }
    let Some(Page { browser, .. }) = page(&with_problems()) else { return };
    assert_ne!(colour(&browser, "#problemsBox", "backgroundColor"), "rgba(0, 0, 0, 0)");
    let web = [part("\nkind: CloudProfile"), part("name: web")].join("\n---\n");
    let Some(Page { browser, .. }) = calendar(&web) else { return };
    assert_eq!(browser.text("#stuckLabel"), "Only stuck (0)");
    assert_eq!(colour(&browser, "#stuckLabel", "color"), colour(&browser, "label[for=text]", "color"));
    assert!(browser.run("return document.getElementById('errors').checkVisibility()") == false);
    let Some(Page { browser, .. }) = calendar(&example()) else { return };
    assert_ne!(colour(&browser, "#stuckLabel", "color"), colour(&browser, "label[for=text]", "color"));
}

#[test]
fn tap_on_phone_displays_details() {
    let Some(calendar) = calendar(&landscape()) else { return };
    let Some(matrix) = page(&large::profile().to_string()) else { return };
    for (Page { browser, file }, selector) in
        [(&calendar, "#shoots-2"), (&calendar, "#versions-1"), (&matrix, "#cell-2-1")]
    {
        browser.show_as(View::PHONE);
        browser.open_location(file.path(), "");
        browser.click(selector);
        let [top, _] = extent(browser, "#detailsTitle");
        assert!((0.0..300.0).contains(&top), "{selector}: the title is at {top}");
        browser.click("#back");
        let [top, bottom] = extent(browser, selector);
        let height = Device::Phone.size()[1] as f64;
        assert!(top >= 0.0 && bottom <= height, "{selector} is at {top} to {bottom} after the way back");
    }
}

#[test]
fn phone_displays_projects_and_image_names() {
    let Some(Page { browser, file }) = calendar(&example()) else { return };
    browser.show_as(View::PHONE);
    browser.open_location(file.path(), "");
    let lines = |list: &str| {
        let script = format!(
            "return [...document.querySelectorAll('#{list} .row .name')].map((name) => [...name.children].map((line) => line.textContent).join(' '))"
        );
        browser.run(&script)
    };
    assert_eq!(lines("shoots")[0], "web garden-farm");
    let versions = lines("versions");
    assert!(versions.as_array().unwrap().contains(&json!("1592.9.0 gardenlinux")), "{versions}");
}

#[test]
fn distinguishes_equal_shoot_names() {
    let documents = [part("\nkind: CloudProfile"), part("name: web"), part("name: web"), part("name: careful")];
    let Some(Page { browser, .. }) = calendar(&documents.join("\n---\n")) else { return };
    let names: Vec<String> = rows(&browser, "shoots", ".move").into_iter().map(|(name, _)| name).collect();
    let [web, other, careful] = names.as_slice() else { panic!("{names:?}") };
    assert!(web != other && [web, other].iter().all(|name| name.starts_with("garden-farm/web (")), "{names:?}");
    assert_eq!(careful, "garden-farm/careful");
    browser.click("#shoots-1");
    assert_eq!(&browser.text("#detailsTitle"), other);
}

#[test]
fn addresses_keep_selection_and_filters() {
    let Some(Page { browser, file }) = calendar(&example()) else { return };
    browser.type_into("#text", "garden-farm");
    browser.click("#stuck");
    browser.click("#shoots-1");
    let address = browser.run("return location.hash");
    assert_eq!(address, "#shoots=garden-farm%2Fbehind&text=garden-farm&stuck=yes");
    browser.open_location(file.path(), address.as_str().unwrap());
    assert_eq!(browser.text("#detailsTitle"), "garden-farm/behind");
    assert_eq!(rows(&browser, "shoots", ".move").len(), 2);
    browser.open_location(file.path(), "#day=2026-05-01&versions=az+gardenlinux%401592.9.0");
    assert_eq!(browser.text("#detailsTitle"), "gardenlinux 1592.9.0");
    assert_eq!(browser.elements(".bar.chosen").len(), 1);
    browser.open_location(file.path(), "#shoots=%zz&day=never&profile=other");
    assert_eq!(browser.text("#detailsTitle"), "Nothing selected");
    assert!(browser.text("#status").contains("nothing with the name"), "{}", browser.text("#status"));
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

/// The example's calendar over forty days, starting this number of days before today.
fn calendar_around_today(days_before: i64) -> Option<Page> {
    let now = jiff::Timestamp::now();
    let day = |days: i64| (now + jiff::SignedDuration::from_hours(24 * days)).strftime("%F").to_string();
    let [from, until] = [day(-days_before), day(40 - days_before)];
    let page = super::calendar::forecast_of(&["--at", &from, "--until", &until, "--html"], &example());
    opened(&page)
}

#[test]
fn draws_line_for_today() {
    let line = "const [line] = document.querySelectorAll('#days .today'); \
                const lane = document.getElementById('days').getBoundingClientRect(); \
                return line ? (line.getBoundingClientRect().left - lane.left) / lane.width : null";
    let Some(Page { browser, .. }) = calendar_around_today(10) else { return };
    let location = browser.run(line).as_f64().unwrap();
    assert!((0.22..0.31).contains(&location), "10 of 40 days are {location}");
    assert_eq!(browser.text("#months .today"), "today");
    let Some(Page { browser, .. }) = calendar_around_today(-2) else { return };
    assert_eq!(browser.run(line), Value::Null, "today is before the forecast");
}

#[test]
fn axis_measures_bars_in_nodes() {
    let Some(Page { browser, .. }) = calendar(&landscape()) else { return };
    let measured = browser.run(
        "const lane = document.getElementById('days').getBoundingClientRect(); \
         const counts = [...document.querySelectorAll('.count')].map((count) => Number(count.textContent)); \
         const bars = [...document.querySelectorAll('.bar')].map((bar) => \
           [bar.getBoundingClientRect().height / lane.height * Math.max(...counts), Number(bar.title.match(/(\\d+) nodes/)[1])]); \
         return { counts, bars }",
    );
    let counts: Vec<u64> = measured["counts"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(counts.len() >= 3 && counts[0] == 0 && counts.is_sorted(), "{measured}");
    let bars = measured["bars"].as_array().unwrap();
    assert!(!bars.is_empty());
    for bar in bars {
        let [drawn, nodes] = [0, 1].map(|index| bar[index].as_f64().unwrap());
        assert!((drawn - nodes).abs() <= 0.05 * nodes + 1.0, "{measured}");
    }
}

#[test]
fn sorts_shoots_by_date() {
    let Some(Page { browser, .. }) = calendar(&landscape()) else { return };
    let first = browser.run(
        "return [...document.querySelectorAll('#shoots .row')].map((row) => row.querySelector('.move')) \
         .map((mark) => (mark ? mark.getBoundingClientRect().left : Infinity))",
    );
    let first: Vec<f64> = first.as_array().unwrap().iter().map(|left| left.as_f64().unwrap_or(f64::INFINITY)).collect();
    assert!(first.len() > 5 && first.is_sorted(), "{first:?}");
}

#[test]
fn groups_stuck_shoots_by_reason() {
    let Some(Page { browser, file }) = calendar(&landscape()) else { return };
    let groups: Vec<String> = rows(&browser, "groups", ".end").into_iter().map(|(name, _)| name).collect();
    assert_eq!(groups, ["36 shoots: Kubernetes 1.31.9", "12 shoots: suse-chost 15.6.20250601"]);
    browser.click("#groups-0");
    assert_eq!(browser.text("#detailsTitle"), "36 shoots are stuck at Kubernetes 1.31.9");
    assert!(browser.text("#detailsBody").contains("it expires on 2026-03-01"), "{}", browser.text("#detailsBody"));
    browser.click("#detailsBody button");
    assert!(browser.text("#detailsTitle").starts_with("garden-project-"));
    for view in View::ALL {
        browser.show_as(view);
        browser.open_location(file.path(), "#stuck=yes");
        let red = browser.run(
            "const area = (element) => { const box = element.getBoundingClientRect(); return box.width * box.height; }; \
             const list = document.getElementById('shoots'); \
             return [...list.querySelectorAll('.end')].reduce((sum, mark) => sum + area(mark), 0) / area(list)",
        );
        assert!(red.as_f64().unwrap() < 0.05, "{view:?}: {red} of the list is red");
    }
}

#[test]
fn errors_come_first_and_are_open() {
    let Some(Page { browser, file }) = calendar(&format!("{}\n---\n{}", example(), without_profile())) else { return };
    for view in View::ALL {
        browser.show_as(view);
        browser.open_location(file.path(), "");
        let error = browser.text("#errors li");
        assert!(error.contains("\"missing\" is not given"), "{error}");
        let [[_, end], [start, _]] = ["#errors", "#summary"].map(|selector| extent(&browser, selector));
        assert!(end <= start + 1.0 && start < Device::Phone.size()[1] as f64, "{view:?}: {end} and {start}");
    }
}

#[test]
fn columns_list_their_machine_types() {
    let Some(Page { browser, .. }) = page(&super::example("azure")) else { return };
    let heads = browser.run(
        "return [...document.querySelectorAll('[role=columnheader]')].map((head) => [...head.children].map((line) => line.textContent))",
    );
    assert_eq!(
        heads[1],
        json!(["Standard_D4s_v5", "Standard_D8s_v5", "Standard_E16s_v5", "amd64 · gen2 · accelerated+basic"])
    );
    assert_eq!(heads[2], json!(["Standard_A4_v2", "amd64 · gen1 · basic"]));
}

/// Title of the details, and texts of the selected cell's row and column headers.
fn selection(browser: &Browser) -> (String, Value) {
    let script = "const cell = document.querySelector('.cell.active'); if (!cell) return null; \
                  const [row, column] = cell.id.split('-').slice(1); \
                  return ['cell-' + row + '-0', 'cell-0-' + column].map((id) => document.getElementById(id).firstChild.textContent)";
    (browser.text("#detailsTitle"), browser.run(script))
}

#[test]
fn panel_explains_the_selected_cell() {
    let Some(Page { browser, .. }) = page(&super::example("azure")) else { return };
    assert_eq!(selection(&browser), ("Nothing selected".to_owned(), Value::Null));
    browser.click("#cell-2-2");
    let expected =
        ("gardenlinux 1877.3.0 on Standard_A4_v2".to_owned(), json!(["gardenlinux 1877.3.0", "Standard_A4_v2"]));
    assert_eq!(selection(&browser), expected);
    browser.click("#is-preview");
    assert_eq!(titles(&browser)[0], "gardenlinux 1877.3.0");
    assert_eq!(selection(&browser), expected, "the cell has moved up");
    browser.type_into("#type", "Standard_A4_v2");
    assert_eq!(selection(&browser), expected, "and to the left");
    browser.press(&[super::Key::Tab]);
    browser.run("document.getElementById('grid').focus()");
    browser.press(&[super::Key::Down]);
    assert_eq!(selection(&browser).0, "gardenlinux 1592.9.0 on Standard_A4_v2", "the panel follows the keys");
    browser.type_into("#type", "Standard_D4s_v5");
    assert_eq!(selection(&browser), ("Nothing selected".to_owned(), Value::Null));
}

#[test]
fn legend_is_folded() {
    let (Some(matrix), Some(calendar)) = (page(&super::example("aws")), calendar(&example())) else { return };
    for Page { browser, .. } in [matrix, calendar] {
        let is_visible = || browser.run("return document.querySelector('#legend p').checkVisibility()");
        assert_eq!(is_visible(), false);
        browser.click("#legend summary");
        assert_eq!(is_visible(), true);
    }
}

#[test]
fn long_hostile_names_stay_text_and_bounded() {
    let hostile = format!("\\\"'</script><script>document.title=1</script>{}", "x".repeat(5_000));
    let profile = super::example("azure").replace("name: Standard_D4s_v5", &format!("name: \"{hostile}\""));
    let documents = example().replace("name: web", &format!("name: \"{hostile}\""));
    let pages = [(super::matrix(&["--html"], &profile), "#cell-0-1"), (forecast(&["--html"], &documents), "#shoots-0")];
    for (text, selected) in pages {
        assert_eq!(text.matches(&"x".repeat(600)).count(), 0, "no text is longer than 500 characters");
        let Some(page) = opened(&text) else { return };
        check_views(&page, "hostile", selected);
        let title = page.browser.run("return [document.title, document.scripts.length]");
        assert!(title[0] != "1" && title[1] == 2, "{title}");
        assert!(page.browser.text("#details").contains("\"'</script><script>document.title=1"));
    }
}
