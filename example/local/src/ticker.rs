//! Watches a Worker and the objects that result from it, and prints a line for each change.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::{Stream, StreamExt as _};
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use tokio::task::JoinHandle;

use super::seed::resource;
use super::sentence::Kind;

/// Prints lines with the time since the start. On a terminal, success is green and failure is red. Clones share the
/// printed lines.
#[derive(Clone)]
pub(crate) struct Voice {
    start: Instant,
    colors: bool,
    printed: Arc<Mutex<Vec<String>>>,
}

impl Voice {
    /// Starts the clock.
    pub(crate) fn new() -> Self {
        let colors = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { start: Instant::now(), colors, printed: Arc::default() }
    }

    /// The lines so far, with colors.
    pub(crate) fn printed(&self) -> Vec<String> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn print(&self, line: &dyn Fn(bool) -> String) {
        println!("{}", line(self.colors));
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).push(line(true));
    }

    /// Prints a line about one object.
    fn line(&self, kind: Kind, name: &str, sentence: &str) {
        let color = match sentence {
            _ if sentence.starts_with("Succeeded") || sentence.starts_with("ready") => "32",
            _ if sentence.starts_with("Error") || sentence.starts_with("Failed") => "31",
            "gone" => "2",
            _ => "0",
        };
        let elapsed = self.start.elapsed().as_secs_f32();
        self.print(&|colors| {
            format!("{elapsed:6.1} s  {:<17}  {name:<28}  {}", kind.name(), painted(sentence, color, colors))
        });
    }

    /// Prints a line of the story itself.
    pub(crate) fn print_line(&self, text: &str) {
        let elapsed = self.start.elapsed().as_secs_f32();
        self.print(&|colors| format!("{elapsed:6.1} s  {}", painted(text, "1", colors)));
    }
}

fn painted(text: &str, color: &str, colors: bool) -> String {
    if colors { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Prints until dropped.
pub(crate) struct Ticker(JoinHandle<()>);

impl Ticker {
    /// Starts with the existing objects. Names are printed without the namespace as their prefix.
    pub(crate) fn start(client: &Client, namespace: &str, voice: Voice) -> Self {
        let prefix = format!("{namespace}-");
        let changes = Kind::ALL.map(|kind| changes(client, namespace, kind).boxed());
        let mut changes = futures::stream::select_all(changes);
        Self(tokio::spawn(async move {
            let mut message = HashMap::new();
            while let Some((kind, object, is_deleted)) = changes.next().await {
                let name = object.name_any();
                let sentence = if is_deleted {
                    "gone".to_owned()
                } else {
                    kind.sentence(&serde_json::to_value(&object).unwrap_or_default(), &prefix)
                };
                let before = message.insert((kind, name.clone()), sentence.clone());
                if before.as_ref() != Some(&sentence) {
                    voice.line(kind, name.trim_start_matches(&prefix), &sentence);
                }
            }
        }))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Streams changed objects of a kind, and whether each was deleted. A failed watch restarts.
fn changes(client: &Client, namespace: &str, kind: Kind) -> impl Stream<Item = (Kind, DynamicObject, bool)> + use<> {
    let resource = resource(kind.group_version(), kind.name());
    let api = match kind {
        Kind::Node => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    watcher(api, watcher::Config::default()).filter_map(move |event| {
        std::future::ready(match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => Some((kind, object, false)),
            Ok(Event::Delete(object)) => Some((kind, object, true)),
            _ => None,
        })
    })
}
