//! Whole replies. A whole reply is the fold of its stream.

use crate::event::{BlockEnd, BlockStart, Delta, Finish, ReplyHead, TurnEvent};
use crate::grammar::{Grammar, GrammarError};
use crate::message::{Block, Reasoning, ReasoningKind, ReasoningPart, Text, ToolCall};
use crate::usage::Usage;

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Id, model and creation time.
    pub head: ReplyHead,
    /// The content.
    pub blocks: Vec<Block>,
    /// Stop reason and usage.
    pub finish: Finish,
}

impl Reply {
    /// The shortest stream that folds into this reply.
    pub fn into_events(self) -> Vec<TurnEvent> {
        let mut out = vec![TurnEvent::Started(self.head)];
        for block in self.blocks {
            block_events(block, &mut out);
        }
        out.push(TurnEvent::Finished(self.finish));
        out
    }
}

/// Folds a complete stream.
pub fn fold(events: impl IntoIterator<Item = TurnEvent>) -> Result<Reply, GrammarError> {
    let mut fold = Fold::new();
    for event in events {
        fold.event(event)?;
    }
    fold.end()
}

/// Folds a stream event by event.
#[derive(Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    reply: Reply,
    open: Option<Block>,
    usage: Option<Usage>,
}

impl Fold {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next event.
    pub fn event(&mut self, event: TurnEvent) -> Result<(), GrammarError> {
        self.grammar.accept(&event)?;
        match event {
            TurnEvent::Started(head) => self.reply.head = head,
            TurnEvent::BlockStarted(start) => self.open = Some(open(start)),
            TurnEvent::BlockDelta(delta) => append(self.open.as_mut(), delta),
            TurnEvent::BlockFinished(end) => {
                self.reply.blocks.extend(self.open.take().map(|block| close(block, end)));
            }
            TurnEvent::Usage(usage) => self.usage = Some(usage),
            TurnEvent::Finished(finish) => {
                self.reply.finish = finish;
                if self.reply.finish.usage.is_none() {
                    self.reply.finish.usage = self.usage.take();
                }
            }
        }
        Ok(())
    }

    /// The reply, if it is complete.
    pub fn end(self) -> Result<Reply, GrammarError> {
        self.grammar.end()?;
        Ok(self.reply)
    }
}

fn open(start: BlockStart) -> Block {
    match start {
        BlockStart::Text => Block::Text(Text::default()),
        BlockStart::Refusal => Block::Refusal(Text::default()),
        BlockStart::Reasoning(extras) => Block::Reasoning(Reasoning { extras, ..Reasoning::default() }),
        BlockStart::ToolCall { id, name, kind } => Block::ToolCall(ToolCall {
            id,
            name,
            kind,
            arguments: String::new(),
            extras: crate::Extras::NONE,
        }),
        BlockStart::Opaque(opaque) => Block::Opaque(opaque),
    }
}

fn append(open: Option<&mut Block>, delta: Delta) {
    match (open, delta) {
        (Some(Block::Text(block) | Block::Refusal(block)), Delta::Text(text)) => block.text.push_str(&text),
        (Some(Block::Reasoning(block)), Delta::Text(text)) => match block.parts.last_mut() {
            Some(part) => part.text.push_str(&text),
            None => block.parts.push(ReasoningPart { kind: ReasoningKind::Full, text }),
        },
        (Some(Block::Reasoning(block)), Delta::Paragraph(kind)) => {
            block.parts.push(ReasoningPart { kind, text: String::new() });
        }
        (Some(Block::ToolCall(call)), Delta::Arguments(text)) => call.arguments.push_str(&text),
        // The grammar rejects every other pair.
        (_, Delta::Text(_) | Delta::Paragraph(_) | Delta::Arguments(_)) => {}
    }
}

fn close(mut block: Block, end: BlockEnd) -> Block {
    match &mut block {
        Block::Text(text) | Block::Refusal(text) => text.extras = end.extras,
        Block::Reasoning(reasoning) => {
            reasoning.extras = end.extras;
            reasoning.seal = end.seal;
        }
        Block::ToolCall(call) => call.extras = end.extras,
        Block::Opaque(_) => {}
    }
    block
}

fn block_events(block: Block, out: &mut Vec<TurnEvent>) {
    let end = match block {
        Block::Text(text) => text_events(BlockStart::Text, text, out),
        Block::Refusal(text) => text_events(BlockStart::Refusal, text, out),
        Block::Reasoning(reasoning) => {
            out.push(TurnEvent::BlockStarted(BlockStart::Reasoning(reasoning.extras.clone())));
            for part in reasoning.parts {
                out.push(TurnEvent::BlockDelta(Delta::Paragraph(part.kind)));
                push_text(part.text, out);
            }
            BlockEnd { seal: reasoning.seal, extras: reasoning.extras }
        }
        Block::ToolCall(ToolCall { id, name, kind, arguments, extras }) => {
            out.push(TurnEvent::BlockStarted(BlockStart::ToolCall { id, name, kind }));
            if !arguments.is_empty() {
                out.push(TurnEvent::BlockDelta(Delta::Arguments(arguments)));
            }
            BlockEnd { seal: None, extras }
        }
        Block::Opaque(opaque) => {
            out.push(TurnEvent::BlockStarted(BlockStart::Opaque(opaque)));
            BlockEnd::default()
        }
    };
    out.push(TurnEvent::BlockFinished(end));
}

fn text_events(start: BlockStart, text: Text, out: &mut Vec<TurnEvent>) -> BlockEnd {
    out.push(TurnEvent::BlockStarted(start));
    push_text(text.text, out);
    BlockEnd { seal: None, extras: text.extras }
}

fn push_text(text: String, out: &mut Vec<TurnEvent>) {
    if !text.is_empty() {
        out.push(TurnEvent::BlockDelta(Delta::Text(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_the_fold_of_its_events() {
        let reply = Reply {
            blocks: vec![
                Block::Reasoning(Reasoning {
                    parts: vec![
                        ReasoningPart { kind: ReasoningKind::Summary, text: "one".into() },
                        ReasoningPart { kind: ReasoningKind::Full, text: "two".into() },
                    ],
                    ..Reasoning::default()
                }),
                Block::Text(Text::new("")),
                Block::Text(Text::new("hello")),
                Block::ToolCall(ToolCall {
                    id: "c1".into(),
                    name: "f".into(),
                    kind: crate::CallKind::Function,
                    arguments: r#"{"a":1}"#.into(),
                    extras: crate::Extras::NONE,
                }),
            ],
            ..Reply::default()
        };
        assert_eq!(fold(reply.clone().into_events()), Ok(reply));
    }
}
