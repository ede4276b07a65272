//! The trigger: the line that starts calls. It cannot be guessed from outside, stays the same for a whole
//! conversation (which keeps the host's prompt cache valid), and does not occur in any inbound text (P30).

use memchr::memmem;
use sha2::{Digest, Sha256};

use toolgate_model::{Message, TurnRequest};

use crate::inbound::Inbound;
use crate::options::Secret;

/// The beginning of every trigger.
pub(crate) const TRIGGER_OPENING: &str = "<<CALL_";
/// The number of random characters in a trigger: 50 bits.
const TRIGGER_LENGTH: usize = 10;
/// The number of random characters in the tag around tool results.
const NONCE_LENGTH: usize = 8;
/// The number of random characters in a call id: 120 bits.
const ID_LENGTH: usize = 24;
/// How many candidates are tried. A candidate fails only if the inbound text happens to contain it.
const MAX_ATTEMPTS: u32 = 1_000;
/// No characters that look alike, so that a model copies them without error.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The unguessable parts of a conversation's markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Markers {
    /// `<<CALL_k3f9q2ab7c>>`.
    pub(crate) trigger: String,
    /// Part of the tag name around tool results.
    pub(crate) nonce: String,
}

/// The markers of the conversation that a request belongs to.
pub(crate) fn markers(request: &TurnRequest, inbound: &Inbound<'_>, secret: &Secret) -> Markers {
    let seed = hmac(&secret.0, &opening(request));
    let absent = |text: &str| {
        let finder = memmem::Finder::new(text.as_bytes());
        !inbound.texts().any(|inbound| finder.find(inbound.as_bytes()).is_some())
    };
    // The random characters alone must be absent: JSON may escape the brackets around them.
    let first_absent = |label: &str, length: usize| {
        let candidate = |attempt: u32| letters(&hmac(&seed, format!("{label} {attempt}").as_bytes()), length);
        let unused = (0..MAX_ATTEMPTS).map(candidate).find(|text| absent(text));
        unused.unwrap_or_else(|| candidate(MAX_ATTEMPTS))
    };
    Markers {
        trigger: format!("{TRIGGER_OPENING}{}>>", first_absent("trigger", TRIGGER_LENGTH)),
        nonce: first_absent("nonce", NONCE_LENGTH),
    }
}

/// The seed of all call ids of one reply, derived from the secret and all inbound text.
pub(crate) fn id_seed(inbound: &Inbound<'_>, secret: &Secret) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in inbound.texts() {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    hmac(&secret.0, &hash.finalize())
}

/// The id of the call with this index in the reply.
pub(crate) fn call_id(seed: &[u8; 32], index: usize) -> String {
    format!("call_{}", letters(&hmac(seed, &index.to_le_bytes()), ID_LENGTH))
}

/// The part of a conversation that stays the same while it grows: its tools and everything before the first
/// answer.
fn opening(request: &TurnRequest) -> Vec<u8> {
    let first = request
        .messages
        .iter()
        .position(|message| matches!(message, Message::Assistant(_)))
        .unwrap_or(request.messages.len());
    let mut inbound = Inbound::default();
    inbound.tools(&request.tools);
    inbound.messages(&request.messages[..first]);
    let mut bytes = Vec::new();
    for text in inbound.texts() {
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn letters(hash: &[u8; 32], count: usize) -> String {
    hash.iter().take(count).map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
}

/// HMAC-SHA-256 (RFC 2104); the key is shorter than a block.
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let pad = |mask: u8| {
        let mut block = [mask; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_model::{AssistantMessage, Block, Part, Text, UserMessage};

    fn user(text: &str) -> Message {
        Message::User(UserMessage { content: vec![Part::text(text)], extras: toolgate_model::Extras::NONE })
    }

    fn markers_of(request: &TurnRequest, secret: u8) -> Markers {
        markers(request, &Inbound::of(request), &Secret([secret; 32]))
    }

    #[test]
    fn the_hash_matches_the_rfc() {
        // RFC 4231, test case 1: its key padded with zeros to 32 bytes is the same key.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let hash = hmac(&key, b"Hi There");
        assert_eq!(hash[..8], [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53]);
        assert_eq!(hash[24..], [0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7]);
    }

    #[test]
    fn a_trigger_is_stable_in_a_conversation_and_differs_between_them_and_between_servers() {
        let mut request = TurnRequest::new("m", vec![user("hi")]);
        let first = markers_of(&request, 1);
        let letters = first.trigger.strip_prefix("<<CALL_").unwrap().strip_suffix(">>").unwrap();
        assert!(letters.len() >= 8 && letters.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        request.messages.push(Message::Assistant(AssistantMessage {
            content: vec![Block::Text(Text::new("hello"))],
            extras: toolgate_model::Extras::NONE,
        }));
        request.messages.push(user("more"));
        assert_eq!(markers_of(&request, 1), first);
        assert_ne!(markers_of(&request, 2), first);
        assert_ne!(markers_of(&TurnRequest::new("m", vec![user("other")]), 1), first);
    }

    #[test]
    fn a_trigger_that_occurs_in_inbound_text_is_replaced() {
        // P30
        let request = TurnRequest::new("m", vec![user("hi")]);
        let first = markers_of(&request, 1);
        let mut echoed = request.clone();
        echoed.messages.push(Message::Assistant(AssistantMessage::default()));
        echoed.messages.push(user(&format!("{} and {}", first.trigger, first.nonce)));
        let second = markers_of(&echoed, 1);
        assert_ne!(second.trigger, first.trigger);
        assert_ne!(second.nonce, first.nonce);
        assert_eq!(markers_of(&echoed, 1), second);
    }

    #[test]
    fn ids_are_unique_and_repeatable() {
        let request = TurnRequest::new("m", vec![user("hi")]);
        let seed = id_seed(&Inbound::of(&request), &Secret([1; 32]));
        assert_eq!(call_id(&seed, 0), call_id(&seed, 0));
        assert_ne!(call_id(&seed, 0), call_id(&seed, 1));
    }
}
