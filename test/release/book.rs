//! The documentation as a website.

use std::path::Path;

use release::book::{build, check, with_repository};
use release::source::repository;

fn site(pages: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, html) in pages {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, html).unwrap();
    }
    folder
}

#[test]
fn pages_link_to_files_of_the_repository() {
    let page = "See [a](../test/a/README.md#b), [the page](images.md#x), [x] (../y) and [c](../../example/c.sh).";
    let linked = with_repository(page, Some("https://git.example.org/worker/"));
    let expected = "See [a](https://git.example.org/worker/blob/main/test/a/README.md#b), [the page](images.md#x), [x] (../y) \
                    and [c](https://git.example.org/worker/blob/main/example/c.sh).";
    assert_eq!(linked, expected);
    assert_eq!(with_repository(page, None), "See a, [the page](images.md#x), [x] (../y) and c.");
    let within = "[a](../images.md), [b](../README.md), [c](how-to/x.md)";
    assert_eq!(with_repository(within, None), within);
}

#[test]
fn broken_links_of_the_site_are_found() {
    let whole = site(&[
        ("index.html", r#"<a href="a/b.html#there">b</a> <a href="https://example.org">x</a>"#),
        ("a/b.html", r##"<h1 id="there"><a href="#there">up</a></h1> <a href="../index.html">home</a>"##),
    ]);
    assert_eq!(check(whole.path()).unwrap(), 2);
    let broken = [
        ("no such file", r#"<a href="b.html">b</a>"#),
        ("no such heading", r##"<a href="#b">b</a>"##),
        ("it leads out of the site", r#"<a href="../b.html">b</a>"#),
        ("it is absolute", r#"<a href="/b.html">b</a>"#),
    ];
    for (reason, html) in broken {
        let error = check(site(&[("index.html", html)]).path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let error = check(site(&[("index.html", ""), ("lost.html", "")]).path()).unwrap_err().to_string();
    assert!(error.contains("lost.html: no page links to it"), "{error}");
}

/// Builds the site into target/book with the mdbook in `MDBOOK`. `.ci/book` runs this test.
#[test]
#[ignore = "needs mdbook"]
fn site_has_no_broken_link() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mdbook = std::env::var_os("MDBOOK").expect("MDBOOK names mdbook");
    let site = root.join("target/book");
    build(root, Path::new(&mdbook), &site, repository(root).unwrap().as_deref()).unwrap();
    let pages = check(&site).unwrap();
    assert!(pages > 40, "only {pages} pages");
}

#[test]
fn each_page_is_in_the_table_of_contents() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut pages = 0;
    for folder in ["", "how-to/"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = format!("{folder}{}", entry.unwrap().file_name().display());
            if Path::new(&name).extension().is_some_and(|extension| extension == "md") && name != "SUMMARY.md" {
                pages += 1;
                assert!(summary.contains(&format!("]({name})")), "{name} is not in docs/SUMMARY.md");
            }
        }
    }
    assert_eq!(summary.matches("](").count(), pages);
}
