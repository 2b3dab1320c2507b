//! Compares the working tree with a revision by running `git` directly, without a shell.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use super::pairs::Unit;
use runtime::reader::files::NamedFile;

/// Extensions of files that may contain objects.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// A file without any of these words is skipped, because repositories also contain templates and configuration of other
/// programs.
const WORDS: [&str; 3] = ["Shoot", "Worker", "CloudProfile"];

/// Pairs the files below `paths` in a revision with those in the working tree. Ignores files that git ignores.
pub(super) fn units(base: &str, paths: &[PathBuf]) -> anyhow::Result<Vec<Unit>> {
    // Treat `base` as a revision even if it looks like an option.
    let commit = commit(base).with_context(|| format!("revision {base:?}"))?;
    let mut units: BTreeMap<PathBuf, Unit> = BTreeMap::new();
    for (path, text) in files_of(&commit, paths)? {
        let displayed = PathBuf::from(format!("{base}:{}", path.display()));
        units.entry(path).or_default().old = Some(NamedFile { path: displayed, explicit: false, text: Some(text) });
    }
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"].map(OsStr::new);
    let listed = text_of(git(with_paths(&listed, paths), &[])?)?;
    for path in listed.split_terminator('\0').map(PathBuf::from).filter(|path| may_hold_objects(path)) {
        // Deleted files and symbolic links are not regular files of the working tree.
        if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let file = NamedFile { path: path.clone(), explicit: false, text: None };
        let text = file.text()?;
        if has_word(&text) {
            units.entry(path).or_default().new = Some(NamedFile { text: Some(text), ..file });
        }
    }
    Ok(units.into_values().collect())
}

/// The id of the commit that a revision names.
fn commit(base: &str) -> anyhow::Result<String> {
    let revision = format!("{base}^{{commit}}");
    let found = git(["rev-parse", "--quiet", "--verify", "--end-of-options", &revision].map(OsStr::new), &[])?;
    let commit = text_of(found)?.trim().to_owned();
    // `^HEAD` excludes a commit instead of naming one.
    let is_id = !commit.is_empty() && commit.chars().all(|digit| digit.is_ascii_hexdigit());
    ensure!(is_id, "it does not name one commit");
    Ok(commit)
}

/// The files of a commit with their content.
fn files_of(commit: &str, paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let listed = text_of(git(with_paths(&["ls-tree", "-r", "-z", commit, "--"].map(OsStr::new), paths), &[])?)?;
    let entries = listed.split_terminator('\0').filter_map(|entry| {
        let (about, path) = entry.split_once('\t')?;
        let mut about = about.split(' ');
        let mode = about.next()?;
        let _ = about.next()?;
        let id = about.next()?;
        let is_required = mode.starts_with("100") && may_hold_objects(Path::new(path));
        is_required.then(|| (PathBuf::from(path), id))
    });
    let entries: Vec<(PathBuf, &str)> = entries.collect();
    let requested: String = entries.iter().flat_map(|(_, id)| [*id, "\n"]).collect();
    let result = git(["cat-file", "--batch"].map(OsStr::new), requested.as_bytes())?;
    let mut rest = result.as_slice();
    let mut files = Vec::new();
    for (path, id) in entries {
        let content = next_blob(&mut rest).with_context(|| format!("git does not show {id} ({})", path.display()))?;
        let text = String::from_utf8(content.to_vec()).with_context(|| path.display().to_string())?;
        if has_word(&text) {
            files.push((path, text));
        }
    }
    Ok(files)
}

/// Reads the next object: `<id> blob <size>`, newline, content, newline.
fn next_blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, after) = rest.split_at_checked(end)?;
    let size: usize = str::from_utf8(head).ok()?.rsplit_once(' ')?.1.parse().ok()?;
    let (content, after) = after.get(1..)?.split_at_checked(size)?;
    *rest = after.get(1..)?;
    Some(content)
}

fn may_hold_objects(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ENDINGS.iter().any(|known| extension == *known))
}

fn has_word(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}

fn with_paths<'a>(arguments: &[&'a OsStr], paths: &'a [PathBuf]) -> Vec<&'a OsStr> {
    let mut all = arguments.to_vec();
    if paths.is_empty() {
        all.push(OsStr::new("."));
    }
    all.extend(paths.iter().map(|path| path.as_os_str()));
    all
}

/// Runs `git` and returns its output.
fn git<'a>(arguments: impl IntoIterator<Item = &'a OsStr>, input: &[u8]) -> anyhow::Result<Vec<u8>> {
    let arguments: Vec<&OsStr> = arguments.into_iter().collect();
    let mut command = Command::new("git");
    // Repository settings must not make git run other programs.
    command.args(["--literal-pathspecs", "-c", "core.fsmonitor=false"]).args(&arguments).env("GIT_OPTIONAL_LOCKS", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().context("the program git can't be run")?;
    let stdin = process.stdin.take();
    // git writes output before it has read all input, so another thread writes to it.
    let output = std::thread::scope(|scope| {
        // Ignore write errors: if git stops reading, its stderr contains the reason.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        process.wait_with_output()
    })?;
    let message = String::from_utf8_lossy(&output.stderr);
    let name = arguments.first().copied().unwrap_or_default().display();
    match message.lines().next() {
        _ if output.status.success() => {}
        // `--quiet` prints nothing if a revision does not exist.
        None => bail!("no commit has this name"),
        Some(message) => bail!("git {name}: {}", message.trim_start_matches("fatal: ")),
    }
    Ok(output.stdout)
}

fn text_of(bytes: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(bytes).context("a path of the repository is no text")
}
