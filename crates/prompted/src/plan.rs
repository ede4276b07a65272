//! What the interpreter must know of a request: which tools were offered, under which trigger, and how freely to read.

use std::collections::HashSet;
use std::sync::Arc;

use toolgate_model::Parallel;

use crate::names;
use crate::options::{Options, Strictness, Switch, UnknownTool};
use crate::schema::{Parameter, ToolSpec};

/// How many parameters that its schema does not know a call may have.
const MAX_EXTRA: usize = 256;

/// How to read one reply.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) rules: Arc<Rules>,
    /// What call ids are made from.
    pub(crate) id_seed: [u8; 32],
    /// Whether the reply must contain a call.
    pub(crate) call_needed: Switch,
    /// Whether the client gets nothing before the reply is complete.
    pub(crate) whole: Switch,
}

impl Plan {
    /// The line that opens calls, where the model was offered tools.
    pub fn trigger(&self) -> Option<&str> {
        self.rules.trigger.as_deref()
    }
}

/// The part of the plan that the parser reads by.
#[derive(Debug)]
pub(crate) struct Rules {
    /// `None` where no call is expected: then everything is text and reasoning.
    pub(crate) trigger: Option<String>,
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    /// The only tool that may be called, where the client named one.
    pub(crate) only: Option<String>,
    pub(crate) parallel: Parallel,
    /// Whether calls without a trigger run; off where inbound text holds such markup.
    pub(crate) markerless: Switch,
    pub(crate) options: Options,
}

/// What a tool's name in a call means.
pub(crate) enum Naming {
    Offered(Arc<ToolSpec>),
    Corrected(Arc<ToolSpec>),
    /// Passed on for the client to refuse.
    Unknown(Arc<ToolSpec>),
    /// The call comes out as text.
    Refused,
}

impl Rules {
    pub(crate) fn is_strict(&self) -> bool {
        self.options.strictness == Strictness::Strict
    }

    /// P24
    pub(crate) fn name(&self, name: &str) -> Naming {
        let may_run = |tool: &ToolSpec| self.only.as_ref().is_none_or(|only| *only == tool.name);
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == name) {
            return if may_run(tool) { Naming::Offered(Arc::clone(tool)) } else { Naming::Refused };
        }
        if self.options.unknown_tool == UnknownTool::Fix
            && let Some(meant) = names::drifted(name, &self.tools.iter().map(|tool| tool.name.as_str()))
            && let Some(tool) = self.tools.iter().find(|tool| tool.name == meant && may_run(tool))
        {
            return Naming::Corrected(Arc::clone(tool));
        }
        if self.options.unknown_tool == UnknownTool::Text || self.only.is_some() {
            return Naming::Refused;
        }
        Naming::Unknown(Arc::new(ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            kind: toolgate_model::CallKind::Function,
            parameters: Vec::new(),
        }))
    }

    /// True for a name that means one of the tools on offer.
    pub(crate) fn knows(&self, name: &str) -> bool {
        match self.name(name) {
            Naming::Offered(_) | Naming::Corrected(_) => true,
            Naming::Unknown(_) | Naming::Refused => false,
        }
    }
}

/// Which parameters of a call have been written.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    tool: Arc<ToolSpec>,
    set: Vec<bool>,
    /// Parameters no schema speaks of.
    extra: HashSet<String>,
}

/// What a parameter's name in a call means.
#[derive(Debug, PartialEq)]
pub(crate) enum Slot {
    Free(usize),
    Corrected(usize),
    Taken,
    Unknown,
    /// Unknown, like too many before it.
    Excess,
}

impl Slots {
    pub(crate) fn new(tool: Arc<ToolSpec>) -> Self {
        let set = vec![false; tool.parameters.len()];
        Self { tool, set, extra: HashSet::new() }
    }

    /// P25
    pub(crate) fn slot(&self, name: &str) -> Slot {
        if let Some(position) = self.tool.position(name) {
            return if self.set[position] { Slot::Taken } else { Slot::Free(position) };
        }
        if self.extra.contains(name) {
            return Slot::Taken;
        }
        let free = self.tool.parameters.iter().zip(&self.set).filter(|(_, set)| !**set);
        let meant = names::drifted(name, &free.map(|(parameter, _)| parameter.name.as_str()));
        match meant.and_then(|meant| self.tool.position(meant)) {
            Some(position) => Slot::Corrected(position),
            None if self.extra.len() >= MAX_EXTRA => Slot::Excess,
            None => Slot::Unknown,
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

    /// True where something was written and the schema knows no parameter that was not.
    pub(crate) fn are_all_set(&self) -> bool {
        !self.set.is_empty() && self.set.iter().all(|set| *set)
    }

    /// The required parameters that were not written.
    pub(crate) fn missing(&self) -> Vec<Parameter> {
        let parameters = self.tool.parameters.iter().zip(&self.set);
        parameters
            .filter(|(parameter, set)| parameter.required && !**set)
            .map(|(parameter, _)| parameter.clone())
            .collect()
    }
}
