//! Seals of reasoning, and the tokens that carry them through clients of other dialects.

use std::fmt;

use crate::extras::DialectId;

/// A provider's proof of its own reasoning: a signature or the encrypted reasoning. It is sent only to the dialect that
/// made it (T26). Clients of another dialect receive it as a [token](SealToken).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// [`DialectId::name`] of the dialect that made it.
    pub owner: String,
    /// The kind in that dialect: `signature`, `redacted`, `encrypted`.
    pub kind: String,
    /// The reasoning's id in that dialect, if it has one.
    pub id: Option<String>,
    /// The signature or encrypted data.
    pub data: String,
}

/// The kind of a seal that proves nothing and only records which dialect the reasoning came from.
const ORIGIN: &str = "origin";

impl Seal {
    /// A seal made by `dialect`.
    pub fn new(dialect: DialectId, kind: &str, data: impl Into<String>) -> Self {
        Self { owner: dialect.name.to_owned(), kind: kind.to_owned(), id: None, data: data.into() }
    }

    /// Records that `dialect` made reasoning without a seal. Some clients return only sealed reasoning.
    pub fn origin(dialect: DialectId) -> Self {
        Self::new(dialect, ORIGIN, "")
    }

    /// True if `dialect` made the reasoning, sealed or not.
    pub fn came_from(&self, dialect: DialectId) -> bool {
        self.owner == dialect.name
    }

    /// True if `dialect` made it and accepts it as proof.
    pub fn belongs_to(&self, dialect: DialectId) -> bool {
        self.came_from(dialect) && self.kind != ORIGIN
    }

    /// The seal as one string, for a client whose dialect has only its own seals.
    pub fn to_token(&self) -> String {
        SealToken { seal: self.clone(), text: None }.to_string()
    }

    /// Parses the output of [`Seal::to_token`]; `None` for any other string.
    pub fn from_token(text: &str) -> Option<Self> {
        SealToken::parse(text).map(|token| token.seal)
    }
}

/// A foreign seal as one string, with the reasoning's text if the client's dialect would lose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealToken {
    /// The seal.
    pub seal: Seal,
    /// The text that it seals.
    pub text: Option<String>,
}

/// The prefix of a token without text. No provider's signature contains a colon.
const PREFIX: &str = "toolgate:1:";
/// The prefix of a token with text. The length of the seal's data precedes the data; the text follows it.
const TEXT_PREFIX: &str = "toolgate:2:";

impl SealToken {
    /// Parses a token; `None` for any other string.
    pub fn parse(token: &str) -> Option<Self> {
        let (rest, with_text) = match token.strip_prefix(PREFIX) {
            Some(rest) => (rest, false),
            None => (token.strip_prefix(TEXT_PREFIX)?, true),
        };
        let mut fields = rest.splitn(4, ':');
        let (owner, kind, id, rest) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let (data, text) = if with_text {
            let (length, rest) = rest.split_once(':')?;
            let (data, text) = rest.split_at_checked(length.parse().ok()?)?;
            (data, Some(text.to_owned()))
        } else {
            (rest, None)
        };
        let seal = Seal {
            owner: owner.to_owned(),
            kind: kind.to_owned(),
            id: (!id.is_empty()).then(|| id.replace("%3A", ":").replace("%25", "%")),
            data: data.to_owned(),
        };
        Some(Self { seal, text })
    }
}

impl fmt::Display for SealToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seal { owner, kind, id, data } = &self.seal;
        let id = id.as_deref().unwrap_or_default().replace('%', "%25").replace(':', "%3A");
        match &self.text {
            None => write!(f, "{PREFIX}{owner}:{kind}:{id}:{data}"),
            Some(text) => write!(f, "{TEXT_PREFIX}{owner}:{kind}:{id}:{}:{data}{text}", data.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_restores_the_seal_and_its_text() {
        for (data, text) in
            [("proof", None), ("a:b", Some("")), ("", Some("1:2 ü\n\nthree")), ("x=", Some("thought"))]
        {
            for id in [None, Some("rs_1"), Some("functions.Bash:0"), Some("100%3A")] {
                let seal = Seal {
                    owner: "openai-chat".into(),
                    kind: "signature".into(),
                    id: id.map(Into::into),
                    data: data.into(),
                };
                let token = SealToken { seal, text: text.map(Into::into) };
                assert_eq!(SealToken::parse(&token.to_string()), Some(token));
            }
        }
    }

    #[test]
    fn other_strings_are_no_tokens() {
        for text in ["", "c2lnbmF0dXJl", "toolgate:1:a:b", "toolgate:2:a:b:c:9:short", "toolgate:2:a:b:c:x:y"]
        {
            assert_eq!(SealToken::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_origin_is_no_proof() {
        let dialect = DialectId { name: "openai-chat", provider: "openai" };
        let origin = Seal::origin(dialect);
        assert!(origin.came_from(dialect));
        assert!(!origin.belongs_to(dialect));
    }
}
