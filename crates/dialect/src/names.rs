//! Tool names that a host accepts (T24). A name that is too long or has forbidden characters is replaced by a shortened
//! name with a hash; the client still sees its own name.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use toolgate_model::pairing::{AcceptedId, shortened};
use toolgate_model::{Block, Message, TurnRequest};

use crate::NameMap;
use crate::host::{CallIds, HostProfile};

/// The characters of tool names, and of call ids at strict hosts.
pub(crate) fn is_word_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// The names that must change, of offered tools and of calls in the history.
pub(crate) fn host_names(request: &TurnRequest, profile: &HostProfile) -> NameMap {
    let max_len = usize::try_from(profile.max_tool_name).unwrap_or(usize::MAX);
    let mut map = NameMap::default();
    let offered = request.tools.iter().filter_map(|tool| tool.name());
    let called = request.messages.iter().flat_map(called_names);
    let names: Vec<&str> = offered.chain(called).collect();
    let mut used: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    for name in names {
        if map.to_host(name) != name {
            continue;
        }
        let mut host_name = shortened(name, max_len, is_word_char);
        if host_name == name {
            continue;
        }
        // A client may offer both `a.b` and the name that would replace it.
        while !used.insert(host_name.clone()) {
            host_name = shortened(&format!("{host_name}."), max_len, is_word_char);
        }
        map.insert(name, &host_name);
    }
    map
}

/// The call ids that a host accepts (T23).
pub(crate) fn accepted_ids(rule: CallIds) -> AcceptedId {
    match rule {
        CallIds::Short => |id| shortened(id, 40, |c| !c.is_control()),
        CallIds::Any => |id| shortened(id, 64, |c| !c.is_control()),
        CallIds::Word => |id| shortened(id, 64, is_word_char),
        CallIds::Nine => nine_characters,
    }
}

fn nine_characters(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    digest(id).chars().take(9).collect()
}

/// 64 hexadecimal digits that stand for a text.
pub(crate) fn digest(text: &str) -> String {
    use std::fmt::Write as _;

    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
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
        let map = host_names(&request, &HostProfile::of_dialect(crate::openai_chat::ID));
        assert_eq!(map.to_host("get_weather"), "get_weather");
        assert_eq!(map.to_host("a_b"), "a_b");
        assert_ne!(map.to_host("a.b"), "a_b");
        for name in ["a.b", &long] {
            let host_name = map.to_host(name);
            assert!(host_name.len() <= 64 && host_name.chars().all(is_word_char), "{host_name}");
            assert_eq!(map.to_client(ToolName::from(host_name)), ToolName::from(name));
        }
    }
}
