//! OpenStack as described by a file, for commands without access to the cloud.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error_codes::response_failure;
use super::server_groups::{Needs, PoolNeed, ServerGroup};
use crate::provider::dependencies::described_cloud;
use crate::provider::{Dependencies, DependencyFailure, DependencyRecord, WorkerError};
use wire::api::gotext::json::{DecodeError, decode_lenient};

/// Existing server groups, and responses to requests.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DescribedOpenStack {
    server_groups: Vec<ServerGroup>,
    fail: BTreeMap<String, Reply>,
    catalog_regions: Option<Vec<String>>,
    /// Whether the state is only assumed. If so, recorded groups exist, and new groups have their names as ids instead
    /// of numbers.
    assumed: bool,
    #[serde(skip)]
    created: u32,
}

/// The response to a request, limited to a number of times or not.
#[derive(Debug, Deserialize)]
struct Reply {
    status: u16,
    #[serde(default)]
    body: String,
    times: Option<u32>,
}

/// Nova's response with server groups.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Groups {
    server_group: ServerGroup,
    server_groups: Vec<ServerGroup>,
}

impl DescribedOpenStack {
    /// The described response to a request, if any. A rejected token is renewed once.
    fn response(&mut self, call: &str) -> Result<Option<Groups>, (u16, DependencyFailure)> {
        let Some(response) = self.fail.get_mut(call).filter(|response| response.times != Some(0)) else {
            return Ok(None);
        };
        response.times = response.times.map(|times| times - 1);
        let is_renewed = call != "authenticate" && response.status == 401 && response.times == Some(0);
        if is_renewed {
            return Ok(None);
        }
        let unreadable = |error: DecodeError| (200, DependencyFailure::without_code(error.to_string()));
        match response.status {
            200 => decode_lenient(&response.body).map(Some).map_err(unreadable),
            status => Err((status, response_failure(call, status, &response.body))),
        }
    }

    fn list(&mut self) -> Result<Vec<ServerGroup>, DependencyFailure> {
        let described = self.response("list").map_err(|(_, failure)| failure)?;
        Ok(described.map_or_else(|| self.server_groups.clone(), |response| response.server_groups))
    }

    fn get(&mut self, id: &str) -> Result<Option<ServerGroup>, DependencyFailure> {
        match self.response("get") {
            Ok(Some(response)) => Ok(Some(response.server_group)),
            Ok(None) => Ok(self.server_groups.iter().find(|group| group.id == id).cloned()),
            Err((404, _)) => Ok(None),
            Err((_, failure)) => Err(failure),
        }
    }

    fn create(&mut self, need: &PoolNeed) -> Result<ServerGroup, DependencyFailure> {
        self.response("create").map_err(|(_, failure)| failure)?;
        self.created += 1;
        let name = need.target.name.clone();
        let policies = vec![need.target.policy.clone()];
        let id = if self.assumed { name.clone() } else { format!("00000000-0000-4000-8000-{:012}", self.created) };
        let group = ServerGroup { id, name, policies };
        self.server_groups.push(group.clone());
        Ok(group)
    }

    /// The group of a pool, found or created like the client does.
    fn provide(&mut self, need: &PoolNeed) -> Result<DependencyRecord, DependencyFailure> {
        self.response("authenticate").map_err(|(_, failure)| failure)?;
        if let Some(recorded) = &need.recorded
            && self.get(&recorded.id)?.is_some_and(|displayed| need.is_met_by(recorded, &displayed))
        {
            return Ok(recorded.clone());
        }
        let group = match need.adopted(&self.list()?) {
            Some(adopted) => adopted.clone(),
            None => self.create(need)?,
        };
        Ok(need.record(&group))
    }

    /// Deletes unneeded groups like the client does.
    fn clean_up(&mut self, needs: &Needs) -> Result<(), DependencyFailure> {
        let listed = self.list()?;
        for _ in needs.unneeded(&listed, &[]) {
            match self.response("delete") {
                Ok(_) | Err((404, _)) => {}
                Err((_, failure)) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// The dependencies of the pools after a reconcile against the described OpenStack.
///
/// # Errors
/// If the description can't be decoded.
pub(super) fn described_dependencies(needs: &Needs, described: &Value) -> Result<Dependencies, WorkerError> {
    let mut openstack: DescribedOpenStack = described_cloud(described, "openstack", "OpenStack")?;
    let has_region = openstack.catalog_regions.as_ref().is_none_or(|regions| regions.contains(&needs.scope.region));
    let missing = "the catalog of OpenStack has no compute endpoint for the region";
    let (mut dependencies, mut records) = needs.provided(|need| match has_region {
        true => openstack.provide(need),
        false => Err(DependencyFailure::of_configuration(missing)),
    });
    records.sort_by(|one, other| one.pool_name.cmp(&other.pool_name));
    // Groups of other pools are deleted only after everything else succeeded.
    if dependencies.failures.is_empty() {
        let has_record = |pool: &String| records.iter().any(|record| record.pool_name == *pool);
        let deleted = needs.records.iter().filter(|record| !has_record(&record.pool_name));
        let after = Needs { records: deleted.chain(&records).cloned().collect(), ..needs.clone() };
        dependencies.cleanup_failure = openstack.clean_up(&after).err().map(|failure| failure.message);
    }
    dependencies.records = json!(records);
    Ok(dependencies)
}

/// An OpenStack state in which every recorded group matches the current needs of its pool.
pub(super) fn settled(needs: &Needs) -> Value {
    let groups = needs.records.iter().map(|record| {
        let need = needs.pools.iter().find(|need| need.pool == record.pool_name);
        json!({"id": record.id, "name": record.name, "policies": need.map(|need| [&need.target.policy])})
    });
    json!({"assumed": true, "serverGroups": groups.collect::<Vec<_>>()})
}
