//! Reads the calls of a stream. Hosts identify calls by index, by id, or only by starting a new one; ids and names may
//! arrive late, twice or never.

use serde::de::IgnoredAny;
use toolgate_model::pairing::shortened;
use toolgate_model::sequencer::Sequencer;
use toolgate_model::{
    BlockEnd, BlockStart, CallId, CallKind, Delta, Extras, Fields, Losses, ToolName, TurnError, TurnEvent,
};

use super::extras::{merge, nested_extras};
use super::stream_read_state::BlockKey;
use super::thought_signature;
use super::wire_stream::{CallDelta, Str};

/// The maximum number of calls in one reply. A host that starts more is broken or hostile.
const MAX_CALLS: usize = 1024;
/// How much input is buffered for a call whose name has not arrived.
const MAX_BUFFERED_BYTES: usize = 1024 * 1024;
/// The maximum length of a generated id.
const MAX_ID_CHARS: usize = 64;

/// The calls of one reply.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

struct Call {
    index: Option<u64>,
    id: String,
    /// The id in the events: the host's, or a generated one.
    written_id: String,
    name: String,
    kind: CallKind,
    /// Input that arrived before the name.
    buffered: String,
    extra: Fields,
    inner_extra: Fields,
    /// Gemini's signature, until it is written.
    signature: Option<String>,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Unnamed,
    Started,
}

impl Calls {
    /// True once a call has started.
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|call| call.stage == Stage::Started)
    }

    /// Reads a delta of a call.
    pub(super) fn delta(
        &mut self,
        delta: CallDelta<'_>,
        reply_id: &str,
        sequencer: &mut Sequencer<BlockKey>,
        out: &mut Vec<TurnEvent>,
    ) -> Result<(), TurnError> {
        let at = self.find(&delta);
        if at >= MAX_CALLS {
            return Err(TurnError::upstream(format!(
                "the host started more than {MAX_CALLS} tool calls in one reply"
            )));
        }
        let call = &mut self.0[at];
        let kind = if delta.custom.is_some() { CallKind::Custom } else { CallKind::Function };
        let id = Str::text(delta.id);
        if call.id.is_empty() {
            call.id.push_str(&id);
        }
        let has_new_extras = !delta.extra.is_empty();
        merge(&mut call.extra, delta.extra);
        call.signature = thought_signature::take(&mut call.extra).or(call.signature.take());
        let Some(input) = delta.custom.or(delta.function) else {
            call.set_end(at, sequencer);
            return Ok(());
        };
        let text = input.input();
        let has_new_extras = has_new_extras || !input.extra.is_empty();
        merge(&mut call.inner_extra, input.extra);
        if call.stage == Stage::Unnamed {
            let name = Str::text(input.name);
            // Some hosts repeat the whole name.
            if call.name != name {
                call.name.push_str(&name);
            }
            call.kind = kind;
            call.buffered.push_str(&text);
            if call.buffered.len() > MAX_BUFFERED_BYTES {
                return Err(TurnError::upstream("the host sent a tool call's input without the tool's name"));
            }
            if !call.name.is_empty() && (!call.id.is_empty() || !call.buffered.is_empty()) {
                call.start(at, reply_id, sequencer, out);
            }
        } else if !text.is_empty() {
            sequencer.delta(BlockKey::Call(at), Delta::Arguments(text.into_owned()), out);
        }
        if has_new_extras {
            call.set_end(at, sequencer);
        }
        Ok(())
    }

    /// True if the open call is a function whose arguments are not complete JSON.
    pub(super) fn is_cut(&self, sequencer: &Sequencer<BlockKey>) -> bool {
        let Some(BlockKey::Call(at)) = sequencer.open_key() else { return false };
        let is_function = self.0.get(at).is_some_and(|call| call.kind == CallKind::Function);
        let arguments = sequencer.open_arguments().filter(|text| is_function && !text.is_empty());
        arguments.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_err())
    }

    /// Ends all calls.
    pub(super) fn end(
        &mut self,
        reply_id: &str,
        sequencer: &mut Sequencer<BlockKey>,
        losses: &mut Losses,
        out: &mut Vec<TurnEvent>,
    ) {
        for (at, call) in self.0.iter_mut().enumerate() {
            if call.stage == Stage::Unnamed && call.name.is_empty() {
                losses.add(format!("tool_calls[{at}]"), "the host sent no name for the call"); // T15
                continue;
            }
            if call.stage == Stage::Unnamed {
                call.start(at, reply_id, sequencer, out);
            }
            sequencer.finish(BlockKey::Call(at), call.block_end(), out);
            call.write_signature(at, sequencer, out);
        }
    }

    /// The position of the call that a delta belongs to: a known id decides, else the index, else the latest call is
    /// meant. An empty id or name means the one before.
    fn find(&mut self, delta: &CallDelta<'_>) -> usize {
        let id = delta.id.as_ref().map_or("", |id| id.0.as_ref());
        let input = delta.function.as_ref().or(delta.custom.as_ref());
        let is_named = input.and_then(|input| input.name.as_ref()).is_some_and(|name| !name.0.is_empty());
        // Some hosts give several calls the same id, but not the same index.
        let is_repeated_id = |call: &Call| {
            is_named && delta.index.is_some() && call.index.is_some() && call.index != delta.index
        };
        let by_id = self.0.iter().rposition(|call| !id.is_empty() && call.id == id && !is_repeated_id(call));
        // T5: some hosts give every call the index 0, so a new id starts a new call. Others send a new id with every
        // piece of the arguments.
        let continues = !is_named && input.is_some_and(|input| !input.input().is_empty());
        let is_other = |call: &Call| !id.is_empty() && !call.id.is_empty() && call.id != id && !continues;
        let by_index = || {
            let at = self.0.iter().rposition(|call| call.index == delta.index)?;
            Some(at).filter(|at| !is_other(&self.0[*at]))
        };
        let known = by_id.or_else(|| match delta.index {
            Some(_) => by_index(),
            None if !id.is_empty() || is_named => None,
            None => self.0.len().checked_sub(1),
        });
        known.unwrap_or_else(|| {
            self.0.push(Call::new(delta.index));
            self.0.len() - 1
        })
    }
}

impl Call {
    fn new(index: Option<u64>) -> Self {
        Self {
            index,
            id: String::new(),
            written_id: String::new(),
            name: String::new(),
            kind: CallKind::Function,
            buffered: String::new(),
            extra: Fields::new(),
            inner_extra: Fields::new(),
            signature: None,
            stage: Stage::Unnamed,
        }
    }

    fn start(
        &mut self,
        at: usize,
        reply_id: &str,
        sequencer: &mut Sequencer<BlockKey>,
        out: &mut Vec<TurnEvent>,
    ) {
        self.stage = Stage::Started;
        self.written_id = if self.id.is_empty() { generated_id(at, reply_id) } else { self.id.clone() };
        self.write_signature(at, sequencer, out);
        let start = BlockStart::ToolCall {
            id: CallId::from(self.written_id.as_str()),
            name: ToolName::from(self.name.as_str()),
            kind: self.kind,
        };
        sequencer.start(BlockKey::Call(at), start, out);
        self.set_end(at, sequencer);
        let buffered = std::mem::take(&mut self.buffered);
        sequencer.delta(BlockKey::Call(at), Delta::Arguments(buffered), out);
    }

    /// Stores the extra fields for the end of the block: the next block's start may close it.
    fn set_end(&self, at: usize, sequencer: &mut Sequencer<BlockKey>) {
        sequencer.set_end(BlockKey::Call(at), self.block_end());
    }

    fn block_end(&self) -> BlockEnd {
        let inner_name = match self.kind {
            CallKind::Function => "function",
            CallKind::Custom => "custom",
        };
        let extras = nested_extras(self.extra.clone(), inner_name, self.inner_extra.clone());
        BlockEnd { seal: None, extras }
    }

    fn write_signature(&mut self, at: usize, sequencer: &mut Sequencer<BlockKey>, out: &mut Vec<TurnEvent>) {
        let Some(signature) = self.signature.take() else { return };
        sequencer.start(BlockKey::Signature(at), BlockStart::Reasoning(Extras::NONE), out);
        let seal = Some(thought_signature::seal(&self.written_id, signature));
        sequencer.finish(BlockKey::Signature(at), BlockEnd { seal, extras: Extras::NONE }, out);
    }
}

/// The id of a call without one, the same each time the reply is read (T23).
pub(super) fn generated_id(at: usize, reply_id: &str) -> String {
    shortened(&format!("call_{at}_{reply_id}"), MAX_ID_CHARS, |c| {
        c.is_ascii_alphanumeric() || c == '_' || c == '-'
    })
}
