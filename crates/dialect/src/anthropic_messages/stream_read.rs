//! Reads a stream. Blocks normally follow one another; the sequencer orders those that a host interleaves.

use serde::Deserialize;
use toolgate_model::sequencer::{BlockClosing, Sequencer};
use toolgate_model::{Fields, Finish, Losses, Reply, TurnError, TurnEvent};

use super::error;
use super::reply_read::{ReplyTail, split};
use super::stream_read_block::{Misfit, OpenBlock};
use super::wire::MessageHeadIn;
use super::wire_stream::{
    BlockDeltaFrame, BlockStartFrame, BlockStopFrame, MessageDeltaFrame, StartFrame, StopIn, kind_of,
};
use crate::ReplyReader;
use crate::frame::SseFrame;

/// How many blocks a host may keep open at once. The protocol allows one; some hosts interleave a few.
const MAX_OPEN_BLOCKS: usize = 256;

/// Converts frames to events.
#[derive(Default)]
pub(super) struct StreamReader {
    state: State,
    losses: Losses,
}

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    Reading(Box<Reading>),
    Done,
}

struct Reading {
    /// Distinguishes a repeated start from a second reply.
    id: Option<String>,
    blocks: Sequencer<u64>,
    open: Vec<(u64, OpenBlock)>,
    tail: ReplyTail,
}

impl ReplyReader for StreamReader {
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let kind = kind_of(frame);
        let data = frame.data;
        match (&*kind, &mut self.state) {
            // Frames after the end are dropped.
            (_, State::Done) | ("ping", _) => Ok(()),
            ("error", _) => {
                self.state = State::Done;
                Err(error::read_in_stream(data))
            }
            ("message_start", State::Waiting) => {
                let start: StartFrame = parse(&kind, data)?;
                self.state = State::Reading(Box::new(Reading::start(start.message, out)?));
                Ok(())
            }
            ("message_start", State::Reading(reading)) => {
                reading.start_again(&parse::<StartFrame>(&kind, data)?)
            }
            ("content_block_delta", State::Reading(reading)) => {
                reading.delta(parse(&kind, data)?, out, &mut self.losses)
            }
            ("content_block_start", State::Reading(reading)) => reading.start_block(parse(&kind, data)?, out),
            ("content_block_stop", State::Reading(reading)) => {
                reading.stop_block(parse(&kind, data)?, out);
                Ok(())
            }
            ("message_delta", State::Reading(reading)) => {
                reading.message_delta(parse(&kind, data)?);
                Ok(())
            }
            ("message_stop", State::Reading(reading)) => {
                reading.finish(out);
                self.state = State::Done;
                Ok(())
            }
            (
                "content_block_delta"
                | "content_block_start"
                | "content_block_stop"
                | "message_delta"
                | "message_stop",
                State::Waiting,
            ) => Err(TurnError::upstream(format!(
                "the host's stream starts with {kind} instead of message_start"
            ))),
            (unknown, State::Waiting | State::Reading(_)) => {
                self.losses.add(format!("stream[{unknown}]"), "not an event of the Messages API");
                Ok(())
            }
        }
    }

    fn end(&mut self, _out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        match self.state {
            State::Done => Ok(()),
            State::Waiting | State::Reading(_) => Err(TurnError::upstream(
                "the host closed the stream before message_stop: the reply is incomplete, send the request again",
            )),
        }
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

fn parse<'a, T: Deserialize<'a>>(kind: &str, data: &'a str) -> Result<T, TurnError> {
    serde_json::from_str(data).map_err(|error| {
        TurnError::upstream(format!("reading a {kind} event of the host's stream: {error}")).caused_by(error)
    })
}

impl Reading {
    fn start(message: MessageHeadIn, out: &mut Vec<TurnEvent>) -> Result<Self, TurnError> {
        let id = message.id.clone();
        let (head, blocks, tail) = split(message)?;
        // A reply that continues code execution at the host starts with completed blocks.
        let started = Reply { head, blocks: blocks.unwrap_or_default(), finish: Finish::default() };
        for event in started.into_events() {
            match event {
                TurnEvent::Started(_) => {
                    out.push(event);
                    out.extend(tail.usage.clone().map(|usage| TurnEvent::Usage(usage.into_usage())));
                }
                TurnEvent::Finished(_) => {}
                TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_)
                | TurnEvent::Usage(_) => out.push(event),
            }
        }
        Ok(Self { id, blocks: Sequencer::new(BlockClosing::OnNextStart), open: Vec::new(), tail })
    }

    /// Some hosts repeat their first frame (T4). A first frame with a different id is a second reply, spliced in after
    /// a lost connection: the first reply was cut off, and its blocks must not be mixed with the second's.
    fn start_again(&self, start: &StartFrame) -> Result<(), TurnError> {
        if start.message.id == self.id {
            return Ok(());
        }
        Err(TurnError::upstream(
            "the host started a second reply before it finished the first: send the request again",
        ))
    }

    fn start_block(&mut self, frame: BlockStartFrame, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let BlockStartFrame { index, content_block } = frame;
        if self.open.len() >= MAX_OPEN_BLOCKS {
            return Err(TurnError::upstream(format!(
                "the host's stream has more than {MAX_OPEN_BLOCKS} blocks open at once"
            )));
        }
        if let Some(at) = self.find(index) {
            // The host did not close it.
            let (_, block) = self.open.remove(at);
            block.stop(index, Fields::new(), &mut self.blocks, out);
        }
        let block = OpenBlock::start(index, content_block, &mut self.blocks, out)?;
        self.open.push((index, block));
        Ok(())
    }

    fn delta(
        &mut self,
        frame: BlockDeltaFrame<'_>,
        out: &mut Vec<TurnEvent>,
        losses: &mut Losses,
    ) -> Result<(), TurnError> {
        let BlockDeltaFrame { index, delta } = frame;
        let Some(at) = self.find(index) else {
            return Err(TurnError::upstream(format!(
                "the host's stream has a delta for block {index}, which is not open"
            )));
        };
        if let Err(Misfit) = self.open[at].1.delta(index, delta, &mut self.blocks, out) {
            losses.add("content_block_delta", "the delta's type does not fit its block");
        }
        Ok(())
    }

    fn stop_block(&mut self, frame: BlockStopFrame, out: &mut Vec<TurnEvent>) {
        // A stop for a block that is not open is ignored.
        if let Some(at) = self.find(frame.index) {
            let (index, block) = self.open.remove(at);
            block.stop(index, frame.extra, &mut self.blocks, out);
        }
    }

    fn message_delta(&mut self, frame: MessageDeltaFrame) {
        let MessageDeltaFrame { delta, usage, _kind: _, extra } = frame;
        if let Some(StopIn { stop_reason, stop_sequence, extra }) = delta {
            self.tail.reason = stop_reason.or(self.tail.reason.take());
            self.tail.sequence = stop_sequence.or(self.tail.sequence.take());
            self.tail.extra.extend(extra.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.tail.extra.extend(extra.into_iter().filter(|(_, value)| !value.is_null()));
        if let Some(usage) = usage {
            self.tail.usage.get_or_insert_default().update(usage);
        }
    }

    fn finish(&mut self, out: &mut Vec<TurnEvent>) {
        for (index, block) in std::mem::take(&mut self.open) {
            block.stop(index, Fields::new(), &mut self.blocks, out);
        }
        self.blocks.finish_all(out);
        out.push(TurnEvent::Finished(std::mem::take(&mut self.tail).into_finish()));
    }

    fn find(&self, index: u64) -> Option<usize> {
        self.open.iter().position(|(open, _)| *open == index)
    }
}
