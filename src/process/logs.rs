//! Logs: their level and format, both changeable while the process runs.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::ValueEnum;
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Identity, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::process::output::LogWriter;

/// What is logged. The words of Gardener's charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Info,
    Debug,
}

impl LogLevel {
    fn directives(self) -> &'static str {
        // kube's controller adds the reason for each reconcile to every line, which is worth more than it costs only in search
        // of its own faults.
        match self {
            Self::Error => "error",
            Self::Info => "info,kube_runtime=error",
            Self::Debug => "info,kube_runtime=error,gardener_extension_worker=debug",
        }
    }
}

/// How it is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// How lines look.
type Lines = Box<dyn Layer<Registry> + Send + Sync>;
/// Lines and nothing else.
type OnlyLines =
    Layered<Filtered<reload::Layer<Lines, Registry>, reload::Layer<EnvFilter, Registry>, Registry>, Registry>;

/// Changes level and format of the running process.
#[derive(Clone)]
pub(crate) struct LogSwitch {
    filter: reload::Handle<EnvFilter, Registry>,
    lines: reload::Handle<Lines, Registry>,
    now: Arc<Mutex<(String, LogFormat)>>,
}

/// kube logs the whole text of an answer that it can't decode, and it may be a Secret. The error itself is logged here.
const NO_ANSWERS: &str = "kube_client::client=error";

fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::try_new(directives).with_context(|| format!("log level {directives:?}"))?;
    Ok(filter.add_directive(NO_ANSWERS.parse()?))
}

fn lines(format: LogFormat) -> Lines {
    let lines = fmt::layer().with_writer(LogWriter);
    match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

/// Begins to log. `RUST_LOG` has finer directives than the level, and goes before it.
pub(crate) fn begin(level: LogLevel, format: LogFormat) -> anyhow::Result<LogSwitch> {
    begin_beside(level, format, None::<Identity>)
}

/// Begins to log beside another layer, which sees what is not logged as well.
pub(crate) fn begin_beside(
    level: LogLevel,
    format: LogFormat,
    beside: Option<impl Layer<OnlyLines> + Send + Sync>,
) -> anyhow::Result<LogSwitch> {
    let from_environment = std::env::var("RUST_LOG").ok();
    let usable = |directives: &String| !directives.trim().is_empty() && filter(directives).is_ok();
    let directives = from_environment.filter(usable).unwrap_or_else(|| level.directives().to_owned());
    let (filter, filter_handle) = reload::Layer::new(filter(&directives)?);
    let (lines, lines_handle) = reload::Layer::new(lines(format));
    let lines = lines.with_filter(filter);
    tracing_subscriber::registry().with(lines).with(beside).try_init().context("logging is initialized already")?;
    let now = Arc::new(Mutex::new((directives, format)));
    Ok(LogSwitch { filter: filter_handle, lines: lines_handle, now })
}

impl LogSwitch {
    /// What is logged now, and how.
    pub(crate) fn directives(&self) -> String {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{} {}", now.0, if now.1 == LogFormat::Json { "json" } else { "text" })
    }

    /// Takes `LEVEL`, `FORMAT` or `LEVEL FORMAT`; the level is a word of `--log-level` or directives as in `RUST_LOG`.
    pub(crate) fn change(&self, wanted: &str) -> anyhow::Result<()> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut directives, mut format) = now.clone();
        anyhow::ensure!(
            !wanted.is_empty(),
            "send a level (error, info, debug, or directives), a format (text, json) or both"
        );
        for word in wanted.split_whitespace() {
            if let Ok(wanted) = LogFormat::from_str(word, true) {
                format = wanted;
            } else if let Ok(level) = LogLevel::from_str(word, true) {
                directives = level.directives().to_owned();
            } else {
                directives = word.to_owned();
            }
        }
        self.filter.reload(filter(&directives)?).context("the log level can't be changed")?;
        self.lines.reload(lines(format)).context("the log format can't be changed")?;
        *now = (directives, format);
        Ok(())
    }
}
