//! `zellige run A B C`, `--set KEY=V1,V2`: independent runs over the devices. Each is a process of its own with its own folder, so
//! that one that fails takes no other with it.

mod page;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::signal::{self, Signals};
use zellige_io::csv;

use self::page::Page;
use crate::another_process;
use crate::args::RunArgs;
use crate::commands::gpus;
use crate::report::{self, VERSION};

/// Messages of a run, in its folder.
const MESSAGES: &str = "messages.txt";
/// Table of all runs, in the folder above theirs.
pub(super) const TABLE: &str = "queue.csv";
/// Interval at which runs under way are looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// One run of a queue.
#[derive(Debug, Clone)]
struct Job {
    name: String,
    input: PathBuf,
    /// `KEY=VALUE` for all of them, and the values scanned in this one.
    overrides: Vec<String>,
    scanned: Vec<String>,
    folder: PathBuf,
}

/// Outcome of a run.
#[derive(Debug, Clone)]
struct Ended {
    device: String,
    seconds: f64,
    code: u8,
    message: String,
}

/// Returns true if the arguments ask for more than one run.
pub(crate) fn asked(arguments: &RunArgs) -> bool {
    arguments.inputs.len() > 1 || arguments.overrides.iter().any(|o| values(o).1.len() > 1)
}

/// Key and values of `KEY=V1,V2`; commas within brackets and quotes belong to a value.
fn values(text: &str) -> (&str, Vec<&str>) {
    let Some((key, rest)) = text.split_once('=') else { return (text, Vec::new()) };
    let (mut parts, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_i32, None);
    for (i, c) in rest.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('[' | '{' | '(', None) => depth += 1,
            (']' | '}' | ')', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(rest[begin..i].trim());
                begin = i + 1;
            }
            _ => {}
        }
    }
    parts.push(rest[begin..].trim());
    (key, parts)
}

/// Folder above those of the runs.
fn above(arguments: &RunArgs) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| PathBuf::from("out"))
}

/// The runs: each input with each combination of the values that are scanned, and the keys that are.
fn jobs(arguments: &RunArgs) -> Result<(Vec<Job>, Vec<String>)> {
    let (mut keys, mut combinations) = (Vec::new(), vec![(Vec::new(), Vec::new())]);
    for text in &arguments.overrides {
        let (key, parts) = values(text);
        let several = parts.len() > 1;
        if several {
            if parts.iter().any(|p| p.is_empty()) {
                let problem = Problem::new("--set", format!("`{text}` has an empty value")).allowed("KEY=V1,V2,..");
                return Err(Error::input("command line", problem));
            }
            keys.push(key.to_owned());
        }
        let each = if several { parts } else { vec![""] };
        combinations = combinations
            .iter()
            .flat_map(|(set, scanned): &(Vec<String>, Vec<String>)| {
                each.iter().map(move |value| {
                    let (mut set, mut scanned) = (set.clone(), scanned.clone());
                    set.push(if several { format!("{key}={value}") } else { text.clone() });
                    scanned.extend(several.then(|| (*value).to_owned()));
                    (set, scanned)
                })
            })
            .collect();
    }
    let above = above(arguments);
    let mut jobs: Vec<Job> = Vec::new();
    for input in &arguments.inputs {
        let stem = input.file_stem().map_or_else(|| "run".into(), |s| s.to_string_lossy().into_owned());
        for (overrides, scanned) in &combinations {
            let mut name = stem.clone();
            for (key, value) in keys.iter().zip(scanned) {
                let last = key.rsplit('.').next().unwrap_or(key);
                let plain: String = value.chars().map(|c| if c.is_alphanumeric() || "+-.".contains(c) { c } else { '_' }).collect();
                let _ = write!(name, "_{last}={plain}");
            }
            // Inputs of one name in different folders, and values that look alike.
            let plain = name.clone();
            let mut number = 1;
            while jobs.iter().any(|job| job.name == name) {
                number += 1;
                name = format!("{plain}_{number}");
            }
            let folder = above.join(&name);
            jobs.push(Job { name, input: input.clone(), overrides: overrides.clone(), scanned: scanned.clone(), folder });
        }
    }
    Ok((jobs, keys))
}

/// Device of a run that none is given for: each input's own choice.
const OWN: &str = "own device";

/// Devices that take one run at a time each: `cuda:all`, `cuda:0-3`, `cuda:0,2`, that of a single run, or [`OWN`].
fn devices(asked: Option<&str>) -> Result<Vec<String>> {
    let Some(given) = gpus::asked(asked) else { return Ok(vec![OWN.into()]) };
    let list = gpus::listed(&given)?;
    Ok(list.map_or_else(|| vec![given], |list| list.into_iter().map(|k| format!("cuda:{k}")).collect()))
}

/// The command.
pub(crate) fn run(arguments: &RunArgs) -> Result<u8> {
    if arguments.resume.is_some() {
        let problem = Problem::new("--resume", "one run is resumed at a time").hint("name the folder of that run, and no other input");
        return Err(Error::input("command line", problem));
    }
    let (jobs, keys) = jobs(arguments)?;
    let devices = devices(arguments.target.device.as_deref())?;
    // A mistyped input or key is told of before hours of others.
    for job in &jobs {
        super::run::check(&job.input, &job.overrides)?;
    }
    if arguments.dry_run {
        let mut code = 0;
        for job in &jobs {
            report::heading(&job.name);
            let status = command(job, &devices[0], arguments)?.stdout(Stdio::inherit()).stderr(Stdio::inherit()).status();
            let status = status.map_err(|e| Error::file("start", &job.input, e))?;
            code = if code == 0 { exit_code(status) } else { code };
        }
        return Ok(code);
    }
    let on = if devices[0] == OWN { "the device that each chooses".into() } else { devices.join(", ") };
    report::heading(&format!("zellige {VERSION}: {} runs on {on}", jobs.len()));
    let names = jobs.iter().map(|job| job.name.clone());
    let mut page = arguments.live.as_ref().map(|address| Page::start(address, &above(arguments), names)).transpose()?;
    // So that a queue that is killed leaves one.
    let so_far = |ended: &[Option<Ended>]| write_table(arguments, &jobs, &keys, ended, "not ended").map(|_| ());
    let ended = work(&jobs, &devices, arguments, page.as_mut(), &so_far)?;
    if let Some(page) = page {
        page.close((0..jobs.len()).filter(|k| ended[*k].is_none()));
    }
    let path = write_table(arguments, &jobs, &keys, &ended, "not begun")?;
    report::line("table", &path.display().to_string());
    let done = |code: u8| ended.iter().flatten().filter(|e| (e.code == 0) == (code == 0)).count();
    let never = ended.iter().filter(|e| e.is_none()).count();
    let rest = if never > 0 { format!(", {never} not begun") } else { String::new() };
    report::line("status", &format!("{} done, {} failed{rest}", done(0), done(1)));
    let first = ended.iter().flatten().map(|e| e.code).find(|code| *code != 0);
    Ok(match (first, signal::stop_reason()) {
        (Some(code), _) => code,
        (None, Some("SIGINT")) => 130,
        (None, Some(_)) => 143,
        (None, None) => 0,
    })
}

/// Variable with the process of a queue, for those of its runs: they end with it.
const LEADER: &str = "ZELLIGE_QUEUE";

/// Lets a run that a queue has started end with the queue.
pub(super) fn follow() {
    if let Some(leader) = std::env::var(LEADER).ok().and_then(|process| process.parse().ok()) {
        signal::end_with(leader);
    }
}

/// The process of a run.
fn command(job: &Job, device: &str, arguments: &RunArgs) -> Result<Command> {
    let mut command = another_process()?;
    command.arg("run").arg(&job.input).arg("-o").arg(&job.folder);
    if device != OWN {
        command.args(["--device", device]);
    }
    for text in &job.overrides {
        command.args(["--set", text]);
    }
    for (flag, number) in [("--threads", arguments.target.threads), ("--parts", arguments.parts)] {
        if let Some(number) = number {
            command.args([flag, &number.to_string()]);
        }
    }
    if let Some(folder) = &arguments.checkpoint_dir {
        command.arg("--checkpoint-dir").arg(folder.join(&job.name));
    }
    for (given, flag) in [
        (arguments.dry_run, "--dry-run"),
        (arguments.force, "--force"),
        (arguments.keep_going, "--keep-going"),
        (arguments.profile, "--profile"),
        // Of each run on the loopback: the queue hands it on.
        (arguments.live.is_some() && !arguments.dry_run, "--live"),
        (arguments.steer && !arguments.dry_run, "--steer"),
    ] {
        if given {
            command.arg(flag);
        }
    }
    // Signals of the terminal come to the queue, which hands them on.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.env(LEADER, std::process::id().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// A run under way.
struct Running {
    job: usize,
    device: usize,
    child: Child,
    begun: Instant,
}

/// Works through the queue; `None` for runs that were not begun because the queue was stopped. `so_far` is called whenever one has
/// ended.
fn work(
    jobs: &[Job],
    devices: &[String],
    arguments: &RunArgs,
    mut page: Option<&mut Page>,
    so_far: &dyn Fn(&[Option<Ended>]) -> Result<()>,
) -> Result<Vec<Option<Ended>>> {
    let signals = Signals::listen()?;
    let mut ended = vec![None; jobs.len()];
    let mut waiting: VecDeque<usize> = (0..jobs.len()).collect();
    let mut free: VecDeque<usize> = (0..devices.len()).collect();
    let (mut running, mut told): (Vec<Running>, bool) = (Vec::new(), false);
    let bar = ProgressBar::new_spinner();
    so_far(&ended)?;
    while !running.is_empty() || (!waiting.is_empty() && signals.stop_reason().is_none()) {
        while let (Some(device), true) = (free.front().copied(), signals.stop_reason().is_none()) {
            let Some(job) = waiting.pop_front() else { break };
            free.pop_front();
            let begun = Instant::now();
            match start(&jobs[job], &devices[device], arguments) {
                Ok(child) => {
                    running.push(Running { job, device, child, begun });
                    if let Some(page) = &page {
                        page.begun(job, &devices[device]);
                    }
                }
                Err(error) => {
                    free.push_back(device);
                    let message = error.to_string();
                    ended[job] = Some(Ended { device: devices[device].clone(), seconds: 0.0, code: error.exit_code(), message });
                    tell(&bar, job, jobs, ended[job].as_ref(), page.as_deref());
                }
            }
        }
        if let (Some(reason), false) = (signals.stop_reason(), told) {
            told = true;
            bar.suspend(|| report::note(&format!("{reason}: runs under way save their state, others are not begun")));
            for run in &running {
                signal::forward(run.child.id());
            }
        }
        let mut k = 0;
        while k < running.len() {
            match running[k].child.try_wait() {
                Ok(None) => k += 1,
                result => {
                    let run = running.swap_remove(k);
                    free.push_back(run.device);
                    let code = result.ok().flatten().map_or(70, exit_code);
                    let message = if code == 0 { String::new() } else { last_error(&jobs[run.job].folder) };
                    let seconds = run.begun.elapsed().as_secs_f64();
                    ended[run.job] = Some(Ended { device: devices[run.device].clone(), seconds, code, message });
                    tell(&bar, run.job, jobs, ended[run.job].as_ref(), page.as_deref());
                    // The one at the end tells its error.
                    so_far(&ended).ok();
                }
            }
        }
        if let Some(page) = &mut page {
            page.under_way(running.iter().map(|r| (r.job, jobs[r.job].folder.as_path(), r.begun)));
        }
        if !bar.is_hidden() {
            let names = running.iter().map(|r| {
                let percent = percentage(&jobs[r.job].folder).map(|percent| format!("{percent} %")).unwrap_or_default();
                format!("{} {percent}", jobs[r.job].name)
            });
            let names: Vec<_> = names.collect();
            bar.set_message(format!("{} waiting; {}", waiting.len(), names.join(", ")));
            bar.tick();
        }
        std::thread::sleep(PAUSE);
    }
    bar.finish_and_clear();
    Ok(ended)
}

/// Starts a run, its messages into a file.
fn start(job: &Job, device: &str, arguments: &RunArgs) -> Result<Child> {
    files::writable_dir(&job.folder)?;
    let path = job.folder.join(MESSAGES);
    let messages = File::create(&path).map_err(|e| Error::file("write", &path, e))?;
    command(job, device, arguments)?.stderr(messages).spawn().map_err(|e| Error::file("start", &job.input, e))
}

/// Exit code of a process; 128 and the signal that ended it otherwise, as shells have it.
fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal as u8;
    }
    status.code().map_or(70, |code| code as u8)
}

/// A line for a run that ended, here and on the page.
fn tell(bar: &ProgressBar, job: usize, jobs: &[Job], ended: Option<&Ended>, page: Option<&Page>) {
    let Some(ended) = ended else { return };
    if let Some(page) = page {
        page.ended(job, jobs[job].folder.clone(), ended);
    }
    let verdict = if ended.code == 0 { "done".to_owned() } else { format!("exit code {}: {}", ended.code, ended.message) };
    let wide = jobs.iter().map(|j| j.name.chars().count()).max().unwrap_or(0);
    let text = format!("{:wide$}  {:8} {:>9}  {verdict}", jobs[job].name, ended.device, report::seconds(ended.seconds));
    bar.suspend(|| report::line(&format!("{} of {}", job + 1, jobs.len()), &text));
}

/// The end of the messages of a run.
fn tail(folder: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(folder.join(MESSAGES))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The last error or warning of a run.
fn last_error(folder: &Path) -> String {
    last_error_of(&tail(folder)).unwrap_or_else(|| format!("see `{}`", folder.join(MESSAGES).display()))
}

/// The last error in the messages of a run with the first of its problems, or the last warning.
fn last_error_of(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let last = |kind: &str| lines.iter().rposition(|line| line.starts_with(kind));
    let at = last("error: ").or_else(|| last("warning: "))?;
    let message = lines[at].split_once(": ").map_or(lines[at], |parts| parts.1);
    // Problems of an input stand below it.
    let below = if lines[at].starts_with("error: ") { lines.get(at + 1) } else { None };
    let problem = below.filter(|line| line.starts_with(' ')).map(|line| line.trim());
    Some(problem.map_or_else(|| message.to_owned(), |problem| format!("{message}: {problem}")))
}

/// The last percentage that a run has told.
fn percentage(folder: &Path) -> Option<f64> {
    let number = |line: &str| line.split_once(" %").and_then(|(before, _)| before.split_whitespace().last()?.parse().ok());
    tail(folder).lines().rev().find_map(number)
}

/// Writes all runs with the values scanned, how they ended and where; `otherwise` is said of those that have not.
fn write_table(arguments: &RunArgs, jobs: &[Job], keys: &[String], ended: &[Option<Ended>], otherwise: &str) -> Result<PathBuf> {
    let mut text = String::from("run,input,");
    text.extend(keys.iter().map(|key| format!("{},", csv::cell(key))));
    text.push_str("device,seconds,exit_code,message\n");
    for (job, ended) in jobs.iter().zip(ended) {
        let input = job.input.to_string_lossy();
        let mut fields = vec![job.name.as_str(), &input];
        fields.extend(job.scanned.iter().map(String::as_str));
        let (seconds, code) = ended.as_ref().map(|e| (format!("{:.3}", e.seconds), e.code.to_string())).unwrap_or_default();
        let (device, message) = ended.as_ref().map_or(("", otherwise), |e| (&e.device, &e.message));
        fields.extend([device, &seconds, &code, message]);
        let _ = writeln!(text, "{}", fields.into_iter().map(csv::cell).collect::<Vec<_>>().join(","));
    }
    let path = above(arguments).join(TABLE);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(|e| Error::file("write", &path, e))?;
    files::atomic_write(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_refusal_is_told() {
        let text = "warning: w\nerror: a.toml: 1 problem\n  1:2: `pic.dt`: the value is 0\n\nhint: above 0\n";
        assert_eq!(last_error_of(text).unwrap(), "a.toml: 1 problem: 1:2: `pic.dt`: the value is 0");
        assert_eq!(last_error_of("error: broken\n\nhint: none\n").unwrap(), "broken");
        assert_eq!(last_error_of("warning: slow\n  cut 2\n").unwrap(), "slow");
        assert_eq!(last_error_of("end\n"), None);
    }

    #[test]
    fn values_are_parted_at_commas_outside_of_brackets_and_quotes() {
        assert_eq!(values("a.b=1,2e-3, x"), ("a.b", vec!["1", "2e-3", "x"]));
        assert_eq!(values("a=[1, 2],[3]"), ("a", vec!["[1, 2]", "[3]"]));
        assert_eq!(values("a=\"x,y\""), ("a", vec!["\"x,y\""]));
        assert_eq!(values("a=max(x, 1)"), ("a", vec!["max(x, 1)"]));
        assert_eq!(values("a"), ("a", vec![]));
    }

    #[test]
    fn ranges_of_devices_are_listed() {
        assert_eq!(devices(Some("cuda:0-2,5")).unwrap(), ["cuda:0", "cuda:1", "cuda:2", "cuda:5"]);
        assert_eq!(devices(Some("cpu")).unwrap(), ["cpu"]);
        assert_eq!(devices(Some("auto")).unwrap(), ["auto"]);
        for wrong in ["cuda:3-1", "cuda:a", "cuda:", "cuda:1,"] {
            assert!(devices(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_input_meets_every_combination_under_a_name_of_its_own() {
        let inputs = ["a/x.toml", "b/x.toml", "y.toml"].map(PathBuf::from).to_vec();
        let overrides = ["k.dt=1,2", "k.n=5", "k.f=a/b,a_b"].map(str::to_owned).to_vec();
        let (jobs, keys) = jobs(&RunArgs { inputs, overrides, ..RunArgs::default() }).unwrap();
        assert_eq!(keys, ["k.dt", "k.f"]);
        assert_eq!(jobs.len(), 12);
        assert_eq!(jobs[0].overrides, ["k.dt=1", "k.n=5", "k.f=a/b"]);
        assert_eq!(jobs[3].scanned, ["2", "a_b"]);
        assert_eq!((jobs[0].name.as_str(), jobs[1].name.as_str()), ("x_dt=1_f=a_b", "x_dt=1_f=a_b_2"));
        let mut names: Vec<_> = jobs.iter().map(|j| &j.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 12);
    }
}
