//! Requests and responses of HTTP/1.1, one a connection, with limits on bytes and time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request at most.
const REQUEST: usize = 8192;
/// Header lines of a request at most.
const HEADERS: usize = 64;
/// Time in which a request must be complete.
const TO_ASK: Duration = Duration::from_secs(5);
/// Time in which a client must take a part of a response.
const TO_TAKE: Duration = Duration::from_secs(5);
/// Time in which a client must take a whole response.
const TO_TAKE_ALL: Duration = Duration::from_secs(60);
/// Time in which a server of this host must take a connection.
const TO_CONNECT: Duration = Duration::from_secs(1);
/// Bytes of such a part.
const PART: usize = 1 << 16;

/// Header that carries the token of a command.
const TOKEN: &str = "x-zellige-token";

/// Methods that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Asks for something.
    Get,
    /// Gives a command.
    Post,
}

/// Request, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) host: Option<String>,
    pub(crate) token: Option<String>,
    /// The client takes what gzip has compressed.
    pub(crate) gzip: bool,
}

/// Reason why a request has no answer but a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client has gone, or took too long to say anything.
    Gone,
    /// A status code.
    Status(u16),
}

/// Words of a status code.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    }
}

/// Reads a request.
pub(crate) fn read(stream: &mut TcpStream) -> Result<Request, Refusal> {
    let until = Instant::now() + TO_ASK;
    let mut bytes = Vec::with_capacity(1024);
    let mut part = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refusal::Status(408));
        }
        match stream.read(&mut part) {
            Ok(0) => return Err(Refusal::Gone),
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(Refusal::Status(408)),
            Err(_) => return Err(Refusal::Gone),
        }
        if let Some(request) = parse(&bytes)? {
            return Ok(request);
        }
        if bytes.len() >= REQUEST {
            return Err(Refusal::Status(431));
        }
    }
}

/// Parses the head of a request; `None` while it is not complete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut lines);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::Status(431)),
        Err(_) => return Err(Refusal::Status(400)),
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        _ => return Err(Refusal::Status(405)),
    };
    let mut request = Request { method, path: String::new(), query: String::new(), host: None, token: None, gzip: false };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (request.path, request.query) = (path.to_owned(), query.to_owned());
    for line in head.headers.iter() {
        let value = || std::str::from_utf8(line.value).map(|v| v.trim().to_owned()).map_err(|_| Refusal::Status(400));
        if line.name.eq_ignore_ascii_case("host") {
            // Two of them are a trick: one for us, and one for a proxy.
            if request.host.replace(value()?).is_some() {
                return Err(Refusal::Status(400));
            }
        } else if line.name.eq_ignore_ascii_case(TOKEN) {
            request.token = Some(value()?);
        } else if line.name.eq_ignore_ascii_case("accept-encoding") {
            request.gzip |= value().is_ok_and(|ways| ways.split(',').any(|way| way.trim() == "gzip"));
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") || line.name.eq_ignore_ascii_case("content-length") && value()? != "0"
        {
            // No request has a body.
            return Err(Refusal::Status(413));
        }
    }
    Ok(Some(request))
}

/// Writes all bytes, unless the client takes them too slowly.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), Refusal> {
    let until = Instant::now() + TO_TAKE_ALL;
    stream.set_write_timeout(Some(TO_TAKE)).map_err(|_| Refusal::Gone)?;
    for part in bytes.chunks(PART) {
        if Instant::now() > until {
            return Err(Refusal::Gone);
        }
        stream.write_all(part).map_err(|_| Refusal::Gone)?;
    }
    Ok(())
}

/// Headers of every response: nothing is kept, framed, sniffed or told to others, and the page loads nothing from elsewhere.
const ALWAYS: &str = "Cache-Control: no-store\r\n\
    Connection: close\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
    img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

/// Sends a page: compressed, to about a third, where the client takes that.
pub(crate) fn respond_page(stream: &mut TcpStream, request: &Request, page: &str) -> Result<(), Refusal> {
    const HTML: &str = "text/html; charset=utf-8";
    match request.gzip.then(|| compressed(page)).flatten() {
        Some(body) => respond(stream, 200, &format!("{HTML}\r\nContent-Encoding: gzip"), &body),
        None => respond(stream, 200, HTML, page.as_bytes()),
    }
}

/// A text as gzip has compressed it.
fn compressed(text: &str) -> Option<Vec<u8>> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    to.write_all(text.as_bytes()).and_then(|()| to.finish()).ok()
}

/// Sends a response.
pub(crate) fn respond(stream: &mut TcpStream, status: u16, kind: &str, body: &[u8]) -> Result<(), Refusal> {
    let head = format!("HTTP/1.1 {status} {}\r\n{ALWAYS}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n", reason(status), body.len());
    let mut all = head.into_bytes();
    all.extend_from_slice(body);
    send(stream, &all)
}

/// Sends a status with a line of text.
pub(crate) fn refuse(stream: &mut TcpStream, status: u16) -> Result<(), Refusal> {
    respond(stream, status, "text/plain; charset=utf-8", format!("{status} {}\n", reason(status)).as_bytes())
}

/// Hands a request on to a server of this program on this host, and its response back as it comes: `path` is what stands behind the
/// token there. A server that says nothing for `patience` is left.
pub(crate) fn forward(
    stream: &mut TcpStream,
    request: &Request,
    to: (SocketAddr, &str),
    path: &str,
    patience: Duration,
) -> Result<(), Refusal> {
    let (address, token) = to;
    let failed = |_| Refusal::Status(503);
    let mut server = TcpStream::connect_timeout(&address, TO_CONNECT).map_err(failed)?;
    server.set_read_timeout(Some(patience)).map_err(failed)?;
    server.set_write_timeout(Some(TO_TAKE)).map_err(failed)?;
    let (method, mark) = (if request.method == Method::Get { "GET" } else { "POST" }, if request.query.is_empty() { "" } else { "?" });
    let (query, accepts) = (&request.query, if request.gzip { "Accept-Encoding: gzip\r\n" } else { "" });
    let head = format!("{method} /{token}/{path}{mark}{query} HTTP/1.1\r\nHost: {address}\r\n{accepts}{TOKEN}: {token}\r\n\r\n");
    server.write_all(head.as_bytes()).map_err(failed)?;
    let (mut part, mut begun) = (vec![0; PART], false);
    loop {
        match server.read(&mut part) {
            Ok(0) => return if begun { Ok(()) } else { Err(Refusal::Status(503)) },
            Ok(n) => send(stream, &part[..n])?,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Err(if begun { Refusal::Gone } else { Refusal::Status(503) }),
        }
        begun = true;
    }
}

/// Begins a stream of events.
pub(crate) fn begin_events(stream: &mut TcpStream) -> Result<(), Refusal> {
    send(stream, format!("HTTP/1.1 200 OK\r\n{ALWAYS}Content-Type: text/event-stream\r\n\r\nretry: 1000\n\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_compressed_for_those_who_can_take_that() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let page = crate::page::page(None);
        let answer = |accepts: &str| {
            let request = parse(format!("GET /abc HTTP/1.1\r\n{accepts}\r\n").as_bytes()).unwrap().unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let page = &page;
            std::thread::scope(|scope| {
                // Owned by the thread, and so closed at its end.
                let (mut server, _) = listener.accept().unwrap();
                scope.spawn(move || respond_page(&mut server, &request, page).unwrap());
                let mut all = Vec::new();
                (&client).read_to_end(&mut all).unwrap();
                let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
                (String::from_utf8(all[..end].to_vec()).unwrap(), all.split_off(end + 4))
            })
        };
        let (head, body) = answer("");
        assert!(!head.contains("Content-Encoding") && body == page.as_bytes(), "{head}");
        let (head, body) = answer("Accept-Encoding: deflate, gzip, br\r\n");
        assert!(head.contains("\r\nContent-Encoding: gzip\r\n") && head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.len() < 20_000, "{} bytes", body.len());
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, page);
    }

    #[test]
    fn requests_are_read_as_they_stand() {
        let text = b"GET /abc/frames?u=0:1 HTTP/1.1\r\nhost: localhost:1\r\nX-Zellige-Token: t\r\n\r\n";
        let request = parse(text).unwrap().unwrap();
        assert_eq!((request.method, &*request.path, &*request.query), (Method::Get, "/abc/frames", "u=0:1"));
        assert_eq!((request.host.as_deref(), request.token.as_deref()), (Some("localhost:1"), Some("t")));
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn no_bytes_make_the_parser_fail() {
        let whole = b"POST /0123456789abcdef0123456789abcdef/save?of=0:1 HTTP/1.1\r\nHost: localhost:8420\r\nX-Zellige-Token: t\r\nContent-Length: 0\r\n\r\n";
        // Numbers of a multiplicative generator, from the upper bits.
        let mut state = 1_u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut outcomes = [0; 3];
        for _ in 0..50_000 {
            let mut bytes = whole.to_vec();
            for _ in 0..below(6) {
                let at = below(bytes.len());
                match below(3) {
                    0 => bytes[at] = below(256) as u8,
                    // One is left to be changed.
                    1 if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            outcomes[match parse(&bytes) {
                Ok(Some(_)) => 0,
                Ok(None) => 1,
                Err(_) => 2,
            }] += 1;
        }
        assert!(outcomes.iter().all(|n| *n > 1000), "{outcomes:?}");
    }

    #[test]
    fn requests_that_are_none_are_refused_with_a_status() {
        let status = |text: &[u8]| match parse(text) {
            Err(Refusal::Status(status)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"), 400);
        assert_eq!(status(b"DELETE / HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), 413);
        assert_eq!(status(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1));
        assert_eq!(status(many.as_bytes()), 431);
    }
}
