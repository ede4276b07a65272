//! Schemas of Anthropic's tools that requests do not describe, because Anthropic's own models know them.

use serde_json::{Value, json};
use toolgate_model::CallKind;

use super::{ToolSpec, parameters};

/// The tool of this versioned type; `None` if only the provider can run it.
pub(crate) fn tool(name: &str, kind: &str) -> Option<ToolSpec> {
    let (description, schema) = if kind.starts_with("bash_") {
        (BASH, bash())
    } else if kind.starts_with("text_editor_") {
        (TEXT_EDITOR, text_editor())
    } else {
        return None;
    };
    Some(ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        kind: CallKind::Function,
        parameters: parameters(&schema),
    })
}

const BASH: &str = "Runs a command in a shell session that persists between calls, and returns its output.";
const TEXT_EDITOR: &str = "Views, creates and edits text files. Each command has its own parameters.";

fn bash() -> Value {
    json!({"type": "object", "properties": {
        "command": {"type": "string", "description": "The command to run. Required unless restart is true."},
        "restart": {"type": "boolean", "description": "Set to true to restart the shell session."},
    }})
}

fn text_editor() -> Value {
    json!({"type": "object", "properties": {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
        "path": {"type": "string", "description": "Absolute path of the file or directory."},
        "view_range": {"type": "array", "items": {"type": "integer"},
            "description": "view: the first and last line to show, counted from 1; -1 means the end of the file."},
        "file_text": {"type": "string", "description": "create: the full content of the file."},
        "old_str": {"type": "string", "description": "str_replace: the text to replace; it must occur exactly once in the file."},
        "new_str": {"type": "string", "description": "str_replace: the replacement text. insert: the text to insert."},
        "insert_line": {"type": "integer", "description": "insert: the number of the line to insert after; 0 inserts at the top."},
        "insert_text": {"type": "string", "description": "insert: the text to insert."},
    }, "required": ["command", "path"]})
}
