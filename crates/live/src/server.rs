//! The server: a thread a connection, a bounded number of them.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use zellige_engine::error::{Error, Result};
use zellige_engine::lock::host_name;

use crate::address::Address;
use crate::http::{self, Method, Refusal, Request};
use crate::hub::{Command, Hub, Told};
use crate::page::{page, queue_page};
use crate::queue::{Queue, RunPage};

/// Connections at most; others are sent away.
pub(crate) const CONNECTIONS: usize = 64;
/// Streams of events at most: some connections are left for what they ask for.
const STREAMS: usize = 48;
/// Time between two events of a stream at least.
const BETWEEN: Duration = Duration::from_millis(100);
/// Time after which a stream without news says that it lives.
const ALIVE: Duration = Duration::from_secs(5);
/// Stack of a thread, bytes.
const STACK: usize = 256 << 10;
/// Pause after a connection that could not be accepted, as when there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// Secrets and names by which requests are told from others'.
#[derive(Debug, Clone)]
pub struct Security {
    token: String,
    /// Name that the page was told to listen at, and of this host where it listens beyond the loopback.
    names: Vec<String>,
    /// Any IP address may be named: those of this host are not known.
    any_ip: bool,
}

impl Security {
    /// A new token from the system's random numbers.
    ///
    /// # Errors
    /// The system has none.
    pub fn new(host: IpAddr) -> Result<Self> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).map_err(|e| Error::Device {
            device: "host".into(),
            message: format!("the system gives no random numbers for the token of the live page: {e}"),
            hint: Some("leave the live page out".into()),
        })?;
        let token = format!("{:032x}", u128::from_be_bytes(bytes));
        let mut names: Vec<String> = vec!["localhost".into(), "127.0.0.1".into(), "[::1]".into()];
        if !host.is_loopback() {
            names.extend(host_name().map(|name| name.to_lowercase()));
        }
        names.push(if host.is_ipv6() { format!("[{host}]") } else { host.to_string() });
        Ok(Self { token, names, any_ip: host.is_unspecified() })
    }

    /// Compares a token in a time that does not depend on where it differs.
    fn is_token(&self, given: &str) -> bool {
        let (given, own) = (given.as_bytes(), self.token.as_bytes());
        given.len() == own.len() && std::hint::black_box(given.iter().zip(own).fold(0, |all, (a, b)| all | (a ^ b))) == 0
    }

    /// Returns true if the page is asked for by a name of this host. A page of another site whose name is made to point here
    /// (DNS rebinding) asks by that name. The port is free: a tunnel may have another one.
    fn is_own_name(&self, host: Option<&str>) -> bool {
        let Some(host) = host else { return false };
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = without_port.to_lowercase();
        let is_ip = || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        self.names.contains(&name) || self.any_ip && is_ip()
    }
}

/// State that a server shows.
enum Shown {
    Run(Arc<Hub>),
    Queue(Arc<Queue>),
}

/// State that the threads share.
struct Shared {
    shown: Shown,
    security: Security,
    connections: AtomicUsize,
    streams: AtomicUsize,
    closed: AtomicBool,
    /// Milliseconds after `begun` of the last answer.
    answered: AtomicU64,
    begun: Instant,
}

/// A server at work; dropped, it sends its clients away.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at an address and shows a run from now on.
    pub fn start(address: &Address, hub: Arc<Hub>) -> Result<Self> {
        Self::of(address, Shown::Run(hub))
    }

    /// Listens at an address and shows a queue from now on, the runs behind their numbers.
    pub fn of_queue(address: &Address, queue: Arc<Queue>) -> Result<Self> {
        Self::of(address, Shown::Queue(queue))
    }

    fn of(address: &Address, shown: Shown) -> Result<Self> {
        let listener = address.listen()?;
        let begun = Instant::now();
        let security = Security::new(address.host)?;
        let (connections, streams, closed, answered) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { shown, security, connections, streams, closed, answered, begun });
        let failed = |e: std::io::Error| Error::Device {
            device: "host".into(),
            message: format!("the live page cannot be served: {e}"),
            hint: Some("leave the live page out".into()),
        };
        let address = listener.local_addr().map_err(failed)?;
        let of_thread = shared.clone();
        let work = move || accept(&listener, &of_thread);
        let acceptor = std::thread::Builder::new().name("live".into()).stack_size(STACK).spawn(work).map_err(failed)?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the page, with the token.
    pub fn url(&self) -> String {
        let host = if self.address.ip().is_unspecified() { host_name().unwrap_or_else(|| "localhost".into()) } else { self.host() };
        format!("http://{host}:{}/{}/", self.address.port(), self.shared.security.token)
    }

    fn host(&self) -> String {
        if self.address.is_ipv6() { format!("[{}]", self.address.ip()) } else { self.address.ip().to_string() }
    }

    /// Command for another machine that brings the page there; none where it is reached without.
    pub fn tunnel(&self) -> Option<String> {
        let port = self.address.port();
        let host = host_name().unwrap_or_else(|| "HOST".into());
        self.address.ip().is_loopback().then(|| format!("ssh -L {port}:{}:{port} {host}", self.host()))
    }

    /// Sends the clients away, once those that watch have asked for the last frames: at most for `patience`.
    pub fn close(self, patience: Duration) {
        let until = Instant::now() + patience;
        let shared = &self.shared;
        // Browsers ask for what an event announces within some round trips.
        let quiet = || shared.begun.elapsed().as_millis() as u64 - shared.answered.load(Ordering::SeqCst) > 400;
        let last = Instant::now();
        while shared.streams.load(Ordering::SeqCst) > 0 && Instant::now() < until && (last.elapsed() < BETWEEN * 5 || !quiet()) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        match &self.shared.shown {
            Shown::Run(hub) => hub.close(),
            Shown::Queue(queue) => queue.close(),
        }
        // It waits for a connection.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv6() { std::net::Ipv6Addr::LOCALHOST.into() } else { std::net::Ipv4Addr::LOCALHOST.into() });
        }
        let woken = TcpStream::connect_timeout(&own, Duration::from_secs(1)).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
        let until = Instant::now() + Duration::from_millis(300);
        while self.shared.connections.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Counts something until it is dropped.
struct Counted(Arc<Shared>, fn(&Shared) -> &AtomicUsize);

impl Counted {
    /// Counts one more, unless there are `most` already.
    fn one(shared: &Arc<Shared>, count: fn(&Shared) -> &AtomicUsize, most: usize) -> Option<Self> {
        let counter = count(shared);
        if counter.fetch_add(1, Ordering::SeqCst) >= most {
            counter.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(Self(shared.clone(), count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok((mut stream, _)) = accepted else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let Some(counted) = Counted::one(shared, |s| &s.connections, CONNECTIONS) else {
            // A response of this length fits into the buffers of a new connection.
            let _ = http::refuse(&mut stream, 503);
            continue;
        };
        let shared = shared.clone();
        let work = move || {
            let _counted = counted;
            serve(&mut stream, &shared);
        };
        // Without a thread the connection ends: the run must not.
        let _ = std::thread::Builder::new().name("live client".into()).stack_size(STACK).spawn(work);
    }
}

fn serve(stream: &mut TcpStream, shared: &Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let answered = http::read(stream).and_then(|request| answer(stream, &request, shared));
    shared.answered.store(shared.begun.elapsed().as_millis() as u64, Ordering::SeqCst);
    if let Err(Refusal::Status(status)) = answered {
        let _ = http::refuse(stream, status);
    }
}

/// Content types.
const BINARY: &str = "application/octet-stream";
const JSON: &str = "application/json";

fn answer(stream: &mut TcpStream, request: &Request, shared: &Arc<Shared>) -> Result<(), Refusal> {
    let Shared { shown, security, .. } = &**shared;
    if !security.is_own_name(request.host.as_deref()) {
        return Err(Refusal::Status(421));
    }
    let (token, rest) = request.path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or(Refusal::Status(404))?;
    if !security.is_token(token) {
        // No different from a path that is not there.
        return Err(Refusal::Status(404));
    }
    // A header that pages of other sites cannot set without being asked, and they are not.
    if request.method == Method::Post && !request.token.as_deref().is_some_and(|token| security.is_token(token)) {
        return Err(Refusal::Status(403));
    }
    match shown {
        Shown::Run(hub) => of_run(stream, request, rest, hub, shared),
        Shown::Queue(queue) => of_queue(stream, request, rest, queue, shared),
    }
}

/// Answers what is asked of a queue, or of one of its runs.
fn of_queue(stream: &mut TcpStream, request: &Request, path: &str, queue: &Queue, shared: &Arc<Shared>) -> Result<(), Refusal> {
    if let Some((number, rest)) = path.split_once('/') {
        let number = number.parse().map_err(|_| Refusal::Status(404))?;
        return match queue.page(number).ok_or(Refusal::Status(404))? {
            RunPage::Process(address, token) => {
                let _counted =
                    if rest == "events" { Some(Counted::one(shared, |s| &s.streams, STREAMS).ok_or(Refusal::Status(503))?) } else { None };
                http::forward(stream, request, (address, &token), rest, 3 * ALIVE)
            }
            RunPage::Folder(folder) => {
                let hub = queue.opened(number, folder).ok_or(Refusal::Status(503))?;
                of_run(stream, request, rest, &hub, shared)
            }
        };
    }
    match (request.method, path) {
        (Method::Get, "") => http::respond_page(stream, request, &queue_page()),
        (Method::Get, "all") => http::respond(stream, 200, JSON, queue.list().to_string().as_bytes()),
        (Method::Get, "events") => {
            let mut told = 0;
            events(stream, shared, || queue.news(&mut told, ALIVE))
        }
        _ => Err(Refusal::Status(404)),
    }
}

/// Answers what is asked of a run.
fn of_run(stream: &mut TcpStream, request: &Request, path: &str, hub: &Hub, shared: &Arc<Shared>) -> Result<(), Refusal> {
    match (request.method, path) {
        (Method::Get, "") => http::respond_page(stream, request, &page(None)),
        (Method::Get, "events") => {
            let (_watch, mut told) = (hub.watch(), Told::default());
            events(stream, shared, || hub.news(&mut told, ALIVE))
        }
        (Method::Get, "all") => http::respond(stream, 200, JSON, hub.all().to_string().as_bytes()),
        (Method::Get, "frames") => {
            let wanted = wanted(&request.query).ok_or(Refusal::Status(400))?;
            let mut body = Vec::new();
            hub.newer(&wanted).iter().for_each(|frame| frame.write(&mut body));
            http::respond(stream, 200, BINARY, &body)
        }
        (Method::Get, path) => {
            let id = path.strip_prefix("frame/").and_then(|id| id.parse().ok());
            let frame = id.and_then(|id| hub.frame(id)).ok_or(Refusal::Status(404))?;
            let mut body = Vec::new();
            frame.write(&mut body);
            http::respond(stream, 200, BINARY, &body)
        }
        (Method::Post, path) => {
            let command = Command::named(path).ok_or(Refusal::Status(404))?;
            let status = if hub.command(command) { 202 } else { 403 };
            http::respond(stream, status, JSON, b"{}")
        }
    }
}

/// Pictures with the newest frame that the client has of each: `0:12,3:0`.
fn wanted(query: &str) -> Option<Vec<(usize, u64)>> {
    let list = query.strip_prefix("of=")?;
    let pair = |text: &str| text.split_once(':').and_then(|(picture, has)| Some((picture.parse().ok()?, has.parse().ok()?)));
    list.split(',').map(pair).collect()
}

/// Sends the news as they come.
fn events(stream: &mut TcpStream, shared: &Arc<Shared>, mut news: impl FnMut() -> Option<Value>) -> Result<(), Refusal> {
    let _counted = Counted::one(shared, |s| &s.streams, STREAMS).ok_or(Refusal::Status(503))?;
    http::begin_events(stream).map_err(|_| Refusal::Gone)?;
    while let Some(news) = news() {
        let text = if news.is_null() { ":\n\n".to_owned() } else { format!("data: {news}\n\n") };
        http::send(stream, text.as_bytes()).map_err(|_| Refusal::Gone)?;
        if !shared.closed.load(Ordering::SeqCst) {
            std::thread::sleep(BETWEEN);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_its_own() {
        let local = Security::new("127.0.0.1".parse().unwrap()).unwrap();
        for own in ["localhost", "localhost:8420", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8420", "[::1]"] {
            assert!(local.is_own_name(Some(own)), "{own}");
        }
        for other in ["evil.example", "127.0.0.1.evil.example:8420", "10.0.0.1:8420", "localhost:8420:1", "", "localhost:"] {
            assert!(!local.is_own_name(Some(other)), "{other}");
        }
        assert!(!local.is_own_name(None));
        let open = Security::new("0.0.0.0".parse().unwrap()).unwrap();
        assert!(open.is_own_name(Some("10.0.0.1:8420")) && !open.is_own_name(Some("evil.example:8420")));
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        let [a, b] = [0; 2].map(|_| Security::new("127.0.0.1".parse().unwrap()).unwrap());
        assert!(a.token.len() == 32 && a.token != b.token);
        assert!(a.is_token(&a.token) && !a.is_token(&b.token) && !a.is_token(&a.token[..31]) && !a.is_token(""));
    }

    #[test]
    fn lists_of_pictures_are_numbers() {
        assert_eq!(wanted("of=0:12,3:0"), Some(vec![(0, 12), (3, 0)]));
        for wrong in ["", "of=", "of=1", "of=1:2,", "of=-1:2", "of=1:2:3", "x=1:2"] {
            assert_eq!(wanted(wrong), None, "{wrong}");
        }
    }
}
