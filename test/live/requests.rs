//! A table of a user's requests to the API server by verb and resource.

use std::collections::BTreeMap;
use std::fmt;

use test_support::cluster::Request;

/// Numbers of requests.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<(String, String), usize>);

impl Table {
    /// Counts requests, except watches, whose number depends on timeouts.
    pub(crate) fn of(requests: &[Request]) -> Self {
        let mut table = Self::default();
        for request in requests.iter().filter(|request| request.verb != "watch") {
            *table.0.entry((request.verb.clone(), request.resource.clone())).or_default() += 1;
        }
        table
    }

    pub(crate) fn count(&self, verb: &str, resource: &str) -> usize {
        self.0.get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((verb, resource), count) in &self.0 {
            writeln!(formatter, "{count:5} {verb:<7} {resource}")?;
        }
        write!(formatter, "{:5} requests", self.total())
    }
}
