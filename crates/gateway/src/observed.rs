//! Publishes what agents do on the gateway's bus.

use std::sync::Arc;

use toolgate_backend::Observer;
use toolgate_model::observed::{Observation, Subject};
use toolgate_state::Bus;

use crate::clock::Clock;

/// The bus with the time of day.
pub(crate) struct BusObserver {
    pub(crate) bus: Arc<Bus>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Observer for BusObserver {
    fn observe(&self, subject: Subject, observation: Observation) {
        self.bus.publish(self.clock.now(), subject, observation);
    }
}
