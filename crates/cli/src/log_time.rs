//! The time at the head of a log line: `2026-11-15T11:48:02.123456Z`.
//!
//! A line is written for every turn, and a general formatter of dates costs as much as the rest of the line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// Writes what time it is.
pub(crate) fn push_now(line: &mut String) {
    #[expect(clippy::disallowed_methods, reason = "the log says when it was written, in tests as well")]
    let now = SystemTime::now();
    push(line, now.duration_since(UNIX_EPOCH).unwrap_or_default());
}

fn push(line: &mut String, since_epoch: Duration) {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = date(seconds / SECONDS_A_DAY);
    let in_day = seconds % SECONDS_A_DAY;
    let micros = u64::from(since_epoch.subsec_micros());
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    let mut time = *b"0000-00-00T00:00:00.000000Z";
    let numbers = [
        (year, 0..4),
        (month, 5..7),
        (day, 8..10),
        (hour, 11..13),
        (minute, 14..16),
        (second, 17..19),
        (micros, 20..26),
    ];
    for (number, digits) in numbers {
        put_number(&mut time[digits], number);
    }
    line.push_str(str::from_utf8(&time).unwrap_or_default());
}

/// Writes the last digits of a number, from the very last one on: then all divisions are by ten, which is cheap.
fn put_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
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
        push(&mut line, Duration::new(seconds, micros * 1000));
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
