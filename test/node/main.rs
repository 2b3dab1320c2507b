//! The program's image on a real node: containerd and runc from Debian, a real kubelet, kube-scheduler and
//! kube-controller-manager, the chart installed by Helm, and machines of the real machine-controller-manager.
//!
//! It needs root and Debian's packages, so you run it by name: `cargo test --test node -- --ignored --nocapture`
//! (docs/development.md#a-node). On the machine it uses only a folder of cgroups and a temporary folder, and removes
//! both:
//!
//! ```text
//! images        the program and the pause container as archives with an OCI layout
//! namespaces    reruns the test with its own mounts, processes and network, which end with it
//! node          containerd, kubelet, scheduler and controllers in these namespaces
//! chart         Helm's commands and the resulting pods
//! life          an operator's actions, step by step, with their durations
//! ```

#![allow(clippy::print_stderr, reason = "figures of a test that is run by hand")]

mod chart;
mod images;
mod life;
mod namespaces;
mod node;

use anyhow::Result;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian's packages of a node (docs/development.md#a-node)"]
async fn the_image_runs_in_a_node() -> Result<()> {
    match namespaces::images_from_outside() {
        Some(folder) => life::of_the_chart(&folder).await,
        None => namespaces::run("the_image_runs_in_a_node").await,
    }
}
