//! Measures the figures in `docs/performance-evidence.md`: the shipped controller against a real API server. `cargo bench
//! --bench seed`, or `cargo bench --bench seed -- fleet` for one part.
//!
//! ```text
//! load        gardenlet's objects in the namespace of a shoot
//! controller  the binary
//! workers     times of changes of Workers
//! figures     prints CPU, memory and tables
//! digest      digests of the created objects
//! fleet       100 Workers × 3 pools × 3 zones: create, no-op, roll
//! beside_go   create and no-op of the Go extension and of this controller (GO_EXTENSION=FILE)
//! wide        one Worker with 300 pools, with 200 ms latency per request
//! rolling     500 Workers that roll at the same time, and one more
//! clouds      500 Workers of one cloud, and of five
//! machines    one Worker with the real machine-controller-manager
//! objects     the objects of 100 Workers without a controller
//! ```

#![allow(clippy::print_stdout, reason = "the report of this program is its output")]
#![allow(missing_docs, clippy::expect_used, reason = "a bench of inputs that are written here")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]

mod beside_go;
mod clouds;
mod controller;
mod digest;
mod figures;
mod fleet;
mod load;
mod machines;
mod objects;
mod rolling;
mod wide;
mod workers;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_required = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{cores} cores, load before: {}", load.split(' ').next().unwrap_or_default());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        if is_required("fleet") {
            fleet::run().await.context("fleet")?;
        }
        if is_required("beside_go") {
            beside_go::run().await.context("beside_go")?;
        }
        if is_required("wide") {
            wide::run().await.context("wide")?;
        }
        if is_required("rolling") {
            rolling::run().await.context("rolling")?;
        }
        if is_required("clouds") {
            clouds::run().await.context("clouds")?;
        }
        if is_required("machines") {
            machines::run().await.context("machines")?;
        }
        if is_required("objects") {
            objects::run().await.context("objects")?;
        }
        Ok(())
    })
}
