//! The prompt: shows each waiting question and sends the person's answer.

use std::io::{self, BufRead, Write};
use std::process::Command;

use anyhow::Context;
use http::StatusCode;
use serde_json::{Value, json};

use super::show;
use crate::environment::Environment;
use crate::gateway_client::GatewayClient;
use crate::visible_text::visible;

const HELP: &str = "\
  y  allow once            n  deny               r  deny, with a reason for the model
  a  always allow…         e  edit, then allow   t  answer instead: the model gets your text, nothing runs
  k  keep waiting: no deadline                   s  skip        q  quit";

/// Asks about one question after the other.
pub(super) struct Prompt<'a> {
    client: &'a GatewayClient,
    environment: &'a Environment,
    out: &'a mut dyn Write,
    /// Questions that the person left for later.
    skipped: Vec<String>,
}

enum Next {
    Question,
    Quit,
}

impl<'a> Prompt<'a> {
    pub(super) fn new(
        client: &'a GatewayClient,
        environment: &'a Environment,
        out: &'a mut dyn Write,
    ) -> Self {
        Self { client, environment, out, skipped: Vec::new() }
    }

    /// Runs until the person quits.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        let mut cursor = String::new();
        loop {
            let answer = self.client.get(&format!("/approvals/wait?after={cursor}")).await?.success()?;
            let was_idle = cursor.is_empty();
            answer["cursor"].as_str().unwrap_or_default().clone_into(&mut cursor);
            let waiting = answer["approvals"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_new = |question: &&Value| {
                let id = question["id"].as_str().unwrap_or_default();
                !self.skipped.iter().any(|skipped| skipped == id)
            };
            let Some(question) = waiting.iter().find(is_new) else {
                if was_idle {
                    writeln!(self.out, "Nothing waits for an answer. Waiting for questions; Ctrl-C ends.")?;
                }
                continue;
            };
            show::question(question, answer["now"].as_i64().unwrap_or_default(), self.out)?;
            if matches!(self.ask(question).await?, Next::Quit) {
                return Ok(());
            }
            // The next wait returns at once with what is left.
            cursor.clear();
        }
    }

    async fn ask(&mut self, question: &Value) -> anyhow::Result<Next> {
        let id = question["id"].as_str().unwrap_or_default().to_owned();
        loop {
            let Some(line) = self.read("allow? [y/n/r/a/e/t/k/s/q, ? for help] ")? else {
                return Ok(Next::Quit);
            };
            let decision = match line.as_str() {
                "y" | "yes" => Some(json!({ "decision": "allow" })),
                "n" | "no" => Some(json!({ "decision": "deny" })),
                "r" => self.reason(&id).await?,
                "a" => self.always(&id, question).await?,
                "e" => self.edited(&id, question).await?,
                "t" => self.text(&id).await?,
                "k" => {
                    self.hold(&id).await?;
                    None
                }
                "s" => {
                    self.skipped.push(id);
                    return Ok(Next::Question);
                }
                "q" => return Ok(Next::Quit),
                _ => {
                    writeln!(self.out, "{HELP}")?;
                    None
                }
            };
            if let Some(decision) = decision
                && self.send(&id, &decision).await?
            {
                return Ok(Next::Question);
            }
        }
    }

    /// True if the question is decided, by this answer or by another.
    async fn send(&mut self, id: &str, decision: &Value) -> anyhow::Result<bool> {
        let mut decision = decision.clone();
        decision["by"] = json!("terminal");
        let answer = self.client.post(&format!("/approvals/{id}"), &decision).await?;
        if answer.status.is_success() {
            writeln!(self.out, "{}\n", show::resolution(&answer.body))?;
            return Ok(true);
        }
        writeln!(self.out, "{}\n", visible(&answer.message()))?;
        Ok(matches!(answer.status, StatusCode::CONFLICT | StatusCode::GONE | StatusCode::NOT_FOUND))
    }

    async fn hold(&mut self, id: &str) -> anyhow::Result<()> {
        let answer = self.client.post(&format!("/approvals/{id}/hold"), &json!({})).await?;
        if !answer.status.is_success() {
            writeln!(self.out, "{}", visible(&answer.message()))?;
        }
        Ok(())
    }

    async fn reason(&mut self, id: &str) -> anyhow::Result<Option<Value>> {
        self.hold(id).await?;
        let reason = self.read("reason: ")?.filter(|reason| !reason.is_empty());
        Ok(reason.map(|reason| json!({ "decision": "deny", "message": reason })))
    }

    async fn text(&mut self, id: &str) -> anyhow::Result<Option<Value>> {
        self.hold(id).await?;
        let text = self.read("answer: ")?.filter(|text| !text.is_empty());
        Ok(text.map(|text| json!({ "decision": "answer", "text": text })))
    }

    /// Nothing is ticked at first: a suggestion may allow far more than this call.
    async fn always(&mut self, id: &str, question: &Value) -> anyhow::Result<Option<Value>> {
        self.hold(id).await?;
        let mut offers = question["suggestions"].as_array().cloned().unwrap_or_default();
        if offers.is_empty() {
            offers.push(json!({
                "type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{ "toolName": question["tool"] }],
            }));
        }
        for (index, offer) in offers.iter().enumerate() {
            writeln!(self.out, "  {}  {}", index + 1, visible(&describe(offer)))?;
        }
        let Some(chosen) = self.read("which ones, as numbers: ")? else { return Ok(None) };
        let numbers: Option<Vec<usize>> =
            chosen.split([' ', ',']).filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect();
        let permissions: Option<Vec<Value>> =
            numbers.filter(|numbers| !numbers.is_empty()).and_then(|numbers| {
                numbers.into_iter().map(|number| offers.get(number.checked_sub(1)?).cloned()).collect()
            });
        let Some(permissions) = permissions else {
            writeln!(self.out, "nothing was chosen")?;
            return Ok(None);
        };
        let scope = match self.read("for this [s]ession, this [p]roject or [all]? ")?.as_deref() {
            Some("s" | "session") => "session",
            Some("p" | "project") => "project",
            Some("all") => "all",
            _ => {
                writeln!(self.out, "nothing was chosen")?;
                return Ok(None);
            }
        };
        Ok(Some(json!({ "decision": "allow", "permissions": permissions, "scope": scope })))
    }

    async fn edited(&mut self, id: &str, question: &Value) -> anyhow::Result<Option<Value>> {
        self.hold(id).await?;
        let variables = ["VISUAL", "EDITOR"];
        let editor = variables.iter().find_map(|name| self.environment.variable(name));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        let folder = tempfile::tempdir().context("making a folder for the edited input")?;
        let path = folder.path().join("input.json");
        let before = serde_json::to_string_pretty(&question["input"]).context("writing the input")?;
        std::fs::write(&path, &before).context("writing the input")?;
        let mut words = editor.split_whitespace();
        let status = Command::new(words.next().unwrap_or("vi")).args(words).arg(&path).status();
        status.with_context(|| format!("running the editor `{editor}`: set EDITOR to another one"))?;
        let after = std::fs::read_to_string(&path).context("reading the edited input")?;
        match serde_json::from_str::<Value>(&after) {
            Ok(input) if input != question["input"] => {
                Ok(Some(json!({ "decision": "allow", "updated_input": input })))
            }
            Ok(_) => {
                writeln!(self.out, "the input was not changed")?;
                Ok(None)
            }
            Err(error) => {
                writeln!(self.out, "this is not JSON, so nothing was sent: {error}")?;
                Ok(None)
            }
        }
    }

    /// Reads a line; `None` at the end of the input.
    fn read(&mut self, prompt: &str) -> io::Result<Option<String>> {
        write!(self.out, "{prompt}")?;
        self.out.flush()?;
        discard_typed_ahead();
        let mut line = String::new();
        let bytes = io::stdin().lock().read_line(&mut line)?;
        Ok((bytes > 0).then(|| line.trim().to_owned()))
    }
}

/// Drops what was typed before the prompt was shown: it was meant for something else.
#[cfg(unix)]
fn discard_typed_ahead() {
    // Fails only without a terminal, where there is nothing to drop.
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush).unwrap_or_default();
}

#[cfg(not(unix))]
fn discard_typed_ahead() {}

/// A suggestion in words.
fn describe(update: &Value) -> String {
    let list = |name: &str| update[name].as_array().cloned().unwrap_or_default();
    match update["type"].as_str().unwrap_or_default() {
        "addRules" => {
            let rules = list("rules").iter().map(rule).collect::<Vec<_>>().join(", ");
            format!("{} {rules}", update["behavior"].as_str().unwrap_or("allow"))
        }
        "addDirectories" => {
            let folders = list("directories")
                .iter()
                .filter_map(|folder| folder.as_str().map(str::to_owned))
                .collect::<Vec<_>>();
            format!("let the agent work in {}", folders.join(", "))
        }
        "setMode" => format!("switch to the mode {}", update["mode"].as_str().unwrap_or_default()),
        _ => update.to_string(),
    }
}

fn rule(rule: &Value) -> String {
    let tool = rule["toolName"].as_str().unwrap_or_default();
    match rule["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => format!("every use of {tool}"),
    }
}
