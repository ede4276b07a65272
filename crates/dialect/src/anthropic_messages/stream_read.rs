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

/// How many blocks a host may keep open at once: one by the protocol, a few more where it breaks it.
const MAX_OPEN_BLOCKS: usize = 256;

/// Turns frames into events.
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
    /// Tells a repeated start from a second reply.
    id: Option<String>,
    blocks: Sequencer<u64>,
    open: Vec<(u64, OpenBlock)>,
    stop: ReplyTail,
}

impl ReplyReader for StreamReader {
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let kind = kind_of(frame);
        let data = frame.data;
        match (&*kind, &mut self.state) {
            // Whatever follows the end belongs to no reply of ours.
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
                reading.ending(parse(&kind, data)?);
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
                "the host's stream begins with {kind} instead of message_start"
            ))),
            (unknown, State::Waiting | State::Reading(_)) => {
                self.losses.add(format!("stream[{unknown}]"), "an event the Messages API does not have");
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
        let (head, blocks, stop) = split(message)?;
        // A reply that continues code running at the host begins with blocks that are already complete.
        let begun = Reply { head, blocks: blocks.unwrap_or_default(), finish: Finish::default() };
        for event in begun.into_events() {
            match event {
                TurnEvent::Started(_) => {
                    out.push(event);
                    out.extend(stop.usage.clone().map(|usage| TurnEvent::Usage(usage.into_usage())));
                }
                TurnEvent::Finished(_) => {}
                TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_)
                | TurnEvent::Usage(_) => out.push(event),
            }
        }
        Ok(Self { id, blocks: Sequencer::new(BlockClosing::OnNextStart), open: Vec::new(), stop })
    }

    /// Some hosts repeat their first frame (T4). A frame with another id is a second reply spliced in after a lost
    /// connection: the first one was cut off, and its blocks must not be mixed with the second's.
    fn start_again(&self, start: &StartFrame) -> Result<(), TurnError> {
        if start.message.id == self.id {
            return Ok(());
        }
        Err(TurnError::upstream(
            "the host began a second reply before it had finished the first: send the request again",
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
            // The host has forgotten to close it.
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
            losses.add("content_block_delta", "a delta of a kind that its block does not have");
        }
        Ok(())
    }

    fn stop_block(&mut self, frame: BlockStopFrame, out: &mut Vec<TurnEvent>) {
        // A stop for a block that is not open says nothing.
        if let Some(at) = self.find(frame.index) {
            let (index, block) = self.open.remove(at);
            block.stop(index, frame.extra, &mut self.blocks, out);
        }
    }

    fn ending(&mut self, frame: MessageDeltaFrame) {
        let MessageDeltaFrame { delta, usage, _kind: _, extra } = frame;
        if let Some(StopIn { stop_reason, stop_sequence, extra }) = delta {
            self.stop.reason = stop_reason.or(self.stop.reason.take());
            self.stop.sequence = stop_sequence.or(self.stop.sequence.take());
            self.stop.extra.extend(extra.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.stop.extra.extend(extra.into_iter().filter(|(_, value)| !value.is_null()));
        if let Some(usage) = usage {
            self.stop.usage.get_or_insert_default().update(usage);
        }
    }

    fn finish(&mut self, out: &mut Vec<TurnEvent>) {
        for (index, block) in std::mem::take(&mut self.open) {
            block.stop(index, Fields::new(), &mut self.blocks, out);
        }
        self.blocks.finish_all(out);
        out.push(TurnEvent::Finished(std::mem::take(&mut self.stop).into_finish()));
    }

    fn find(&self, index: u64) -> Option<usize> {
        self.open.iter().position(|(open, _)| *open == index)
    }
}
