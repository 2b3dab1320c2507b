//! Whether the additional machines during a change fit into the remaining capacity of a cloud. Limits are read from a
//! file; no request is sent to the cloud.

use std::collections::BTreeMap;

use super::compare::WorkerChange;
use super::finding::{Finding, FindingKind};
use super::machine_size::MachineSize;
use super::placement_change::PlacementChange;
use super::rule::Verdict;
use profiles::resolved_profile::selection::matches;
use wire::api::bounded_text::{escaped, shortened};

/// Maximum length of a limit's name in a message, in bytes.
const NAME: usize = 80;

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitUnit {
    /// vCPUs of machines.
    Cpus,
    /// Machines.
    Machines,
}

/// The machine types that a limit applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitedTypes {
    /// All machine types.
    All,
    /// Machine types that match one of the patterns, in which `*` matches any text.
    Patterns(Vec<String>),
    /// A VM family of Azure, such as `standardDSv5Family`.
    AzureFamily(String),
    /// Instance classes of AWS in lower case, such as `m`.
    AwsClasses(Vec<String>),
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name for messages.
    pub name: String,
    /// The region that it applies to; `None` for all regions.
    pub region: Option<String>,
    /// The machine types that it applies to.
    pub types: LimitedTypes,
    /// The unit of `total` and `used`.
    pub unit: LimitUnit,
    /// The limit.
    pub total: i64,
    /// Units in use; `None` if only the machines of the Workers themselves are known.
    pub used: Option<i64>,
}

/// Adds a finding to each Worker for pools that would not get all their machines. Pools consume capacity one after the
/// other, as if all changed at the same time and deleted machines released nothing.
pub fn evaluate_capacity(limits: &[Limit], workers: &mut [WorkerChange]) {
    for limit in limits {
        let mut covered = Covered { limit, known: BTreeMap::new() };
        let used = limit.used.unwrap_or_else(|| {
            let placements = workers.iter().flat_map(|worker| &worker.placements);
            placements
                .map(|placement| covered.units(placement.old_machine.as_ref(), placement.nodes.before))
                .fold(0, i64::saturating_add)
        });
        let mut left = limit.total.saturating_sub(used);
        for worker in workers.iter_mut() {
            for (pool, more) in needed_by_pool(&mut covered, worker).into_iter().filter(|(_, more)| *more > 0) {
                if more > left {
                    let message = exceeded(limit, more, left.max(0));
                    worker.findings.push(Finding::of_pool(FindingKind::CapacityExceeded, &pool, message));
                }
                left = left.saturating_sub(more);
            }
        }
    }
    for worker in workers.iter_mut() {
        worker.findings.extend(unlimited(limits, &worker.placements));
        worker.findings.sort_by_key(|finding| finding.severity);
    }
}

/// The units that each pool needs in addition to what it has before, in the order of the pools. Where zones roll one after the
/// other, only the zone with the largest surge counts for what is needed temporarily.
fn needed_by_pool(covered: &mut Covered<'_>, worker: &WorkerChange) -> Vec<(String, i64)> {
    let mut needed: Vec<(String, Need)> = Vec::new();
    for placement in &worker.placements {
        let need = covered.needed(placement);
        let is_paced = |finding: &Finding| {
            finding.kind == FindingKind::ZoneByZone && finding.pool.as_deref() == Some(&placement.pool)
        };
        match needed.iter_mut().find(|(pool, _)| *pool == placement.pool) {
            None => needed.push((placement.pool.clone(), need)),
            Some((_, of_pool)) => {
                of_pool.lasting = of_pool.lasting.saturating_add(need.lasting);
                of_pool.temporary = match worker.findings.iter().any(is_paced) {
                    true => of_pool.temporary.max(need.temporary),
                    false => of_pool.temporary.saturating_add(need.temporary),
                };
            }
        }
    }
    needed.into_iter().map(|(pool, need)| (pool, need.lasting.saturating_add(need.temporary))).collect()
}

fn exceeded(limit: &Limit, more: i64, left: i64) -> String {
    let unit = match limit.unit {
        LimitUnit::Cpus => "vCPUs",
        LimitUnit::Machines => "machines",
    };
    let name = shortened(&escaped(&limit.name), NAME);
    let at_most = if limit.used.is_none() { "at most " } else { "" };
    format!(
        "{more} more {unit} are needed for a time, and {at_most}{left} of {} are left for it in {name:?}: not all machines come",
        limit.total
    )
}

/// Findings for pools whose new machines are covered only by limits for all machine types.
fn unlimited(limits: &[Limit], placements: &[PlacementChange]) -> Vec<Finding> {
    let specific: Vec<&Limit> = limits.iter().filter(|limit| limit.types != LimitedTypes::All).collect();
    let mut findings: Vec<Finding> = Vec::new();
    if specific.is_empty() {
        return findings;
    }
    for placement in placements {
        let comes = placement.verdict.is_roll() || placement.verdict == Verdict::Create;
        if !comes {
            continue;
        }
        let Some(machine) = &placement.new_machine else { continue };
        let is_limited = specific.iter().any(|limit| limit.types.contain(&machine.machine_type));
        let is_known = findings.iter().any(|finding| finding.pool.as_deref() == Some(&placement.pool));
        if !is_limited && !is_known {
            let machine_type = shortened(&escaped(&machine.machine_type), NAME);
            let message = format!("the file has no limit for machines of type {machine_type:?}");
            findings.push(Finding::of_pool(FindingKind::CapacityUnknown, &placement.pool, message));
        }
    }
    findings
}

/// The units that a change needs in addition to what was there before.
#[derive(Clone, Copy, Default)]
struct Need {
    /// Those that it has at the end.
    lasting: i64,
    /// The maximum of further ones on the way.
    temporary: i64,
}

/// A limit, with the machine types that were matched so far.
struct Covered<'a> {
    limit: &'a Limit,
    known: BTreeMap<String, bool>,
}

impl Covered<'_> {
    /// The units that these machines use of the limit.
    fn units(&mut self, machine: Option<&MachineSize>, machines: i64) -> i64 {
        let Some(machine) = machine else { return 0 };
        if self.limit.region.as_ref().is_some_and(|region| *region != machine.region) {
            return 0;
        }
        let is_covered = match self.known.get(&machine.machine_type) {
            Some(known) => *known,
            None => {
                let is_covered = self.limit.types.contain(&machine.machine_type);
                self.known.insert(machine.machine_type.clone(), is_covered);
                is_covered
            }
        };
        let of_each = match self.limit.unit {
            _ if !is_covered => 0,
            LimitUnit::Cpus => machine.cpus,
            LimitUnit::Machines => 1,
        };
        machines.saturating_mul(of_each)
    }

    fn needed(&mut self, placement: &PlacementChange) -> Need {
        let PlacementChange { old_machine, new_machine, nodes, verdict, .. } = placement;
        let grown = self.units(new_machine.as_ref(), nodes.after.saturating_sub(nodes.before).max(0));
        match verdict {
            Verdict::Create | Verdict::Scale => Need { lasting: grown, temporary: 0 },
            Verdict::Roll | Verdict::InPlace => {
                let above = placement.surge.as_ref().map(|surge| surge.above).unwrap_or_default();
                // First the surge is created. Finally all machines are new, and the old machines of the surge are not
                // deleted yet.
                let first = self.units(new_machine.as_ref(), above);
                let [all_new, all_old, surge] =
                    [(new_machine, nodes.before), (old_machine, nodes.before), (old_machine, above.min(nodes.before))]
                        .map(|(machine, number)| self.units(machine.as_ref(), number));
                let last = all_new.saturating_sub(all_old).saturating_add(surge);
                let lasting = all_new.saturating_sub(all_old).max(0);
                let temporary = first.max(last).max(0).saturating_sub(lasting).max(0);
                Need { lasting: lasting.saturating_add(grown), temporary }
            }
            Verdict::Delete | Verdict::Metadata | Verdict::None => Need::default(),
        }
    }
}

impl LimitedTypes {
    /// Whether a machine type is one of them.
    #[must_use]
    pub fn contain(&self, machine_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Patterns(patterns) => patterns.iter().any(|pattern| matches(pattern, machine_type)),
            Self::AzureFamily(family) => is_of_azure_family(machine_type, family),
            Self::AwsClasses(classes) => aws_classes(machine_type).iter().any(|own| classes.contains(own)),
        }
    }
}

/// Whether a machine type of Azure belongs to a family as quotas name it: `Standard_D4ds_v5` is in
/// `standardDDSv5Family`. From version 6 on, some families omit the `s` for premium storage: `Standard_D4as_v6` is in
/// `standardDav6Family`.
fn is_of_azure_family(machine_type: &str, family: &str) -> bool {
    let of_type = || {
        let mut parts = machine_type.strip_prefix("Standard_")?.split('_');
        let size = parts.next()?;
        let digits = |character: char| character.is_ascii_digit() || character == '-';
        let letters = size.get(..size.find(digits)?)?;
        let mut features = size.trim_start_matches(char::is_alphabetic).trim_start_matches(digits).to_owned();
        if ["B", "M"].contains(&letters) {
            // Letters for the amount of memory do not make another family.
            features.retain(|feature| !['m', 'l', 't'].contains(&feature));
        }
        let rest: String = parts.collect();
        let named = |features: &str| format!("standard{letters}{features}{rest}Family").eq_ignore_ascii_case(family);
        let is_new =
            rest.rsplit('v').next().and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number > 5);
        Some(named(&features) || is_new && features.strip_suffix('s').is_some_and(named))
    };
    of_type().unwrap_or(false)
}

/// The classes of an AWS machine type as quotas name them: `im4gn.large` belongs to `im` or to `i`.
fn aws_classes(machine_type: &str) -> Vec<String> {
    let class: String = machine_type.chars().take_while(char::is_ascii_alphabetic).collect();
    let is_of_its_own = ["dl", "hpc", "inf", "mac", "trn", "u", "vt"].contains(&class.as_str());
    match class.get(..1) {
        Some(first) if !is_of_its_own => vec![first.to_owned(), class],
        _ => vec![class],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preview::{Nodes, SurgePlan};

    #[test]
    fn machine_types_are_of_the_families_that_clouds_name() {
        for (machine_type, family) in [
            ("Standard_D4s_v5", "standardDSv5Family"),
            ("Standard_D4ds_v5", "standardDDSv5Family"),
            ("Standard_E4-2as_v5", "standardEASv5Family"),
            ("Standard_B2ms", "standardBSFamily"),
            ("Standard_B2ats_v2", "standardBasv2Family"),
            ("Standard_D4as_v6", "standardDav6Family"),
            ("Standard_D4ds_v6", "StandardDdsv6Family"),
            ("Standard_NC24ads_A100_v4", "StandardNCADSA100v4Family"),
            ("Standard_F8s_v2", "standardFSv2Family"),
        ] {
            assert!(LimitedTypes::AzureFamily(family.to_owned()).contain(machine_type), "{machine_type}");
            assert!(!LimitedTypes::AzureFamily("standardXFamily".to_owned()).contain(machine_type), "{machine_type}");
        }
        for (machine_type, class) in
            [("m5.large", "m"), ("im4gn.large", "i"), ("gr6.4xlarge", "g"), ("inf2.xlarge", "inf")]
        {
            assert!(LimitedTypes::AwsClasses(vec![class.to_owned()]).contain(machine_type), "{machine_type}");
        }
        assert!(!LimitedTypes::AwsClasses(vec!["i".to_owned()]).contain("inf2.xlarge"));
    }

    /// The messages about two pools with these numbers.
    fn messages(total: i64, used: Option<i64>, old_cpus: i64, new_cpus: i64, above: i64) -> Vec<String> {
        messages_about(&["a", "b"], vec![], (total, used), [old_cpus, new_cpus], above)
    }

    /// The messages about placements of these pools, next to these findings.
    fn messages_about(
        pools: &[&str],
        findings: Vec<Finding>,
        (total, used): (i64, Option<i64>),
        [old_cpus, new_cpus]: [i64; 2],
        above: i64,
    ) -> Vec<String> {
        let machine =
            |cpus: i64| Some(MachineSize { machine_type: format!("m{cpus}"), cpus, region: "here".to_owned() });
        let surge = SurgePlan { above, ..SurgePlan::default() };
        let placement = |pool: &&str| PlacementChange {
            pool: (*pool).to_owned(),
            verdict: Verdict::Roll,
            nodes: Nodes { before: 4, after: 4, affected: 4, seen: true },
            old_machine: machine(old_cpus),
            new_machine: machine(new_cpus),
            surge: Some(surge.clone()),
            ..PlacementChange::default()
        };
        let placements = pools.iter().map(placement).collect();
        let mut workers = [WorkerChange { placements, findings, ..WorkerChange::default() }];
        let types = LimitedTypes::All;
        let limit = Limit { name: "cores".to_owned(), region: None, types, unit: LimitUnit::Cpus, total, used };
        evaluate_capacity(&[limit], &mut workers);
        workers[0]
            .findings
            .iter()
            .filter(|finding| finding.kind != FindingKind::ZoneByZone)
            .map(|finding| format!("{} {}", finding.pool.clone().unwrap_or_default(), finding.message))
            .collect()
    }

    #[test]
    fn one_zone_at_a_time_needs_one_surge() {
        let zones = ["a", "a", "a"];
        let paced = || vec![Finding::of_pool(FindingKind::ZoneByZone, "a", String::new())];
        let together = messages_about(&zones, vec![], (50, Some(48)), [4, 4], 1);
        assert!(together[0].starts_with("a 12 more vCPUs"), "{together:?}");
        let one_by_one = messages_about(&zones, paced(), (50, Some(48)), [4, 4], 1);
        assert!(one_by_one[0].starts_with("a 4 more vCPUs"), "{one_by_one:?}");
        // Larger machines stay: 3 zones · 4 machines · 4 vCPUs, and the surge of one zone.
        let larger = messages_about(&zones, paced(), (50, Some(48)), [4, 8], 1);
        assert!(larger[0].starts_with("a 52 more vCPUs"), "{larger:?}");
    }

    #[test]
    fn a_surge_must_fit_into_what_is_left() {
        let none: [&str; 0] = [];
        assert_eq!(messages(40, Some(32), 4, 4, 1), none);
        assert_eq!(
            messages(39, Some(32), 4, 4, 1),
            ["b 4 more vCPUs are needed for a time, and 3 of 39 are left for it in \"cores\": not all machines come"]
        );
        // 32 vCPUs are in use.
        assert_eq!(messages(39, None, 4, 4, 1).len(), 1);
        assert!(messages(39, None, 4, 4, 1)[0].contains("at most 3 of 39"));
        // In the end, larger machines: 4 · (8 - 4) + 4.
        assert!(
            messages(10, Some(0), 4, 8, 1)[0].starts_with("a 20 more vCPUs"),
            "{:?}",
            messages(10, Some(0), 4, 8, 1)
        );
        // Smaller machines are created before larger ones are deleted.
        assert!(messages(1, Some(0), 8, 4, 2)[0].starts_with("a 8 more vCPUs"), "{:?}", messages(1, Some(0), 8, 4, 2));
        assert_eq!(messages(i64::MAX, Some(i64::MIN), i64::MAX, i64::MAX, i64::MAX).len(), 1, "nothing overflows");
    }
}
