//! The state machine of one process: opened, fed with history, prompted, waiting for the client, idle. It takes lines
//! and returns lines and [`CoreEvent`]s; it does no I/O and never waits.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_dialect::claude_stream_json::write::{self, AgentOpening};
use toolgate_dialect::claude_stream_json::{
    AgentLine, AgentTools, ControlRequest, HistoryLine, HistoryScript, RequestId, ServerAnswer, TurnOutcome,
};
use toolgate_model::reply::Fold;
use toolgate_model::{AssistantMessage, Extras, Message, StopReason};
use uuid::Uuid;

use super::active_turn::ActiveTurn;
use super::cost::CostMeter;
use super::errors::{self, Completion};
use super::handoff::Handoff;
use super::joined_reply::ReplyStep;
use super::observer::TurnWatch;
use super::opening::Handshake;
use super::records::{self, AgentRecord, ReplyDelivery};
use super::reply_channel::ReplySender;
use super::turn_job::{Beginning, CallerRecord, CoreEvent, LastTurn, Settled, TurnJob, TurnWork};
use super::turn_steps::{BuiltinUse, PendingBuiltins, TurnSteps};
use crate::turn::Batch;

/// The state of a process.
#[derive(Default)]
pub(super) struct Core {
    tools: AgentTools,
    handshake: Handshake,
    history: VecDeque<HistoryLine>,
    /// A history line was sent; the next line must wait until the program confirms it.
    awaiting_ack: bool,
    last_message: Option<Value>,
    prompt: Prompt,
    turn: Option<ActiveTurn>,
    /// The turn that approval requests belong to.
    pub(super) last_turn: LastTurn,
    handoff: Handoff,
    cost_meter: CostMeter,
    /// The turn that waits for its client while built-in tools may still run.
    held: Option<(TurnSteps, CallerRecord)>,
    /// Reports what the last turn does, also after its reply is complete.
    watch: TurnWatch,
    lines: Vec<String>,
}

/// The progress of the open turn's prompt.
#[derive(Default, PartialEq)]
enum Prompt {
    /// It waits for the history before it.
    #[default]
    Waiting,
    /// It was sent.
    Sent,
    /// The program is working on it.
    Accepted,
}

impl Core {
    pub(super) fn new(cost_meter: CostMeter) -> Self {
        Self { cost_meter, ..Self::default() }
    }

    /// Sends the opening of a conversation, unless it was sent before.
    pub(super) fn open(&mut self, opening: &AgentOpening, tools: AgentTools) {
        self.lines.extend(self.handshake.start(opening, &tools));
        self.tools = tools;
    }

    /// Begins a turn.
    pub(super) fn begin(&mut self, turn_job: TurnJob) {
        let TurnJob { turn, transcript, work, reply, watch, lineage, record_inputs, reply_sender } = turn_job;
        match work {
            TurnWork::Fresh(beginning) => {
                let Beginning { opening, tools, script } = *beginning;
                self.open(&opening, tools);
                self.queue_script(script);
            }
            TurnWork::Continue { script } => self.queue_script(script),
            TurnWork::Results(results) => {
                self.lines.append(&mut self.handoff.deliver(results));
                self.prompt = Prompt::Sent;
            }
        }
        self.held = None;
        self.watch = watch;
        let steps = TurnSteps::after(record_inputs.earlier_steps.clone());
        let (session, caller) = (transcript.session.clone(), Arc::clone(&record_inputs.caller));
        self.last_turn = LastTurn { turn, session, caller };
        self.turn = Some(ActiveTurn {
            transcript,
            reply,
            fold: Fold::new(),
            lineage,
            record_inputs,
            steps,
            reply_sender,
        });
        self.send_ready_lines();
    }

    /// Handles a line that the program wrote.
    pub(super) fn handle_line(&mut self, line: AgentLine<'_>) -> Vec<CoreEvent> {
        self.track_prompt(&line);
        match line {
            AgentLine::Event { event, parent: None } => return self.stream_event(event),
            AgentLine::Result(outcome) => return self.turn_result(&outcome),
            AgentLine::Request { id, request } => {
                return self.control_request(id, request).into_iter().collect();
            }
            AgentLine::Response { id, outcome } => match self.handshake.response(id, outcome) {
                Ok(()) => self.send_ready_lines(),
                Err(error) => return vec![CoreEvent::Failed(error)],
            },
            AgentLine::Withdrawn(id) => return vec![CoreEvent::ApprovalWithdrawn(id)],
            AgentLine::Assistant { message, parent: None } => {
                self.watch.finished_block(&message);
                if let Some(turn) = &mut self.turn {
                    let builtin_use = turn.steps.assistant(&message, &self.tools);
                    return turn.progress(builtin_use);
                }
            }
            AgentLine::User { message, parent: None } => return self.user_message(&message),
            AgentLine::Assistant { message, parent: Some(parent) } => {
                self.watch.sub_agent_message(&parent, &message, &self.tools);
            }
            AgentLine::User { message, parent: Some(parent) } => {
                self.watch.results(Some(&parent), &message, &[]);
            }
            AgentLine::Progress(progress) => self.watch.progress(progress),
            AgentLine::Event { parent: Some(_), .. } | AgentLine::Init { .. } | AgentLine::Other => {}
        }
        Vec::new()
    }

    /// Reports what the last turn does.
    pub(super) fn watch(&self) -> &TurnWatch {
        &self.watch
    }

    /// Takes the lines to write to the program, in order.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Queues a line to write to the program.
    pub(super) fn queue_line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// The reply channel of the open turn.
    pub(super) fn reply_sender(&self) -> Option<&ReplySender> {
        self.turn.as_ref().map(|turn| &turn.reply_sender)
    }

    /// The built-in calls that are pending while the process waits for the client.
    pub(super) fn pending_builtins(&self) -> PendingBuiltins {
        let held = self.held.as_ref();
        held.map_or(PendingBuiltins::None, |(steps, _)| steps.pending_builtins(self.handoff.calls()))
    }

    /// The record of a turn that ends too soon, if it did something that must not be repeated.
    pub(super) fn unfinished_record(&self) -> Option<CallerRecord> {
        self.turn.as_ref()?.unfinished_record()
    }

    /// Takes the reply channel of the open turn, to report a failure.
    pub(super) fn take_reply_sender(&mut self) -> Option<ReplySender> {
        self.turn.take().map(|turn| turn.reply_sender)
    }

    /// Notes when the program accepts the prompt. Until then the model has not been called, so a failed turn can be
    /// retried in another process.
    fn track_prompt(&mut self, line: &AgentLine<'_>) {
        let accepted = matches!(
            line,
            AgentLine::Init { .. }
                | AgentLine::User { .. }
                | AgentLine::Event { .. }
                | AgentLine::Assistant { .. }
                | AgentLine::Result(_)
        );
        if accepted && self.prompt == Prompt::Sent {
            self.prompt = Prompt::Accepted;
            if let Some(turn) = &self.turn {
                turn.reply_sender.mark_model_called();
            }
        }
    }

    /// Handles results of built-in tools. Results of the client's tools are in the client's history.
    fn user_message(&mut self, message: &Value) -> Vec<CoreEvent> {
        let client_calls = self.handoff.calls();
        self.watch.results(None, message, client_calls);
        if let Some(turn) = &mut self.turn {
            let builtin_use = turn.steps.user(message, client_calls);
            return turn.progress(builtin_use);
        }
        if let Some((steps, saved)) = &mut self.held
            && steps.user(message, client_calls) == BuiltinUse::Found
        {
            saved.record.steps = records::write_steps(steps.if_hidden_from_client());
            return vec![CoreEvent::Progress(saved.clone())];
        }
        Vec::new()
    }

    fn queue_script(&mut self, script: HistoryScript) {
        self.prompt = Prompt::Waiting;
        self.history = script.history.into();
        self.last_message = Some(script.last);
    }

    /// Queues what may be sent now: the history line by line, then the prompt. The program lists our tools before it
    /// calls its model, so the prompt need not wait for that.
    fn send_ready_lines(&mut self) {
        while self.handshake.is_complete() && !self.awaiting_ack {
            match self.history.pop_front() {
                Some(HistoryLine::Assistant(content)) => {
                    self.lines.push(write::assistant(&fresh_uuid(), HISTORY_MODEL, &content));
                }
                Some(HistoryLine::User(content)) => {
                    self.lines.push(write::quiet_user(&fresh_uuid(), &content));
                    self.awaiting_ack = true;
                }
                None => {
                    let Some(last) = self.last_message.take() else { return };
                    self.lines.push(write::user(&fresh_uuid(), &last));
                    self.prompt = Prompt::Sent;
                    return;
                }
            }
        }
    }

    fn stream_event(&mut self, event: &str) -> Vec<CoreEvent> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let mut batch = Batch::default();
        let was_empty = turn.reply.is_empty();
        let steps = match turn.reply.event(event, &mut self.watch, &mut batch) {
            Ok(steps) => steps,
            Err(error) => return vec![CoreEvent::Failed(error)],
        };
        let mut handed_off = false;
        for step in steps {
            match step {
                ReplyStep::MessageStarted => self.handoff.reset(),
                ReplyStep::ClientCall(call) => self.handoff.add_call(&call),
                ReplyStep::MessageComplete => self.watch.usage(turn.reply.usage()),
                ReplyStep::HandedOff => handed_off = true,
            }
        }
        let mut core_events = Vec::new();
        if was_empty && !turn.reply.is_empty() {
            core_events.push(CoreEvent::FirstEvent);
        }
        if handed_off {
            core_events.extend(self.settle(batch, None));
        } else if let Err(error) = turn.fold_batch(&batch) {
            core_events.push(CoreEvent::Failed(errors::invalid_event_order(error)));
        } else {
            turn.reply_sender.send(batch);
        }
        core_events
    }

    fn turn_result(&mut self, outcome: &TurnOutcome) -> Vec<CoreEvent> {
        if self.awaiting_ack && outcome.turns == 0 {
            self.awaiting_ack = false;
            self.send_ready_lines();
            return Vec::new();
        }
        let Some(turn) = &mut self.turn else {
            // The turn that waited for the client has ended without it.
            return vec![CoreEvent::Failed(errors::gave_up_on_client(outcome))];
        };
        let completion = match errors::completion(outcome) {
            Ok(completion) => completion,
            Err(error) => return vec![CoreEvent::Failed(error)],
        };
        turn.reply.set_cost(self.cost_meter.since_last(outcome.cost_usd));
        let mut batch = Batch::default();
        if let Err(error) = turn.reply.add_outcome(outcome, completion, &mut batch) {
            return vec![CoreEvent::Failed(error)];
        }
        batch.events.iter().for_each(|event| self.watch.event(event, &self.tools));
        let stop = match (completion, &outcome.structured) {
            (Completion::Paused, _) => Some(StopReason::PauseTurn),
            (Completion::Complete, Some(_)) => Some(StopReason::EndTurn),
            (Completion::Complete, None) => None,
        };
        self.settle(batch, stop)
    }

    /// Completes the reply.
    fn settle(&mut self, mut batch: Batch, stop: Option<StopReason>) -> Vec<CoreEvent> {
        let Some(mut turn) = self.turn.take() else { return Vec::new() };
        let finish = turn.reply.finish(stop, &mut self.watch);
        batch.events.push(finish);
        let reply = turn.fold_batch(&batch).and_then(|()| turn.fold.end());
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let error = errors::invalid_event_order(error);
                turn.reply_sender.fail(error.clone());
                return vec![CoreEvent::Failed(error)];
            }
        };
        let message =
            Message::Assistant(AssistantMessage { content: reply.blocks.clone(), extras: Extras::NONE });
        let after = turn.lineage.then(&message);
        let ActiveTurn { transcript, record_inputs, steps, reply_sender, .. } = turn;
        let record = AgentRecord {
            run: record_inputs.run,
            key: record_inputs.key,
            after: Some(after),
            session: transcript.session.clone(),
            part: Some(transcript.into_part()),
            steps: records::write_steps(steps.if_hidden_from_client()),
            reply: Some(records::write_reply(&reply, &record_inputs.request)),
            delivery: ReplyDelivery::Incomplete,
        };
        let record = CallerRecord { caller: record_inputs.caller, record };
        self.held = Some((steps, record.clone()));
        let settled = Settled { after, calls: self.handoff.calls().to_vec() };
        vec![CoreEvent::Settled {
            settled,
            last: batch,
            reply_sender,
            record,
            run_guards: record_inputs.run_guards,
        }]
    }

    fn control_request(&mut self, id: RequestId, request: ControlRequest) -> Option<CoreEvent> {
        match request {
            ControlRequest::ToolServer { server: _, message } => {
                match self.handshake.server().answer(&message) {
                    ServerAnswer::Now(answer) => self.lines.push(write::answer_tool_server(&id, &answer)),
                    ServerAnswer::Held(call) => self.lines.extend(self.handoff.tool_server_call(id, call)),
                }
            }
            ControlRequest::Permission(request) if request.is_harmless() => {
                self.lines.push(write::allow(&id, &request.input, &[], request.call.as_deref()));
            }
            ControlRequest::Permission(request) => {
                self.watch.permission_asked(&request, &self.tools);
                return Some(CoreEvent::ApprovalNeeded { id, request });
            }
            ControlRequest::Elicitation => {
                self.lines.push(write::answer(&id, &json!({ "action": "decline" })));
            }
            ControlRequest::Hook => self.lines.push(write::answer(&id, &json!({}))),
            // The protocol wants no answer to a dialog that the host does not support.
            ControlRequest::Dialog => {}
            ControlRequest::Unknown(name) => {
                self.lines.push(write::refuse(&id, &format!("toolgate does not support `{name}` requests")));
            }
        }
        None
    }
}

/// The model name in history lines. The program requires one; no API host ever sees it.
const HISTORY_MODEL: &str = "claude";

fn fresh_uuid() -> String {
    Uuid::now_v7().to_string()
}
