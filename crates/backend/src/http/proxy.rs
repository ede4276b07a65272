//! Which hosts are reached through a proxy, and how.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use crate::config::ProxyConfig;

/// How a host is reached.
#[derive(Clone, Debug)]
pub(super) enum ProxyUse {
    Direct,
    /// An `https://` host: the proxy opens a tunnel to it (`CONNECT`).
    Tunnel(Proxy),
    /// An `http://` host: the proxy gets requests for whole URLs and forwards them.
    Forward(Proxy),
}

/// An HTTP proxy.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    /// Without user name and password.
    pub(super) uri: Uri,
    /// The value of `proxy-authorization`.
    pub(super) authorization: Option<HeaderValue>,
}

impl ProxyUse {
    /// How this host is reached; `None` if its proxy's URL cannot be used.
    pub(super) fn of(config: &ProxyConfig, host: &Uri) -> Option<Self> {
        let is_https = host.scheme_str() == Some("https");
        let url = if is_https { &config.https } else { &config.http };
        let Some(url) = url.as_ref().filter(|_| !is_direct(config, host)) else { return Some(Self::Direct) };
        let proxy = Proxy::new(url)?;
        Some(if is_https { Self::Tunnel(proxy) } else { Self::Forward(proxy) })
    }
}

impl Proxy {
    fn new(url: &Uri) -> Option<Self> {
        if url.scheme_str() != Some("http") {
            return None;
        }
        let authority = url.authority()?;
        let plain = match authority.port_u16() {
            Some(_) => authority.as_str().rsplit('@').next()?.to_owned(),
            None => format!("{}:80", authority.host()),
        };
        let uri = Uri::builder().scheme("http").authority(plain).path_and_query("/").build().ok()?;
        let authorization = match authority.as_str().rsplit_once('@') {
            Some((user, _)) => Some(basic_authorization(user)?),
            None => None,
        };
        Some(Self { uri, authorization })
    }
}

fn basic_authorization(user: &str) -> Option<HeaderValue> {
    let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
    let decoded: Vec<u8> = percent_decode_str(&user).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(decoded))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// True where no proxy may be used: for loopback addresses, which only this machine can reach, and by `no_proxy`.
fn is_direct(config: &ProxyConfig, host: &Uri) -> bool {
    let Some(authority) = host.authority() else { return true };
    let name = authority.host().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let address: Option<IpAddr> = name.parse().ok();
    let is_loopback = match address {
        Some(address) => address.to_canonical().is_loopback(),
        None => name == "localhost" || name.ends_with(".localhost"),
    };
    let port = authority.port_u16().unwrap_or(if host.scheme_str() == Some("https") { 443 } else { 80 });
    is_loopback || config.no_proxy.iter().any(|rule| matches(rule, &name, address, port))
}

/// One rule of `no_proxy`: `*`, `example.com` and `.example.com` with all names below it, an address or a network
/// (`10.0.0.0/8`). All but networks may end in a port.
fn matches(rule: &str, name: &str, address: Option<IpAddr>, port: u16) -> bool {
    let rule = rule.trim().to_ascii_lowercase();
    if rule == "*" {
        return true;
    }
    if let Some((network, bits)) = rule.split_once('/') {
        let (Ok(network), Ok(bits), Some(address)) = (network.parse(), bits.parse(), address) else {
            return false;
        };
        return is_in_network(address.to_canonical(), network, bits);
    }
    let (host, rule_port) = split_port(&rule);
    if rule_port.is_some_and(|rule_port| rule_port != port.to_string()) {
        return false;
    }
    match (address, host.parse::<IpAddr>()) {
        (Some(address), Ok(rule)) => address.to_canonical() == rule.to_canonical(),
        (Some(_), Err(_)) | (None, Ok(_)) => false,
        (None, Err(_)) => {
            let domain = host.trim_start_matches("*.").trim_start_matches('.').trim_end_matches('.');
            let rest = name.strip_suffix(domain).filter(|_| !domain.is_empty());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        }
    }
}

/// Splits off the port. A single colon begins a port; an address of version 6 has brackets before its port.
fn split_port(rule: &str) -> (&str, Option<&str>) {
    if let Some((address, rest)) = rule.strip_prefix('[').and_then(|rule| rule.split_once(']')) {
        return (address, rest.strip_prefix(':'));
    }
    match rule.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        Some(_) | None => (rule, None),
    }
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let shares = |address: u128, network: u128, width: u32| {
        bits <= width && (address ^ network).checked_shr(width - bits).unwrap_or(0) == 0
    };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            shares(address.to_bits().into(), network.to_bits().into(), u32::BITS)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            shares(address.to_bits(), network.to_bits(), u128::BITS)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(no_proxy: &str) -> ProxyConfig {
        let proxy = Some(Uri::from_static("http://me:p%40ss@proxy:3128"));
        let no_proxy = no_proxy.split(',').map(str::to_owned).collect();
        ProxyConfig { https: proxy.clone(), http: proxy, no_proxy }
    }

    #[track_caller]
    fn check_direct(no_proxy: &str, hosts: &[&str]) {
        for host in hosts {
            assert!(is_direct(&config(no_proxy), &host.parse().expect("a URL")), "{no_proxy} {host}");
        }
    }

    #[track_caller]
    fn check_proxied(no_proxy: &str, hosts: &[&str]) {
        for host in hosts {
            assert!(!is_direct(&config(no_proxy), &host.parse().expect("a URL")), "{no_proxy} {host}");
        }
    }

    #[test]
    fn names_match_with_all_names_below_them() {
        for rule in ["example.com", ".example.com", "*.example.com", " EXAMPLE.com ", "other,example.com."] {
            check_direct(rule, &["https://example.com/v1", "http://a.b.Example.com:81"]);
            check_proxied(rule, &["https://notexample.com", "https://example.com.net", "https://com"]);
        }
        check_direct("*", &["https://example.com"]);
        check_proxied("", &["https://example.com"]);
    }

    #[test]
    fn a_rule_may_name_a_port() {
        check_direct("h:8080,i:443", &["http://h:8080", "https://i/v1"]);
        check_proxied("h:8080,i:443", &["http://h:81", "http://h", "http://i"]);
        check_direct("[2001:db8::1]:81,10.1.1.1:443", &["http://[2001:db8::1]:81", "https://10.1.1.1"]);
        check_proxied("[2001:db8::1]:81,10.1.1.1:443", &["http://[2001:db8::1]", "http://10.1.1.1"]);
    }

    #[test]
    fn addresses_and_networks_match() {
        let rules = "10.0.0.0/8,192.168.1.7,2001:db8::/32,2001:db9::1";
        check_direct(rules, &["http://10.9.8.7", "https://192.168.1.7:1", "http://[2001:db8:1::]"]);
        check_direct(rules, &["http://[2001:db9::1]", "http://[::ffff:10.0.0.1]"]);
        check_proxied(
            rules,
            &["http://11.0.0.1", "http://192.168.1.8", "http://[2001:db9::2]", "http://ten"],
        );
        check_direct("0.0.0.0/0", &["http://1.2.3.4"]);
        check_proxied("10.0.0.0/33,x/8,10.0.0.0/", &["http://10.0.0.1"]);
    }

    #[test]
    fn loopback_is_never_proxied() {
        let hosts = ["http://localhost:1", "http://127.9.9.9", "http://[::1]:2", "https://a.localhost"];
        check_direct("", &hosts);
    }

    #[test]
    fn the_scheme_of_the_host_chooses_how_the_proxy_is_used() {
        let of = |host: &'static str| ProxyUse::of(&config(""), &Uri::from_static(host));
        let Some(ProxyUse::Tunnel(proxy)) = of("https://h") else { panic!("a tunnel") };
        assert_eq!(proxy.uri, "http://proxy:3128/");
        assert_eq!(proxy.authorization.expect("a password"), "Basic bWU6cEBzcw==");
        assert!(matches!(of("http://h"), Some(ProxyUse::Forward(_))));
        assert!(matches!(of("http://localhost"), Some(ProxyUse::Direct)));
    }

    #[test]
    fn a_proxy_is_spoken_to_in_plain_http() {
        let mut config = config("");
        config.https = Some(Uri::from_static("https://proxy"));
        assert!(ProxyUse::of(&config, &Uri::from_static("https://h")).is_none());
        let proxy = Proxy::new(&Uri::from_static("http://me@proxy")).expect("a proxy");
        assert_eq!(proxy.uri, "http://proxy:80/");
        assert_eq!(proxy.authorization.expect("a user"), "Basic bWU6");
    }
}
