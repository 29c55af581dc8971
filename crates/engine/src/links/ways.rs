//! Copies one way, from a part's device memory into that of another, on one GPU or between two.
//!
//! Where parts exchange alike there are [`Slabs`](super::Slabs); here a part copies to some of the others what is ready, in rounds
//! that all count alike. The host waits for no GPU within a process, only for the others' threads to have put their share on their
//! streams; events keep the streams in order. Copies to each other part have a stream of their own: they go to all at once, and
//! beside what is computed until the end of the round. Between processes what was copied goes as a parcel at the end of the round.
//!
//! By NCCL a GPU that sends waits until the other one receives, and the sums of parts run through all of them: two that wait for
//! each other, or three in a ring, would wait for ever. In a round everything that a part sends and receives goes at once, and
//! what comes was sent in the same round: so the parts of a round wait for nothing but the rounds before.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::parcels::{Parcels, Piece};
use super::slabs::mismatch;
use super::{Handed, Links};
use crate::cuda::{Buffer, Cuda, Event, Memory, Stream};
use crate::error::{Error, Problem, Result};

/// Words of a part: that something for the other one is on its stream, and that it settles.
const POSTED: u8 = 1;
const SETTLED: u8 = 2;
/// Times at which all settle that a part may be ahead of another, and one more.
const TURNS: usize = 2;

/// A buffer that the other parts copy to, and theirs that this one copies to.
#[derive(Debug)]
pub struct Opened<T> {
    own: Arc<Buffer<T>>,
    /// By part; nothing for this one, and for those of other processes.
    others: Vec<Option<Arc<Buffer<T>>>>,
    /// Number among those that all parts have opened.
    number: usize,
}

impl<T> Opened<T> {
    /// The own buffer.
    pub fn own(&self) -> &Buffer<T> {
        &self.own
    }
}

/// Values that the other parts hand over in exchange for `own`.
fn introduced<V: Any + Send + Sync>(links: &Links, own: &Arc<V>) -> Result<Vec<Option<Arc<V>>>> {
    let parts = 0..links.size();
    for part in parts.clone().filter(|part| *part != links.rank()) {
        let card: Handed = Box::new(own.clone());
        links.hand(part, card)?;
    }
    let take = |part: usize| {
        if part == links.rank() {
            return Ok(None);
        }
        links.take(part)?.downcast::<Arc<V>>().map(|card| Some(*card)).map_err(|_| mismatch(part))
    };
    parts.map(take).collect()
}

/// Marks of one part in its stream, which are not made anew before they were heard.
#[derive(Debug)]
struct Marks {
    cuda: Cuda,
    /// Some for each other part.
    posted: Vec<Vec<Event>>,
    /// Likewise, of the times at which all settle.
    settled: Vec<Vec<Event>>,
}

/// Copies to one other part, on a stream of their own.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    /// Copies that go with the next word, and those behind the next time at which all settle.
    waiting: Vec<PeerCopy>,
    late: Vec<PeerCopy>,
    /// Copies of the latter kind may be under way.
    busy: bool,
}

/// Memory and first byte here and there, and bytes.
type PeerCopy = ((Memory, usize), (Memory, usize), usize);

impl Lane {
    fn new(cuda: &Cuda) -> Result<Self> {
        Ok(Self { stream: cuda.side_stream()?, waiting: Vec::new(), late: Vec::new(), busy: false })
    }

    /// Starts copies behind `ready`.
    fn go(stream: &Stream, copies: &mut Vec<PeerCopy>, ready: &Event) -> Result<()> {
        stream.wait_for(ready)?;
        copies.drain(..).try_for_each(|((from, at), (to, to_at), bytes)| stream.copy_memory((&from, at), (&to, to_at), bytes))
    }

    /// Marks that all that goes with this word is copied, and what the main stream has done by `ready`; says whether the mark is in
    /// the lane's stream, which the main one is to wait for.
    fn mark(&mut self, cuda: &Cuda, mark: &Event, ready: &Event) -> Result<bool> {
        if self.waiting.is_empty() && !self.busy {
            cuda.record(mark)?;
            return Ok(false);
        }
        Self::go(&self.stream, &mut self.waiting, ready)?;
        self.busy = false;
        self.stream.record(mark)?;
        Ok(true)
    }
}

/// Ways of a part to all others.
///
/// Words go in rounds, which begin with [`post`](Self::post) and end with [`hear`](Self::hear): whom a part posts to in a round
/// hears it in its own round of the same number, counted since all have [settled](Self::settle) last. A part without words in the
/// last rounds may leave these out. Words of another round are an error.
#[derive(Debug)]
pub struct Ways {
    cuda: Cuda,
    links: Links,
    kind: Kind,
    /// Rounds since all have settled, the present one included, and true from its post to its end.
    round: usize,
    posted: bool,
    /// Own buffers that are open to the others.
    opened: Vec<Memory>,
}

#[derive(Debug)]
enum Kind {
    /// Within a process.
    Near {
        own: Arc<Marks>,
        others: Vec<Option<Arc<Marks>>>,
        /// By part.
        lanes: Vec<Lane>,
        /// Mark in the main stream behind what is copied.
        ready: Event,
        /// Marks of lanes in this round: part and number.
        marked: Vec<(usize, usize)>,
        /// Words to each part so far, and from it.
        posted: Vec<usize>,
        heard: Vec<usize>,
        /// Times at which all have settled.
        settled: usize,
    },
    /// To other processes, with what waits for the next word to each, and what goes at the end of the round.
    Far { parcels: Parcels, waiting: Vec<Vec<Piece>>, going: Vec<(usize, Vec<Piece>)> },
}

impl Ways {
    /// Ways on which a part says at most `words` words to another one between two times at which all [settle](Self::settle).
    pub fn new(cuda: &Cuda, links: &Links, words: usize) -> Result<Self> {
        let kind = if links.shares_memory() {
            // One part may be ahead of another by what lies between two times.
            let count = |part| if part == links.rank() { 0 } else { 2 * words + 4 };
            let marks = |count| (0..count).map(|_| cuda.event_without_time()).collect::<Result<Vec<_>>>();
            let posted = (0..links.size()).map(|part| marks(count(part))).collect::<Result<_>>()?;
            let settled = (0..links.size()).map(|_| marks(TURNS)).collect::<Result<_>>()?;
            let own = Arc::new(Marks { cuda: cuda.clone(), posted, settled });
            let others = introduced(links, &own)?;
            others.iter().flatten().try_for_each(|marks| cuda.reach(&marks.cuda).map(drop))?;
            let (none, ready) = (vec![0; links.size()], cuda.event_without_time()?);
            let lanes = (0..links.size()).map(|_| Lane::new(cuda)).collect::<Result<_>>()?;
            Kind::Near { own, others, lanes, ready, marked: Vec::new(), posted: none.clone(), heard: none, settled: 0 }
        } else {
            let others: Vec<usize> = others(links).collect();
            let parcels = Parcels::in_rounds(cuda, links, &others)?;
            Kind::Far { parcels, waiting: vec![Vec::new(); links.size()], going: Vec::new() }
        };
        Ok(Self { cuda: cuda.clone(), links: links.clone(), kind, round: 1, posted: false, opened: Vec::new() })
    }

    /// Opens a buffer to all other parts, which open theirs at the same time.
    pub fn open<T: Pod + Send + Sync>(&mut self, own: Arc<Buffer<T>>) -> Result<Opened<T>> {
        let others = match self.kind {
            Kind::Near { .. } => {
                // Zeros are there before anybody writes: a GPU with other work may be late.
                self.cuda.synchronize()?;
                introduced(&self.links, &own)?
            }
            Kind::Far { .. } => Vec::new(),
        };
        self.opened.push(own.memory().clone());
        Ok(Opened { own, others, number: self.opened.len() - 1 })
    }

    /// Copies `n` values of a buffer to the one that another part has opened, with the next word to that part: as the stream has
    /// written them by then, if they are left alone until the end of that round. That part has read by then what was there: this
    /// stream has waited for a word that came after, its own or one that followed from it.
    pub fn copy<T: Pod>(&mut self, from: &Buffer<T>, from_at: usize, to: &Opened<T>, part: usize, to_at: usize, n: usize) {
        self.put(from, from_at, to, part, to_at, n, false);
    }

    /// Copies likewise, as the stream has written them by the next time at which all settle, and where that part has read by then
    /// what was there. If they are left alone until the time after that, they are there behind it: they go beside what is computed
    /// between the two.
    pub fn copy_beside<T: Pod>(&mut self, from: &Buffer<T>, from_at: usize, to: &Opened<T>, part: usize, to_at: usize, n: usize) {
        self.put(from, from_at, to, part, to_at, n, true);
    }

    #[allow(clippy::too_many_arguments)]
    fn put<T: Pod>(&mut self, from: &Buffer<T>, from_at: usize, to: &Opened<T>, part: usize, to_at: usize, n: usize, late: bool) {
        let [at, to_at, bytes] = [from_at, to_at, n].map(|values| values * size_of::<T>());
        if bytes == 0 {
            return;
        }
        let memory = from.memory().clone();
        match &mut self.kind {
            Kind::Near { lanes, .. } => {
                if let Some(to) = &to.others[part] {
                    let lane = &mut lanes[part];
                    let copies = if late { &mut lane.late } else { &mut lane.waiting };
                    copies.push(((memory, at), (to.memory().clone(), to_at), bytes));
                }
            }
            // All at the next time.
            Kind::Far { waiting, .. } => waiting[part].push(Piece { memory, at, bytes, buffer: to.number, to: to_at }),
        }
    }

    /// Begins a round: tells some other parts that everything is on the stream so far.
    ///
    /// # Errors
    /// Another part has failed, or the round before has not ended.
    pub fn post(&mut self, to: &[usize]) -> Result<()> {
        self.turn(false)?;
        self.posted = true;
        match &mut self.kind {
            Kind::Near { own, posted, lanes, ready, marked, .. } => {
                self.cuda.record(ready)?;
                to.iter().try_for_each(|part| {
                    let marks = &own.posted[*part];
                    let number = posted[*part] % marks.len();
                    if lanes[*part].mark(&self.cuda, &marks[number], ready)? {
                        marked.push((*part, number));
                    }
                    posted[*part] += 1;
                    self.links.send(*part, spoken(POSTED, self.round).to_vec())
                })
            }
            Kind::Far { parcels, waiting, going } => {
                *going = to.iter().map(|part| (*part, std::mem::take(&mut waiting[*part]))).collect();
                parcels.announce(self.round, going)
            }
        }
    }

    /// Ends the round: lets the stream wait for the words of some other parts, all that have posted to this one in it. What is put
    /// on the stream afterwards finds what they had copied here before.
    ///
    /// # Errors
    /// Another part has failed, or no round has begun.
    pub fn hear(&mut self, from: &[usize]) -> Result<()> {
        self.turn(true)?;
        match &mut self.kind {
            Kind::Near { own, others, heard, marked, .. } => {
                from.iter().try_for_each(|part| {
                    let marks = &word(&self.links, others, *part, spoken(POSTED, self.round))?.posted[self.links.rank()];
                    self.cuda.wait_for(&marks[heard[*part] % marks.len()])?;
                    heard[*part] += 1;
                    Ok(())
                })?;
                // Sources of the copies may change now.
                marked.drain(..).try_for_each(|(part, number)| self.cuda.wait_for(&own.posted[part][number]))?;
            }
            Kind::Far { parcels, going, .. } => {
                parcels.carry(self.round, going, from, |number| self.opened.get(number))?;
                going.clear();
            }
        }
        (self.round, self.posted) = (self.round + 1, false);
        Ok(())
    }

    /// Refuses what is not in its turn.
    fn turn(&self, within_round: bool) -> Result<()> {
        if self.posted == within_round {
            return Ok(());
        }
        let what = if within_round { "a round ends that has not begun" } else { "a round has not ended" };
        let problem = Problem::new("", format!("words between parts: {what}"));
        Err(Error::input("parts of a run", problem.hint("this is a fault of the program: please report it with the input")))
    }

    /// Lets all streams wait for what is on all others by now; all parts call this alike, between rounds.
    ///
    /// # Errors
    /// Another part has failed, or a round has not ended.
    pub fn settle(&mut self) -> Result<()> {
        self.turn(false)?;
        self.round = 1;
        let parts = self.others();
        match &mut self.kind {
            Kind::Near { own, others, lanes, ready, settled, .. } => {
                let turn = *settled % TURNS;
                *settled += 1;
                self.cuda.record(ready)?;
                let mut in_lane = Vec::new();
                for part in parts.clone() {
                    let (lane, mark) = (&mut lanes[part], &own.settled[part][turn]);
                    if lane.mark(&self.cuda, mark, ready)? {
                        in_lane.push(mark);
                    }
                    self.links.send(part, spoken(SETTLED, turn).to_vec())?;
                }
                let me = self.links.rank();
                let settled = |part| Ok(&word(&self.links, others, part, spoken(SETTLED, turn))?.settled[me][turn]);
                parts.clone().try_for_each(|part| self.cuda.wait_for(settled(part)?))?;
                // Sources of the copies may change now.
                in_lane.into_iter().try_for_each(|mark| self.cuda.wait_for(mark))?;
                let late: Vec<usize> = parts.filter(|part| !lanes[*part].late.is_empty()).collect();
                if !late.is_empty() {
                    self.cuda.record(ready)?;
                }
                late.into_iter().try_for_each(|part| {
                    let lane = &mut lanes[part];
                    lane.busy = true;
                    Lane::go(&lane.stream, &mut lane.late, ready)
                })
            }
            Kind::Far { parcels, waiting, .. } => {
                // Each writes here what comes, in turn with what reads it: nobody has to wait for others to have read.
                let all: Vec<_> = parts.map(|part| (part, std::mem::take(&mut waiting[part]))).collect();
                parcels.exchange(&all, |number| self.opened.get(number))
            }
        }
    }

    /// Numbers of the other parts.
    pub fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        others(&self.links)
    }
}

/// Numbers of the other parts.
fn others(links: &Links) -> impl Iterator<Item = usize> + Clone + use<> {
    let own = links.rank();
    (0..links.size()).filter(move |part| *part != own)
}

/// A word and the last digits of its number.
fn spoken(word: u8, number: usize) -> [u8; 2] {
    [word, number as u8]
}

/// Takes the next word of another part of the process, which is to be this one; gives that part's marks.
fn word<'a>(links: &Links, others: &'a [Option<Arc<Marks>>], part: usize, word: [u8; 2]) -> Result<&'a Marks> {
    let fits = links.receive(part)? == word;
    others[part].as_deref().filter(|_| fits).ok_or_else(|| mismatch(part))
}

impl Drop for Ways {
    fn drop(&mut self) {
        // Copies into the others' buffers, which may go next.
        let _ = self.cuda.synchronize();
        if let Kind::Near { lanes, .. } = &self.kind {
            for lane in lanes {
                let _ = lane.stream.synchronize();
            }
        }
    }
}
