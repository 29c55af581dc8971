//! Tests under real launchers: each starts itself as processes of `mpirun`, once with Open MPI and once with MPICH.

use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};
use std::sync::mpsc;

use super::*;
use crate::links::inside;
use crate::links::tests::collective_calls;
use crate::signal::Signals;
use crate::testing::mpi::{Mpirun, launchers};

/// Variable by which a process knows that a test has started it, with the number of processes.
const RANKS: &str = "ZELLIGE_TEST_RANKS";
/// Time after which a test has hung.
const PATIENCE: Duration = Duration::from_secs(100);

/// Number of processes that a test has started with this one, if one has.
fn ranks() -> Option<usize> {
    std::env::var(RANKS).ok().map(|number| number.parse().unwrap())
}

/// Output of a test of this file that runs as `size` processes, and the time that it took.
fn started(mpirun: &Mpirun, size: usize, test: &str, variables: &[(&str, &str)]) -> (Output, Duration) {
    let begun = Instant::now();
    let mut command = mpirun.command(size);
    command.arg(std::env::current_exe().unwrap());
    command.args([&format!("links::mpi::tests::{test}"), "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(RANKS, size.to_string()).envs(variables.iter().copied());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let (done, waiting) = mpsc::channel::<()>();
    let process = child.id();
    let watch = thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: the process has not been waited for, so the number is still its own.
            unsafe { libc::kill(process as i32, libc::SIGTERM) };
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    (output, begun.elapsed())
}

fn told(error: &Error) {
    println!("{error}");
}

fn from_launcher() -> Result<Option<Links>> {
    super::from_launcher(told)
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{}\n{out}\n{err}", output.status)
}

/// Runs a test as processes of each launcher, which must end well.
fn succeeds(test: &str, sizes: &[usize]) {
    for mpirun in launchers() {
        for size in sizes {
            let (output, _) = started(&mpirun, *size, test, &[]);
            // Lines of the processes may be cut into each other: the exit code is that of all, and one line shows that there was a test.
            let passed = String::from_utf8_lossy(&output.stdout).contains("1 passed");
            assert!(output.status.success() && passed, "{} {size}: {}", mpirun.maker, text(&output));
        }
    }
}

/// Runs a test as four processes of each launcher; one fails, which ends all.
fn ends_all(test: &str, exit_code: Option<i32>) {
    for mpirun in launchers() {
        let (output, time) = started(&mpirun, 4, test, &[]);
        let told = format!("{} after {time:?}: {}", mpirun.maker, text(&output));
        assert!(!output.status.success() && time < Duration::from_secs(30), "{told}");
        assert!(exit_code.is_none() || output.status.code() == exit_code, "{told}");
        assert!(output.status.signal().is_none() && !told.contains("this cannot be"), "{told}");
    }
}

/// Waits for a message that nobody sends, as a run does: deaf to the first SIGTERM.
fn wait_for_ever(links: &Links) -> Result<()> {
    let _signals = Signals::listen()?;
    links.receive((links.rank() + 1) % links.size())?;
    panic!("this cannot be")
}

#[test]
fn all_calls_over_mpi() {
    let Some(size) = ranks() else { return succeeds("all_calls_over_mpi", &[1, 2, 4]) };
    let links = from_launcher().unwrap();
    assert_eq!(links.is_some(), size > 1);
    let links = links.unwrap_or_default();
    assert_eq!(links.size(), size);
    assert!(size == 1 || (links.transport().starts_with("MPI (") && links.host().is_some()), "{links:?}");
    collective_calls(&links).unwrap();
    // Sends return at once, however long the message: everybody sends, then everybody receives.
    let (next, before) = ((links.rank() + 1) % size, (links.rank() + size - 1) % size);
    let long = |rank: usize| (0..20_000_000).map(|i| (i * 7 + rank) as u8).collect::<Vec<u8>>();
    if size > 1 {
        links.send(next, long(links.rank())).unwrap();
        assert!(links.receive(before).unwrap() == long(before));
        assert!(links.receive(size).unwrap_err().to_string().contains("no part"));
        // To oneself, and without anybody to wait for before the end.
        links.send(links.rank(), vec![1, 2, 3]).unwrap();
        assert_eq!(links.receive(links.rank()).unwrap(), [1, 2, 3]);
    }
}

#[test]
fn long_messages_go_in_pieces() {
    const PIECE: usize = 5;
    if ranks().is_none() {
        return succeeds("long_messages_go_in_pieces", &[2]);
    }
    let links = open(PIECE, told).unwrap().unwrap();
    let other = 1 - links.rank();
    let messages = || (0..4 * PIECE).map(|length| (0..length as u8).collect::<Vec<u8>>());
    for message in messages() {
        links.send(other, message).unwrap();
    }
    for message in messages() {
        assert_eq!(links.receive(other).unwrap(), message);
    }
    collective_calls(&links).unwrap();
}

#[test]
fn sends_are_finished_at_the_end() {
    if ranks().is_none() {
        return succeeds("sends_are_finished_at_the_end", &[2]);
    }
    let links = from_launcher().unwrap().unwrap();
    // Too long to be on their way before the other looks for them.
    if links.is_first() {
        (0..10_u8).for_each(|k| links.send(1, vec![k; 1 << 20]).unwrap());
    } else {
        thread::sleep(Duration::from_millis(200));
        (0..10_u8).for_each(|k| assert_eq!(links.receive(0).unwrap(), vec![k; 1 << 20]));
    }
}

/// The second part waits, outside of MPI, until the first has its message: as for a GPU that waits for another.
#[test]
fn a_message_goes_on_while_its_sender_waits_for_something_else() {
    const FOLDER: &str = "ZELLIGE_TEST_FOLDER";
    const TEST: &str = "a_message_goes_on_while_its_sender_waits_for_something_else";
    if ranks().is_none() {
        // Without copies from the memory of another process, which some machines refuse, a long message needs its sender.
        for copies in [None, Some(("OMPI_MCA_btl_vader_single_copy_mechanism", "none"))] {
            for mpirun in launchers() {
                let folder = tempfile::tempdir().unwrap();
                let variables = copies.into_iter().chain([(FOLDER, folder.path().to_str().unwrap())]);
                let (output, _) = started(&mpirun, 2, TEST, &variables.collect::<Vec<_>>());
                assert!(output.status.success(), "{} {copies:?}: {}", mpirun.maker, text(&output));
            }
        }
        return;
    }
    let links = from_launcher().unwrap().unwrap();
    let there = std::path::Path::new(&std::env::var(FOLDER).unwrap()).join("there");
    if links.is_first() {
        assert!(links.receive(1).unwrap() == vec![7; 20_000_000]);
        std::fs::write(there, "").unwrap();
    } else {
        links.send(0, vec![7; 20_000_000]).unwrap();
        let begun = Instant::now();
        while !there.exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the message does not go on");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_part_that_fails_ends_all_with_its_code() {
    if ranks().is_none() {
        return ends_all("a_part_that_fails_ends_all_with_its_code", Some(3));
    }
    let links = from_launcher().unwrap().unwrap();
    if links.rank() == 2 {
        links.abort(&Error::Numerics { what: "a field".into(), place: "step 1".into(), message: "it is not finite".into() });
    }
    wait_for_ever(&links).unwrap();
}

#[test]
fn a_part_that_panics_ends_all() {
    if ranks().is_none() {
        return ends_all("a_part_that_panics_ends_all", Some(70));
    }
    let links = from_launcher().unwrap().unwrap();
    assert!(links.rank() != 1, "on purpose");
    wait_for_ever(&links).unwrap();
}

#[test]
fn a_part_that_is_killed_ends_all() {
    if ranks().is_none() {
        return ends_all("a_part_that_is_killed_ends_all", None);
    }
    let links = from_launcher().unwrap().unwrap();
    if links.rank() == 3 {
        // SAFETY: the signal goes to this process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    wait_for_ever(&links).unwrap();
}

#[test]
fn who_waits_for_a_process_that_has_ended_before_its_start_ends_too() {
    const TEST: &str = "who_waits_for_a_process_that_has_ended_before_its_start_ends_too";
    if ranks().is_none() {
        for mpirun in launchers() {
            let (output, time) = started(&mpirun, 3, TEST, &[(waiting::VARIABLE, "2")]);
            let told = format!("{} after {time:?}: {}", mpirun.maker, text(&output));
            assert!(!output.status.success() && time < Duration::from_secs(30), "{told}");
            // Open MPI ends the others at once, in its own words; MPICH does once the first of them has told.
            let words = ["started 3 processes, but after 2 s MPI has not begun in all of them, and number 0", " and number 2"];
            assert!(mpirun.maker == "Open MPI" || words.iter().any(|words| told.contains(words)), "{told}");
        }
        return;
    }
    if Launcher::detect(|name| std::env::var(name).ok()).unwrap().rank == Some(1) {
        std::process::exit(5);
    }
    from_launcher().unwrap();
    panic!("this cannot be")
}

#[test]
fn the_library_of_another_launcher_is_refused() {
    const TEST: &str = "the_library_of_another_launcher_is_refused";
    let Some(size) = ranks() else {
        let launchers = launchers();
        let file = |maker: &str| if maker == "MPICH" { "libmpi.so.40" } else { "libmpich.so.12" };
        for mpirun in launchers.iter().filter(|_| launchers.len() > 1) {
            let (output, _) = started(mpirun, 2, TEST, &[("ZELLIGE_MPI", file(mpirun.maker))]);
            let refused = text(&output).matches("REFUSED").count();
            assert_eq!(refused, 2, "{}: {}", mpirun.maker, text(&output));
        }
        return;
    };
    let refusal = from_launcher().unwrap_err();
    let told = refusal.to_string();
    assert!(told.contains(&format!("started {size} processes")) && told.contains("of 1 here"), "{told}");
    assert!(told.contains("Open MPI") && told.contains("MPICH") && refusal.hint().unwrap().contains("ZELLIGE_MPI"), "{told}");
    println!("REFUSED");
}

#[test]
fn without_mpi_each_process_is_a_run_of_its_own() {
    if ranks().is_none() {
        for mpirun in launchers() {
            let (output, _) = started(&mpirun, 2, "without_mpi_each_process_is_a_run_of_its_own", &[("ZELLIGE_MPI", "off")]);
            assert!(output.status.success(), "{}", text(&output));
        }
        // Nor without a launcher; that of this test's own process, if there is one, is another matter.
        let launched = Launcher::detect(|name| std::env::var(name).ok()).is_some();
        assert!(launched || from_launcher().unwrap().is_none());
        return;
    }
    assert!(from_launcher().unwrap().is_none());
}

/// Mean times of a message there, in microseconds, and its rate: 8 bytes, 64 KiB, 4 MiB.
fn round_trips(links: &Links) -> Result<Vec<(usize, f64)>> {
    let mut times = Vec::new();
    for (length, count) in [(8, 20_000), (64 << 10, 4000), (4 << 20, 200)] {
        let mut message = vec![1_u8; length];
        let mut begun = Instant::now();
        for round in 0..count + count / 10 {
            if round == count / 10 {
                begun = Instant::now();
            }
            if links.is_first() {
                links.send(1, message)?;
                message = links.receive(1)?;
            } else {
                message = links.receive(0)?;
                links.send(0, message)?;
                message = Vec::new();
            }
        }
        times.push((length, 1e6 * begun.elapsed().as_secs_f64() / (2.0 * f64::from(count))));
    }
    Ok(times)
}

#[test]
#[ignore = "a measurement of seconds; needs two idle cores"]
fn times_of_messages() {
    let show = |name: &str, times: &[(usize, f64)]| {
        for (length, time) in times {
            println!("{name:30} {length:8} bytes {time:9.2} us {:8.2} GB/s", *length as f64 / time / 1e3);
        }
    };
    if ranks().is_some() {
        let links = from_launcher().unwrap().unwrap();
        let times = round_trips(&links).unwrap();
        if links.is_first() {
            show(&links.transport(), &times);
        }
        return;
    }
    show("threads", &inside::run(2, |links| round_trips(&links)).unwrap()[0]);
    for mpirun in launchers() {
        let (output, _) = started(&mpirun, 2, "times_of_messages", &[]);
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().filter(|line| line.contains(" us ")).for_each(|line| println!("{line}"));
    }
}
