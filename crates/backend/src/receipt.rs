//! What becomes of a reply on its way to the client.

/// Follows a reply to its client. Dropped before [`Receipt::delivered`], it means that the client did not get all of it.
#[derive(Default)]
pub struct Receipt(Vec<Box<dyn DeliveryObserver>>);

/// Learns what becomes of a reply. Dropped without a word, it was not delivered.
pub trait DeliveryObserver: Send {
    /// The last bytes of the reply are being written. The client may have them before [`DeliveryObserver::delivered`]
    /// is called.
    fn ending(&mut self);

    /// The last byte was written to the client's connection.
    fn delivered(self: Box<Self>);
}

impl Receipt {
    /// For a reply whose delivery matters to its back end. The default is for all others.
    pub fn new(observer: impl DeliveryObserver + 'static) -> Self {
        Self(vec![Box::new(observer)])
    }

    /// One receipt for several replies that are sent together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The last bytes are being written.
    pub fn ending(&mut self) {
        self.0.iter_mut().for_each(|observer| observer.ending());
    }

    /// The last byte was written.
    pub fn delivered(self) {
        self.0.into_iter().for_each(DeliveryObserver::delivered);
    }
}
