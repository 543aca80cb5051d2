//! Where the counters are served: `--metrics 9898`, `127.0.0.1:9898`, `[::1]:9898`.
//!
//! A port alone is a port of loopback. Another address must be written out, and is warned about:
//! the page has no password, names the mount's paths, and every host that reaches it may read it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Reads the value of `--metrics`.
///
/// # Errors
/// Neither a port nor an address with a port, in words.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let of_port = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().map(of_port).or_else(|_| text.parse());
    // The system would choose a port of which no user learns.
    let address = address.ok().filter(|address| address.port() > 0);
    address.ok_or_else(|| {
        "must be a port from 1 to 65535, or an address with one, as in 9898 or 127.0.0.1:9898"
            .into()
    })
}

/// The warning about an address that others may reach; none for loopback.
#[must_use]
pub fn warning(address: SocketAddr) -> Option<String> {
    let open = !address.ip().to_canonical().is_loopback();
    open.then(|| {
        format!(
            "--metrics {address}: the counters and the mount's paths can be read by anybody who \
             reaches this address; 127.0.0.1:{} is for this machine alone",
            address.port()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_a_port_of_loopback() {
        assert_eq!(parse("9898").unwrap().to_string(), "127.0.0.1:9898");
        assert_eq!(parse("[::1]:9898").unwrap().to_string(), "[::1]:9898");
        let words = ["", "localhost", "127.0.0.1", "70000", "9898x", ":9898"];
        for refused in words.into_iter().chain(["0", "127.0.0.1:0", "[::1]:0"]) {
            assert!(
                parse(refused).unwrap_err().contains("1 to 65535"),
                "{refused}"
            );
        }
    }

    #[test]
    fn only_addresses_that_others_reach_are_warned_about() {
        for quiet in ["9898", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(warning(parse(quiet).unwrap()), None, "{quiet}");
        }
        for loud in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
            let warning = warning(parse(loud).unwrap()).unwrap();
            assert!(warning.contains("anybody"), "{warning}");
        }
    }
}
