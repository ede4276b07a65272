//! Translates a request for an agent: launch options, opening, tools, and the lines that carry the conversation. The
//! Messages dialect writes the request, so no mapping exists twice.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_dialect::claude_stream_json::write::AgentOpening;
use toolgate_dialect::claude_stream_json::{AgentTools, HiddenSteps, HistoryScript, result_content, script};
use toolgate_dialect::host::{HostProfile, SystemMessages};
use toolgate_dialect::{HostRequest, Translation, UpstreamDialect, registry};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{
    Choice, DialectId, ErrorKind, Losses, Message, OutputFormat, Parallel, Part, ReasoningRequest, Sampling,
    ToolChoice, ToolOutcome, Translated, TurnError, TurnRequest,
};

use super::config::{AgentConfig, AgentModel, Builtins};
use super::handoff::CallResult;
use super::joined_reply::{JoinedReply, Prose};
use super::launch::{Launch, Thinking};
use super::opening::{OpeningFingerprint, describe};
use super::system_prompt::{system, with_notice};
use super::transcript::SessionTranscript;
use super::turn_steps;
use crate::turn::{RequestIdentity, Turn};

/// A request, translated for an agent.
pub(super) struct TurnPlan {
    pub(super) launch: Launch,
    pub(super) opening: AgentOpening,
    pub(super) tools: AgentTools,
    pub(super) fingerprint: OpeningFingerprint,
    pub(super) lineage: Lineage,
    /// Set if the client names the session: the lineage the conversation had before it did.
    pub(super) lineage_without_session: Option<Lineage>,
    /// Identifies the request: the conversation and everything asked about it. A client may send the same messages
    /// with other instructions, for example to make a title (M5).
    pub(super) key: PrefixHash,
    pub(super) losses: Losses,
    client: DialectId,
    translation: Translation,
    dialect: &'static dyn UpstreamDialect,
    /// Without the fields that an agent does not support.
    request: TurnRequest,
    /// As Messages API JSON, like `messages`.
    system: Value,
    messages: Vec<Value>,
    scope_without_session: String,
    agent: Arc<str>,
}

impl TurnPlan {
    pub(super) fn new(turn: &Turn, config: &AgentConfig) -> Result<Self, TurnError> {
        let dialect = messages_dialect()?;
        let mut losses = Losses::default();
        let request = without_unsupported_fields(&turn.request, &mut losses);
        let mut translation = Translation::new(dialect);
        let written = translation.request(turn.dialect, &request, &request.model, &profile(dialect))?;
        losses.append(written.losses);
        let mut body: Value =
            serde_json::from_slice(&written.body).map_err(|error| write_failed().caused_by(error))?;
        let enabled = enabled_builtins(&config.builtins);
        let offered = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Translated { value: tools, losses: tool_losses } = AgentTools::new(offered, &enabled);
        losses.append(tool_losses);
        let model = match &config.model {
            AgentModel::Default => turn.model.as_ref().map(|model| model.as_str().to_owned()),
            AgentModel::Gateway(_) => None,
        };
        let launch = Launch { model, ..launch(&turn.request, config, &tools, &mut losses) };
        check_options(&turn.request, &launch)?;
        let opening = AgentOpening {
            system: with_notice(system(&body["system"], config), &launch, config),
            aliases: tools.aliases(),
            schema: schema(&turn.request.output),
        };
        let (scope, model) = (scope(turn, config), turn.request.model.as_str());
        let description = describe(&launch, &opening, &tools);
        let asked = format!("{scope}\n{model}\n{description}{}", distinction(&turn.identity));
        let key = Lineage::of(&asked, &turn.request.messages).whole();
        Ok(Self {
            launch,
            opening,
            tools,
            fingerprint: OpeningFingerprint::of(&turn.caller, &description),
            key,
            lineage: Lineage::of(&scope, &turn.request.messages),
            lineage_without_session: turn
                .session
                .named()
                .map(|_| Lineage::of(&scope_without_session(turn, config), &turn.request.messages)),
            losses,
            client: turn.dialect,
            translation,
            dialect,
            messages: match body["messages"].take() {
                Value::Array(messages) => messages,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                    Vec::new()
                }
            },
            system: body["system"].take(),
            scope_without_session: scope_without_session(turn, config),
            agent: config.name.to_string().into(),
            request,
        })
    }

    /// The whole conversation, for a process that has none of it.
    pub(super) fn whole(&self, hidden: HiddenSteps) -> Result<Translated<HistoryScript>, TurnError> {
        script(self.messages.clone(), &self.tools, hidden)
    }

    /// The messages after the first `count`, for a process that has those (A3).
    pub(super) fn since(&self, count: usize) -> Result<Translated<HistoryScript>, TurnError> {
        let messages = self.messages_from(count)?;
        script(messages, &self.tools, HiddenSteps::default())
    }

    /// The results after the first `count` messages, if they answer exactly these calls and can be passed to a live
    /// process unchanged; `None` if only a fresh process gets them right.
    pub(super) fn results(&self, count: usize, calls: &[String]) -> Option<Vec<(String, CallResult)>> {
        let only_results = self
            .request
            .messages
            .get(count..)?
            .iter()
            .all(|message| matches!(message, Message::ToolResults(_)));
        let with_their_calls = self.messages_from(count.checked_sub(1)?).ok()?;
        let answers = with_their_calls.last()?["content"].as_array()?;
        if !only_results || answers.len() != calls.len() {
            return None;
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let block = answers.iter().find(|block| block["tool_use_id"] == call.as_str())?;
            let outcome = if block["is_error"] == true { ToolOutcome::Error } else { ToolOutcome::Success };
            results.push((call.clone(), CallResult { content: result_content(block)?, outcome }));
        }
        Some(results)
    }

    /// The transcript of this session, this request included. `sent` identifies the request as the client sent it.
    pub(super) fn transcript(&self, session: String, sent: PrefixHash) -> SessionTranscript {
        SessionTranscript {
            agent: Arc::clone(&self.agent),
            scope: self.scope_without_session.clone(),
            session,
            system: self.system.clone(),
            messages: self.messages.clone(),
            sent,
            continues: None,
        }
    }

    /// Starts the reply. `earlier_steps` are those of an interrupted run of the same turn.
    pub(super) fn reply(&self, earlier_steps: &[Value]) -> JoinedReply {
        let prose = if self.opening.schema.is_some() { Prose::Hidden } else { Prose::Shown };
        let earlier_texts = match prose {
            Prose::Shown => turn_steps::texts(earlier_steps),
            Prose::Hidden => Vec::new(),
        };
        JoinedReply::new(self.dialect, self.tools.clone(), self.translation.clone(), prose, earlier_texts)
    }

    fn messages_from(&self, count: usize) -> Result<Vec<Value>, TurnError> {
        let messages = self.request.messages.get(count..).unwrap_or_default().to_vec();
        write_messages(self.client, &self.request, messages)
    }
}

/// Separates conversations with equal messages: by caller, by agent, and by session if the client names one
/// (agent 14, 16). Not by model, which may change within a conversation (agent 20).
pub(super) fn scope(turn: &Turn, config: &AgentConfig) -> String {
    let base = scope_without_session(turn, config);
    turn.session.named().map_or_else(|| base.clone(), |session| format!("{base}\n{session}"))
}

/// The caller and the agent.
pub(super) fn scope_without_session(turn: &Turn, config: &AgentConfig) -> String {
    format!("{}\n{}", turn.caller, config.name)
}

/// What makes a request another one in spite of equal words.
fn distinction(identity: &RequestIdentity) -> String {
    let RequestIdentity { idempotency_key, sample, retry: _ } = identity;
    let key = idempotency_key.as_ref().map(|key| format!("\nidempotency key {key}"));
    let sample = sample.map(|sample| format!("\nsample {sample}"));
    key.into_iter().chain(sample).collect()
}

/// Messages of a request as Messages API JSON.
pub(super) fn write_messages(
    client: DialectId,
    request: &TurnRequest,
    messages: Vec<Message>,
) -> Result<Vec<Value>, TurnError> {
    let part = TurnRequest { messages, ..TurnRequest::new(request.model.clone(), Vec::new()) };
    let part = TurnRequest { tools: request.tools.clone(), ..part };
    let dialect = messages_dialect()?;
    let HostRequest { body, .. } =
        Translation::new(dialect).request(client, &part, &part.model, &profile(dialect))?;
    let mut body: Value = serde_json::from_slice(&body).map_err(|error| write_failed().caused_by(error))?;
    Ok(serde_json::from_value(body["messages"].take()).unwrap_or_default())
}

/// What the program takes. It passes messages on to its model itself, so their order does not matter here.
fn profile(dialect: &dyn UpstreamDialect) -> HostProfile {
    HostProfile {
        assistant_first: true,
        system_messages: SystemMessages::Anywhere,
        ..HostProfile::of_dialect(dialect.id())
    }
}

/// The dialect that the program speaks with its model.
pub(super) fn messages_dialect() -> Result<&'static dyn UpstreamDialect, TurnError> {
    registry::find("anthropic-messages").map(|dialect| dialect.upstream).ok_or_else(write_failed)
}

fn write_failed() -> TurnError {
    TurnError::new(
        ErrorKind::Internal,
        "writing the conversation for the agent failed; please report this bug",
    )
}

/// Removes and reports the fields that the program has no option for.
fn without_unsupported_fields(request: &Arc<TurnRequest>, losses: &mut Losses) -> TurnRequest {
    let mut request = TurnRequest::clone(request);
    let Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop } =
        std::mem::take(&mut request.sampling);
    let unsupported = [
        ("temperature", temperature.is_some()),
        ("top_p", top_p.is_some()),
        ("top_k", top_k.is_some()),
        ("frequency_penalty", frequency_penalty.is_some()),
        ("presence_penalty", presence_penalty.is_some()),
        ("seed", seed.is_some()),
        ("stop", !stop.is_empty()),
        ("max_tokens", request.max_output.take().is_some()),
        ("user", request.user.take().is_some()),
    ];
    for (place, _) in unsupported.into_iter().filter(|(_, given)| *given) {
        losses.add(place, "not supported by agents");
    }
    if let Some(ReasoningRequest { effort: _, budget, mode: _, summary, extras }) = request.reasoning.take() {
        for (place, given) in
            [("thinking.budget_tokens", budget.is_some()), ("reasoning.summary", summary.is_some())]
        {
            if given {
                losses.add(place, "not supported by agents");
            }
        }
        if !extras.is_empty() {
            losses.add("reasoning", "agents support only the effort");
        }
    }
    // Opaque parts are client telemetry that changes with every request; the agent sends its own (T29).
    request.system.retain(|part| !matches!(part, Part::Opaque(_)));
    request.tool_choice = ToolChoice::default();
    request.output = OutputFormat::Text;
    request.samples = None;
    request
}

fn launch(request: &TurnRequest, config: &AgentConfig, tools: &AgentTools, losses: &mut Losses) -> Launch {
    let reasoning = request.reasoning.as_ref();
    let off = |text: Option<&String>| text.is_some_and(|text| text == "disabled" || text == "none");
    let is_off =
        reasoning.is_some_and(|reasoning| off(reasoning.mode.as_ref()) || off(reasoning.effort.as_ref()));
    let effort = reasoning.and_then(|reasoning| reasoning.effort.clone()).filter(|_| !is_off);
    let builtins = match (&config.builtins, tools.builtins.as_slice()) {
        (Builtins::None, _) => Builtins::None,
        (all, []) => all.clone(),
        // A request that lists some of the built-in tools gets only those.
        (Builtins::Default | Builtins::Only(_), listed) => Builtins::Only(listed.to_vec()),
    };
    let choice = tool_choice(&request.tool_choice, &builtins, tools, losses);
    let forces =
        choice.as_ref().is_some_and(|choice| matches!(choice["type"].as_str(), Some("any" | "tool")));
    Launch {
        model: None,
        builtins,
        effort: effort.map(program_effort),
        thinking: if is_off || forces { Thinking::Disabled } else { Thinking::Default },
        extra_body: choice.map(|choice| json!({ "tool_choice": choice }).to_string()),
    }
}

/// Rejects values that no argument or variable of a process can hold.
fn check_options(request: &TurnRequest, launch: &Launch) -> Result<(), TurnError> {
    // Linux limits each to 128 KiB.
    const MAX_BYTES: usize = 100 * 1024;
    let options = [
        ("model", Some(request.model.as_str())),
        ("effort", launch.effort.as_deref()),
        ("tool_choice", launch.extra_body.as_deref()),
    ];
    for (param, value) in options {
        if value.is_some_and(|value| value.len() > MAX_BYTES || value.chars().any(char::is_control)) {
            let message = format!("{param}: too long or with control characters; correct the value");
            return Err(TurnError::invalid_param(param, message));
        }
    }
    Ok(())
}

/// Maps an effort of another dialect to one that the program knows.
fn program_effort(effort: String) -> String {
    if effort == "minimal" { "low".to_owned() } else { effort }
}

/// The `tool_choice` that the program sends with every model call of the turn (A9).
fn tool_choice(
    requested: &ToolChoice,
    builtins: &Builtins,
    tools: &AgentTools,
    losses: &mut Losses,
) -> Option<Value> {
    if requested.allowed.is_some() {
        losses.add("tool_choice.allowed_tools", "an agent may call every tool of its session");
    }
    let mut choice = match &requested.choice {
        None | Some(Choice::Auto) => json!({ "type": "auto" }),
        Some(Choice::None) => json!({ "type": "none" }),
        Some(Choice::Any) if *builtins == Builtins::None => json!({ "type": "any" }),
        Some(Choice::Named(name, _)) if tools.client_name(&tools.visible_name(name.as_str())).is_some() => {
            json!({ "type": "tool", "name": tools.visible_name(name.as_str()) })
        }
        Some(Choice::Any | Choice::Named(..) | Choice::Provider(_)) => {
            // Forced at every step, an agent with built-in tools would never finish.
            losses.add("tool_choice", "an agent cannot be forced to use its built-in tools; sent as `auto`");
            json!({ "type": "auto" })
        }
    };
    let is_none = choice["type"] == "none";
    if requested.parallel == Some(Parallel::Forbidden) && !is_none {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    (choice != json!({ "type": "auto" })).then_some(choice)
}

fn schema(output: &OutputFormat) -> Option<Value> {
    match output {
        OutputFormat::Text => None,
        OutputFormat::JsonObject => Some(json!({ "type": "object" })),
        OutputFormat::JsonSchema(format) => Some(format.schema.to_value()),
    }
}

/// The built-in tool names that a request may list (A4).
fn enabled_builtins(builtins: &Builtins) -> Vec<String> {
    const DEFAULT: [&str; 15] = [
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "Bash",
        "Glob",
        "Grep",
        "LS",
        "WebFetch",
        "WebSearch",
        "TodoRead",
        "TodoWrite",
        "Task",
        "Agent",
        "NotebookEdit",
    ];
    match builtins {
        Builtins::None => Vec::new(),
        Builtins::Default => DEFAULT.map(str::to_owned).to_vec(),
        Builtins::Only(names) => names.clone(),
    }
}
