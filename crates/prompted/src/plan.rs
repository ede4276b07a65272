//! What the interpreter needs to know about a request: the offered tools, the trigger, and the parsing rules.

use std::collections::HashSet;
use std::sync::Arc;

use toolgate_model::{CallKind, Delivery, Parallel};

use crate::names;
use crate::options::{PromptedOptions, Strictness, Switch, UnknownTool};
use crate::schema::{Parameter, ToolSpec};

/// The maximum number of parameters in a call that its schema does not define.
const MAX_EXTRA: usize = 256;

/// How to parse one reply.
#[derive(Clone, Debug)]
pub struct ParsePlan {
    pub(crate) rules: Arc<ParseRules>,
    /// The seed of the call ids.
    pub(crate) id_seed: [u8; 32],
    /// Whether the reply must contain a call.
    pub(crate) call_required: Switch,
    pub(crate) delivery: Delivery,
}

impl ParsePlan {
    /// The line that starts calls; `None` if no tools were offered.
    pub fn trigger(&self) -> Option<&str> {
        self.rules.trigger.as_deref()
    }

    /// How the client wants the reply.
    pub fn delivery(&self) -> Delivery {
        self.delivery
    }
}

/// The part of the plan that the parser uses.
#[derive(Debug)]
pub(crate) struct ParseRules {
    /// `None` if no calls are expected: then everything is text and reasoning.
    pub(crate) trigger: Option<String>,
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    /// The only tool that may be called, if the client named one.
    pub(crate) forced_tool: Option<String>,
    pub(crate) parallel: Parallel,
    /// Whether calls without a trigger run; off if inbound text contains such markup.
    pub(crate) markerless: Switch,
    pub(crate) options: PromptedOptions,
}

/// The tool that a name in a call resolves to.
pub(crate) enum ToolMatch {
    Exact(Arc<ToolSpec>),
    Corrected(Arc<ToolSpec>),
    /// Forwarded for the client to reject.
    Unknown(Arc<ToolSpec>),
    /// The call is forwarded as text.
    Rejected,
}

impl ParseRules {
    pub(crate) fn is_strict(&self) -> bool {
        self.options.strictness == Strictness::Strict
    }

    /// P24: resolves the name in a call to a tool.
    pub(crate) fn resolve_tool(&self, name: &str) -> ToolMatch {
        let may_run = |tool: &ToolSpec| self.forced_tool.as_ref().is_none_or(|forced| *forced == tool.name);
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == name) {
            return if may_run(tool) { ToolMatch::Exact(Arc::clone(tool)) } else { ToolMatch::Rejected };
        }
        if self.options.unknown_tool == UnknownTool::Fix
            && let Some(resolved) = names::resolve(name, &self.tools.iter().map(|tool| tool.name.as_str()))
            && let Some(tool) = self.tools.iter().find(|tool| tool.name == resolved && may_run(tool))
        {
            return ToolMatch::Corrected(Arc::clone(tool));
        }
        if self.options.unknown_tool == UnknownTool::Text || self.forced_tool.is_some() {
            return ToolMatch::Rejected;
        }
        ToolMatch::Unknown(Arc::new(ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            kind: CallKind::Function,
            parameters: Vec::new(),
        }))
    }

    /// True if the name resolves to an offered tool.
    pub(crate) fn knows_tool(&self, name: &str) -> bool {
        match self.resolve_tool(name) {
            ToolMatch::Exact(_) | ToolMatch::Corrected(_) => true,
            ToolMatch::Unknown(_) | ToolMatch::Rejected => false,
        }
    }
}

/// Tracks which parameters of a call have been set.
#[derive(Clone, Debug)]
pub(crate) struct ParameterSlots {
    tool: Arc<ToolSpec>,
    set: Vec<bool>,
    /// Parameters that the schema does not define.
    extra: HashSet<String>,
}

/// The parameter that a name in a call resolves to.
#[derive(Debug, PartialEq)]
pub(crate) enum ParameterSlot {
    Free(usize),
    Corrected(usize),
    Taken,
    Unknown,
    /// Unknown, and the call already has the maximum number of unknown parameters.
    Excess,
}

impl ParameterSlots {
    pub(crate) fn new(tool: Arc<ToolSpec>) -> Self {
        let set = vec![false; tool.parameters.len()];
        Self { tool, set, extra: HashSet::new() }
    }

    /// P25: resolves the name of a parameter.
    pub(crate) fn slot(&self, name: &str) -> ParameterSlot {
        if let Some(position) = self.tool.position(name) {
            return if self.set[position] { ParameterSlot::Taken } else { ParameterSlot::Free(position) };
        }
        if self.extra.contains(name) {
            return ParameterSlot::Taken;
        }
        let free = self.tool.parameters.iter().zip(&self.set).filter(|(_, set)| !**set);
        let resolved = names::resolve(name, &free.map(|(parameter, _)| parameter.name.as_str()));
        match resolved.and_then(|name| self.tool.position(name)) {
            Some(position) => ParameterSlot::Corrected(position),
            None if self.extra.len() >= MAX_EXTRA => ParameterSlot::Excess,
            None => ParameterSlot::Unknown,
        }
    }

    pub(crate) fn take(&mut self, position: usize) -> Parameter {
        self.set[position] = true;
        self.tool.parameters[position].clone()
    }

    pub(crate) fn take_unknown(&mut self, name: &str) -> Parameter {
        self.extra.insert(name.to_owned());
        Parameter::unknown(name.to_owned())
    }

    /// True if the tool has parameters and all of them have been set.
    pub(crate) fn are_all_set(&self) -> bool {
        !self.set.is_empty() && self.set.iter().all(|set| *set)
    }

    /// The required parameters that have not been set.
    pub(crate) fn missing(&self) -> Vec<Parameter> {
        let parameters = self.tool.parameters.iter().zip(&self.set);
        parameters
            .filter(|(parameter, set)| parameter.required && !**set)
            .map(|(parameter, _)| parameter.clone())
            .collect()
    }
}
