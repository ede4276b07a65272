//! The time at the head of a log line: `2026-11-15T11:48:02.123456Z`.
//!
//! A line is written for every turn, and a general formatter of dates costs as much as the rest of the line. So a second
//! is formatted once, and of each line only what comes behind it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::log_text::digit;

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// A second as it stands in a line, `2026-11-15T11:48:02.`: the lines of one second share it.
pub(crate) struct Second {
    since_epoch: u64,
    /// Empty before the first line.
    text: String,
}

impl Second {
    /// No second yet.
    pub(crate) const fn new() -> Self {
        Self { since_epoch: 0, text: String::new() }
    }

    /// Writes what time it is.
    pub(crate) fn push_now(&mut self, line: &mut String) {
        #[expect(clippy::disallowed_methods, reason = "the log says when it was written, in tests as well")]
        let now = SystemTime::now();
        self.push(line, now.duration_since(UNIX_EPOCH).unwrap_or_default());
    }

    fn push(&mut self, line: &mut String, since_epoch: Duration) {
        if self.since_epoch != since_epoch.as_secs() || self.text.is_empty() {
            self.since_epoch = since_epoch.as_secs();
            self.text = second(self.since_epoch);
        }
        line.push_str(&self.text);
        let micros = u64::from(since_epoch.subsec_micros());
        for unit in [100_000, 10_000, 1000, 100, 10, 1] {
            line.push(digit(micros / unit));
        }
        line.push('Z');
    }
}

fn second(since_epoch: u64) -> String {
    let (year, month, day) = date(since_epoch / SECONDS_A_DAY);
    let in_day = since_epoch % SECONDS_A_DAY;
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.")
}

/// Year, month and day of a number of days after the first of January 1970.
///
/// Years are counted from March on, so that the day of a leap year is the last one, and in rounds of 400, after which
/// the calendar repeats itself.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_OF_YEAR_0;
    let (round, in_round) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let leap_days = in_round / 1460 - in_round / 36_524 + in_round / 146_096;
    let year = (in_round - leap_days) / 365;
    let in_year = in_round - (365 * year + year / 4 - year / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, and again.
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let (month, passed) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * round + year + passed, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: u64, micros: u32, expected: &str) {
        let mut line = String::new();
        Second::new().push(&mut line, Duration::new(seconds, micros * 1000));
        assert_eq!(line, expected);
    }

    #[test]
    fn the_time_is_written_as_people_read_it() {
        check(0, 0, "1970-01-01T00:00:00.000000Z");
        check(951_782_399, 999_999, "2000-02-28T23:59:59.999999Z");
        check(951_782_400, 1, "2000-02-29T00:00:00.000001Z");
        check(951_868_800, 0, "2000-03-01T00:00:00.000000Z");
        check(1_794_743_282, 123_456, "2026-11-15T11:48:02.123456Z");
        check(4_107_542_399, 0, "2100-02-28T23:59:59.000000Z");
        check(4_107_542_400, 0, "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn lines_of_one_second_and_of_the_next_ones_tell_their_own_time() {
        let mut second = Second::new();
        for millis in [0, 1, 999, 1000, 1001, 59_999, 60_000, 86_399_999, 86_400_000, 86_400_000, 1000, 0] {
            let (mut line, mut alone) = (String::new(), String::new());
            second.push(&mut line, Duration::from_millis(millis));
            Second::new().push(&mut alone, Duration::from_millis(millis));
            assert_eq!(line, alone);
        }
    }

    #[test]
    fn every_day_follows_the_one_before_it() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..400_000 {
            assert_eq!(date(days), (year, month, day));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}
