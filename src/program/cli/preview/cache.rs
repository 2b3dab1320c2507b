//! `--cache`: results of an earlier run. The content of the files is the key of a result. All results are valid only
//! for the same surroundings: program, flags, CloudProfiles, and which of their dates have passed.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, ensure};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::replacement::Replaced;
use crate::cli::whole_file::write_atomically_with;
use explanations::preview::{NamedProfiles, SharedCloudProfile, WorkerChange};
use wire::api::gotext::json::to_go_json;

const FILE: &str = "preview.cache";
/// First line of the file. The number is the version of the format.
const FORM: &str = "gardener-extension-worker preview cache 1";
/// Maximum size of a cache file; 100,000 Shoots need less.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// Cached result for one file, or for one pair of old and new files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CachedResult {
    pub(super) workers: Vec<WorkerChange>,
    pub(super) warnings: Vec<String>,
    /// Namespaces and names.
    pub(super) old_keys: Vec<(String, String)>,
    pub(super) new_keys: Vec<(String, String)>,
    pub(super) replaced: Replaced,
}

/// Results of the previous run, and those of the current one.
pub(super) struct Cache {
    file: PathBuf,
    /// Digest of all inputs other than the files.
    surroundings: String,
    earlier: HashMap<String, String>,
    /// Results of this run by key of their files.
    current: Mutex<BTreeMap<String, String>>,
    /// Whether the file may be overwritten; a file in another format is kept.
    is_own: bool,
}

/// Inputs other than the files that affect results.
pub(super) struct Deciding<'a> {
    /// Flags as text.
    pub(super) flags: String,
    /// Profiles of the old and new side.
    pub(super) profiles: [&'a NamedProfiles; 2],
    /// The profile of `--cloudprofile-new`.
    pub(super) replacement: Option<&'a SharedCloudProfile>,
    /// Versions expire, so the current time matters.
    pub(super) now: Timestamp,
}

impl Cache {
    /// Opens the cache in a folder. The second value is the reason why an existing file cannot be used.
    pub(super) fn open(folder: &Path, deciding: &Deciding<'_>) -> (Self, Option<String>) {
        let file = folder.join(FILE);
        let mut cache = Self {
            surroundings: digest_of(deciding),
            earlier: HashMap::new(),
            current: Mutex::default(),
            is_own: true,
            file,
        };
        let warning = cache.read().err().map(|error| format!("{}: {error:#}; it is ignored", cache.file.display()));
        (cache, warning)
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let Ok(metadata) = fs::symlink_metadata(&self.file) else { return Ok(()) };
        self.is_own = false;
        ensure!(metadata.is_file() && metadata.len() <= MOST_BYTES, "not a cache of this program");
        let text = fs::read_to_string(&self.file).context("can't be read")?;
        let mut lines = text.lines();
        let surroundings = lines.next().and_then(|line| line.strip_prefix(FORM));
        let surroundings = surroundings.context("not a cache of this program")?;
        self.is_own = true;
        if surroundings.trim() != self.surroundings {
            return Ok(());
        }
        let entry = |line: &str| {
            let (key, result) = line.split_once(' ').filter(|(_, result)| result.ends_with('}'))?;
            Some((key.to_owned(), result.to_owned()))
        };
        self.earlier = lines.map(entry).collect::<Option<_>>().context("broken")?;
        Ok(())
    }

    /// Hashes the files' texts and their paths, because warnings contain the paths.
    pub(super) fn key(files: [Option<(&Path, &str)>; 2]) -> String {
        let mut hash = Sha256::new();
        for (path, text) in files.into_iter().map(Option::unzip) {
            let path = path.map(|path| path.to_string_lossy());
            add(&mut hash, path.as_deref());
            add(&mut hash, text);
        }
        hex::encode(hash.finalize())
    }

    pub(super) fn get(&self, key: &str) -> Option<CachedResult> {
        let line = self.earlier.get(key)?;
        // Recompute a result that cannot be decoded.
        let result = serde_json::from_str(line).ok()?;
        self.keep(key, line.clone());
        Some(result)
    }

    pub(super) fn put(&self, key: &str, result: &CachedResult) {
        if let Ok(line) = serde_json::to_string(result) {
            self.keep(key, line);
        }
    }

    fn keep(&self, key: &str, line: String) {
        self.current.lock().insert(key.to_owned(), line);
    }

    /// Writes the results of this run atomically, if they changed.
    pub(super) fn save(&self) -> anyhow::Result<()> {
        let current = self.current.lock();
        let is_known = |(key, line): (&String, &String)| self.earlier.get(key) == Some(line);
        if !self.is_own || current.len() == self.earlier.len() && current.iter().all(is_known) {
            return Ok(());
        }
        let folder = self.file.parent().context("the cache has no folder")?;
        fs::create_dir_all(folder)?;
        write_atomically_with(&self.file, |file| {
            writeln!(file, "{FORM} {}", self.surroundings)?;
            current.iter().try_for_each(|(key, line)| writeln!(file, "{key} {line}"))
        })
    }
}

fn digest_of(deciding: &Deciding<'_>) -> String {
    let mut hash = Sha256::new();
    let program = env::current_exe().and_then(fs::metadata);
    let built = program.ok().map(|program| format!("{} {:?}", program.len(), program.modified().ok()));
    for text in [Some(env!("CARGO_PKG_VERSION")), built.as_deref(), Some(&deciding.flags)] {
        add(&mut hash, text);
    }
    let documents = deciding.profiles.into_iter().map(NamedProfiles::documents);
    for (name, document) in documents.flatten().chain(deciding.replacement.map(|profile| ("", &profile.document))) {
        add(&mut hash, Some(name));
        add(&mut hash, Some(&to_go_json(document)));
        add(&mut hash, Some(&passed(document, deciding.now).to_string()));
    }
    hex::encode(hash.finalize())
}

/// Adds a length prefix to each text, so that different lists never hash the same bytes.
fn add(hash: &mut Sha256, text: Option<&str>) {
    hash.update(text.map_or_else(|| "none".to_owned(), |text| text.len().to_string()));
    hash.update(" ");
    hash.update(text.unwrap_or_default());
}

/// Counts the dates in a document that have passed.
fn passed(document: &Value, now: Timestamp) -> usize {
    match document {
        Value::Object(members) => members.values().map(|member| passed(member, now)).sum(),
        Value::Array(items) => items.iter().map(|item| passed(item, now)).sum(),
        Value::String(text) if text.len() >= "2026-01-01T00:00:00Z".len() && text.contains('T') => {
            usize::from(text.parse::<Timestamp>().is_ok_and(|date| date <= now))
        }
        _ => 0,
    }
}
