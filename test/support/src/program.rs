//! The program under test: the binary that cargo built for this test or benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::Program;

const NAME: &str = "gardener-extension-worker";

/// More than anybody logs in production: what must not be logged must not be logged here either.
pub const DEBUG_LOG: &str = "debug,h2=info,hyper_util=info,rustls=info,tower=info";

/// Its file. Cargo names it to what it runs; what is run by hand lies one folder below it.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os(format!("CARGO_BIN_EXE_{NAME}")) {
        return named.into();
    }
    let own = std::env::current_exe().expect("the path of this test");
    own.ancestors().nth(2).expect("a test lies below the binaries").join(NAME)
}

/// What is measured: another build of it, if `CONTROLLER` names one.
#[must_use]
pub fn measured() -> PathBuf {
    std::env::var_os("CONTROLLER").map_or_else(binary, PathBuf::from)
}

/// A command of it, for its output.
#[must_use]
pub fn command() -> Command {
    Command::new(binary())
}

/// A controller that reaches the API server as a kubeconfig says.
pub fn controller(name: impl Into<String>, binary: impl Into<PathBuf>, kubeconfig: impl AsRef<Path>) -> Program {
    Program::new(name, binary).arg("controller").flag("kubeconfig", kubeconfig.as_ref())
}
