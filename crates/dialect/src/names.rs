//! Tool names that a host accepts (T24). A name that is too long or has forbidden characters is replaced by a shortened
//! name with a hash; the client still sees its own name.

use std::collections::HashSet;

use toolgate_model::pairing::shortened;
use toolgate_model::{Block, Message, TurnRequest};

use crate::NameMap;

/// The tool names that a host accepts.
#[derive(Clone, Copy, Debug)]
pub struct NameRules {
    /// The maximum length in characters.
    pub max_len: usize,
    /// The allowed characters.
    pub allowed: fn(char) -> bool,
}

/// The names that must change, of offered tools and of calls in the history.
pub fn host_names(request: &TurnRequest, rules: &NameRules) -> NameMap {
    let mut map = NameMap::default();
    let offered = request.tools.iter().filter_map(|tool| tool.name());
    let called = request.messages.iter().flat_map(called_names);
    let names: Vec<&str> = offered.chain(called).collect();
    let mut used: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    for name in names {
        if map.to_host(name) != name {
            continue;
        }
        let mut host_name = shortened(name, rules.max_len, rules.allowed);
        if host_name == name {
            continue;
        }
        // A client may offer both `a.b` and the name that would replace it.
        while !used.insert(host_name.clone()) {
            host_name = shortened(&format!("{host_name}."), rules.max_len, rules.allowed);
        }
        map.insert(name, &host_name);
    }
    map
}

fn called_names(message: &Message) -> impl Iterator<Item = &str> {
    let blocks = match message {
        Message::Assistant(assistant) => assistant.content.as_slice(),
        Message::System(_) | Message::User(_) | Message::ToolResults(_) => &[],
    };
    blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call.name.as_str()),
        Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_model::{Extras, FunctionTool, Tool, ToolName};

    #[test]
    fn only_invalid_names_change_and_they_map_back() {
        let tool = |name: &str| {
            Tool::Function(FunctionTool {
                name: name.into(),
                description: None,
                schema: None,
                strict: None,
                extras: Extras::NONE,
            })
        };
        let mut request = TurnRequest::new("m", Vec::new());
        let long = "x".repeat(80);
        request.tools = vec![tool("get_weather"), tool("a.b"), tool("a_b"), tool(&long)];
        let rules = NameRules { max_len: 64, allowed: |c| c.is_ascii_alphanumeric() || c == '_' || c == '-' };
        let map = host_names(&request, &rules);
        assert_eq!(map.to_host("get_weather"), "get_weather");
        assert_eq!(map.to_host("a_b"), "a_b");
        assert_ne!(map.to_host("a.b"), "a_b");
        for name in ["a.b", &long] {
            let host_name = map.to_host(name);
            assert!(host_name.len() <= 64 && host_name.chars().all(rules.allowed), "{host_name}");
            assert_eq!(map.to_client(ToolName::from(host_name)), ToolName::from(name));
        }
    }
}
