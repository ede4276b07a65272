//! HMAC-SHA256, for the console's tokens and for webhooks.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The block size of SHA-256. HMAC pads shorter keys with zeros and hashes longer ones.
const BLOCK_BYTES: usize = 64;

/// Signs the concatenation of the parts.
pub(crate) fn sign(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    mac(key, parts).finalize().into_bytes().into()
}

/// True if the signature is that of the concatenated parts. Takes the same time wherever they differ.
pub(crate) fn is_signed(key: &[u8], parts: &[&[u8]], signature: &[u8]) -> bool {
    mac(key, parts).verify_slice(signature).is_ok()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        let hash: [u8; 32] = Sha256::digest(key).into();
        block[..hash.len()].copy_from_slice(&hash);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut mac = Hmac::new(&block.into());
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &[u8], data: &[u8], expected: &str) {
        let byte = |index: usize| u8::from_str_radix(&expected[index * 2..index * 2 + 2], 16).expect("hex");
        assert_eq!(sign(key, &[data]), std::array::from_fn(byte));
    }

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        check(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
    }

    #[test]
    fn a_changed_part_or_key_is_noticed() {
        let signature = sign(b"key", &[b"a", b"b"]);
        assert!(is_signed(b"key", &[b"ab"], &signature));
        assert!(!is_signed(b"key", &[b"a", b"c"], &signature));
        assert!(!is_signed(b"kez", &[b"a", b"b"], &signature));
        assert!(!is_signed(b"key", &[b"a", b"b"], &signature[..31]));
        assert!(!is_signed(b"key", &[b"a", b"b"], &[]));
    }
}
