//! Chooses the facts of a host and of its models.

use std::fmt;

use toolgate_model::DialectId;

use super::families::{FAMILIES, Family};
use super::hosts::{self, Host};
use super::profile::{Facts, HostProfile};
use crate::{openai_chat, openai_responses};

/// What is known about a host, before the model is known.
#[derive(Clone)]
pub struct HostFacts {
    dialect: DialectId,
    host: Option<&'static Host>,
    family: Option<String>,
    overrides: Facts,
    choice: Choice,
}

/// Why a profile was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The configuration names it.
    Configured,
    /// The host's URL is known.
    Url,
    /// The host is unknown: the most widely accepted form is sent.
    Unknown,
}

/// A problem with a fact in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownFact {
    /// There is no such key.
    Key,
    /// The value is not allowed; these are.
    Value(String),
}

impl HostFacts {
    /// The facts of the host with this name.
    pub fn at(dialect: DialectId, host: &str) -> Self {
        let found = hosts::all().find(|row| row.urls.iter().any(|url| is_at(url, host)));
        let choice = if found.is_some() { Choice::Url } else { Choice::Unknown };
        Self { dialect, host: found, family: None, overrides: Facts::NONE, choice }
    }

    /// The facts of the profile with this name; `None` if there is none.
    pub fn named(dialect: DialectId, name: &str) -> Option<Self> {
        let host = hosts::all().find(|row| row.name == name)?;
        let (family, overrides) = (None, Facts::NONE);
        Some(Self { dialect, host: Some(host), family, overrides, choice: Choice::Configured })
    }

    /// The facts of the profile with this name, in the same dialect; `None` if there is none.
    pub fn named_like(&self, name: &str) -> Option<Self> {
        Self::named(self.dialect, name)
    }

    /// The names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        hosts::all().map(|row| row.name)
    }

    /// Names the family of all models of this host: the name of a deployment says nothing about its model.
    #[must_use]
    pub fn of_family(mut self, model: &str) -> Self {
        self.family = Some(model.to_owned());
        self
    }

    /// Sets one fact, whatever the tables say.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), UnknownFact> {
        match self.overrides.set(key, value) {
            None => Err(UnknownFact::Key),
            Some(set) => set.map_err(UnknownFact::Value),
        }
    }

    /// The profile's name, if the host is known.
    pub fn name(&self) -> Option<&'static str> {
        self.host.map(|host| host.name)
    }

    /// Why it was chosen.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The row of the family that applies to this model, for people.
    pub fn family(&self, model: &str) -> Option<&'static str> {
        let name = normalised(self.family.as_deref().unwrap_or(model));
        best(FAMILIES.iter().flat_map(|family| family.names.iter().map(move |row| (*row, *row))), &name)
    }

    /// True if there are facts about this host or this model.
    pub fn knows(&self, model: &str) -> bool {
        self.host.is_some() || self.family(model).is_some() || self.overrides != Facts::NONE
    }

    /// Whether its replies have the form that clients of its dialect expect.
    pub fn replies_are_standard(&self) -> bool {
        self.overrides.relayed_replies.or(self.row().and_then(|row| row.relayed_replies)).unwrap_or(true)
    }

    /// The host's facts in its dialect.
    fn row(&self) -> Option<&'static Facts> {
        let host = self.host?;
        Some(match self.dialect {
            openai_chat::ID => &host.chat,
            openai_responses::ID => &host.responses,
            _ => &host.messages,
        })
    }

    /// What the host accepts for this model.
    pub fn profile(&self, model: &str) -> HostProfile {
        let mut profile = HostProfile::of_dialect(self.dialect);
        let name = normalised(self.family.as_deref().unwrap_or(model));
        let families =
            FAMILIES.iter().flat_map(|family: &Family| family.names.iter().map(move |row| (*row, family)));
        if let Some(family) = best(families, &name) {
            profile.apply(&family.facts);
        }
        if let Some(facts) = self.row() {
            profile.apply(&hosts::KNOWN);
            profile.apply(facts);
        }
        if let Some(host) = self.host.filter(|_| self.dialect == openai_chat::ID)
            && let Some(facts) = best(host.models.iter().map(|(row, facts)| (*row, facts)), &name)
        {
            profile.apply(facts);
        }
        profile.apply(&self.overrides);
        profile
    }
}

impl fmt::Debug for HostFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostFacts({} {:?})", self.name().unwrap_or("unknown"), self.choice)
    }
}

/// True if the host's name is `url` or a name below it.
fn is_at(url: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host.strip_suffix(url).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The value of the longest row that begins the name, at a boundary between words.
fn best<T>(rows: impl Iterator<Item = (&'static str, T)>, name: &str) -> Option<T> {
    let matching = rows.filter(|(row, _)| match row.strip_suffix('$') {
        Some(whole) => whole == name,
        None => name.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
    });
    matching.max_by_key(|(row, _)| row.len()).map(|(_, value)| value)
}

/// Prefixes of vendors and gateways, without meaning for the family.
const PREFIXES: [&str; 6] =
    ["us-anthropic-", "eu-anthropic-", "apac-anthropic-", "global-anthropic-", "anthropic-", "openai-"];

/// The name in one spelling: lower case, without vendor, variant and date, with `-` between the parts of a version.
fn normalised(model: &str) -> String {
    let lower = model.to_ascii_lowercase();
    let name = lower.trim_start_matches('~').rsplit('/').next().unwrap_or_default();
    let name = name.split([':', '@']).next().unwrap_or_default();
    let mut words: Vec<String> = name.replace(['.', '_', ' '], "-").split('-').map(version_words).collect();
    let is_date = |word: &String| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    words.retain(|word| !is_date(word));
    let mut name = words.join("-");
    if let Some(at) = dashed_date(&name) {
        name.truncate(at);
    }
    let name = name.strip_suffix("-v1").unwrap_or(&name);
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name).to_owned()
}

/// `5p2`, as some hosts write `5.2`.
fn version_words(word: &str) -> String {
    match word.split_once('p') {
        Some((major, minor)) if is_number(major) && is_number(minor) => format!("{major}-{minor}"),
        _ => word.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where `-2025-08-07` begins.
fn dashed_date(name: &str) -> Option<usize> {
    const LENGTH: usize = "-2025-08-07".len();
    let start = name.len().checked_sub(LENGTH)?;
    let date = name.get(start..)?;
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    is_date.then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_model_are_normalised_alike() {
        for (written, expected) in [
            ("GPT-5-2025-08-07", "gpt-5"),
            ("openai/gpt-5.2", "gpt-5-2"),
            ("openai-gpt-5", "gpt-5"),
            ("accounts/fireworks/models/glm-5p2", "glm-5-2"),
            ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
            ("claude-sonnet-4@20250514", "claude-sonnet-4"),
            ("~anthropic/claude-sonnet-4.5:free", "claude-sonnet-4-5"),
            ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ] {
            assert_eq!(normalised(written), expected, "{written}");
        }
    }

    #[test]
    fn the_longest_family_wins_and_unknown_versions_get_the_newest_rules() {
        let facts = HostFacts::at(openai_chat::ID, "127.0.0.1");
        for (model, expected) in [
            ("gpt-5-2025-08-07", Some("gpt-5$")),
            ("gpt-5-chat-latest", Some("gpt-5-chat")),
            ("gpt-5.3-chat", Some("gpt-5-3-chat")),
            ("gpt-4o-mini", Some("gpt-4o")),
            ("gpt-7", Some("gpt")),
            ("gpt-oss-120b", Some("gpt-oss")),
            ("claude-opus-4-20250514", Some("claude-opus-4$")),
            ("claude-opus-4-9", Some("claude")),
            ("claude-3-5-haiku-latest", Some("claude-3-5")),
            ("llama-3.3-70b", None),
        ] {
            assert_eq!(facts.family(model), expected, "{model}");
        }
    }

    #[test]
    fn a_host_is_known_by_its_url() {
        for (host, expected) in [
            ("api.groq.com", Some("groq")),
            ("NAME.openai.azure.com", Some("azure")),
            ("bedrock-mantle.us-east-1.api.aws", Some("bedrock")),
            ("notapi.groq.com.example", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(HostFacts::at(openai_chat::ID, host).name(), expected, "{host}");
        }
    }
}
