//! Requests that wait for a process. A free slot goes to the caller with the fewest processes, and among the requests
//! of that caller to the oldest. So no caller gets more than its share of `max` while others wait, and a caller that is
//! alone gets all of it.

use std::sync::Arc;

use toolgate_model::TurnError;

use super::errors;

/// The maximum number of waiting requests.
const MAX_WAITING: usize = 1024;

/// The maximum number of waiting requests of one caller.
const MAX_WAITING_OF_CALLER: usize = 256;

/// The waiting requests, oldest first.
#[derive(Default)]
pub(super) struct ProcessQueue {
    entered: u64,
    waiting: Vec<(Ticket, Arc<str>)>,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

impl ProcessQueue {
    /// Adds a request of this caller.
    pub(super) fn enter(&mut self, caller: &Arc<str>) -> Result<Ticket, TurnError> {
        let of_caller = self.waiting.iter().filter(|(_, waiting)| waiting == caller).count();
        if of_caller >= MAX_WAITING_OF_CALLER || self.waiting.len() >= MAX_WAITING {
            return Err(errors::queue_full());
        }
        self.entered += 1;
        let ticket = Ticket(self.entered);
        self.waiting.push((ticket, Arc::clone(caller)));
        Ok(ticket)
    }

    /// Removes a request that got a slot or waits no longer.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The request that gets the next free slot. `held` is the number of processes that a caller has.
    pub(super) fn next(&self, held: impl Fn(&str) -> usize) -> Option<Ticket> {
        let next = self.waiting.iter().min_by_key(|(ticket, caller)| (held(caller), *ticket));
        next.map(|(ticket, _)| *ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `arrivals` has a letter per waiting request, its caller; every slot that frees up is taken in turn. `held` has a
    /// letter per process. The result has the callers in the order in which they get a slot.
    #[track_caller]
    fn check(held: &str, arrivals: &str, expected: &str) {
        let mut queue = ProcessQueue::default();
        let callers = arrivals.chars().map(|letter| Arc::from(letter.to_string()));
        let callers: Vec<Arc<str>> = callers.collect();
        let tickets: Vec<Ticket> =
            callers.iter().map(|caller| queue.enter(caller).expect("a place")).collect();
        let (mut held, mut served) = (held.to_owned(), String::new());
        while let Some(next) = queue.next(|caller| held.matches(caller).count()) {
            let index = tickets.iter().position(|ticket| *ticket == next).expect("a ticket");
            queue.leave(next);
            held.push_str(&callers[index]);
            served.push_str(&callers[index]);
        }
        assert!(queue.is_empty());
        assert_eq!(served, expected, "{held} {arrivals}");
    }

    #[test]
    fn requests_of_one_caller_are_served_in_order_of_arrival() {
        check("", "aaa", "aaa");
        check("aaaa", "aa", "aa");
    }

    #[test]
    fn the_caller_with_the_fewest_processes_is_next() {
        check("aaa", "aab", "baa");
        check("aab", "aabb", "baba");
        check("aaabc", "abc", "bca");
    }

    #[test]
    fn callers_with_as_many_processes_take_turns() {
        check("ab", "aabb", "abab");
        check("", "aaabbb", "ababab");
    }

    #[test]
    fn one_caller_cannot_fill_the_queue() {
        let mut queue = ProcessQueue::default();
        let (alice, bob): (Arc<str>, Arc<str>) = ("alice".into(), "bob".into());
        let tickets: Vec<_> =
            (0..MAX_WAITING_OF_CALLER).map(|_| queue.enter(&alice).expect("a place")).collect();
        assert!(queue.enter(&alice).is_err());
        assert!(queue.enter(&bob).is_ok());
        queue.leave(tickets[7]);
        assert!(queue.enter(&alice).is_ok());
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut queue = ProcessQueue::default();
        let caller = |number: usize| Arc::from(format!("caller {number}"));
        for number in 0..MAX_WAITING {
            assert!(queue.enter(&caller(number)).is_ok());
        }
        assert!(queue.enter(&caller(MAX_WAITING)).is_err());
    }
}
