//! Profiles, bases and cases of a folder. They are either families in the project's own form, or measured ones with a
//! file for each case in `single` and `pairs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use gardener_extension_worker::api::gardener::ProfileObject;
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::shoot::{Garden, Reservation, Surroundings};
use serde_json::{Value, json};
use test_support::measured::cases::{Case, Documents, Form, collect};

/// gardenlet's key in cases that specify none.
const SSH_KEY: &str = "ssh-rsa AAAA1 shoot";

#[derive(Default)]
pub(crate) struct Corpus {
    profiles: BTreeMap<String, Value>,
    bases: BTreeMap<String, Documents>,
    pub(crate) cases: Vec<Case>,
    /// Inputs that differed where a pool rolled, in all cases so far.
    pub(crate) changed_inputs: Mutex<BTreeSet<String>>,
}

impl Corpus {
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let mut corpus = Self::default();
        if folder.join("bases").is_dir() {
            corpus.read_measured(folder)?;
            return Ok(corpus);
        }
        for case in collect(folder)? {
            match case.family.as_str() {
                "profiles" => drop(corpus.profiles.insert(case.name, case.documents?.input)),
                "bases" => drop(corpus.bases.insert(case.name, case.documents?)),
                _ => corpus.cases.push(case),
            }
        }
        Ok(corpus)
    }

    fn read_measured(&mut self, folder: &Path) -> Result<(), String> {
        for (name, profile) in files(&folder.join("bases/profiles"))? {
            self.profiles.insert(name, profile);
        }
        for (name, base) in files(&folder.join("bases"))? {
            let input = json!({"profile": base["profile"], "outside": base["outside"], "written": base["written"]});
            let expected = json!({"stored": base["stored"], "worker": base["worker"], "pools": base["pools"]});
            self.bases.insert(name, Documents { input, expected });
        }
        for (kind, parts) in [("single", ["input"].as_slice()), ("pairs", &["base", "change", "pool"])] {
            for (name, case) in files(&folder.join(kind))? {
                let input = match parts {
                    [member] => case[*member].clone(),
                    _ => parts.iter().map(|member| ((*member).to_owned(), case[*member].clone())).collect(),
                };
                let family = case["family"].as_str().or_else(|| case["mutations"][0].as_str()).unwrap_or_default();
                let documents = Ok(Documents { input, expected: case["expected"].clone() });
                self.cases.push(Case { family: format!("{kind}/{family}"), name, form: Form::Cases, documents });
            }
        }
        Ok(())
    }

    pub(crate) fn base(&self, name: &str) -> Result<&Documents, String> {
        self.bases.get(name).ok_or_else(|| format!("no base {name:?}"))
    }

    /// The CloudProfile of a case or a base.
    pub(crate) fn profile(&self, input: &Value) -> Result<Value, String> {
        match input["profile"].as_str() {
            Some(name) => self.profiles.get(name).cloned().ok_or_else(|| format!("no profile {name:?}")),
            None => Ok(input["cloudProfile"].clone()),
        }
    }
}

/// The documents of a folder by their file names.
fn files(folder: &Path) -> Result<Vec<(String, Value)>, String> {
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let mut documents = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| problem(&error))? {
        let path = entry.map_err(|error| problem(&error))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).map_err(|error| problem(&error))?;
            let document = serde_json::from_str(&text).map_err(|error| problem(&error))?;
            documents.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), document));
        }
    }
    documents.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(documents)
}

/// Decodes a profile.
pub(crate) fn typed(profile: &Value) -> Result<ProfileObject, String> {
    decode_lenient(&profile.to_string()).map_err(|error| error.to_string())
}

/// The garden's settings in a case.
pub(crate) fn garden(outside: &Value) -> Garden {
    let by_formula = outside["resourceReservationByFormula"] == true;
    Garden {
        reservation: if by_formula { Reservation::ByMachineType } else { Reservation::Static },
        node_local_dns: outside["nodeLocalDNSByDefault"] == true,
        now: "2026-10-01T00:00:00Z".parse().expect("a time"),
    }
}

/// gardenlet's other inputs in a case.
pub(crate) fn surroundings<'a>(outside: &'a Value, existing_worker: &'a Value) -> Surroundings<'a> {
    Surroundings {
        infrastructure_status: outside.get("infrastructureProviderStatus"),
        ssh_public_key: Some(outside["sshAuthorizedKey"].as_str().unwrap_or(SSH_KEY)),
        existing_worker: Some(existing_worker).filter(|worker| !worker.is_null()),
        is_bootstrapping: outside["bootstrap"] == true,
    }
}
