//! Names in files: the objects of the files are all there is.

use super::Scope;
use super::arguments::Reading;
use super::names::{Meaning, NameIndex, Target, ambiguous};
use crate::cli::evidence::no_match;

/// The Workers of files that the names and flags select.
pub(in crate::cli) fn targets_in_files(
    index: &NameIndex,
    reading: &Reading,
    names: &[String],
) -> anyhow::Result<Scope> {
    let within = reading.namespace.as_deref();
    if names.is_empty() {
        return Ok(within.map_or(Scope::All, |namespace| Scope::Targets(vec![Target::namespace(namespace)])));
    }
    let targets = names.iter().map(|name| match index.resolve(name, within) {
        Meaning::One(target) => Ok(target),
        Meaning::Several(meanings) => Err(ambiguous(name, &meanings)),
        Meaning::None => Err(not_found(name, index)),
    });
    Ok(Scope::Targets(targets.collect::<anyhow::Result<_>>()?))
}

/// The error for a name that no object has.
pub(super) fn not_found(name: &str, index: &NameIndex) -> anyhow::Error {
    let no_namespace = no_match("Worker in namespace", name, index.namespaces());
    anyhow::anyhow!("{no_namespace}. No shoot, pool, machine deployment, machine or node has that name either")
}
