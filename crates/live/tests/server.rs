//! A run of the toy solver with hostile and with many clients: it ends with the same bits, and the server answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zellige_engine::checkpoint::Reader;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Error;
use zellige_engine::profile::Profiler;
use zellige_engine::record::Row;
use zellige_engine::run::{self, Options, Silent, Sink, Summary, checkpoint_path};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Clock, Environment};
use zellige_engine::testing::toy::{Config, Toy};
use zellige_live::{Address, Command, Hub, Queue, RunNames, RunPage, Server, Watcher};

fn start(commands: Vec<Command>) -> (Arc<Hub>, Server, String) {
    let hub = Arc::new(Hub::new(RunNames { name: "toy".into(), commands, ..RunNames::default() }));
    let server = Server::start(&Address::default(), hub.clone()).unwrap();
    let token = server.url().trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
    (hub, server, token)
}

/// Signals and the command to stop are those of a process: one test with a run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Sends a request and reads the response to its end.
fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let _ = stream.write_all(request);
    let mut text = Vec::new();
    // A refused request may end in a reset: what was read before counts.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// Opens a stream of events and returns it once the first event is there.
fn watch(address: SocketAddr, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{token}/events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    while !bytes.windows(6).any(|w| w == b"data: ") {
        let n = stream.read(&mut part).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&part[..n]);
    }
    stream
}

#[test]
fn only_who_has_the_token_and_asks_for_this_host_gets_anything() {
    let (_hub, server, token) = start(Vec::new());
    let address = server.address();
    let page = get(address, &format!("/{token}/"));
    assert_eq!(status(&page), 200);
    assert!(page.contains("Content-Security-Policy: default-src 'none'") && page.contains("<!doctype html>"));
    assert!(!page.to_lowercase().contains("access-control-allow-origin"));
    let wrong = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    for path in ["/", "/events", "//", &format!("/{wrong}/"), &format!("/{wrong}/all"), &format!("/{token}"), &format!("/{token}/nothing")]
    {
        assert_eq!(status(&get(address, path)), 404, "{path}");
    }
    let named = |host: &str| ask(address, format!("GET /{token}/all HTTP/1.1\r\n{host}\r\n").as_bytes());
    assert_eq!(status(&named(&format!("Host: localhost:{}\r\n", address.port()))), 200);
    assert_eq!(status(&named("Host: evil.example:8420\r\n")), 421);
    assert_eq!(status(&named("")), 421);
}

#[test]
fn commands_need_the_flag_the_header_and_a_post() {
    let post = |address: SocketAddr, token: &str, path: &str, header: &str| {
        status(&ask(address, format!("POST /{token}/{path} HTTP/1.1\r\nHost: {address}\r\n{header}\r\n").as_bytes()))
    };
    let (_, server, token) = start(Vec::new());
    let header = format!("X-Zellige-Token: {token}\r\n");
    assert_eq!(post(server.address(), &token, "save", &header), 403, "without --steer");
    let (_hub, server, token) = start(vec![Command::Save]);
    let (address, header) = (server.address(), format!("X-Zellige-Token: {token}\r\n"));
    assert_eq!(post(address, &token, "save", ""), 403);
    assert_eq!(post(address, &token, "save", "X-Zellige-Token: 0\r\n"), 403);
    assert_eq!(post(address, &token, "stop", &header), 403, "not among the commands of this run");
    assert_eq!(post(address, &token, "nothing", &header), 404);
    assert_eq!(status(&get(address, &format!("/{token}/save"))), 404);
    assert_eq!(post(address, &token, "save", &header), 202);
}

#[test]
fn what_is_no_request_gets_a_status_and_the_next_client_an_answer() {
    let (_hub, server, token) = start(Vec::new());
    let address = server.address();
    assert_eq!(status(&ask(address, b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n")), 400);
    assert_eq!(status(&ask(address, b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n")), 405);
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(9000));
    assert_eq!(status(&ask(address, long.as_bytes())), 431);
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
    assert_eq!(status(&ask(address, many.as_bytes())), 431);
    assert_eq!(status(&ask(address, format!("POST /{token}/save HTTP/1.1\r\nContent-Length: 9\r\n\r\n").as_bytes())), 413);
    for query in ["frames", "frames?of=", "frames?of=x", "frames?of=99999999999999999999:0"] {
        assert_eq!(status(&get(address, &format!("/{token}/{query}"))), 400, "{query}");
    }
    assert_eq!(status(&get(address, &format!("/{token}/frames?of=7:0"))), 200);
    assert_eq!(status(&get(address, &format!("/{token}/frame/7"))), 404);
    // One that says nothing is told so after five seconds, and holds nobody up meanwhile.
    let begun = Instant::now();
    let mut silent = TcpStream::connect(address).unwrap();
    silent.write_all(b"GET / HT").unwrap();
    assert_eq!(status(&get(address, &format!("/{token}/all"))), 200);
    let mut text = String::new();
    silent.read_to_string(&mut text).unwrap();
    assert_eq!(status(&text), 408);
    assert!((4..9).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// Rows of a run.
#[derive(Default)]
struct Kept(Vec<(u64, Vec<u64>)>);

impl Sink for Kept {
    fn row(&mut self, clock: &Clock, row: &Row) -> zellige_engine::error::Result<()> {
        self.0.push((clock.step, row.0.iter().map(|s| s.value.to_bits()).collect()));
        Ok(())
    }

    fn progress(&mut self, _: &run::Progress, _: &Row) {}

    fn records(&mut self, _: &Clock, _: Vec<zellige_engine::record::Record>, _: bool) -> zellige_engine::error::Result<()> {
        Ok(())
    }

    fn notice(&mut self, _: &str) {}
}

fn environment() -> Environment {
    Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1)
}

/// A run of the toy, with its rows and the state at its end.
fn toy(steps: u64, folder: &Path, hub: Option<Arc<Hub>>) -> (Summary, Kept, Vec<Vec<u8>>) {
    let (config, mut kept) = (Config { steps, gamma: 1e-4, ..Config::default() }, Kept::default());
    let options = Options { checkpoint: Some(Schedule::Steps(steps)), rows: Schedule::Steps(1000), ..Options::new(folder) };
    let mut profiler = Profiler::new();
    let summary = match hub {
        Some(hub) => {
            let mut watcher = Watcher::new(hub);
            let mut sink = watcher.before(&mut kept);
            run::run::<Toy>(&config, &environment(), &options, &mut profiler, &mut sink)
        }
        None => run::run::<Toy>(&config, &environment(), &options, &mut profiler, &mut kept),
    };
    let reader = Reader::open(checkpoint_path(folder), "toy").unwrap();
    let state = reader.names().map(|name| reader.raw(name).unwrap()).collect();
    (summary.unwrap(), kept, state)
}

#[test]
fn a_run_under_attack_ends_with_the_same_bits_and_the_server_answers() {
    const STEPS: u64 = 2_000_000;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folders = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let (plain, expected, state) = toy(STEPS, folders[0].path(), None);
    let (hub, server, token) = start(Vec::new());
    let (address, done) = (server.address(), AtomicBool::new(false));
    let watcher = watch(address, &token);
    let (watched, found, watched_state) = std::thread::scope(|scope| {
        // Clients that ask for everything and never read.
        let _deaf: Vec<TcpStream> = (0..8)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                write!(stream, "GET /{token}/events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
                stream
            })
            .collect();
        let crowd = scope.spawn(|| {
            let mut all = Vec::new();
            while !done.load(Ordering::SeqCst) && all.len() < 1000 {
                all.extend(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
            }
            all.len()
        });
        let garbage = scope.spawn(|| {
            let mut count = 0_u8;
            while !done.load(Ordering::SeqCst) {
                if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
                    let _ = stream.write_all(&[count; 3000]);
                }
                count = count.wrapping_add(1);
            }
        });
        let result = toy(STEPS, folders[1].path(), Some(hub.clone()));
        done.store(true, Ordering::SeqCst);
        assert!(crowd.join().unwrap() > 100);
        garbage.join().unwrap();
        result
    });
    assert_eq!((plain.outcome, plain.row), (watched.outcome, watched.row));
    assert_eq!(expected.0, found.0);
    assert_eq!(state, watched_state);
    assert!(hub.is_watched(), "the first client is still there");
    drop(watcher);
    let until = Instant::now() + Duration::from_secs(20);
    while status(&get(address, &format!("/{token}/"))) != 200 {
        assert!(Instant::now() < until, "the server does not answer any more");
        std::thread::sleep(Duration::from_millis(100));
    }
    let all = get(address, &format!("/{token}/all"));
    assert!(all.contains("\"frames\":[[1,0,"), "pictures were made: {all:.300}");
}

/// The run goes on while pictures come, and what its looks took is what they held it up.
#[test]
fn late_pictures_are_shown_and_hold_no_step_up() {
    const LATE: u64 = 200;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (hub, server, token) = start(Vec::new());
    let _watcher = watch(server.address(), &token);
    let run = |pictures_late: Option<u64>| {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { steps: 1_000_000, pictures_late, ..Config::default() };
        let options = Options { rows: Schedule::Never, ..Options::new(folder.path()) };
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        let summary = match pictures_late {
            Some(_) => run::run::<Toy>(&config, &environment(), &options, &mut Profiler::off(), &mut sink),
            None => run::run::<Toy>(&config, &environment(), &options, &mut Profiler::off(), &mut Silent),
        };
        (summary.unwrap(), sink.cost())
    };
    let ((alone, _), (watched, cost)) = (run(None), run(Some(LATE)));
    assert_eq!((alone.row, alone.steps), (watched.row, watched.steps));
    let cost = cost.expect("it was looked at");
    let mut words = cost.split(' ').map(|word| word.parse::<f64>().unwrap_or(f64::NAN));
    let (looks, took) = (words.next().unwrap(), words.nth(2).unwrap());
    // Each under way for a fifth of a second, of which the run saw a copy of a hundred numbers.
    assert!(looks >= 2.0 && took < 0.1 * looks * LATE as f64 * 1e-3, "{cost}");
    // That of the end among them, which took no whole records.
    let all = get(server.address(), &format!("/{token}/all"));
    assert!(all.contains(",1000000,null]") || all.contains(",1000000,1"), "{all:.600}");
}

#[test]
fn save_and_stop_reach_the_run() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (hub, server, token) = start(vec![Command::Save, Command::Stop]);
    let address = server.address();
    let checkpoint = checkpoint_path(folder.path());
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let config = Config { steps: u64::MAX, gamma: 1e-9, ..Config::default() };
            let options = Options { rows: Schedule::Never, ..Options::new(folder.path()) };
            let mut silent = Silent;
            let mut watcher = Watcher::new(hub.clone());
            let mut sink = watcher.before(&mut silent);
            run::run::<Toy>(&config, &environment(), &options, &mut Profiler::new(), &mut sink)
        });
        let post = |path: &str| {
            let request = format!("POST /{token}/{path} HTTP/1.1\r\nHost: {address}\r\nX-Zellige-Token: {token}\r\n\r\n");
            assert_eq!(status(&ask(address, request.as_bytes())), 202);
        };
        let until = Instant::now() + Duration::from_secs(30);
        while !checkpoint.exists() {
            post("save");
            assert!(Instant::now() < until && !run.is_finished());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(!run.is_finished(), "a checkpoint ends no run");
        post("stop");
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(&ended, Error::Interrupted { reason: "the live page", checkpoint: Some(_), .. }), "{ended}");
    assert_eq!(ended.exit_code(), 75);
}

/// A queue lists its runs; behind the number of one is the page of its process, or that of its folder.
#[test]
fn a_queue_lists_its_runs_and_has_the_page_of_each_behind_it() {
    let (hub, run, token) = start(vec![Command::Save]);
    let queue = Arc::new(Queue::new("a queue", ["under way", "over", "waiting"].map(String::from)));
    let server = Server::of_queue(&Address::default(), queue.clone()).unwrap();
    let (address, own) = (server.address(), server.url().trim_end_matches('/').rsplit('/').next().unwrap().to_owned());
    queue.show(0, RunPage::of_url(&run.url()));
    let opened = Arc::new(AtomicBool::new(false));
    let mark = opened.clone();
    let folder = move || {
        assert!(!mark.swap(true, Ordering::SeqCst), "opened once");
        let hub = Hub::new(RunNames { name: "from a folder".into(), ..RunNames::default() });
        hub.end("finished", "it is over");
        Arc::new(hub)
    };
    queue.show(1, Some(RunPage::Folder(Arc::new(folder))));

    let page = get(address, &format!("/{own}/"));
    assert!(status(&page) == 200 && page.contains("id=\"runs\"") && page.contains("frame-ancestors 'none'"), "{page:.300}");
    let list = get(address, &format!("/{own}/all"));
    assert!(list.contains("\"name\":\"waiting\"") && list.matches("\"page\":true").count() == 2, "{list}");
    let events = watch(address, &own);

    // The page of the run, and its state, through the queue.
    hub.notice("told by the run");
    assert!(get(address, &format!("/{own}/0/")).contains("id=\"pictures\""));
    assert!(get(address, &format!("/{own}/0/all")).contains("told by the run"));
    assert!(!hub.is_watched());
    let seen = watch(address, &format!("{own}/0"));
    assert!(hub.is_watched());
    for _ in 0..2 {
        assert!(get(address, &format!("/{own}/1/all")).contains("it is over"));
    }
    assert!(opened.load(Ordering::SeqCst));

    // Nothing without the token of the queue, nothing for other sites, nothing that is not there.
    for (path, expected) in [
        (format!("/{token}/0/all"), 404),
        (format!("/{own}/2/"), 404),
        (format!("/{own}/3/"), 404),
        (format!("/{own}/x/"), 404),
        (format!("/{own}/0/nothing"), 404),
        (format!("/{own}/0/../../{token}/all"), 404),
    ] {
        assert_eq!(status(&get(address, &path)), expected, "{path}");
    }
    let stranger = format!("GET /{own}/0/all HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(status(&ask(address, stranger.as_bytes())), 421);
    let save = |header: &str| status(&ask(address, format!("POST /{own}/0/save HTTP/1.1\r\nHost: {address}\r\n{header}\r\n").as_bytes()));
    assert_eq!((save(""), save(&format!("X-Zellige-Token: {token}\r\n"))), (403, 403));
    let mut silent = Silent;
    let mut watcher = Watcher::new(hub.clone());
    let mut sink = watcher.before(&mut silent);
    assert!(!sink.wish().save);
    assert_eq!(save(&format!("X-Zellige-Token: {own}\r\n")), 202);
    assert!(sink.wish().save);
    drop((seen, events));

    // Its process ends: the next request tells so, until there is a folder.
    drop(run);
    assert_eq!(status(&get(address, &format!("/{own}/0/all"))), 503);
    queue.show(0, None);
    assert_eq!(status(&get(address, &format!("/{own}/0/all"))), 404);
}
