//! A cloud outside of the library. It writes each request to a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command, value_parser};
use futures::FutureExt;
use futures::future::BoxFuture;
use gardener_extension_worker::api::gardener::{Cluster, Worker};
use gardener_extension_worker::api::secret::Secrets;
use gardener_extension_worker::cloud::dependency::{CleanUp, Cloud, DependencyRequest, DependencyState, UsedByClasses};
use gardener_extension_worker::cloud::{CloudFactory, TaskEnded, WriteCheck};
use gardener_extension_worker::provider::{WorkerContext, WorkerError};

/// The file, as an argument and as an environment variable.
const ARGUMENT: &str = "quarry-log";
pub(crate) const VARIABLE: &str = "QUARRY_LOG";

/// The cloud of Workers of type `pebble`.
pub(crate) struct QuarryFactory;

impl CloudFactory for QuarryFactory {
    fn worker_type(&self) -> &'static str {
        "pebble"
    }

    fn with_arguments(&self, command: Command) -> Command {
        let log = Arg::new(ARGUMENT).long(ARGUMENT).env(VARIABLE).required(true).value_parser(value_parser!(PathBuf));
        command.arg(log.help("File of what is asked."))
    }

    fn open(&self, typed: &ArgMatches, _: WriteCheck, _: TaskEnded) -> Result<Arc<dyn Cloud>, clap::Error> {
        let log = typed.get_one::<PathBuf>(ARGUMENT).expect("it is required");
        Ok(Arc::new(Quarry { log: log.clone() }))
    }
}

struct Quarry {
    log: PathBuf,
}

impl Quarry {
    fn requested(&self, what: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.log).expect("the log can be opened");
        writeln!(file, "{what}").expect("the log can be written");
    }
}

impl Cloud for Quarry {
    fn ensure<'a>(&'a self, requested: DependencyRequest<'a>) -> BoxFuture<'a, Result<DependencyState, WorkerError>> {
        self.requested(&format!("ensure {}", requested.context.worker.spec.worker_type));
        async { Ok(DependencyState { has_something: true, ..DependencyState::default() }) }.boxed()
    }

    fn clean_up<'a>(
        &'a self,
        _: &'a WorkerContext<'a>,
        _: UsedByClasses,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
        self.requested("clean up");
        async { Ok(CleanUp::Done(None)) }.boxed()
    }

    fn remove<'a>(
        &'a self,
        _: &'a Worker,
        _: Option<&'a Cluster>,
        _: &'a Secrets,
    ) -> BoxFuture<'a, Result<CleanUp, WorkerError>> {
        async { Ok(CleanUp::Done(None)) }.boxed()
    }

    fn is_busy(&self, _: &str) -> bool {
        false
    }

    fn forget(&self, _: &str) {}
}
