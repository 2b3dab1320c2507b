//! The controller is killed right before and right after each request that writes, in each flow.
//!
//! The requests of a flow are known by what they do (`POST …/machinedeployments/NAMESPACE-bow-z1`, the second one) and not by
//! their place, because those of different zones go side by side. Whatever an undisturbed flow sends is a point, so the list
//! grows with what is seen. Each life goes through all flows and is killed once in each of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::join_all;

use crate::controller::Chatter;
use crate::flow::Flow;
use crate::life::{Ends, Life};
use crate::proxy::{Call, Treatment};
use crate::report::{Row, Times};
use crate::world::World;

/// How often a point is tried that does not come: e.g. a status on the way that is not told each time.
const TRIES: u32 = 3;
/// So many undisturbed goes show the points of a flow.
const LESSONS: usize = 3;
/// After so many violations nobody needs more.
const ENOUGH: usize = 10;

/// A request that writes, among those of one flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    /// Method and path.
    request: String,
    /// Which of those with the same method and path; the first is 1.
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The API server never hears of it.
    Before,
    /// It is done, but the controller has not heard of it.
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open {
        tries: u32,
    },
    Tried {
        tries: u32,
    },
    Covered,
    /// It did not come again.
    Absent,
}

/// Numbers the writes of one flow.
#[derive(Default)]
struct Numbering(HashMap<String, u32>);

impl Numbering {
    fn number(&mut self, call: &Call) -> Write {
        let request = format!("{} {}", call.method, call.path);
        let number = self.0.entry(request.clone()).or_default();
        *number += 1;
        Write { request, number: *number }
    }
}

type Point = (Write, Moment);

/// Which points there are, and how each stands.
#[derive(Default)]
struct Schedule {
    points: BTreeMap<Flow, BTreeMap<Point, State>>,
    /// From the kill to the end.
    recoveries: BTreeMap<Flow, Vec<Duration>>,
    /// From the request to the end, of flows without a kill.
    undisturbed: BTreeMap<Flow, Vec<Duration>>,
    violations: BTreeMap<Flow, Vec<String>>,
}

impl Schedule {
    fn take(&mut self, flow: Flow) -> Option<Point> {
        let points = self.points.entry(flow).or_default();
        let (point, state) = points.iter_mut().find(|(_, state)| matches!(state, State::Open { .. }))?;
        if let State::Open { tries } = *state {
            *state = State::Tried { tries: tries + 1 };
        }
        Some(point.clone())
    }

    /// Whether a life still has something to do in this flow or a later one.
    fn is_open_from(&self, flow: Flow) -> bool {
        self.points.range(flow..).any(|(_, points)| points.values().any(|state| matches!(state, State::Open { .. })))
    }

    fn settle(&mut self, flow: Flow, point: &Point, came: bool) {
        if let Some(state) = self.points.entry(flow).or_default().get_mut(point) {
            *state = match *state {
                _ if came => State::Covered,
                State::Tried { tries } if tries < TRIES => State::Open { tries },
                State::Tried { .. } => State::Absent,
                other => other,
            };
        }
    }

    fn learn(&mut self, flow: Flow, writes: &[Call]) {
        let mut numbering = Numbering::default();
        for call in writes {
            let write = numbering.number(call);
            for moment in [Moment::Before, Moment::After] {
                let points = self.points.entry(flow).or_default();
                points.entry((write.clone(), moment)).or_insert(State::Open { tries: 0 });
            }
        }
    }

    fn goes_on(&self) -> bool {
        self.is_open_from(Flow::Create) && self.violations.values().map(Vec::len).sum::<usize>() < ENOUGH
    }
}

/// Runs all of it, with so many lives side by side; with a budget, no life begins after it and what is left is left.
pub(crate) async fn run(world: &World, ends: &Ends, side_by_side: usize, budget: Option<Duration>) -> Result<Vec<Row>> {
    let start = Instant::now();
    let is_over = || budget.is_some_and(|budget| start.elapsed() > budget);
    let schedule = Mutex::new(Schedule::default());
    // The first one is not disturbed: it shows the points.
    live(world, ends, &schedule).await.context("the life without faults")?;
    join_all((0..side_by_side).map(async |_| {
        while !is_over() && lock(&schedule).goes_on() {
            if let Err(error) = live(world, ends, &schedule).await {
                lock(&schedule).violations.entry(Flow::Create).or_default().push(format!("{error:#}"));
            }
        }
    }))
    .await;
    let schedule = schedule.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Flow::ALL.into_iter().map(|flow| row(flow, &schedule, budget.is_some())).collect())
}

/// One life, until nothing is left to do for it.
async fn live(world: &World, ends: &Ends, schedule: &Mutex<Schedule>) -> Result<()> {
    let mut life = Life::begin_with(world, "crash", ends, Chatter::Usual).await?;
    let mut last = Flow::Create;
    let first = lock(schedule).points.is_empty();
    for flow in Flow::ALL {
        if !first && !lock(schedule).is_open_from(flow) {
            break;
        }
        last = flow;
        let point = lock(schedule).take(flow);
        if let Err(error) = go(&mut life, flow, point.as_ref(), schedule).await {
            let point = point.map_or_else(String::new, |(write, moment)| {
                format!(", killed {moment:?} {} (number {})", write.request, write.number)
            });
            let violation = format!("{}{point}: {error:#}", flow.name());
            lock(schedule).violations.entry(flow).or_default().push(violation);
            break;
        }
    }
    let found = life.judge().await?;
    lock(schedule).violations.entry(last).or_default().extend(found);
    Ok(())
}

async fn go(life: &mut Life<'_>, flow: Flow, point: Option<&Point>, schedule: &Mutex<Schedule>) -> Result<()> {
    life.controller.proxy.take_writes();
    if let Some((write, moment)) = point.cloned() {
        let mut numbering = Numbering::default();
        life.set_faults(move |call| {
            if !call.writes() || numbering.number(call) != write {
                return Treatment::Forward;
            }
            match moment {
                Moment::Before => Treatment::StopBefore,
                Moment::After => Treatment::StopAfter,
            }
        });
    }
    let went = life.go(flow).await;
    life.controller.proxy.clear_faults();
    let writes = life.controller.proxy.take_writes();
    let mut schedule = lock(schedule);
    let went = went?;
    if let Some(point) = point {
        schedule.settle(flow, point, went.recovered_in.is_some());
    }
    match went.recovered_in {
        Some(time) => schedule.recoveries.entry(flow).or_default().push(time),
        None => {
            let undisturbed = schedule.undisturbed.entry(flow).or_default();
            undisturbed.push(went.took);
            if undisturbed.len() <= LESSONS {
                schedule.learn(flow, &writes);
            }
        }
    }
    Ok(())
}

fn row(flow: Flow, schedule: &Schedule, is_sample: bool) -> Row {
    let states = schedule.points.get(&flow).into_iter().flat_map(BTreeMap::values);
    let count = |wanted: fn(&State) -> bool| states.clone().filter(|state| wanted(state)).count();
    let covered = count(|state| *state == State::Covered);
    let absent = count(|state| *state == State::Absent);
    let mut violations = schedule.violations.get(&flow).cloned().unwrap_or_default();
    let open = count(|state| matches!(state, State::Open { .. } | State::Tried { .. }));
    if open > 0 && violations.is_empty() && !is_sample {
        violations.push(format!("{open} points were not reached"));
    }
    let times = |of: &BTreeMap<Flow, Vec<Duration>>| Times::of(of.get(&flow).cloned().unwrap_or_default());
    Row {
        what: format!("killed before and after each write: {}", flow.name()),
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

fn lock(schedule: &Mutex<Schedule>) -> MutexGuard<'_, Schedule> {
    schedule.lock().unwrap_or_else(PoisonError::into_inner)
}
