//! Kills the controller right before and right after each write request in each flow.
//!
//! Requests are identified by what they do (`POST …/machinedeployments/NAMESPACE-bow-z1`, the second one), not by their
//! position, because zones are processed concurrently. All writes of the first undisturbed runs of a flow are points.
//! Each life runs all flows. In each flow the controller is killed at the first open point, and after its restart
//! perhaps at further points. After the last kill, the flow must complete.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::{join_all, try_join_all};

use crate::controller::Chatter;
use crate::flow::{Fleet, Flow};
use crate::life::{Ends, Life};
use crate::report::{Row, Times};
use crate::world::World;
use test_support::proxy::{Call, Treatment};

/// Number of undisturbed runs that determine the points of a flow.
const LESSONS: usize = 3;
/// After this many consecutive runs without an open point, the remaining points are considered rare, for example an
/// intermediate status that is not always reported.
const TRIES: u32 = 3;
/// Stop after this many violations.
const ENOUGH: usize = 10;

/// A write request within a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    /// Method and path.
    request: String,
    /// Ordinal among forwarded requests with the same method and path, starting with 1.
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The API server does not receive it.
    Before,
    /// It is executed, but the controller does not receive the response.
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Covered,
    /// It did not occur again.
    Absent,
}

/// Numbers the writes of one flow.
#[derive(Default)]
struct Numbering(HashMap<String, u32>);

impl Numbering {
    fn next(&self, call: &Call) -> Write {
        // Names of events contain message and time, so they differ in each life.
        let path = call.path.split_inclusive("/events/").next().unwrap_or_default();
        let request = format!("{} {path}", call.method);
        let number = self.0.get(&request).copied().unwrap_or_default() + 1;
        Write { request, number }
    }

    /// The API server receives it.
    fn arrives(&mut self, write: Write) {
        self.0.insert(write.request, write.number);
    }
}

type Point = (Write, Moment);

/// All points and their state.
#[derive(Default)]
struct Schedule {
    points: BTreeMap<Flow, BTreeMap<Point, State>>,
    /// Consecutive runs without an open point.
    in_vain: BTreeMap<Flow, u32>,
    /// Durations from the last kill to the end.
    recoveries: BTreeMap<Flow, Vec<Duration>>,
    /// Durations from the request to the end, in runs without a kill.
    undisturbed: BTreeMap<Flow, Vec<Duration>>,
    violations: BTreeMap<Flow, Vec<String>>,
}

impl Schedule {
    /// Returns an open point of this write. Repeated requests in a flow, such as a status, are only identifiable before
    /// the first kill, because a new process repeats some of them.
    fn take(&mut self, flow: Flow, write: &Write, is_first_kill: bool) -> Option<Moment> {
        let points = self.points.entry(flow).or_default();
        let second = Write { number: 2, ..write.clone() };
        if !is_first_kill && (write.number > 1 || points.contains_key(&(second, Moment::Before))) {
            return None;
        }
        let taken = [Moment::Before, Moment::After].into_iter().find_map(|moment| {
            let state = points.get_mut(&(write.clone(), moment)).filter(|state| **state == State::Open)?;
            *state = State::Covered;
            Some(moment)
        });
        if taken.is_some() {
            self.in_vain.remove(&flow);
        }
        taken
    }

    /// Records a run without a kill in which no open point occurred.
    fn in_vain(&mut self, flow: Flow) {
        let times = self.in_vain.entry(flow).or_default();
        *times += 1;
        if *times >= TRIES {
            let points = self.points.entry(flow).or_default();
            points.values_mut().filter(|state| **state == State::Open).for_each(|state| *state = State::Absent);
        }
    }

    /// Whether this flow or a later one still has open points.
    fn is_open_from(&self, flow: Flow) -> bool {
        self.points.range(flow..).any(|(_, points)| points.values().any(|state| *state == State::Open))
    }

    fn learn(&mut self, flow: Flow, writes: &[Call]) {
        let (mut numbering, points) = (Numbering::default(), self.points.entry(flow).or_default());
        for call in writes {
            let write = numbering.next(call);
            for moment in [Moment::Before, Moment::After] {
                points.entry((write.clone(), moment)).or_insert(State::Open);
            }
            numbering.arrives(write);
        }
    }

    fn continues(&self) -> bool {
        self.is_open_from(Flow::Create) && self.violations.values().map(Vec::len).sum::<usize>() < ENOUGH
    }
}

/// Runs everything for a fleet, with this many concurrent lives and kills per run of a flow.
pub(crate) async fn run(
    world: &World,
    ends: &Ends,
    fleet: Fleet,
    side_by_side: usize,
    most_kills: usize,
) -> Result<Vec<Row>> {
    let schedule = Arc::new(Mutex::new(Schedule::default()));
    let lessons = (0..LESSONS).map(async |_| live(world, ends, fleet, &schedule, Purpose::Lesson).await);
    try_join_all(lessons).await.context("a life without faults")?;
    join_all((0..side_by_side).map(async |_| {
        while lock(&schedule).continues() {
            if let Err(error) = live(world, ends, fleet, &schedule, Purpose::Kills(most_kills)).await {
                lock(&schedule).violations.entry(Flow::Create).or_default().push(format!("{error:#}"));
            }
        }
    }))
    .await;
    let schedule = lock(&schedule);
    Ok(fleet.flows().iter().map(|flow| row(fleet, *flow, &schedule)).collect())
}

/// The purpose of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Determine the points.
    Lesson,
    /// Kill at open points, at most this often per run of a flow.
    Kills(usize),
}

/// Runs one life, until no work is left for it.
async fn live(
    world: &World,
    ends: &Ends,
    fleet: Fleet,
    schedule: &Arc<Mutex<Schedule>>,
    purpose: Purpose,
) -> Result<()> {
    let mut life = Life::begin_with(world, "crash", ends, Chatter::Usual, fleet).await?;
    let mut last = Flow::Create;
    for flow in fleet.flows().iter().copied() {
        if purpose != Purpose::Lesson && !lock(schedule).is_open_from(flow) {
            break;
        }
        last = flow;
        let kills = Arc::<Mutex<Vec<Point>>>::default();
        if let Err(error) = go(&mut life, flow, schedule, purpose, &kills).await {
            let kills: String = lock(&kills)
                .iter()
                .map(|(write, moment)| format!(", killed {moment:?} {} (number {})", write.request, write.number))
                .collect();
            let violation = format!("{}{kills}: {error:#}", flow.name());
            lock(schedule).violations.entry(flow).or_default().push(violation);
            break;
        }
    }
    let found = life.evaluate().await?;
    lock(schedule).violations.entry(last).or_default().extend(found);
    Ok(())
}

async fn go(
    life: &mut Life<'_>,
    flow: Flow,
    schedule: &Arc<Mutex<Schedule>>,
    purpose: Purpose,
    kills: &Arc<Mutex<Vec<Point>>>,
) -> Result<()> {
    life.controller.proxy.take_writes();
    if let Purpose::Kills(most) = purpose {
        life.set_faults(killing(flow, most, Arc::clone(schedule), Arc::clone(kills)));
    }
    let went = life.go(flow).await;
    life.controller.proxy.clear_faults();
    let writes = life.controller.proxy.take_writes();
    let went = went?;
    let mut schedule = lock(schedule);
    match (went.recovered_in, purpose) {
        (Some(time), _) => schedule.recoveries.entry(flow).or_default().push(time),
        (None, Purpose::Kills(_)) => schedule.in_vain(flow),
        (None, Purpose::Lesson) => schedule.learn(flow, &writes),
    }
    if went.recovered_in.is_none() {
        schedule.undisturbed.entry(flow).or_default().push(went.took);
    }
    Ok(())
}

/// Stops the world at each open point.
fn killing(
    flow: Flow,
    most: usize,
    schedule: Arc<Mutex<Schedule>>,
    kills: Arc<Mutex<Vec<Point>>>,
) -> impl FnMut(&Call) -> Treatment + Send + 'static {
    let mut numbering = Numbering::default();
    move |call| {
        if !call.writes() {
            return Treatment::Forward;
        }
        let (write, mut kills) = (numbering.next(call), lock(&kills));
        let moment = (kills.len() < most).then(|| lock(&schedule).take(flow, &write, kills.is_empty())).flatten();
        kills.extend(moment.map(|moment| (write.clone(), moment)));
        if moment != Some(Moment::Before) {
            numbering.arrives(write);
        }
        match moment {
            None => Treatment::Forward,
            Some(Moment::Before) => Treatment::StopBefore,
            Some(Moment::After) => Treatment::StopAfter,
        }
    }
}

fn row(fleet: Fleet, flow: Flow, schedule: &Schedule) -> Row {
    let points = schedule.points.get(&flow).cloned().unwrap_or_default();
    let count = |expected: fn(&State) -> bool| points.values().filter(|state| expected(state)).count();
    let covered = count(|state| *state == State::Covered);
    let absent = count(|state| *state == State::Absent);
    for ((write, moment), _) in points.iter().filter(|(_, state)| **state == State::Absent) {
        println!("{}, {}, rare: {moment:?} {} (number {})", fleet.name(), flow.name(), write.request, write.number);
    }
    let mut violations = schedule.violations.get(&flow).cloned().unwrap_or_default();
    let open = count(|state| *state == State::Open);
    if open > 0 && violations.is_empty() {
        violations.push(format!("{open} points were not reached"));
    }
    let times = |of: &BTreeMap<Flow, Vec<Duration>>| Times::of(of.get(&flow).cloned().unwrap_or_default());
    Row {
        what: format!("{}, killed before and after each write: {}", fleet.name(), flow.name()),
        covered: format!(
            "{covered} of {} points{}",
            covered + open,
            if absent > 0 { format!(", {absent} rare") } else { String::new() }
        ),
        undisturbed: times(&schedule.undisturbed),
        recovery: times(&schedule.recoveries),
        violations,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no partial state, so ignore poisoning.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
