//! The address to listen on, in the config and on the command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The default address.
pub(crate) const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);

/// Parses `127.0.0.1:8787`, `[::1]:8787` or `localhost:8787`. The error says what to write.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| {
        format!("\"{text}\" is not an address to listen on: write an IP address and a port, such as \"127.0.0.1:8787\"")
    })
}

/// The error for a public address without keys.
pub(crate) fn error_without_keys(listen: SocketAddr) -> String {
    format!(
        "{listen} is reachable from other machines and there are no keys, so anybody could use your models: \
         listen on 127.0.0.1, or create a key with `toolgate keys new NAME` and add it to the config"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, address) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("localhost:80", "127.0.0.1:80"), ("[::1]:8787", "[::1]:8787")]
        {
            assert_eq!(
                parse_listen(text).map(|address| address.to_string()),
                Ok(address.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["8787", ":8787", "127.0.0.1", "http://127.0.0.1:8787", "localhost", "gate.lan:1"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
    }
}
