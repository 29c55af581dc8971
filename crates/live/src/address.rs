//! Address of the page: `PORT`, `HOST`, or `HOST:PORT`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::str::FromStr;

use zellige_engine::error::{Error, Problem, Result};

/// First port that is tried where none is told, and the number of those tried.
const PORTS: (u16, u16) = (8420, 40);

/// Address that a server is told to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// IP address of this host; the loopback unless told.
    pub host: IpAddr,
    /// Port; the first free one from 8420 on unless told.
    pub port: Option<u16>,
}

impl Default for Address {
    fn default() -> Self {
        Self { host: Ipv4Addr::LOCALHOST.into(), port: None }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let own = Self::default();
        if text.is_empty() {
            return Ok(own);
        }
        let port = |text: &str| text.parse::<u16>().ok().filter(|p| *p > 0);
        if let Some(port) = port(text) {
            return Ok(Self { port: Some(port), ..own });
        }
        let ip = |text: &str| match text {
            "localhost" => Some(own.host),
            text => text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text).parse::<IpAddr>().ok(),
        };
        if let Some(host) = ip(text) {
            return Ok(Self { host, port: None });
        }
        let both = text.rsplit_once(':').and_then(|(host, number)| Some((ip(host)?, port(number)?)));
        both.map(|(host, port)| Self { host, port: Some(port) }).ok_or_else(|| {
            format!("`{text}` is no address (allowed: a port, an IP address of this host, or both, such as 8500 or 0.0.0.0:8500)")
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}", SocketAddr::new(self.host, port)),
            None => write!(f, "{}", self.host),
        }
    }
}

impl Address {
    /// Listens.
    ///
    /// # Errors
    /// The port is taken, or the address is not of this host.
    pub fn listen(&self) -> Result<TcpListener> {
        let refused = |port: u16, e: &std::io::Error| {
            let problem = Problem::new("port", format!("cannot listen at {}: {e}", SocketAddr::new(self.host, port)));
            let hint = match e.kind() {
                std::io::ErrorKind::AddrNotAvailable => "name an address of this host, or none",
                _ => "name another port, or none: then a free one is taken",
            };
            Error::input("the live page", problem.hint(hint))
        };
        if let Some(port) = self.port {
            return TcpListener::bind((self.host, port)).map_err(|e| refused(port, &e));
        }
        let (first, count) = PORTS;
        let free = (first..first + count).find_map(|port| TcpListener::bind((self.host, port)).ok());
        free.map_or_else(|| TcpListener::bind((self.host, 0)).map_err(|e| refused(first, &e)), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ports_hosts_or_both() {
        let parsed = |text: &str| text.parse::<Address>().map(|a| a.to_string());
        assert_eq!(parsed("").unwrap(), "127.0.0.1");
        assert_eq!(parsed("8500").unwrap(), "127.0.0.1:8500");
        assert_eq!(parsed("0.0.0.0:8500").unwrap(), "0.0.0.0:8500");
        assert_eq!(parsed("localhost:1").unwrap(), "127.0.0.1:1");
        assert_eq!(parsed("[::1]:8500").unwrap(), "[::1]:8500");
        assert_eq!(parsed("::1").unwrap(), "::1");
        for wrong in ["0", "65536", "example.org", "127.0.0.1:", "127.0.0.1:0", ":8500", "a:b"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_taken_port_is_an_error_only_where_it_was_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Address { port: Some(port), ..Address::default() }.listen().unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
        let foreign = Address { host: "192.0.2.1".parse().unwrap(), port: Some(port) }.listen().unwrap_err();
        assert!(foreign.to_string().contains("name an address of this host"), "{foreign}");
        let own = [0; 2].map(|_| Address::default().listen().unwrap());
        assert_ne!(own[0].local_addr().unwrap(), own[1].local_addr().unwrap());
    }
}
