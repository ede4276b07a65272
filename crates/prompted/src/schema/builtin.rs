//! Anthropic's tools that come without a schema, because its own models know them by heart.

use serde_json::{Value, json};
use toolgate_model::CallKind;

use super::{ToolSpec, parameters};

/// What the tool of this dated type takes; `None` for one that only its provider can run.
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

const BASH: &str = "Runs a command in a shell that stays open between calls and returns what it prints.";
const TEXT_EDITOR: &str = "Views, creates and edits text files. Each command uses its own parameters.";

fn bash() -> Value {
    json!({"type": "object", "properties": {
        "command": {"type": "string", "description": "The command to run. Needed unless restart is true."},
        "restart": {"type": "boolean", "description": "True to start a fresh shell."},
    }})
}

fn text_editor() -> Value {
    json!({"type": "object", "properties": {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
        "path": {"type": "string", "description": "Absolute path of the file or folder."},
        "view_range": {"type": "array", "items": {"type": "integer"},
            "description": "view: first and last line, from 1; -1 is the end."},
        "file_text": {"type": "string", "description": "create: the whole text of the file."},
        "old_str": {"type": "string", "description": "str_replace: text that occurs exactly once."},
        "new_str": {"type": "string", "description": "str_replace: what to put there. insert: what to insert."},
        "insert_line": {"type": "integer", "description": "insert: the line after which to insert; 0 is the top."},
        "insert_text": {"type": "string", "description": "insert: what to insert."},
    }, "required": ["command", "path"]})
}
