//! Every client × every strict host × every case, whole and streamed: nothing is refused, nothing is lost in silence,
//! what the host needs back comes back, and the client gets its vendor's own types.

mod cases;
mod clients;
mod losses;
mod replies;
mod unusual;

use serde_json::Value;
use toolgate_backend::config::{BackendConfig, UpstreamConfig, UpstreamName, Via};
use toolgate_testkit::{Exchange, HostTurn, STRICT_HOSTS, StrictDialect, StrictHost, StrictProfile, Verdict};

use crate::gate::{Gate, config, route};
use cases::{CASES, Case, Extra, Thinking};
use clients::Client;
use replies::{ClientReply, Writer};
use unusual::Unusual;

/// One test for each client and group of hosts, so that they run side by side.
macro_rules! matrix {
    ($($client:ident: $($test:ident => $group:ident),*;)*) => {
        $($(
            #[tokio::test]
            async fn $test() {
                check_all(Client::$client, Group::$group).await;
            }
        )*)*
    };
}

matrix! {
    Messages: messages_clients_at_openai => OpenAi, messages_clients_at_claude => Claude,
        messages_clients_at_makers => Makers, messages_clients_elsewhere => Others;
    Chat: chat_clients_at_openai => OpenAi, chat_clients_at_claude => Claude,
        chat_clients_at_makers => Makers, chat_clients_elsewhere => Others;
    Responses: responses_clients_at_openai => OpenAi, responses_clients_at_claude => Claude,
        responses_clients_at_makers => Makers, responses_clients_elsewhere => Others;
}

/// Some of the hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    OpenAi,
    Claude,
    /// Others that serve their own models.
    Makers,
    /// Hosts of others' models.
    Others,
}

impl Group {
    fn of(profile: &StrictProfile) -> Self {
        match profile.name {
            "openai" | "azure" => Self::OpenAi,
            "gemini" | "deepseek" | "mistral" | "xai" | "moonshot" | "dashscope" | "zai" | "minimax" => {
                Self::Makers
            }
            _ if profile.dialect == StrictDialect::Messages => Self::Claude,
            _ => Self::Others,
        }
    }
}

/// Runs all cells of a client with a group of hosts and reports every failure.
async fn check_all(client: Client, group: Group) {
    let mut hosts = Vec::new();
    for profile in STRICT_HOSTS.iter().filter(|profile| Group::of(profile) == group) {
        hosts.push((profile, StrictHost::start(profile).await));
    }
    let gate = Gate::start(&config(), backends(client, &hosts));
    let mut failures = Vec::new();
    let mut cells = 0;
    for (index, (profile, host)) in hosts.iter().enumerate() {
        for case in CASES {
            if case.is_impossible(client, profile) {
                continue;
            }
            for stream in [false, true] {
                cells += 1;
                let cell = Cell { client, profile, host, case, model: model(client, index), stream };
                if let Err(complaint) = cell.run(&gate).await {
                    failures.push(cell.describe(&complaint));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {cells} cells failed:\n{}", failures.len(), failures.join("\n"));
}

/// The client's name of the model behind the host with this index.
fn model(client: Client, index: usize) -> String {
    format!("{}-at-{index}", client.alias())
}

fn backends(client: Client, hosts: &[(&'static StrictProfile, StrictHost)]) -> BackendConfig {
    let mut backends = BackendConfig::default();
    for (index, (profile, host)) in hosts.iter().enumerate() {
        let name = format!("{}-{index}", profile.name);
        let url = host.base_url().parse().expect("a URL");
        let mut upstream = UpstreamConfig::new(name.as_str(), profile.dialect.name(), url);
        upstream.facts = upstream.facts.named_like(profile.name).expect("a profile of this name");
        backends.upstreams.push(upstream);
        let mut route = route(&model(client, index), &[Via::Upstream(UpstreamName::new(name))]);
        route.targets[0].model = Some(profile.model.to_owned());
        backends.models.push(route);
    }
    backends
}

impl Case {
    /// Whether no client sends this: not every dialect has everything, and a Claude client that asks for thinking leaves
    /// the thinking blocks of its history in place.
    fn is_impossible(&self, client: Client, profile: &StrictProfile) -> bool {
        let is_absent = |extra: &Extra| match extra {
            Extra::Stop => client == Client::Responses,
            Extra::Unusual(unusual) => !unusual.exists_in(client),
            Extra::Image
            | Extra::Format
            | Extra::Sampling
            | Extra::User
            | Extra::HugeLimit
            | Extra::ForeignHistory => false,
        };
        if self.extras.iter().any(is_absent) {
            return true;
        }
        let is_same = client.dialect() == profile.dialect.name();
        // The host itself would refuse it.
        let is_twice = self.extras.contains(&Extra::Unusual(Unusual::SameIdTwice));
        if is_twice && is_same && client != Client::Chat {
            return true;
        }
        let is_foreign = self.extras.contains(&Extra::ForeignHistory);
        client == Client::Messages && is_same && is_foreign && self.thinking == Thinking::On
    }
}

/// One cell of the matrix.
struct Cell<'a> {
    client: Client,
    profile: &'static StrictProfile,
    host: &'a StrictHost,
    case: &'static Case,
    model: String,
    stream: bool,
}

impl Cell<'_> {
    async fn run(&self, gate: &Gate) -> Result<(), String> {
        let turns = (self.case.turns)();
        self.host.plan(turns.clone());
        let same_vendor = self.client.dialect() == self.profile.dialect.name();
        let mut body = self.client.request(self.case, &self.model, self.stream, !same_vendor);
        for turn in &turns {
            let reply = self.exchange(gate, &body, turn).await?;
            self.client.append(&mut body, &reply);
        }
        Ok(())
    }

    /// Sends one request and checks what the host and the client got.
    async fn exchange(&self, gate: &Gate, body: &Value, turn: &HostTurn) -> Result<ClientReply, String> {
        let earlier = self.host.exchanges().len();
        let answer = gate.post(self.client.path(), body).await;
        let (status, loss) = (answer.status(), answer.header("x-toolgate-loss").to_owned());
        let text = answer.text().await;
        // A refused request must not be needed to learn what the host accepts.
        let Some(Exchange { body: received, verdict }) = self.host.exchanges().into_iter().nth(earlier)
        else {
            return Err(format!("nothing reached the host: {status} {text}"));
        };
        let (thought, thinks, missing) = match verdict {
            Verdict::Refused(complaint) => return Err(format!("refused: {complaint}")),
            Verdict::Accepted { thought, thinks, missing } => (thought, thinks, missing),
        };
        if status != 200 {
            return Err(format!("the client got {status}: {text}"));
        }
        let is_relayed = self.client.dialect() == self.profile.dialect.name();
        let writer = if is_relayed { Writer::Host } else { Writer::Gateway };
        let reply = if self.stream {
            replies::read_stream(self.client, &text, writer)
        } else {
            let whole = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            replies::read_whole(self.client, &whole, writer)
        }?;
        check_content(&reply, turn, writer).map_err(|complaint| format!("{complaint} in {text}"))?;
        // A chat client has no place for the seal of a thought that it cannot see.
        let can_carry = |missing: &&String| self.client != Client::Chat || !missing.contains(r#"("")"#);
        if let Some(missing) = missing.iter().find(can_carry) {
            return Err(missing.clone());
        }
        if let Some(thought) = thought.filter(|_| writer == Writer::Gateway && self.shows_thoughts())
            && reply.thought.trim() != thought
        {
            return Err(format!("the client did not get the thought {thought:?}: {text}"));
        }
        if !is_verbatim(body, &received) {
            losses::check(self.case, &received, thinks, &loss)?;
        }
        Ok(reply)
    }

    /// Whether the client shows thoughts whenever there are some.
    fn shows_thoughts(&self) -> bool {
        self.client != Client::Responses || self.case.thinking == Thinking::On
    }

    fn describe(&self, complaint: &str) -> String {
        let Self { client, profile, host, case, model: _, stream } = self;
        // One line each, however long.
        let complaint = complaint.replace('\n', "⏎");
        let delivery = if *stream { "streamed" } else { "whole" };
        let sent: Vec<String> = host.exchanges().iter().map(|exchange| exchange.body.to_string()).collect();
        format!(
            "{client:?} → {} {} ({}), {}, {delivery}: {complaint}\n    host got: {}",
            profile.name,
            profile.model,
            profile.dialect.name(),
            case.name,
            sent.last().map_or("nothing", String::as_str),
        )
    }
}

/// Compares what the client got with what the model said.
fn check_content(reply: &ClientReply, turn: &HostTurn, writer: Writer) -> Result<(), String> {
    match turn {
        HostTurn::Text(text) => {
            let is_same = match writer {
                Writer::Gateway => reply.text == *text,
                // Some hosts put thoughts into the text.
                Writer::Host => reply.text.ends_with(text),
            };
            if is_same { Ok(()) } else { Err(format!("the client got the text {:?}", reply.text)) }
        }
        HostTurn::Calls(calls) => {
            let got: Vec<(&str, &Value)> =
                reply.calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
            let said: Vec<(&str, &Value)> =
                calls.iter().map(|(name, arguments)| (*name, arguments)).collect();
            if got == said { Ok(()) } else { Err(format!("the client got the calls {got:?}")) }
        }
    }
}

/// Whether the host got what the client sent, except for the model's name.
fn is_verbatim(sent: &Value, received: &Value) -> bool {
    let mut sent = sent.clone();
    sent["model"] = received["model"].clone();
    sent == *received
}

/// Whether a case asks for something that most hosts lack.
fn is_ordinary(case: &Case) -> bool {
    case.thinking == Thinking::Unsaid && case.extras.iter().all(|extra| *extra == Extra::Image)
}
