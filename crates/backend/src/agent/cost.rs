//! The cost of each turn, from the running total that the program reports.

use super::config::AgentModel;

/// The cost so far of one process.
#[derive(Debug, Default)]
pub(super) struct CostMeter {
    prices: Prices,
    last_total: f64,
}

/// Whether the program knows the prices of its model.
#[derive(Debug, Default)]
enum Prices {
    Known,
    /// The program uses a gateway model, whose price it does not know.
    #[default]
    Unknown,
}

impl CostMeter {
    pub(super) fn new(model: &AgentModel) -> Self {
        let prices = match model {
            AgentModel::Default => Prices::Known,
            AgentModel::Gateway(_) => Prices::Unknown,
        };
        Self { prices, last_total: 0.0 }
    }

    /// The cost in dollars since the last call. The program reports its total only when a turn is over, so a reply that
    /// ends in client calls is charged to the reply that follows the results.
    pub(super) fn since_last(&mut self, total: Option<f64>) -> Option<f64> {
        let total = match self.prices {
            Prices::Known => total?,
            Prices::Unknown => return None,
        };
        Some((total - std::mem::replace(&mut self.last_total, total)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_is_charged_what_it_added() {
        let mut cost_meter = CostMeter::new(&AgentModel::Default);
        let added = [Some(0.5), None, Some(0.5), Some(2.0)].map(|total| cost_meter.since_last(total));
        assert_eq!(added, [Some(0.5), None, Some(0.0), Some(1.5)]);
        let mut cost_meter = CostMeter::new(&AgentModel::Gateway("demo".to_owned()));
        assert_eq!(cost_meter.since_last(Some(0.5)), None);
    }
}
