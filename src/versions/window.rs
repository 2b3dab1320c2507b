//! When maintenance of a shoot may run, and when its controller wakes up for it (docs/versions.md#when).

use jiff::civil::Time;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

use crate::api::gardener::TimeWindow;

/// What Gardener keeps free before the end of a window, so that a run ends within it.
const KEPT_FREE: i64 = 15 * 60;
const DAY: i64 = 24 * 60 * 60;

/// The effective window of a day, in UTC. An end before the begin lies on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveWindow {
    /// Second of the day at which it begins.
    begin: i64,
    /// Last second of the day that belongs to it.
    end: i64,
    /// Where the owner lives, as far as the window tells it.
    offset: Offset,
}

impl EffectiveWindow {
    /// Always: of shoots without a window, or with one that can't be read.
    pub const ALWAYS: Self = Self { begin: 0, end: DAY - 1, offset: Offset::UTC };

    /// The window of a shoot, without the last quarter of an hour.
    #[must_use]
    pub fn of(window: Option<&TimeWindow>) -> Self {
        let read = |window: &TimeWindow| {
            let ((begin, offset), (end, _)) = (time_of_day(&window.begin)?, time_of_day(&window.end)?);
            Some(Self { begin, end: (end - KEPT_FREE).rem_euclid(DAY), offset })
        };
        window.and_then(read).unwrap_or(Self::ALWAYS)
    }

    /// Begin and end, in UTC.
    #[must_use]
    pub fn times(&self) -> [Time; 2] {
        [self.begin, self.end].map(|second| Time::midnight().wrapping_add(Span::new().seconds(second)))
    }

    /// The last begin of a window before a moment, or at it.
    #[must_use]
    pub fn begin_of(&self, moment: Timestamp) -> Timestamp {
        let since = (moment.as_second() - self.begin).rem_euclid(DAY);
        Timestamp::from_second(moment.as_second() - since).unwrap_or(moment)
    }

    /// How long it lasts.
    #[must_use]
    pub fn length(&self) -> SignedDuration {
        SignedDuration::from_secs(if self.begin < self.end {
            self.end - self.begin
        } else {
            self.end - self.begin + DAY
        })
    }

    /// The time zone in which the owner wrote it.
    #[must_use]
    pub fn time_zone(&self) -> TimeZone {
        TimeZone::fixed(self.offset)
    }

    /// Whether a moment lies in the window of its day.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        let second = now.as_second().rem_euclid(DAY);
        if self.begin <= self.end {
            (self.begin..=self.end).contains(&second)
        } else {
            second >= self.begin || second <= self.end
        }
    }

    /// Between which moments the next wake-up is drawn, the end excluded: in the window of today if its begin is not over,
    /// else in that of tomorrow. Of a window without any length it is always the one of today.
    #[must_use]
    pub fn wake_up(&self, now: Timestamp) -> [Timestamp; 2] {
        let second = now.as_second().div_euclid(DAY) * DAY + self.begin;
        let today = Timestamp::from_second(second).unwrap_or(now);
        let begin = if now <= today || self.begin == self.end { today } else { today + SignedDuration::from_secs(DAY) };
        [begin, begin + self.length()]
    }
}

/// `220000+0100` as the second of the day in UTC, and the offset.
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
    let (hour, minute, second, zone) = (number(0)?, number(2)?, number(4)?, number(7)? * 3600 + number(9)? * 60);
    if text.len() != 11 || hour > 23 || minute > 59 || second > 59 || number(9)? > 59 {
        return None;
    }
    let offset = Offset::from_seconds(i32::try_from(sign * zone).ok()?).ok()?;
    Some(((hour * 3600 + minute * 60 + second - sign * zone).rem_euclid(DAY), offset))
}
