//! Input and output: the process, user input, the cluster, webhooks and clouds.
//!
//! * [`process`]: logs, traces, endpoints, leader election;
//! * [`reader`]: reads user input: files, folders, standard input;
//! * [`cloud`]: clients of clouds, for the dependencies of pools;
//! * [`cluster`]: clients, watches, the store, reads and writes;
//! * [`webhook`]: the server for admission reviews, its certificate and registration.

#![allow(missing_docs, reason = "only this workspace uses it; what is not obvious is documented")]

pub mod cloud;
pub mod cluster;
pub mod process;
pub mod reader;
pub mod webhook;
