//! Turns the events of a text-only upstream into events with tool calls.

mod follow_up;
mod hold;
mod stop_reason;

use toolgate_model::{BlockEnd, BlockStart, CallId, Delta, Extras, Finish, StopReason, TurnEvent, Usage};

use crate::parse::lex::InputEnd;
use crate::parse::{ParsedPiece, Parser};
use crate::plan::ParsePlan;
use crate::recovery::{Recovery, Truncation};
use crate::side::FollowUpReason;
use crate::trigger::call_id;

use hold::Hold;
use stop_reason::input_end;

/// The maximum length of an answer that is kept for side requests; a longer answer gets none.
const MAX_ANSWER: usize = 1024 * 1024;
/// The maximum amount of whitespace held back in case a call follows.
const MAX_PENDING_SPACES: usize = 4_096;
/// The maximum number of events of the host's own blocks deferred while a call is open.
const MAX_DEFERRED: usize = 1_024;

/// Interprets one reply. After each event, [`wants_stop`](Self::wants_stop) says whether the upstream can be
/// dropped, and [`missing_value`](Self::missing_value) whether a value should be requested. After the
/// upstream's `Finished`, [`follow_up`](Self::follow_up) says whether a second request is needed.
/// [`end`](Self::end) closes everything that is open.
#[derive(Debug)]
pub struct Interpreter {
    plan: ParsePlan,
    parser: Parser,
    pieces: Vec<ParsedPiece>,
    input: InputBlock,
    open: OutputBlock,
    /// Whitespace that is text only if text follows, and the block it would open.
    pending_spaces: String,
    pending_spaces_block: OutputBlock,
    /// What the host attached to the open text block.
    text_end: BlockEnd,
    deferred: Vec<TurnEvent>,
    calls_started: usize,
    progress: ReplyProgress,
    /// The model's answer; `None` once it is too long for a side request.
    answer: Option<String>,
    /// The start of a continuation, buffered until its overlap with the answer is known.
    continuation_start: Option<String>,
    continuations_left: u8,
    nudged: bool,
    retries_left: u8,
    hold: Option<Hold>,
    /// The length of the output before the current input was handled.
    output_mark: usize,
    follow_up_recoveries: Vec<Recovery>,
    /// The usage of earlier replies and side requests of this turn.
    earlier_usage: Option<Usage>,
    /// The usage that the host reported for the current reply.
    reported_usage: Option<Usage>,
}

/// The upstream's open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputBlock {
    Text,
    /// Forwarded unchanged.
    Forwarded(HostBlock),
    /// Deferred until the open call is complete.
    Deferred(HostBlock),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostBlock {
    Reasoning,
    Other,
}

/// The open block of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputBlock {
    None,
    Text,
    Reasoning,
    Call,
}

/// The progress of the reply.
#[derive(Debug)]
enum ReplyProgress {
    NotStarted,
    Running,
    /// The upstream has ended, but the reply waits for a value or a follow-up.
    UpstreamEnded(Finish, Option<FollowUpReason>),
    Finished,
}

impl Interpreter {
    /// An interpreter before the first event.
    pub fn new(plan: ParsePlan) -> Self {
        let parser = Parser::new(plan.rules.clone());
        let (continuations_left, retries_left) =
            (plan.rules.options.continuations, plan.rules.options.retries);
        Self {
            plan,
            parser,
            pieces: Vec::new(),
            input: InputBlock::Text,
            open: OutputBlock::None,
            pending_spaces: String::new(),
            pending_spaces_block: OutputBlock::None,
            text_end: BlockEnd::default(),
            deferred: Vec::new(),
            calls_started: 0,
            progress: ReplyProgress::NotStarted,
            answer: Some(String::new()),
            continuation_start: None,
            continuations_left,
            nudged: false,
            retries_left,
            hold: None,
            output_mark: 0,
            follow_up_recoveries: Vec::new(),
            earlier_usage: None,
            reported_usage: None,
        }
    }

    /// Handles the upstream's next event. A missing value that was not supplied before it is declined.
    pub fn event(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        if matches!(self.progress, ReplyProgress::Finished) {
            return;
        }
        self.mark_output(out);
        self.resume(out);
        match event {
            TurnEvent::Started(_) if !matches!(self.progress, ReplyProgress::NotStarted) => {}
            TurnEvent::Started(_) => {
                self.progress = ReplyProgress::Running;
                out.push(event);
                self.hold_whole_reply(out);
            }
            TurnEvent::BlockStarted(start) => self.block_started(start, out),
            TurnEvent::BlockDelta(delta) => self.block_delta(delta, out),
            TurnEvent::BlockFinished(end) => self.block_finished(end, out),
            TurnEvent::Usage(usage) => {
                self.reported_usage = Some(usage.clone());
                out.push(TurnEvent::Usage(self.total_usage(usage)));
            }
            TurnEvent::Finished(finish) => self.upstream_finished(finish, out),
        }
        self.move_to_hold(out);
    }

    /// True once the calls are complete and the rest is not needed (P27): drop the upstream, then call
    /// [`end`](Self::end).
    pub fn wants_stop(&self) -> bool {
        self.parser.is_done() && matches!(self.progress, ReplyProgress::Running)
    }

    /// Ends the reply now, even if something is missing.
    pub fn end(&mut self, out: &mut Vec<TurnEvent>) {
        let (finish, end) = match std::mem::replace(&mut self.progress, ReplyProgress::Finished) {
            ReplyProgress::Finished => return,
            ReplyProgress::UpstreamEnded(finish, _) => {
                let end = input_end(&finish);
                (finish, end)
            }
            // In a reply that breaks off, the last value may be incomplete.
            ReplyProgress::NotStarted | ReplyProgress::Running if self.parser.is_done() => {
                (Finish::default(), InputEnd::Cut)
            }
            ReplyProgress::NotStarted | ReplyProgress::Running => {
                (Finish { stop: StopReason::MaxTokens, ..Finish::default() }, InputEnd::Cut)
            }
        };
        self.mark_output(out);
        self.flush_continuation_start(out);
        loop {
            self.parser.finish(end, &mut self.pieces);
            if self.parser.missing_parameter().is_none() {
                break;
            }
            self.parser.decline_values(&mut self.pieces);
        }
        self.emit_pieces(out);
        self.finish_reply(finish, out);
    }

    /// The heuristics used so far, in order.
    pub fn recoveries(&self) -> impl Iterator<Item = Recovery> {
        self.follow_up_recoveries.iter().chain(self.parser.recoveries()).copied()
    }

    /// Why a call was left unfinished, if one was.
    pub fn truncation(&self) -> Option<Truncation> {
        self.parser.truncation()
    }

    /// The number of bytes held back until more text arrives, without values that are always buffered whole.
    pub fn buffered_bytes(&self) -> usize {
        self.parser.buffered_bytes()
    }

    #[cfg(test)]
    pub(crate) fn scanned(&self) -> usize {
        self.parser.scanned
    }

    fn block_started(&mut self, start: BlockStart, out: &mut Vec<TurnEvent>) {
        let host_block = match start {
            BlockStart::Text => {
                self.input = InputBlock::Text;
                return;
            }
            BlockStart::Reasoning(_) => HostBlock::Reasoning,
            BlockStart::Refusal | BlockStart::ToolCall { .. } | BlockStart::Opaque(_) => HostBlock::Other,
        };
        if self.open == OutputBlock::Call {
            self.input = InputBlock::Deferred(host_block);
        } else {
            self.close_block(out);
            self.input = InputBlock::Forwarded(host_block);
        }
        self.forward(TurnEvent::BlockStarted(start), out);
    }

    fn block_delta(&mut self, delta: Delta, out: &mut Vec<TurnEvent>) {
        match (self.input, delta) {
            (InputBlock::Text, Delta::Text(text)) => self.feed(&text, out),
            (InputBlock::Text, Delta::Paragraph(_) | Delta::Arguments(_)) => {}
            (InputBlock::Forwarded(host_block) | InputBlock::Deferred(host_block), delta) => {
                if let (HostBlock::Reasoning, Delta::Text(text)) = (host_block, &delta) {
                    self.parser.host_reasoning(text);
                }
                self.forward(TurnEvent::BlockDelta(delta), out);
            }
        }
    }

    fn block_finished(&mut self, end: BlockEnd, out: &mut Vec<TurnEvent>) {
        match self.input {
            InputBlock::Text => self.text_end = end,
            InputBlock::Forwarded(_) | InputBlock::Deferred(_) => {
                self.forward(TurnEvent::BlockFinished(end), out);
                self.input = InputBlock::Text;
            }
        }
    }

    /// Forwards an event of the host's own block, or defers it while a call is open.
    fn forward(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        match self.input {
            InputBlock::Text | InputBlock::Forwarded(_) => out.push(event),
            InputBlock::Deferred(_) => {
                let is_end = matches!(event, TurnEvent::BlockFinished(_));
                if self.deferred.len() < MAX_DEFERRED || is_end {
                    self.deferred.push(event);
                }
            }
        }
    }

    fn feed(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        if let Some(continuation_start) = &mut self.continuation_start {
            continuation_start.push_str(text);
            if continuation_start.len() < crate::side::MAX_OVERLAP {
                return;
            }
            self.flush_continuation_start(out);
            return;
        }
        self.read(text, out);
    }

    fn read(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        if let Some(answer) = &mut self.answer {
            answer.push_str(text);
            if answer.len() > MAX_ANSWER {
                self.answer = None;
            }
        }
        self.parser.push(text, &mut self.pieces);
        self.emit_pieces(out);
    }

    fn emit_pieces(&mut self, out: &mut Vec<TurnEvent>) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            self.emit_piece(piece, out);
        }
        self.pieces = pieces;
    }

    fn emit_piece(&mut self, piece: ParsedPiece, out: &mut Vec<TurnEvent>) {
        match piece {
            ParsedPiece::Text(text) => self.emit_text(text, OutputBlock::Text, out),
            ParsedPiece::Reasoning(text) => self.emit_text(text, OutputBlock::Reasoning, out),
            ParsedPiece::InvalidCall => self.hold_invalid_call(out),
            ParsedPiece::CallStarted(name, kind) => {
                self.release_invalid_call(out);
                self.close_block(out);
                let id = CallId::new(call_id(&self.plan.id_seed, self.calls_started));
                self.calls_started += 1;
                let start = BlockStart::ToolCall { id, name: name.into(), kind };
                out.push(TurnEvent::BlockStarted(start));
                self.open = OutputBlock::Call;
            }
            ParsedPiece::Arguments(json) if json.is_empty() => {}
            ParsedPiece::Arguments(json) => out.push(TurnEvent::BlockDelta(Delta::Arguments(json))),
            ParsedPiece::CallFinished | ParsedPiece::CallCut if self.open == OutputBlock::Call => {
                self.close_block(out);
                if !matches!(self.input, InputBlock::Deferred(_)) {
                    out.append(&mut self.deferred);
                }
            }
            // None of the call was sent.
            ParsedPiece::CallFinished | ParsedPiece::CallCut => {}
        }
    }

    /// Emits text or reasoning. Whitespace alone is held back: before a call it is layout, not text.
    fn emit_text(&mut self, text: String, block: OutputBlock, out: &mut Vec<TurnEvent>) {
        if self.open != block {
            if std::mem::replace(&mut self.pending_spaces_block, block) != block {
                self.pending_spaces.clear();
            }
            self.pending_spaces.push_str(&text);
            if self.pending_spaces.trim_start().is_empty() && self.pending_spaces.len() <= MAX_PENDING_SPACES
            {
                return;
            }
            let text = std::mem::take(&mut self.pending_spaces);
            self.close_block(out);
            let start = if block == OutputBlock::Text {
                BlockStart::Text
            } else {
                BlockStart::Reasoning(Extras::NONE)
            };
            out.push(TurnEvent::BlockStarted(start));
            out.push(TurnEvent::BlockDelta(Delta::Text(text)));
            self.open = block;
        } else if !text.is_empty() {
            out.push(TurnEvent::BlockDelta(Delta::Text(text)));
        }
    }

    fn close_block(&mut self, out: &mut Vec<TurnEvent>) {
        self.pending_spaces.clear();
        let end = match std::mem::replace(&mut self.open, OutputBlock::None) {
            OutputBlock::None => return,
            OutputBlock::Text => std::mem::take(&mut self.text_end),
            OutputBlock::Reasoning | OutputBlock::Call => BlockEnd::default(),
        };
        out.push(TurnEvent::BlockFinished(end));
    }

    fn finish_reply(&mut self, mut finish: Finish, out: &mut Vec<TurnEvent>) {
        self.close_block(out);
        out.append(&mut self.deferred);
        let usage = finish.usage.take().or_else(|| self.reported_usage.take());
        finish.usage = usage.map(|usage| self.total_usage(usage)).or_else(|| self.earlier_usage.take());
        self.release_hold(out);
        finish.stop = self.stop_reason(finish.stop);
        self.progress = ReplyProgress::Finished;
        out.push(TurnEvent::Finished(finish));
    }
}
