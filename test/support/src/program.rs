//! The program under test: the binary that cargo built for this test or benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::Program;

const NAME: &str = "gardener-extension-worker";

/// More verbose than in production, because no log level may reveal secrets.
pub const DEBUG_LOG: &str = "debug,h2=info,hyper_util=info,rustls=info,tower=info";

/// The binary's path. Cargo sets it for tests; for manual runs, the binary is one folder below.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os(format!("CARGO_BIN_EXE_{NAME}")) {
        return named.into();
    }
    let own = std::env::current_exe().expect("the path of this test");
    own.ancestors().nth(2).expect("a test lies below the binaries").join(NAME)
}

/// The binary to measure: `CONTROLLER` if set.
#[must_use]
pub fn measured() -> PathBuf {
    std::env::var_os("CONTROLLER").map_or_else(binary, PathBuf::from)
}

#[must_use]
pub fn command() -> Command {
    Command::new(binary())
}

/// A controller that uses a kubeconfig.
pub fn controller(name: impl Into<String>, binary: impl Into<PathBuf>, kubeconfig: impl AsRef<Path>) -> Program {
    Program::new(name, binary).arg("controller").flag("kubeconfig", kubeconfig.as_ref())
}
