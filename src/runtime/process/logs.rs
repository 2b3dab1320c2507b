//! Logging. The level and the format can change at run time.

use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use parking_lot::Mutex;
use tracing_subscriber::layer::{Identity, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::process::output::LogWriter;

/// Log levels, named as in Gardener's charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl LogLevel {
    fn directives(self) -> &'static str {
        // kube's controller adds the reason for each reconcile to every line, which only helps to debug kube itself.
        match self {
            Self::Error => "error",
            Self::Warn => "warn,kube_runtime=error",
            Self::Info => "info,kube_runtime=error",
            Self::Debug => "info,kube_runtime=error,gardener_extension_worker=debug",
        }
    }
}

/// Log formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Log lines in one of the formats.
type Lines = Box<dyn Layer<Registry> + Send + Sync>;
/// The registry with log lines as its only layer.
type OnlyLines = Layered<Vec<Lines>, Registry>;

/// Changes the level and format of the running process.
#[derive(Clone)]
pub struct LogSwitch {
    /// Filters for text and JSON. One of the two rejects everything.
    filters: [reload::Handle<EnvFilter, Registry>; 2],
    now: Arc<Mutex<(String, LogFormat)>>,
}

/// kube logs the full text of a response that it can't decode, which may be a Secret. The program logs the error
/// itself.
const NO_RESPONSES: &str = "kube_client::client=error";

fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::try_new(directives).with_context(|| format!("log level {directives:?}"))?;
    Ok(filter.add_directive(NO_RESPONSES.parse()?))
}

/// The layer of one format. Each format stores span fields in its own way and can't write a span that the other one
/// opened, so both layers stay active.
fn lines(
    format: LogFormat,
    observed: LogFormat,
    directives: &str,
) -> anyhow::Result<(Lines, reload::Handle<EnvFilter, Registry>)> {
    let (filter, handle) = reload::Layer::new(filter_of(format, observed, directives)?);
    let lines = fmt::layer().with_writer(LogWriter);
    let lines = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    Ok((lines, handle))
}

fn filter_of(format: LogFormat, observed: LogFormat, directives: &str) -> anyhow::Result<EnvFilter> {
    if format == observed { filter(directives) } else { Ok(EnvFilter::new("off")) }
}

/// Starts logging. `RUST_LOG` accepts finer directives than the level and overrides it.
pub(crate) fn begin(level: LogLevel, format: LogFormat) -> anyhow::Result<LogSwitch> {
    begin_beside(level, format, None::<Identity>)
}

/// Starts logging next to another layer, which also receives the events that are not logged.
pub fn begin_beside(
    level: LogLevel,
    format: LogFormat,
    beside: Option<impl Layer<OnlyLines> + Send + Sync>,
) -> anyhow::Result<LogSwitch> {
    let from_environment = std::env::var("RUST_LOG").ok();
    let usable = |directives: &String| !directives.trim().is_empty() && filter(directives).is_ok();
    let directives = from_environment.filter(usable).unwrap_or_else(|| level.directives().to_owned());
    let (lines, switch) = switchable(directives, format)?;
    tracing_subscriber::registry().with(lines).with(beside).try_init().context("logging is initialized already")?;
    Ok(switch)
}

fn switchable(directives: String, format: LogFormat) -> anyhow::Result<(Vec<Lines>, LogSwitch)> {
    let (text, of_text) = lines(LogFormat::Text, format, &directives)?;
    let (json, of_json) = lines(LogFormat::Json, format, &directives)?;
    Ok((vec![text, json], LogSwitch { filters: [of_text, of_json], now: Arc::new(Mutex::new((directives, format))) }))
}

impl LogSwitch {
    /// The current directives and format.
    pub(crate) fn directives(&self) -> String {
        let now = self.now.lock();
        format!("{} {}", now.0, if now.1 == LogFormat::Json { "json" } else { "text" })
    }

    /// Accepts `LEVEL`, `FORMAT` or `LEVEL FORMAT`. The level is a value of `--log-level` or directives as in
    /// `RUST_LOG`.
    pub(crate) fn change(&self, target: &str) -> anyhow::Result<()> {
        let mut now = self.now.lock();
        let (mut directives, mut format) = now.clone();
        anyhow::ensure!(
            !target.is_empty(),
            "send a level (error, warn, info, debug, or directives), a format (text, json) or both"
        );
        for word in target.split_whitespace() {
            if let Ok(target) = LogFormat::from_str(word, true) {
                format = target;
            } else if let Ok(level) = LogLevel::from_str(word, true) {
                directives = level.directives().to_owned();
            } else {
                directives = word.to_owned();
            }
        }
        // Invalid input changes neither level nor format.
        let filters =
            [filter_of(LogFormat::Text, format, &directives)?, filter_of(LogFormat::Json, format, &directives)?];
        for (handle, filter) in self.filters.iter().zip(filters) {
            handle.reload(filter).context("the log can't be changed")?;
        }
        *now = (directives, format);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_was_opened_before_a_change_of_the_format_is_logged_after_it() {
        let (lines, switch) = switchable("info".to_owned(), LogFormat::Text).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let _open = tracing::info_span!("worker", name = "w").entered();
            for target in ["json", "text", "json"] {
                switch.change(target).unwrap();
                tracing::info!("in another format");
                assert_eq!(switch.directives(), format!("info {target}"));
            }
            assert!(switch.change("text info=what=ever").is_err());
            assert_eq!(switch.directives(), "info json", "nothing has changed");
        });
    }
}
