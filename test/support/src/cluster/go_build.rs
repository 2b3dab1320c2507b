//! Builds Go programs once, with progress output, because a build takes minutes.

use std::fs::{File, TryLockError};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Flags of every build: reproducible, small, and without debug information, which would be a fifth of the work.
pub const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"];

#[derive(Debug)]
pub struct Target {
    /// File name.
    pub binary: &'static str,
    /// Go package, relative to the module.
    pub package: &'static str,
    /// Further linker flags.
    pub link: String,
}

/// Programs of one module that are built into one folder.
pub struct Build {
    /// The folder with go.mod.
    pub module: PathBuf,
    pub targets: Vec<Target>,
    /// Build tags, separated by commas.
    pub tags: &'static str,
    /// Expected duration, printed before the build.
    pub usually: &'static str,
    /// Folder for the binaries. It exists only when complete.
    pub into: PathBuf,
}

/// Builds unless the folder exists. Concurrent processes wait for the one that builds.
pub fn ensure(build: &Build) -> Result<()> {
    if build.into.is_dir() {
        return Ok(());
    }
    let parent = build.into.parent().context("the cache has a folder")?;
    std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    // The lock is held while the file is open. The kernel releases it even if this process crashes.
    let lock = File::create(build.into.with_extension("lock"))?;
    let mut progress = Progress::new("waiting for another process that builds the same");
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => progress.wait(),
            Err(TryLockError::Error(error)) => return Err(error).context("locking the cache"),
        }
    }
    if build.into.is_dir() {
        return Ok(());
    }
    let unfinished = build.into.with_extension("unfinished");
    // Left over from a killed build.
    let _ = std::fs::remove_dir_all(&unfinished);
    std::fs::create_dir_all(&unfinished)?;
    let names: Vec<&str> = build.targets.iter().map(|target| target.binary).collect();
    report(&format!(
        "{} must be built once (about {}), into {}",
        names.join(" and "),
        build.usually,
        build.into.display()
    ));
    for target in &build.targets {
        go_build(build, target, &unfinished)?;
    }
    std::fs::rename(&unfinished, &build.into)
        .with_context(|| format!("moving the binaries to {}", build.into.display()))
}

fn go_build(build: &Build, target: &Target, folder: &Path) -> Result<()> {
    let module = &build.module;
    let log = folder.join("go-build.log");
    let output = File::create(&log)?;
    let mut go = Command::new("go")
        .arg("build")
        .args(FLAGS)
        .arg(format!("-tags={}", build.tags))
        .arg(format!("-ldflags=-s -w {}", target.link))
        .arg("-o")
        .arg(folder.join(target.binary))
        .arg(target.package)
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("starting go (Go is needed to build programs of the tests, see test/control-plane/README.md)")?;
    let mut progress = Progress::new(&format!("building {}", target.binary));
    let status = loop {
        match go.try_wait()? {
            Some(status) => break status,
            None => progress.wait(),
        }
    };
    progress.end(if status.success() { "done" } else { "failed" });
    if !status.success() {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("go: downloading")).collect();
        bail!(
            "go build of {} in {}: {status}\n{}",
            target.binary,
            module.display(),
            lines[lines.len().saturating_sub(20)..].join("\n")
        );
    }
    Ok(())
}

/// Prints progress: every second on one line of a terminal, else a line every 15 s.
struct Progress {
    what: String,
    since: Instant,
    reported: Instant,
}

impl Progress {
    fn new(what: &str) -> Self {
        let now = Instant::now();
        Self { what: what.to_owned(), since: now, reported: now }
    }

    /// Waits for a moment and prints progress if due.
    fn wait(&mut self) {
        sleep(Duration::from_millis(100));
        let terminal = std::io::stderr().is_terminal();
        let pause = Duration::from_secs(if terminal { 1 } else { 15 });
        if self.reported.elapsed() >= pause {
            self.reported = Instant::now();
            let line = format!("{} … {} s", self.what, self.since.elapsed().as_secs());
            if terminal { write(&format!("\r{line}")) } else { report(&line) }
        }
    }

    fn end(&self, how: &str) {
        let start = if std::io::stderr().is_terminal() { "\r" } else { "" };
        report(&format!("{start}{}: {how} after {} s", self.what, self.since.elapsed().as_secs()));
    }
}

fn report(line: &str) {
    write(&format!("{line}\n"));
}

/// Writes directly to stderr, because the test harness captures `eprintln!` until a test fails.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
