//! The image of the program in a real node: containerd and runc of Debian, a real kubelet, kube-scheduler and
//! kube-controller-manager, the chart installed by Helm, machines of the real machine-controller-manager.
//!
//! It needs root and Debian's packages, so it runs by name: `cargo test --test node -- --ignored --nocapture`
//! (docs/development.md#a-node). Of the machine it uses nothing but a folder of cgroups and a temporary folder, which it removes:
//!
//! ```text
//! images        the program and the pause container as archives with an OCI layout
//! namespaces    the test again, with mounts, processes and a network of its own, which end with it
//! node          containerd, kubelet, scheduler and controllers in there
//! chart         Helm's commands, and the pods that come of them
//! life          what an operator does, step by step, and how long it takes
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
