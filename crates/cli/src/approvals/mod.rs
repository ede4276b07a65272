//! `toolgate approvals`: answers the agents' questions from a terminal.

mod prompt;
mod show;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use serde_json::{Value, json};

use crate::args::{ApprovalsAction, Options};
use crate::console::Console;
use crate::environment::Environment;
use crate::gateway_client::GatewayClient;
use prompt::Prompt;

/// Runs the action. Without one, a terminal gets a prompt for each question and anything else a list.
pub(crate) fn run(
    action: Option<ApprovalsAction>,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let client = GatewayClient::new(&Console::find(options, environment)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the async runtime")?;
    let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    runtime.block_on(async {
        match action {
            None if is_interactive => Prompt::new(&client, environment, out).run().await,
            None | Some(ApprovalsAction::List) => list(&client, out).await,
            Some(ApprovalsAction::Show { id }) => {
                let question = client.get(&format!("/approvals/{id}")).await?.success()?;
                Ok(show::question(&question, question["asked_at"].as_i64().unwrap_or_default(), out)?)
            }
            Some(ApprovalsAction::Allow { id }) => {
                decide(&client, &id, &json!({ "decision": "allow" }), out).await
            }
            Some(ApprovalsAction::Deny { id, reason }) => {
                let message = reason.join(" ");
                decide(&client, &id, &json!({ "decision": "deny", "message": message }), out).await
            }
            Some(ApprovalsAction::Answer { id, text }) => {
                decide(&client, &id, &json!({ "decision": "answer", "text": text.join(" ") }), out).await
            }
        }
    })
}

async fn list(client: &GatewayClient, out: &mut dyn Write) -> anyhow::Result<()> {
    let waiting = client.get("/approvals?state=waiting").await?.success()?;
    let questions = waiting["approvals"].as_array().map(Vec::as_slice).unwrap_or_default();
    if questions.is_empty() {
        writeln!(out, "Nothing waits for an answer.")?;
    }
    for question in questions {
        show::question(question, waiting["now"].as_i64().unwrap_or_default(), out)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Sends a decision and prints what became of the question.
async fn decide(
    client: &GatewayClient,
    id: &str,
    decision: &Value,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut decision = decision.clone();
    decision["by"] = json!("terminal");
    let resolution = client.post(&format!("/approvals/{id}"), &decision).await?.success()?;
    writeln!(out, "{}", show::resolution(&resolution))?;
    Ok(())
}
