//! The progress of running tools. It is only shown, so an unreadable report is ignored.

use std::time::Duration;

use serde::Deserialize;

/// The progress of a running tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgress {
    /// The call that runs.
    pub call: String,
    /// The call that started the sub-agent which made this call.
    pub parent: Option<String>,
    /// How long it has been running, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// What a sub-agent or a background command is doing.
    pub note: Option<String>,
    /// The program's id of the sub-agent or background command that the call started.
    pub task: Option<String>,
}

impl ToolProgress {
    /// True for the types of lines that report progress.
    pub(super) fn is_reported_by(kind: &str, subtype: Option<&str>) -> bool {
        match kind {
            "tool_progress" => true,
            "system" => matches!(subtype, Some("task_started" | "task_progress")),
            _ => false,
        }
    }

    /// Reads such a line. `None` if it names no call.
    pub(super) fn read(line: &str) -> Option<Self> {
        let ProgressIn { tool_use_id, parent_tool_use_id, elapsed_time_seconds, description, usage, task_id } =
            serde_json::from_str(line).ok()?;
        let seconds = elapsed_time_seconds.or_else(|| Some(usage?.duration_ms? / 1000.0));
        let elapsed = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Some(Self {
            call: tool_use_id?,
            parent: parent_tool_use_id,
            elapsed_ms: elapsed.and_then(|elapsed| u64::try_from(elapsed.as_millis()).ok()),
            note: description,
            task: task_id,
        })
    }
}

#[derive(Deserialize)]
struct ProgressIn {
    tool_use_id: Option<String>,
    parent_tool_use_id: Option<String>,
    elapsed_time_seconds: Option<f64>,
    description: Option<String>,
    usage: Option<TaskUsageIn>,
    task_id: Option<String>,
}

#[derive(Deserialize)]
struct TaskUsageIn {
    duration_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude_stream_json::AgentLine;

    #[track_caller]
    fn check(line: &str, expect: &ToolProgress) {
        let read = AgentLine::read(line).expect("a line");
        assert!(matches!(&read, AgentLine::Progress(progress) if progress == expect), "{line}: {read:?}");
    }

    fn progress(call: &str) -> ToolProgress {
        ToolProgress { call: call.to_owned(), parent: None, elapsed_ms: None, note: None, task: None }
    }

    fn task(note: &str) -> ToolProgress {
        ToolProgress { note: Some(note.to_owned()), task: Some("t".to_owned()), ..progress("a") }
    }

    #[test]
    fn progress_names_its_call_and_its_time() {
        check(
            r#"{"type":"tool_progress","tool_use_id":"a","tool_name":"Bash","parent_tool_use_id":"p","elapsed_time_seconds":2.5}"#,
            &ToolProgress { parent: Some("p".to_owned()), elapsed_ms: Some(2500), ..progress("a") },
        );
        check(
            r#"{"type":"system","subtype":"task_progress","task_id":"t","tool_use_id":"a","description":"Reading","usage":{"duration_ms":70}}"#,
            &ToolProgress { elapsed_ms: Some(70), ..task("Reading") },
        );
        check(
            r#"{"type":"system","subtype":"task_started","task_id":"t","tool_use_id":"a","description":"Look"}"#,
            &task("Look"),
        );
    }

    #[test]
    fn an_unreadable_report_is_ignored() {
        for line in [
            r#"{"type":"tool_progress"}"#,
            r#"{"type":"tool_progress","tool_use_id":7}"#,
            r#"{"type":"tool_progress","tool_use_id":"a","elapsed_time_seconds":"long"}"#,
            r#"{"type":"system","subtype":"task_started","task_id":"t"}"#,
            r#"{"type":"system","subtype":"task_updated","tool_use_id":"a"}"#,
        ] {
            assert!(matches!(AgentLine::read(line), Ok(AgentLine::Other)), "{line}");
        }
        let odd = r#"{"type":"tool_progress","tool_use_id":"a","elapsed_time_seconds":-1}"#;
        check(odd, &progress("a"));
    }
}
