//! Which lives exist: the themes of seed ranges, and the number of lives per run.

use std::ops::Range;

/// The theme of a life, in addition to the events of every life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Everything,
    /// The Worker is deleted amid faults.
    DeletedInTrouble,
    /// Two controllers are shards.
    Shards,
    /// The Worker is deleted amid faults, and some kinds are relisted separately.
    RelistedKinds,
    /// A user removes the Worker's finalizer.
    LetGoByHand,
    /// The autoscaler acts just before the last request, and watches are slow.
    ScaledFirst,
    /// The shoot moves while it is hibernated.
    MovedHibernated,
    /// The shoot is deleted and recreated with the same name.
    Recreated,
    /// Boot scripts change while their names stay.
    BootScriptsReplaced,
    /// Processes are suspended for a while and resumed.
    Suspended,
    /// Pools depend on server groups at OpenStack.
    ServerGroups,
    /// Pools depend on scale sets at Azure.
    ScaleSets,
    /// Images of the CloudProfile change, disappear and return.
    ImagesChanged,
    /// Machines are updated in place, and shoots move during that.
    UpdatedInPlace,
    /// The shoot is woken up or deleted while the stop of machine-controller-manager for its hibernation is in transit.
    StoppedLate,
    /// The shoot moves while watches are slow, and finalizers of machine objects are removed before the objects are
    /// deleted.
    MovedLate,
    /// The zones of a pool roll one after the other.
    ZoneByZone,
    /// A roll budget holds pools.
    Budget,
    /// A person stops rolls.
    Stopped,
}

/// Distance between the seeds of themes.
const STRIDE: u64 = 10_000_000_000;

/// Each theme with its number of lives in the deep tier. Its seeds begin at its index times [`STRIDE`].
const THEMES: [(Theme, u64); 19] = [
    (Theme::Everything, 600),
    (Theme::DeletedInTrouble, 100),
    (Theme::Shards, 100),
    (Theme::RelistedKinds, 100),
    (Theme::LetGoByHand, 100),
    (Theme::ScaledFirst, 100),
    (Theme::MovedHibernated, 100),
    (Theme::Recreated, 100),
    (Theme::BootScriptsReplaced, 100),
    (Theme::Suspended, 100),
    (Theme::ServerGroups, 100),
    (Theme::ScaleSets, 100),
    (Theme::ImagesChanged, 100),
    (Theme::UpdatedInPlace, 100),
    (Theme::StoppedLate, 100),
    (Theme::MovedLate, 50),
    (Theme::ZoneByZone, 480),
    (Theme::Budget, 320),
    (Theme::Stopped, 160),
];

/// The default tier runs one of this many deep lives of each theme, from its first seeds.
const DEEP_LIVES_PER_DEFAULT_LIFE: u64 = 8;

/// How many lives a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// About 400, for each change.
    Default,
    /// About 3,000, every night.
    Deep,
}

/// Further seeds that once broke a rule. Every tier runs them.
const ONCE_BROKEN: &[u64] = &[
    2_055,
    2_277,
    2_460,
    4_607,
    4_648,
    6_092,
    7_881,
    8_457,
    8_595,
    15_855,
    16_491,
    17_852,
    19_104,
    19_864,
    22_424,
    22_921,
    24_051,
    31_846,
    38_444,
    39_719,
    39_860,
    51_252,
    15_468,
    17_652,
    24_052,
    30_596,
    156_375,
    211_213,
    110_000_007_551,
    70_000_001_570,
    130_000_003_932,
    70_000_003_714,
    70_000_002_927,
    120_000_004_160,
    50_000_000_241,
    40_000_006_170,
    90_000_005_249,
    30_000_002_874,
    150_000_003_090,
];

impl Theme {
    /// The theme of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let location = usize::try_from(seed / STRIDE).unwrap_or(usize::MAX);
        let (theme, _) = THEMES.get(location).expect("no lives are so far");
        *theme
    }
}

/// The first seed of each theme, with its number of lives in the deep tier.
fn themes() -> impl Iterator<Item = (u64, u64)> + Send {
    THEMES.iter().zip(0..).map(|((_, lives), location): (_, u64)| (location * STRIDE, *lives))
}

/// The seeds of a tier.
pub(crate) fn of_tier(tier: Tier) -> impl Iterator<Item = u64> + Send {
    let divisor = match tier {
        Tier::Default => DEEP_LIVES_PER_DEFAULT_LIFE,
        Tier::Deep => 1,
    };
    themes().flat_map(move |(first, lives)| first..first + lives / divisor).chain(ONCE_BROKEN.iter().copied())
}

/// One seed of each theme in turn, without end.
pub(crate) fn without_end() -> impl Iterator<Item = u64> + Send {
    (0..STRIDE).flat_map(|seed| themes().map(move |(first, _)| first + seed))
}

/// Seeds from `SEEDS`: a number of them, or `FIRST..END`.
pub(crate) fn named(seeds: &str) -> Range<u64> {
    let number = |text: &str| text.trim().parse().expect("SEEDS is a number or a range");
    match seeds.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(seeds),
    }
}
