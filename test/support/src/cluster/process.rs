//! A child process that writes its output to a file and never outlives the test.
//!
//! Dropping a value cannot ensure that: a static is never dropped, and a test process may be killed. `PR_SET_PDEATHSIG`
//! needs unsafe code between fork and exec, and reacts to the end of the starting thread, which is long before the test
//! binary ends. Instead, a few lines of `sh` supervise each process and hold the read end of a pipe. When this process
//! ends for any reason, the kernel closes the write end and the supervisor kills the process. The pipe also carries
//! signals.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::eventually;

/// Runs `"$@"` and ends with its status. Each line on stdin is a signal to send; the end of stdin kills the process.
/// `$1` is a folder to remove afterwards, or empty.
const SUPERVISE: &str = r#"
remove=$1; shift
exec 3<&0
"$@" 3<&- </dev/null &
child=$!
( while read -r signal; do kill -"$signal" "$child"; done; kill -KILL "$child" ) <&3 2>/dev/null &
guard=$!
exec 3<&-
wait "$child"; status=$?
kill -KILL "$guard" 2>/dev/null
[ -z "$remove" ] || rm -rf "$remove"
exit "$status"
"#;

/// What to start with [`Process::start`].
pub struct Program {
    name: String,
    binary: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    remove_afterwards: Option<PathBuf>,
}

impl Program {
    /// A program with the name used for errors and the log file.
    pub fn new(name: impl Into<String>, binary: impl Into<PathBuf>) -> Self {
        let (name, binary) = (name.into(), binary.into());
        Self { name, binary, arguments: Vec::new(), environment: Vec::new(), remove_afterwards: None }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds an argument of the form `--name=value`; the value may be a path.
    pub fn flag(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(value);
        self.arguments.push(argument);
        self
    }

    /// Sets an environment variable, in addition to those of the test process.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Removes a folder when the process has ended, even if the test process ended earlier.
    pub fn remove_afterwards(mut self, folder: &Path) -> Self {
        self.remove_afterwards = Some(folder.to_owned());
        self
    }

    fn spawn(&self, log: &Path) -> Result<Child> {
        let Self { name, binary, arguments, environment, remove_afterwards } = self;
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("opening {}", log.display()))?;
        Command::new("/bin/sh")
            .args(["-c", SUPERVISE, "supervise"])
            .arg(remove_afterwards.as_deref().unwrap_or(Path::new("")))
            .arg(binary)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} ({})", binary.display()))
    }
}

/// The log file of the process with this name.
pub(super) fn log_file(logs: &Path, name: &str) -> PathBuf {
    logs.join(format!("{name}.log"))
}

/// The end of a log, empty if the process was not started.
pub(super) fn last_lines(log: &Path, count: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// A running process. Dropping it kills it.
pub struct Process {
    program: Program,
    log: PathBuf,
    supervisor: Mutex<Child>,
}

impl Process {
    /// Starts a program. Appends stdout and stderr to `<name>.log` in `logs`.
    ///
    /// The program runs in its own process group, so that Ctrl-C only reaches the caller, which decides the order of
    /// stopping.
    pub fn start(program: Program, logs: &Path) -> Result<Self> {
        let log = log_file(logs, &program.name);
        let supervisor = Mutex::new(program.spawn(&log)?);
        Ok(Self { program, log, supervisor })
    }

    /// Starts it again with the same arguments, after it has ended.
    pub fn start_again(&self) -> Result<()> {
        let mut supervisor = self.lock();
        if supervisor.try_wait()?.is_none() {
            bail!("{} has not ended", self.program.name);
        }
        *supervisor = self.program.spawn(&self.log)?;
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// The process id of the program, not of its supervisor.
    pub async fn id(&self) -> Result<u32> {
        let (supervisor, binary) = (self.lock().id(), std::fs::canonicalize(&self.program.binary)?);
        eventually(Duration::from_secs(10), &format!("{} has begun", self.program.name), async || {
            let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"))?;
            let mut children = children.split_whitespace();
            let own = children.find(|id| std::fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == binary));
            Ok(own.context("none of the processes is it")?.parse()?)
        })
        .await
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its output, for error messages.
    pub fn last_lines(&self, count: usize) -> String {
        last_lines(&self.log, count)
    }

    /// Sends a signal by its short name: `TERM`, `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let supervisor = self.lock();
        let Some(mut pipe) = supervisor.stdin.as_ref() else { bail!("{} is being stopped already", self.program.name) };
        pipe.write_all(format!("{signal}\n").as_bytes()).with_context(|| format!("{} has ended", self.program.name))
    }

    /// Exit status (128 + number if ended by a signal), `None` while it is running.
    pub fn exited(&self) -> Result<Option<ExitStatus>> {
        self.lock().try_wait().with_context(|| format!("asking whether {} runs", self.program.name))
    }

    /// Fails with the end of the log if the process has ended.
    pub fn ensure_running(&self) -> Result<()> {
        match self.exited()? {
            None => Ok(()),
            Some(status) => {
                bail!("{} has ended ({status}); its last lines:\n{}", self.program.name, self.last_lines(15))
            }
        }
    }

    /// Waits until it ends on its own.
    pub async fn wait(&self, deadline: Duration) -> Result<ExitStatus> {
        let what = format!("{} has ended", self.program.name);
        eventually(deadline, &what, async || {
            self.exited()?.with_context(|| format!("it runs; its last lines:\n{}", self.last_lines(15)))
        })
        .await
    }

    /// Terminates it and kills it after `grace`.
    pub async fn stop(self, grace: Duration) -> Result<()> {
        if self.exited()?.is_none() && self.signal("TERM").is_ok() {
            // On timeout, dropping it kills it.
            let _ = self.wait(grace).await;
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Child> {
        // A panic of another thread leaves no partial state, so ignore poisoning.
        self.supervisor.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut supervisor = self.lock();
        drop(supervisor.stdin.take());
        // SIGKILL takes effect quickly. Without waiting, the working folder could not be removed.
        let _ = supervisor.wait();
    }
}
