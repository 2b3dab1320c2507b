//! The documentation as a site (mdBook). Links from a page to files outside of docs/ lead to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Builds the site into a folder. `repository` is the URL of the published repository.
///
/// # Errors
///
/// If mdBook fails, or a file can't be read or written.
pub fn build(root: &Path, mdbook: &Path, output: &Path, repository: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::copy(root.join("book.toml"), folder.path().join("book.toml")).context("reading book.toml")?;
    copy(&root.join("docs"), &folder.path().join("docs"), &|text| with_repository(text, repository))?;
    let output = std::path::absolute(output)?;
    let built = Command::new(mdbook).arg("build").arg(folder.path()).arg("--dest-dir").arg(&output).output();
    let built = built.with_context(|| format!("starting {}", mdbook.display()))?;
    let text = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success() && !text.contains("ERROR") && !text.contains("WARN"), "mdbook: {text}");
    Ok(())
}

/// Copies pages, changed by a function.
fn copy(from: &Path, to: &Path, change: &dyn Fn(&str) -> String) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to, change)?;
        } else {
            let text = std::fs::read_to_string(entry.path()).with_context(|| entry.path().display().to_string())?;
            std::fs::write(&to, change(&text))?;
        }
    }
    Ok(())
}

/// A page whose links out of docs/ lead to the repository. While that is not published, only their text stays.
#[must_use]
pub fn with_repository(page: &str, repository: Option<&str>) -> String {
    let mut changed = String::new();
    let mut rest = page;
    while let Some(start) = rest.find('[') {
        changed.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some((text, outside, after)) = outside_link(rest) else {
            changed.push('[');
            rest = &rest[1..];
            continue;
        };
        match repository {
            Some(url) => changed.push_str(&format!("[{text}]({}/blob/main/{outside})", url.trim_end_matches('/'))),
            None => changed.push_str(text),
        }
        rest = after;
    }
    changed + rest
}

/// Text and path of a link out of docs/ at the beginning of a text, and what follows the link.
fn outside_link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, after) = text[1..].split_once("](")?;
    let (target, after) = after.split_once(')')?;
    let is_one_link = !label.contains(['[', ']']) && !target.contains(char::is_whitespace);
    // Pages are in docs/ or one folder below.
    let outside = target.strip_prefix("../").map(|path| path.strip_prefix("../").unwrap_or(path))?;
    let is_outside =
        ["charts/", "example/", "fuzz/", "release/", "src/", "test/"].iter().any(|folder| outside.starts_with(folder))
            || ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"].contains(&outside);
    let is_page_of_docs = target == "../README.md";
    (is_one_link && is_outside && !is_page_of_docs).then_some((label, outside, after))
}

/// Checks the links between the pages of a site, and that each page is in the table of contents. Returns the number of pages.
///
/// # Errors
///
/// If a link leads nowhere.
pub fn check(site: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    read_pages(site, site, &mut pages)?;
    // A server shows it at any address, so its links are absolute.
    pages.remove(Path::new("404.html"));
    ensure!(!pages.is_empty(), "{} has no pages", site.display());
    let mut broken = Vec::new();
    for (path, html) in &pages {
        for target in attributes(html, "href").into_iter().chain(attributes(html, "src")) {
            if target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:") {
                continue;
            }
            if let Err(reason) = follow(site, &pages, path, &target) {
                broken.push(format!("{}: {target}: {reason:#}", path.display()));
            }
        }
    }
    let unreachable = unreachable(&pages);
    broken.extend(unreachable.iter().map(|page| format!("{}: no page links to it", page.display())));
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(pages.len())
}

fn read_pages(site: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            read_pages(site, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(path.strip_prefix(site)?.to_owned(), std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Values of an attribute.
fn attributes(html: &str, name: &str) -> BTreeSet<String> {
    let start = format!(" {name}=\"");
    let values = html.split(&start).skip(1).filter_map(|rest| rest.split_once('"'));
    values.map(|(value, _)| value.replace("&amp;", "&")).filter(|value| !value.is_empty()).collect()
}

/// Follows a link of a page.
fn follow(site: &Path, pages: &BTreeMap<PathBuf, String>, page: &Path, target: &str) -> Result<()> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { resolved(page, file)? };
    ensure!(site.join(&file).is_file(), "no such file");
    let Some(html) = pages.get(&file) else { return Ok(()) };
    ensure!(anchor.is_empty() || attributes(html, "id").contains(anchor), "no such heading");
    Ok(())
}

/// The file that a relative link of a page names.
fn resolved(page: &Path, target: &str) -> Result<PathBuf> {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => ensure!(path.pop(), "it leads out of the site"),
            Component::CurDir => {}
            _ => bail!("it is absolute"),
        }
    }
    Ok(path)
}

/// Pages that can't be reached from the first by links.
fn unreachable(pages: &BTreeMap<PathBuf, String>) -> Vec<&PathBuf> {
    let mut reached = BTreeSet::new();
    let mut next = vec![PathBuf::from("index.html"), PathBuf::from("toc.html")];
    while let Some(page) = next.pop() {
        let Some(html) = pages.get(&page) else { continue };
        if reached.insert(page.clone()) {
            let links = attributes(html, "href");
            let targets = links.iter().filter_map(|target| resolved(&page, target.split('#').next()?).ok());
            next.extend(targets);
        }
    }
    pages.keys().filter(|page| !reached.contains(*page) && !page.ends_with("print.html")).collect()
}
