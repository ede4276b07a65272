//! What stands before the values in a log line: the names of an event's fields, styled once and then kept.

use std::ptr;

use tracing::field::Field;
use tracing::{Level, Metadata};

/// The names of so many events are kept. A thread that tells more kinds begins anew now and then.
const MAX_KEPT_EVENTS: usize = 16;

/// The names of the events that were told last.
pub(crate) struct Names(Vec<EventNames>);

/// What stands before each field of an event: ` status=`.
pub(crate) struct EventNames {
    event: &'static Metadata<'static>,
    look: Look,
    /// In the order of the fields. Each begins with the space that parts it from the field before it.
    pieces: Vec<String>,
}

/// Where a line is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// In files and pipes.
    Plain,
    /// On terminals.
    Coloured,
}

/// What switches a style on, and all styles off.
pub(crate) struct Styles {
    pub(crate) bold: &'static str,
    pub(crate) dimmed: &'static str,
    pub(crate) italic: &'static str,
    pub(crate) off: &'static str,
}

impl Names {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The names of an event.
    pub(crate) fn of(&mut self, event: &'static Metadata<'static>, look: Look) -> &EventNames {
        let known = self.0.iter().position(|names| ptr::eq(names.event, event) && names.look == look);
        let place = known.unwrap_or_else(|| {
            if self.0.len() >= MAX_KEPT_EVENTS {
                self.0.clear();
            }
            self.0.push(EventNames::new(event, look));
            self.0.len() - 1
        });
        &self.0[place]
    }
}

impl EventNames {
    fn new(event: &'static Metadata<'static>, look: Look) -> Self {
        let Styles { dimmed, italic, off, bold: _ } = look.styles();
        let piece = |field: Field| match field.name() {
            "message" => " ".to_owned(),
            name => format!(" {italic}{name}{off}{dimmed}={off}"),
        };
        Self { event, look, pieces: event.fields().iter().map(piece).collect() }
    }

    /// What stands before a field: a space, and its name unless it is the message.
    pub(crate) fn before(&self, field: &Field) -> &str {
        &self.pieces[field.index()]
    }
}

impl Look {
    /// What stands between the time and the message.
    pub(crate) fn level(self, level: Level) -> &'static str {
        match (self, level) {
            (Self::Plain, Level::TRACE) => " TRACE ",
            (Self::Plain, Level::DEBUG) => " DEBUG ",
            (Self::Plain, Level::INFO) => "  INFO ",
            (Self::Plain, Level::WARN) => "  WARN ",
            (Self::Plain, Level::ERROR) => " ERROR ",
            (Self::Coloured, Level::TRACE) => "\x1b[0m \x1b[35mTRACE\x1b[0m ",
            (Self::Coloured, Level::DEBUG) => "\x1b[0m \x1b[34mDEBUG\x1b[0m ",
            (Self::Coloured, Level::INFO) => "\x1b[0m \x1b[32m INFO\x1b[0m ",
            (Self::Coloured, Level::WARN) => "\x1b[0m \x1b[33m WARN\x1b[0m ",
            (Self::Coloured, Level::ERROR) => "\x1b[0m \x1b[31mERROR\x1b[0m ",
        }
    }

    /// The styles one sees there.
    pub(crate) fn styles(self) -> &'static Styles {
        match self {
            Self::Plain => &Styles::NONE,
            Self::Coloured => &Styles::COLOURED,
        }
    }
}

impl Styles {
    const NONE: Self = Self { bold: "", dimmed: "", italic: "", off: "" };
    /// For terminals.
    pub(crate) const COLOURED: Self =
        Self { bold: "\x1b[1m", dimmed: "\x1b[2m", italic: "\x1b[3m", off: "\x1b[0m" };
}

#[cfg(test)]
mod tests {
    use tracing::callsite::Callsite;

    use super::*;

    macro_rules! event {
        ($($field:tt)*) => {
            tracing::callsite! { name: "event", kind: tracing::metadata::Kind::EVENT, fields: $($field)* }.metadata()
        };
    }

    #[track_caller]
    fn check(names: &mut Names, event: &'static Metadata<'static>, look: Look, expected: &[&str]) {
        let names = names.of(event, look);
        let told: Vec<&str> = event.fields().iter().map(|field| names.before(&field)).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn each_event_has_its_own_names_on_each_look_however_often_it_comes() {
        let (turn, other) = (event!(message, id, status), event!(id, message, error));
        let mut names = Names::new();
        for _ in 0..3 {
            check(&mut names, turn, Look::Plain, &[" ", " id=", " status="]);
            check(&mut names, other, Look::Plain, &[" id=", " ", " error="]);
            let coloured = [" \x1b[3mid\x1b[0m\x1b[2m=\x1b[0m", " ", " \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m"];
            check(&mut names, other, Look::Coloured, &coloured);
        }
        assert_eq!(names.0.len(), 3);
    }

    #[test]
    fn a_thread_that_tells_many_kinds_of_events_keeps_the_names_of_a_few() {
        let mut names = Names::new();
        let events = [
            event!(a),
            event!(b),
            event!(c),
            event!(d),
            event!(e),
            event!(f),
            event!(g),
            event!(h),
            event!(i),
            event!(j),
            event!(k),
            event!(l),
            event!(m),
            event!(n),
            event!(o),
            event!(p),
            event!(q),
            event!(r),
        ];
        for event in events.into_iter().chain(events) {
            let name = event.fields().iter().next().unwrap().name();
            check(&mut names, event, Look::Plain, &[&format!(" {name}=")]);
            assert!(names.0.len() <= MAX_KEPT_EVENTS);
        }
    }
}
