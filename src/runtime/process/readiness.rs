//! Unmet prerequisites of readiness, described for operators.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// A prerequisite of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The API server serves the watched kinds.
    Kinds,
    /// The caches are synced.
    Caches,
    /// The API server answers requests.
    Responses,
    /// There is a certificate for TLS.
    Certificate,
    /// The webhooks are registered with the API server.
    Registration,
}

impl Need {
    fn as_str(self) -> &'static str {
        match self {
            Self::Kinds => "kinds",
            Self::Caches => "caches",
            Self::Responses => "answers",
            Self::Certificate => "certificate",
            Self::Registration => "registration",
        }
    }
}

/// Unmet prerequisites. Clones share their state.
#[derive(Clone, Debug)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeMap<Need, String>>>,
    standing_by: Arc<Mutex<bool>>,
}

impl Readiness {
    /// Starts with all of these prerequisites unmet.
    pub fn waiting_for(needs: impl IntoIterator<Item = Need>) -> Self {
        let missing = needs.into_iter().map(|need| (need, "not checked yet".to_owned()));
        Self { missing: Arc::new(Mutex::new(missing.collect())), standing_by: Arc::default() }
    }

    /// Marks a prerequisite as unmet, with a description.
    pub fn misses(&self, need: Need, text: impl Into<String>) {
        self.missing.lock().insert(need, text.into());
    }

    /// Marks a prerequisite as met.
    pub fn has(&self, need: Need) {
        self.missing.lock().remove(&need);
    }

    /// Sets whether this process is a standby: it fills no caches, and is ready as soon as the kinds are served.
    pub fn set_standing_by(&self, standing_by: bool) {
        *self.standing_by.lock() = standing_by;
    }

    /// Text for people: ready, or the unmet prerequisites.
    pub fn report(&self) -> Result<String, String> {
        let standing_by = *self.standing_by.lock();
        let missing = self.missing.lock();
        let lines: Vec<String> = missing
            .iter()
            .filter(|(need, _)| !(standing_by && **need == Need::Caches))
            .map(|(need, text)| format!("{}: {text}\n", need.as_str()))
            .collect();
        match (lines.is_empty(), standing_by) {
            (true, true) => Ok("ready: standing by until this process has its lease\n".to_owned()),
            (true, false) => Ok("ready\n".to_owned()),
            (false, _) => Err(lines.concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_missing_conditions_until_ready() {
        let readiness = Readiness::waiting_for([Need::Kinds, Need::Caches]);
        readiness.misses(Need::Kinds, "workers.extensions.gardener.cloud/v1alpha1 is not served");
        let text = readiness.report().unwrap_err();
        assert!(text.contains("workers.extensions.gardener.cloud/v1alpha1 is not served"), "{text}");
        readiness.has(Need::Kinds);
        assert!(readiness.report().is_err(), "caches are empty");
        readiness.set_standing_by(true);
        // Even before its first request for the lease, while there may be no leader.
        assert_eq!(readiness.report().unwrap(), "ready: standing by until this process has its lease\n");
        readiness.set_standing_by(false);
        readiness.has(Need::Caches);
        assert_eq!(readiness.report().unwrap(), "ready\n");
    }
}
