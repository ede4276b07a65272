//! Claude Code behind the gateway: the real program, in each supported version, with a scripted model.
//!
//! `cargo xtask test` installs the programs and sets `CLAUDE_CODE_OLDER` and `CLAUDE_CODE_CURRENT` to their paths;
//! without them these tests fail. `cargo nextest run --profile quick` skips them.
//!
//! Comments such as `agent 14` or `M5` name a case that similar programs are known to get wrong.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod approver;
#[cfg(test)]
mod builtin_tools;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod client;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod conversation_isolation;
#[cfg(test)]
mod environment_isolation;
#[cfg(test)]
mod every_tool_asks;
#[cfg(test)]
mod failures;
#[cfg(test)]
#[cfg(unix)]
mod faulty_programs;
#[cfg(test)]
#[cfg(unix)]
mod fence;
#[cfg(test)]
#[path = "../service/gate.rs"]
#[expect(dead_code, reason = "shared with the tests of other back ends, which use the rest")]
mod gate;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod offered_tools;
#[cfg(test)]
mod partial_results;
#[cfg(test)]
#[cfg(unix)]
mod preopening;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod process_keys;
#[cfg(test)]
mod records;
#[cfg(test)]
mod references;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod rewording;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod user_text;
#[cfg(test)]
mod watching;
