//! What a turn costs in money, from what the program says that it has cost so far.

use super::config::AgentModel;

/// The charges of one process.
#[derive(Debug, Default)]
pub(super) struct Charges {
    prices: Prices,
    told: f64,
}

/// Whether the program's prices are those of its model.
#[derive(Debug, Default)]
enum Prices {
    Right,
    /// It thinks with a model of ours, whose price it does not know.
    #[default]
    Unknown,
}

impl Charges {
    pub(super) fn with(model: &AgentModel) -> Self {
        let prices = match model {
            AgentModel::Own => Prices::Right,
            AgentModel::Gateway(_) => Prices::Unknown,
        };
        Self { prices, told: 0.0 }
    }

    /// What came since the last time, in dollars. The program tells its sum when a turn is over, so replies that end in
    /// calls of the client are charged with the one that comes after the results.
    pub(super) fn since_the_last(&mut self, sum: Option<f64>) -> Option<f64> {
        let sum = match self.prices {
            Prices::Right => sum?,
            Prices::Unknown => return None,
        };
        Some((sum - std::mem::replace(&mut self.told, sum)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_is_charged_what_it_added() {
        let mut charges = Charges::with(&AgentModel::Own);
        let added = [Some(0.5), None, Some(0.5), Some(2.0)].map(|sum| charges.since_the_last(sum));
        assert_eq!(added, [Some(0.5), None, Some(0.0), Some(1.5)]);
        let mut charges = Charges::with(&AgentModel::Gateway("demo".to_owned()));
        assert_eq!(charges.since_the_last(Some(0.5)), None);
    }
}
