//! Links to the documentation. `homepage` in Cargo.toml is the only setting.

/// URL of the published documentation. Empty while it is not published.
const BASE: &str = env!("CARGO_PKG_HOMEPAGE");

/// Replaces each `docs/PAGE.md` in a text by the URL of the page, if the documentation is published.
pub(super) fn linked(text: &str) -> String {
    linked_to(BASE, text, "docs/")
}

/// The same for an error, in which only our own links are in parentheses. Paths of files stay.
pub(super) fn linked_error(text: &str) -> String {
    linked_to(BASE, text, "(docs/")
}

/// URL of a page, if the documentation is published.
pub(super) fn url(page: &str) -> Option<String> {
    published(BASE).map(|base| page_url(base, page))
}

fn linked_to(base: &str, text: &str, start: &str) -> String {
    let Some(base) = published(base) else { return text.to_owned() };
    let mut parts = text.split(start);
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        match part.split_once(".md") {
            Some((page, rest)) if !page.is_empty() && page.chars().all(is_name) => {
                linked.push_str(start.trim_end_matches("docs/"));
                linked.push_str(&page_url(base, page));
                linked.push_str(rest);
            }
            _ => {
                linked.push_str(start);
                linked.push_str(part);
            }
        }
    }
    linked
}

/// The URL, unless it is empty.
fn published(base: &str) -> Option<&str> {
    if base.is_empty() { None } else { Some(base) }
}

fn page_url(base: &str, page: &str) -> String {
    format!("{}/{page}.html", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_pages_where_they_are_published() {
        let base = "https://docs.example.org/worker/";
        let cases = [
            ("docs/images.md explains it", "https://docs.example.org/worker/images.html explains it"),
            ("see (docs/images.md#live).", "see (https://docs.example.org/worker/images.html#live)."),
            (
                "docs/a.md, docs/b-c.md",
                "https://docs.example.org/worker/a.html, https://docs.example.org/worker/b-c.html",
            ),
            ("docs/ and docs/X.md and docs/a.yaml", "docs/ and docs/X.md and docs/a.yaml"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(linked_to(base, text, "docs/"), expected);
            assert_eq!(linked_to("", text, "docs/"), text);
        }
    }

    #[test]
    fn leaves_paths_of_files_in_errors() {
        let error = "docs/images.md: no listing (docs/images.md#sources)";
        let linked = linked_to("https://docs.example.org", error, "(docs/");
        assert_eq!(linked, "docs/images.md: no listing (https://docs.example.org/images.html#sources)");
    }
}
