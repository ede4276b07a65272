//! The result: a table for people and JSON for scripts.

use std::fmt;

use serde_json::{Value, json};

use crate::rows::Goal;

/// The goals that hold for every row.
const ADDED_LATENCY_GOAL_US: f64 = 300.0;
const PEAK_MEMORY_GOAL_MIB: f64 = 30.0;

pub(crate) struct Summary {
    pub(crate) rows: Vec<RowResult>,
}

pub(crate) struct RowResult {
    pub(crate) name: &'static str,
    pub(crate) goal: Goal,
    pub(crate) cpu_ratio: f64,
    pub(crate) gateway: Figures,
    pub(crate) relay: Figures,
}

/// The cost of one server. Times are medians.
pub(crate) struct Figures {
    pub(crate) cpu_us: f64,
    pub(crate) added_latency_us: f64,
    pub(crate) added_first_event_us: f64,
    pub(crate) peak_memory_mib: f64,
}

/// The median: one outlier does not move it.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

impl Summary {
    pub(crate) fn json(&self) -> Value {
        let figures = |figures: &Figures| {
            let Figures { cpu_us, added_latency_us, added_first_event_us, peak_memory_mib } = figures;
            json!({
                "cpu_us_per_request": cpu_us,
                "added_latency_p50_us": added_latency_us,
                "added_first_event_p50_us": added_first_event_us,
                "peak_memory_mib_at_256_streams": peak_memory_mib,
            })
        };
        let row = |row: &RowResult| {
            json!({
                "row": row.name,
                "gateway": figures(&row.gateway),
                "relay": figures(&row.relay),
                "ratio": {
                    "cpu": row.cpu_ratio,
                    "added_latency": row.gateway.added_latency_us / row.relay.added_latency_us,
                    "added_first_event": row.gateway.added_first_event_us / row.relay.added_first_event_us,
                    "peak_memory": row.gateway.peak_memory_mib / row.relay.peak_memory_mib,
                },
                "cpu_goal": row.goal.ratio(),
            })
        };
        json!({"rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Each cell: gateway / relay = ratio. Latency and first event are what is added to the upstream alone,"
        )?;
        writeln!(
            f,
            "p50 at concurrency 1; memory is the peak with 256 streams open. Rows with an aim do not count"
        )?;
        writeln!(f, "for the bounds below the table.\n")?;
        let heading =
            ["CPU us/request", "added latency us", "added first event us", "peak memory MiB", "CPU goal"];
        let [cpu, latency, first, memory, goal] = heading;
        writeln!(f, "{:<32} {cpu:>22} {latency:>22} {first:>22} {memory:>22} {goal:>12}", "row")?;
        for row in &self.rows {
            let RowResult { name, goal, cpu_ratio, gateway, relay } = row;
            let cell = |gateway: f64, relay: f64| cell(gateway, relay, gateway / relay);
            let cpu = self::cell(gateway.cpu_us, relay.cpu_us, *cpu_ratio);
            let latency = cell(gateway.added_latency_us, relay.added_latency_us);
            let first = cell(gateway.added_first_event_us, relay.added_first_event_us);
            let memory = cell(gateway.peak_memory_mib, relay.peak_memory_mib);
            let goal = match goal {
                Goal::Bound(most) => format!("<= {most:.2} {}", verdict(*cpu_ratio, *most)),
                Goal::Aim(most) => format!("aim {most:.2} {}", verdict(*cpu_ratio, *most)),
                Goal::None => "-".to_owned(),
            };
            writeln!(f, "{name:<32} {cpu:>22} {latency:>22} {first:>22} {memory:>22} {goal:>12}")?;
        }
        let most = |figure: fn(&Figures) -> f64| {
            let bounded = self.rows.iter().filter(|row| !matches!(row.goal, Goal::Aim(_)));
            bounded.map(|row| figure(&row.gateway)).fold(0.0, f64::max)
        };
        let latency = most(|figures| figures.added_latency_us);
        let memory = most(|figures| figures.peak_memory_mib);
        writeln!(f)?;
        let outcome = verdict(latency, ADDED_LATENCY_GOAL_US);
        writeln!(f, "most latency added: {latency:.0} us, goal {ADDED_LATENCY_GOAL_US:.0} us: {outcome}")?;
        let outcome = verdict(memory, PEAK_MEMORY_GOAL_MIB);
        writeln!(
            f,
            "most memory at 256 streams: {memory:.1} MiB, goal {PEAK_MEMORY_GOAL_MIB:.0} MiB: {outcome}"
        )
    }
}

fn verdict(figure: f64, goal: f64) -> &'static str {
    if figure <= goal { "met" } else { "MISSED" }
}

fn cell(gateway: f64, relay: f64, ratio: f64) -> String {
    format!("{gateway:.1} / {relay:.1} = {ratio:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cpu_us: f64) -> Figures {
        Figures { cpu_us, added_latency_us: 90.0, added_first_event_us: 60.0, peak_memory_mib: 12.0 }
    }

    #[test]
    fn one_odd_round_does_not_move_the_median() {
        assert!((median(vec![3.0, 1.0, 900.0]) - 3.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 900.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_missed_goal_is_said_in_the_table() {
        let row = RowResult {
            name: "a row",
            goal: Goal::Bound(1.15),
            cpu_ratio: 1.2,
            gateway: figures(60.0),
            relay: figures(50.0),
        };
        let summary = Summary { rows: vec![row] };
        assert!(summary.to_string().contains("60.0 / 50.0 = 1.20"), "{summary}");
        assert!(summary.to_string().contains("<= 1.15 MISSED"), "{summary}");
        assert_eq!(summary.json()["rows"][0]["ratio"]["peak_memory"], 1.0);
    }
}
