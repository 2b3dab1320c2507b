//! When maintenance of a shoot may run, and when its controller wakes up for it (docs/versions.md#when).

use jiff::civil::Time;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

use wire::api::gardener::TimeWindow;

/// Time that Gardener reserves at the end of a window, so that a run ends within it.
const RESERVED_SECONDS: i64 = 15 * 60;
const DAY: i64 = 24 * 60 * 60;

/// The effective daily window, in UTC. If the end is before the start, it is on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveWindow {
    /// Second of the day at which it starts.
    begin: i64,
    /// Second of the day at which it ends, inclusive.
    end: i64,
    /// UTC offset in which the owner wrote the window.
    offset: Offset,
}

impl EffectiveWindow {
    /// The whole day, for shoots without a window or with an invalid one.
    pub const ALWAYS: Self = Self { begin: 0, end: DAY - 1, offset: Offset::UTC };

    /// The window of a shoot, without its last quarter of an hour.
    #[must_use]
    pub fn of(window: Option<&TimeWindow>) -> Self {
        let read = |window: &TimeWindow| {
            let ((begin, offset), (end, _)) = (time_of_day(&window.begin)?, time_of_day(&window.end)?);
            Some(Self { begin, end: (end - RESERVED_SECONDS).rem_euclid(DAY), offset })
        };
        window.and_then(read).unwrap_or(Self::ALWAYS)
    }

    /// Start and end, in UTC.
    #[must_use]
    pub fn times(&self) -> [Time; 2] {
        [self.begin, self.end].map(|second| Time::midnight().wrapping_add(Span::new().seconds(second)))
    }

    /// The latest start of a window at or before a moment.
    #[must_use]
    pub fn latest_start(&self, moment: Timestamp) -> Timestamp {
        let since = (moment.as_second() - self.begin).rem_euclid(DAY);
        Timestamp::from_second(moment.as_second() - since).unwrap_or(moment)
    }

    /// The length of the window.
    #[must_use]
    pub fn length(&self) -> SignedDuration {
        SignedDuration::from_secs(if self.begin < self.end {
            self.end - self.begin
        } else {
            self.end - self.begin + DAY
        })
    }

    /// The time zone in which the owner wrote the window.
    #[must_use]
    pub fn time_zone(&self) -> TimeZone {
        TimeZone::fixed(self.offset)
    }

    /// Whether a moment is within the window.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        let second = now.as_second().rem_euclid(DAY);
        if self.begin <= self.end {
            (self.begin..=self.end).contains(&second)
        } else {
            second >= self.begin || second <= self.end
        }
    }

    /// The interval from which the next wake-up is drawn, excluding its end: today's window if it has not started yet,
    /// else tomorrow's. For an empty window, it is always today's.
    #[must_use]
    pub fn wake_up(&self, now: Timestamp) -> [Timestamp; 2] {
        let second = now.as_second().div_euclid(DAY) * DAY + self.begin;
        let today = Timestamp::from_second(second).unwrap_or(now);
        let begin = if now <= today || self.begin == self.end { today } else { today + SignedDuration::from_secs(DAY) };
        [begin, begin + self.length()]
    }
}

/// Parses a time such as `220000+0100` to the second of the day in UTC, and the offset.
fn time_of_day(text: &str) -> Option<(i64, Offset)> {
    let number = |from: usize| -> Option<i64> {
        let digits = text.get(from..from + 2)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let sign = match text.as_bytes().get(6)? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hour = number(0)?;
    let minute = number(2)?;
    let second = number(4)?;
    let zone = number(7)? * 3600 + number(9)? * 60;
    if text.len() != 11 || hour > 23 || minute > 59 || second > 59 || number(9)? > 59 {
        return None;
    }
    let offset = Offset::from_seconds(i32::try_from(sign * zone).ok()?).ok()?;
    Some(((hour * 3600 + minute * 60 + second - sign * zone).rem_euclid(DAY), offset))
}
