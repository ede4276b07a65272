//! Events of a text-only upstream in, events with tool calls out.

mod ending;
mod follow;
mod hold;

use toolgate_model::{BlockEnd, BlockStart, CallId, Delta, Extras, Finish, StopReason, TurnEvent, Usage};

use crate::parse::lex::End;
use crate::parse::{Parser, Piece};
use crate::plan::Plan;
use crate::recovery::{Recovery, Truncation};
use crate::side::Reason;
use crate::trigger::call_id;

use ending::ending;
use hold::Hold;

/// How much of what the model said is kept to ask it again; past that it is not asked.
const MAX_SAID: usize = 1024 * 1024;
/// How many spaces are held in case a call follows and they are no text.
const MAX_BLANK: usize = 4_096;
/// How many events of the host's own blocks are kept while a call is open.
const MAX_DEFERRED: usize = 1_024;

/// Reads one reply. After each event, [`wants_stop`](Self::wants_stop) says whether the upstream can be dropped, and
/// [`missing`](Self::missing) whether a value should be fetched; after the reply's `Finished`,
/// [`continuation`](Self::continuation) says whether to ask on. [`end`](Self::end) closes whatever is open.
#[derive(Debug)]
pub struct Interpreter {
    plan: Plan,
    parser: Parser,
    pieces: Vec<Piece>,
    input: Input,
    open: Open,
    /// Spaces that are text only if text follows, and the block they would open.
    blank: String,
    blank_of: Open,
    /// What the host attached to the text block that is open.
    text_end: BlockEnd,
    deferred: Vec<TurnEvent>,
    calls_begun: usize,
    progress: Progress,
    /// What the model said; `None` once that is too much to say again.
    said: Option<String>,
    /// The start of a continuation, until it is known how much of it repeats.
    repeated: Option<String>,
    continuations: u8,
    nudged: bool,
    /// How many more times the answer may be asked for again.
    retries: u8,
    hold: Option<Hold>,
    /// Where in the output the events that belong to the hold begin.
    held_from: usize,
    side: Vec<Recovery>,
    /// What earlier replies of this turn and questions besides cost.
    spent: Option<Usage>,
    /// What the host says that this reply costs.
    usage: Option<Usage>,
    recoveries: Vec<Recovery>,
}

/// What the upstream's open block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Text,
    /// Passed on as it is.
    Native(Native),
    /// Kept until the open call is complete.
    Deferred(Native),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Native {
    Reasoning,
    Other,
}

/// What the open block of the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    None,
    Text,
    Reasoning,
    Call,
}

/// How far the reply is.
#[derive(Debug)]
enum Progress {
    Before,
    Running,
    /// The upstream has ended, the reply has not: a value or a continuation is awaited.
    Ending(Finish, Option<Reason>),
    Finished,
}

impl Interpreter {
    /// Before the first event.
    pub fn new(plan: Plan) -> Self {
        let parser = Parser::new(plan.rules.clone());
        let (continuations, retries) = (plan.rules.options.continuations, plan.rules.options.retries);
        Self {
            plan,
            parser,
            pieces: Vec::new(),
            input: Input::Text,
            open: Open::None,
            blank: String::new(),
            blank_of: Open::None,
            text_end: BlockEnd::default(),
            deferred: Vec::new(),
            calls_begun: 0,
            progress: Progress::Before,
            said: Some(String::new()),
            repeated: None,
            continuations,
            nudged: false,
            retries,
            hold: None,
            held_from: 0,
            side: Vec::new(),
            spent: None,
            usage: None,
            recoveries: Vec::new(),
        }
    }

    /// Takes the upstream's next event. A value that was asked for and did not come is given up.
    pub fn event(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        if matches!(self.progress, Progress::Finished) {
            return;
        }
        self.mark(out);
        self.go_on(out);
        match event {
            TurnEvent::Started(_) if !matches!(self.progress, Progress::Before) => {}
            TurnEvent::Started(_) => {
                self.progress = Progress::Running;
                out.push(event);
                self.hold_whole(out);
            }
            TurnEvent::BlockStarted(start) => self.block_started(start, out),
            TurnEvent::BlockDelta(delta) => self.block_delta(delta, out),
            TurnEvent::BlockFinished(end) => self.block_finished(end, out),
            TurnEvent::Usage(usage) => {
                self.usage = Some(usage.clone());
                out.push(TurnEvent::Usage(self.total(usage)));
            }
            TurnEvent::Finished(finish) => self.upstream_finished(finish, out),
        }
        self.keep(out);
        self.note_recoveries();
    }

    /// True once the calls are complete and nothing more is wanted (P27): drop the upstream, then call
    /// [`end`](Self::end).
    pub fn wants_stop(&self) -> bool {
        self.parser.is_done() && matches!(self.progress, Progress::Running)
    }

    /// Ends the reply now, whatever is missing.
    pub fn end(&mut self, out: &mut Vec<TurnEvent>) {
        let (finish, end) = match std::mem::replace(&mut self.progress, Progress::Finished) {
            Progress::Finished => return,
            Progress::Ending(finish, _) => {
                let end = ending(&finish);
                (finish, end)
            }
            // A reply that breaks off proves nothing about its last value.
            Progress::Before | Progress::Running if self.parser.is_done() => (Finish::default(), End::Cut),
            Progress::Before | Progress::Running => {
                (Finish { stop: StopReason::MaxTokens, ..Finish::default() }, End::Cut)
            }
        };
        self.mark(out);
        self.release_repeated(out);
        loop {
            self.parser.finish(end, &mut self.pieces);
            if self.parser.wanted().is_none() {
                break;
            }
            self.parser.decline(&mut self.pieces);
        }
        self.translate(out);
        self.finish_reply(finish, out);
    }

    /// Each heuristic used so far, in order.
    pub fn recoveries(&self) -> &[Recovery] {
        &self.recoveries
    }

    /// Why a call was left unfinished, if one was.
    pub fn truncated(&self) -> Option<Truncation> {
        self.parser.truncation()
    }

    /// How many bytes wait for what follows. A value that can only be read whole is no part of this.
    pub fn waiting(&self) -> usize {
        self.parser.waiting()
    }

    #[cfg(test)]
    pub(crate) fn scanned(&self) -> usize {
        self.parser.scanned
    }

    fn block_started(&mut self, start: BlockStart, out: &mut Vec<TurnEvent>) {
        let native = match start {
            BlockStart::Text => {
                self.input = Input::Text;
                return;
            }
            BlockStart::Reasoning(_) => Native::Reasoning,
            BlockStart::Refusal | BlockStart::ToolCall { .. } | BlockStart::Opaque(_) => Native::Other,
        };
        if self.open == Open::Call {
            self.input = Input::Deferred(native);
        } else {
            self.close_block(out);
            self.input = Input::Native(native);
        }
        self.pass(TurnEvent::BlockStarted(start), out);
    }

    fn block_delta(&mut self, delta: Delta, out: &mut Vec<TurnEvent>) {
        match (self.input, delta) {
            (Input::Text, Delta::Text(text)) => self.feed(&text, out),
            (Input::Text, Delta::Paragraph(_) | Delta::Arguments(_)) => {}
            (Input::Native(native) | Input::Deferred(native), delta) => {
                if let (Native::Reasoning, Delta::Text(text)) = (native, &delta) {
                    self.parser.native_reasoning(text);
                }
                self.pass(TurnEvent::BlockDelta(delta), out);
            }
        }
    }

    fn block_finished(&mut self, end: BlockEnd, out: &mut Vec<TurnEvent>) {
        match self.input {
            Input::Text => self.text_end = end,
            Input::Native(_) | Input::Deferred(_) => {
                self.pass(TurnEvent::BlockFinished(end), out);
                self.input = Input::Text;
            }
        }
    }

    /// Passes on an event of the host's own block, or keeps it while a call is open.
    fn pass(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        match self.input {
            Input::Text | Input::Native(_) => out.push(event),
            Input::Deferred(_) => {
                let is_end = matches!(event, TurnEvent::BlockFinished(_));
                if self.deferred.len() < MAX_DEFERRED || is_end {
                    self.deferred.push(event);
                }
            }
        }
    }

    fn feed(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        if let Some(repeated) = &mut self.repeated {
            repeated.push_str(text);
            if repeated.len() < crate::side::MAX_OVERLAP {
                return;
            }
            self.release_repeated(out);
            return;
        }
        self.read(text, out);
    }

    fn read(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        if let Some(said) = &mut self.said {
            said.push_str(text);
            if said.len() > MAX_SAID {
                self.said = None;
            }
        }
        self.parser.push(text, &mut self.pieces);
        self.translate(out);
    }

    fn translate(&mut self, out: &mut Vec<TurnEvent>) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            self.piece(piece, out);
        }
        self.pieces = pieces;
    }

    fn piece(&mut self, piece: Piece, out: &mut Vec<TurnEvent>) {
        match piece {
            Piece::Text(text) => self.prose(text, Open::Text, out),
            Piece::Reasoning(text) => self.prose(text, Open::Reasoning, out),
            Piece::Refused => self.hold_refusal(out),
            Piece::CallStarted(name, kind) => {
                self.release_refusal(out);
                self.close_block(out);
                let id = CallId::new(call_id(&self.plan.id_seed, self.calls_begun));
                self.calls_begun += 1;
                let start = BlockStart::ToolCall { id, name: name.into(), kind };
                out.push(TurnEvent::BlockStarted(start));
                self.open = Open::Call;
            }
            Piece::Arguments(json) if json.is_empty() => {}
            Piece::Arguments(json) => out.push(TurnEvent::BlockDelta(Delta::Arguments(json))),
            Piece::CallFinished | Piece::CallCut if self.open == Open::Call => {
                self.close_block(out);
                if !matches!(self.input, Input::Deferred(_)) {
                    out.append(&mut self.deferred);
                }
            }
            // Nothing of the call was sent.
            Piece::CallFinished | Piece::CallCut => {}
        }
    }

    /// Text or reasoning. Spaces alone are held: before a call they are layout, not text.
    fn prose(&mut self, text: String, block: Open, out: &mut Vec<TurnEvent>) {
        if self.open != block {
            if std::mem::replace(&mut self.blank_of, block) != block {
                self.blank.clear();
            }
            self.blank.push_str(&text);
            if self.blank.trim_start().is_empty() && self.blank.len() <= MAX_BLANK {
                return;
            }
            let text = std::mem::take(&mut self.blank);
            self.close_block(out);
            let start =
                if block == Open::Text { BlockStart::Text } else { BlockStart::Reasoning(Extras::NONE) };
            out.push(TurnEvent::BlockStarted(start));
            out.push(TurnEvent::BlockDelta(Delta::Text(text)));
            self.open = block;
        } else if !text.is_empty() {
            out.push(TurnEvent::BlockDelta(Delta::Text(text)));
        }
    }

    fn close_block(&mut self, out: &mut Vec<TurnEvent>) {
        self.blank.clear();
        let end = match std::mem::replace(&mut self.open, Open::None) {
            Open::None => return,
            Open::Text => std::mem::take(&mut self.text_end),
            Open::Reasoning | Open::Call => BlockEnd::default(),
        };
        out.push(TurnEvent::BlockFinished(end));
    }

    fn finish_reply(&mut self, mut finish: Finish, out: &mut Vec<TurnEvent>) {
        self.close_block(out);
        out.append(&mut self.deferred);
        let usage = finish.usage.take().or_else(|| self.usage.take());
        finish.usage = usage.map(|usage| self.total(usage)).or_else(|| self.spent.take());
        self.release(out);
        finish.stop = self.stop(finish.stop);
        self.progress = Progress::Finished;
        out.push(TurnEvent::Finished(finish));
        self.note_recoveries();
    }

    fn note_recoveries(&mut self) {
        self.recoveries.clear();
        self.recoveries.extend_from_slice(&self.side);
        self.recoveries.extend_from_slice(self.parser.recoveries());
    }
}
