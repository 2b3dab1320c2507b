//! Tests with replicas that share a Secret while clocks jump: the API server always accepts each replica's certificate.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;

use super::certificate_authority::{CaBundle, CaSecret, Rotation, Step};
use super::clocks::{Clocks, ServerClock};
use super::live_certificate::LiveCertificate;
use super::rotation::Lifetimes;
use super::trust::refusal;

const NAME: &str = "admission.garden.svc";
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How often each replica acts.
const PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// Jumps of a clock, in seconds.
const JUMPS: [i64; 6] = [HOUR, -HOUR, 40 * DAY, -40 * DAY, 3650 * DAY, -3650 * DAY];

#[derive(Default)]
struct Replica {
    /// How far its clock is ahead.
    ahead: SignedDuration,
    live: LiveCertificate,
    /// The bundle that it has published, and when.
    published: Option<(CaBundle, Timestamp)>,
}

/// Replicas, their Secret, and the API server.
struct World {
    rotation: Rotation,
    now: Timestamp,
    /// How far the clock of the API server is ahead; `None` if its answers have no date.
    server_ahead: Option<SignedDuration>,
    secret: Option<Secret>,
    registered: CaBundle,
    replicas: [Replica; 3],
}

impl World {
    /// After the first round.
    fn new() -> Self {
        let lifetimes =
            Lifetimes { validity: Duration::from_secs(30 * 24 * 3600), announcement: Duration::from_secs(300) };
        let mut world = Self {
            rotation: Rotation { secret: "s".to_owned(), names: vec![NAME.to_owned()], lifetimes },
            now: "2026-11-28T12:00:00Z".parse().unwrap(),
            server_ahead: Some(SignedDuration::ZERO),
            secret: None,
            registered: CaBundle::default(),
            replicas: Default::default(),
        };
        world.round();
        world
    }

    fn clocks(&self, replica: usize) -> Clocks {
        let server = self.server_ahead.map_or(ServerClock::Unknown, |ahead| ServerClock::Time(self.now + ahead));
        Clocks { own: self.now + self.replicas[replica].ahead, server }
    }

    /// One replica performs a step with these clocks, which may be wrong.
    fn act(&mut self, replica: usize, clocks: Clocks) {
        let kept = self.secret.as_ref().and_then(CaSecret::read);
        let bundle = kept.as_ref().map(CaSecret::bundle);
        let published = self.replicas[replica].published.as_ref();
        let published = published.filter(|(published, _)| Some(published) == bundle.as_ref());
        let published = published.map_or(SignedDuration::ZERO, |(_, since)| self.now.duration_since(*since));
        let kept = match self.rotation.step(kept, published.unsigned_abs(), clocks).unwrap() {
            Step::Keep(kept) => kept,
            Step::Write(_, kept) => {
                self.secret = Some(Secret { data: Some(kept.data().unwrap()), ..Secret::default() });
                kept
            }
        };
        let rotated = kept.used(&self.replicas[replica].live).unwrap();
        let published = &mut self.replicas[replica].published;
        if published.as_ref().is_none_or(|(published, _)| *published != rotated.bundle) {
            *published = Some((rotated.bundle.clone(), self.now));
        }
        self.registered = rotated.bundle;
    }

    /// Each replica acts once.
    fn round(&mut self) {
        self.now += PERIOD;
        for replica in 0..self.replicas.len() {
            self.act(replica, self.clocks(replica));
        }
    }

    /// Why the API server refuses a replica.
    fn refused(&self) -> Option<String> {
        let at = self.now + self.server_ahead.unwrap_or_default();
        let refused = |replica: &Replica| refusal(&replica.live.chain(), &self.registered, NAME, at);
        self.replicas.iter().find_map(refused)
    }
}

#[test]
fn a_jumping_clock_of_replicas_changes_nothing() {
    for jump in JUMPS {
        for jumping in [0..1, 2..3, 0..3] {
            let mut world = World::new();
            let before = world.secret.clone();
            world.replicas[jumping.clone()].iter_mut().for_each(|one| one.ahead = SignedDuration::from_secs(jump));
            world.round();
            world.round();
            assert_eq!(world.refused(), None, "{jump} {jumping:?}");
            world.replicas.iter_mut().for_each(|one| one.ahead = SignedDuration::ZERO);
            world.round();
            assert_eq!(world.refused(), None, "{jump} {jumping:?}");
            assert_eq!(world.secret, before, "{jump} {jumping:?}");
        }
    }
}

#[test]
fn recovers_after_all_clocks_have_jumped() {
    for jump in JUMPS {
        let mut world = World::new();
        world.server_ahead = Some(SignedDuration::from_secs(jump));
        world.replicas.iter_mut().for_each(|one| one.ahead = SignedDuration::from_secs(jump));
        world.round();
        assert_eq!(world.refused(), None, "{jump}");
        world.server_ahead = Some(SignedDuration::ZERO);
        world.replicas.iter_mut().for_each(|one| one.ahead = SignedDuration::ZERO);
        world.round();
        assert_eq!(world.refused(), None, "{jump}");
    }
}

/// An older version of this program does not compare clocks.
#[test]
fn repairs_what_a_wrong_clock_has_written() {
    for jump in JUMPS.into_iter().filter(|jump| jump.abs() > HOUR) {
        let mut world = World::new();
        let wrong = world.now + SignedDuration::from_secs(jump);
        world.act(1, Clocks { own: wrong, server: ServerClock::Time(wrong) });
        assert!(world.refused().is_some(), "{jump}");
        world.round();
        assert_eq!(world.refused(), None, "{jump}");
    }
}

#[test]
fn keeps_trust_in_former_authorities_without_a_date() {
    for jump in JUMPS.into_iter().filter(|jump| jump.abs() > HOUR) {
        let mut world = World::new();
        world.server_ahead = None;
        world.replicas[0].ahead = SignedDuration::from_secs(jump);
        let before = world.registered.clone();
        world.act(0, world.clocks(0));
        assert!(world.registered.0.contains(&before.0), "{jump}");
        for replica in [1, 2] {
            let chain = world.replicas[replica].live.chain();
            assert_eq!(refusal(&chain, &world.registered, NAME, world.now), None, "{jump}");
        }
    }
}

/// Clocks that never agree add no authorities without end.
#[test]
fn bounds_the_former_authorities() {
    let mut world = World::new();
    world.server_ahead = None;
    for _ in 0..20 {
        for jump in [40 * DAY, -40 * DAY] {
            world.replicas[0].ahead = SignedDuration::from_secs(jump);
            world.act(0, world.clocks(0));
        }
    }
    assert!(world.registered.0.matches("BEGIN CERTIFICATE").count() <= 6, "{}", world.registered.0);
}

#[test]
fn rotates_without_a_refusal_over_months() {
    let mut world = World::new();
    let mut bundles = 0;
    for _ in 0..150 {
        let before = world.registered.clone();
        world.now += SignedDuration::from_hours(24);
        world.round();
        assert_eq!(world.refused(), None, "{}", world.now);
        bundles += usize::from(before != world.registered);
    }
    assert!(bundles > 10, "{bundles} bundles: that is no rotation");
}
