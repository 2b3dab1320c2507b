//! Logs: their level and format, both changeable while the process runs.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::ValueEnum;
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

/// Lines in one of the formats.
type Lines = Box<dyn Layer<Registry> + Send + Sync>;
/// Lines and nothing else.
type OnlyLines = Layered<Vec<Lines>, Registry>;

/// Changes level and format of the running process.
#[derive(Clone)]
pub(crate) struct LogSwitch {
    /// What is logged as text, and as JSON: in one of them something, in the other nothing.
    filters: [reload::Handle<EnvFilter, Registry>; 2],
    now: Arc<Mutex<(String, LogFormat)>>,
}

/// kube logs the whole text of an answer that it can't decode, and it may be a Secret. The error itself is logged here.
const NO_ANSWERS: &str = "kube_client::client=error";

fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::try_new(directives).with_context(|| format!("log level {directives:?}"))?;
    Ok(filter.add_directive(NO_ANSWERS.parse()?))
}

/// The lines of a format, where they are `shown`. Each format keeps the fields of open spans in its own way, and can't write one that
/// was opened while another one was in its place. So both are there all the time.
fn lines(
    format: LogFormat,
    shown: LogFormat,
    directives: &str,
) -> anyhow::Result<(Lines, reload::Handle<EnvFilter, Registry>)> {
    let (filter, handle) = reload::Layer::new(filter_of(format, shown, directives)?);
    let lines = fmt::layer().with_writer(LogWriter);
    let lines = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    Ok((lines, handle))
}

fn filter_of(format: LogFormat, shown: LogFormat, directives: &str) -> anyhow::Result<EnvFilter> {
    if format == shown { filter(directives) } else { Ok(EnvFilter::new("off")) }
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
        // What can't be read changes neither of them.
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
            for wanted in ["json", "text", "json"] {
                switch.change(wanted).unwrap();
                tracing::info!("in another format");
                assert_eq!(switch.directives(), format!("info {wanted}"));
            }
            assert!(switch.change("text info=what=ever").is_err());
            assert_eq!(switch.directives(), "info json", "nothing has changed");
        });
    }
}
