//! Parts of a run and the messages between them.
//!
//! A run is cut into parts ([`Cut`]), each a whole solver state with the tiles, frames or rows that it owns. All parts run the same
//! program on the same input and decide alike; what differs is what they own. A part sends messages to others and receives theirs
//! through its [`Links`]: between two parts they arrive in the order in which they were sent. A [`Transport`] carries them:
//! [`inside`] a process, where parts are threads, or over [`mpi`], where they are processes on one or many hosts.
//!
//! Everything that all parts take part in is made of messages here, in a fixed order: a result does not depend on the transport.
//!
//! ```
//! use zellige_engine::links;
//! let sums = links::inside::run(3, |links| {
//!     let all = links.all_gather(vec![links.rank() as u8])?;
//!     Ok(all.concat())
//! }).unwrap();
//! assert_eq!(sums, [[0, 1, 2]; 3]);
//! ```

mod agree;
#[cfg(test)]
mod by_nccl;
mod copies;
mod cut;
pub mod forecast;
pub mod inside;
mod meeting;
pub mod mpi;
mod parcels;
mod relay;
mod rounds;
mod shared;
mod slabs;
#[cfg(test)]
mod tests;
mod ways;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytemuck::Pod;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use self::copies::{Copies, CopyTo};
pub use self::cut::{Block, Cut};
pub use self::forecast::{Division, Forecast, LinkSpeed};
pub use self::relay::Relay;
pub use self::shared::SharedFile;
pub use self::slabs::{Place, Slabs};
pub use self::ways::{Opened, Ways};
use crate::cuda::Cuda;
use crate::cuda::nccl::Communicator;
use crate::error::{Error, Problem, Result};

/// Carrier of messages between the parts of a run. Threads of a part call it one at a time.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Number of this part, from 0.
    fn rank(&self) -> usize;

    /// Number of parts.
    fn size(&self) -> usize;

    /// Name of the transport, with its version where it has one: `threads`.
    fn name(&self) -> String;

    /// Host of this part, where parts may be on several.
    fn host(&self) -> Option<String> {
        None
    }

    /// Sends a message to another part, and returns at once.
    ///
    /// # Errors
    /// Another part has failed.
    fn send(&self, to: usize, message: Vec<u8>) -> Result<()>;

    /// Waits for the next message from another part.
    ///
    /// # Errors
    /// Another part has failed.
    fn receive(&self, from: usize) -> Result<Vec<u8>>;

    /// Returns true if parts are those of one process, and can hand values over.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Hands a value over to another part of the same process, and returns at once.
    ///
    /// # Errors
    /// Parts are processes, or another part has failed.
    fn hand(&self, _to: usize, _value: Handed) -> Result<()> {
        Err(apart(&self.name()))
    }

    /// Waits for the next value that another part of the same process hands over.
    ///
    /// # Errors
    /// Parts are processes, or another part has failed.
    fn take(&self, _from: usize) -> Result<Handed> {
        Err(apart(&self.name()))
    }

    /// Tells all other parts that this one ends with an error: their calls fail from now on, or their processes end.
    fn abort(&self, error: &Error);
}

/// Value that is handed over within a process.
pub type Handed = Box<dyn Any + Send>;

/// Links of one part to the others. Clones are the same links.
#[derive(Debug, Clone)]
pub struct Links(Arc<dyn Transport>, Arc<Counter>);

/// Traffic of a part so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Time in messages, sent and received, seconds: nearly all of it goes by until another part has sent one.
    pub seconds: f64,
}

impl Traffic {
    /// Traffic since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let Self { messages, bytes, seconds } = earlier;
        Self { messages: self.messages - messages, bytes: self.bytes - bytes, seconds: self.seconds - seconds }
    }
}

/// Counter of the traffic, and what all clones of links have.
#[derive(Debug, Default)]
struct Counter {
    messages: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
    /// Way between GPUs of processes, once it was looked for.
    between_gpus: OnceLock<Option<Arc<Communicator>>>,
    /// True if all parts write into the folder of the first one, once it was asked.
    shares_folder: OnceLock<bool>,
}

impl Counter {
    /// Times a call.
    fn timed<R>(&self, call: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = call();
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

/// The only part of a run.
#[derive(Debug)]
struct Alone;

impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn name(&self) -> String {
        "none".into()
    }

    fn send(&self, to: usize, _message: Vec<u8>) -> Result<()> {
        Err(absent(to, 1))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        Err(absent(from, 1))
    }

    fn abort(&self, _error: &Error) {}
}

/// Error of a message to or from a part that there is not.
fn absent(part: usize, parts: usize) -> Error {
    Error::input("parts of a run", Problem::new("", format!("there is no part {part} among {parts}")))
}

/// Error of parts that share no memory.
fn apart(transport: &str) -> Error {
    let problem = Problem::new("", format!("parts that talk over {transport} are processes, which share no memory"));
    Error::input("parts of a run", problem.hint("this is a fault of the program: please report it with the input"))
}

impl Default for Links {
    fn default() -> Self {
        Self::new(Arc::new(Alone))
    }
}

impl Links {
    /// Links over a transport.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self(transport, Arc::default())
    }

    /// Number of this part, from 0.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Number of parts.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Returns true if this is the first part, the one that writes rows and messages.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Returns true if the run is not cut.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Name of the transport.
    pub fn transport(&self) -> String {
        self.0.name()
    }

    /// Host of this part, where parts may be on several.
    pub fn host(&self) -> Option<String> {
        self.0.host()
    }

    /// Sends a message to another part, and returns at once.
    pub fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        self.1.messages.fetch_add(1, Ordering::Relaxed);
        self.1.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
        self.1.timed(|| self.0.send(to, message))
    }

    /// Waits for the next message from another part.
    pub fn receive(&self, from: usize) -> Result<Vec<u8>> {
        self.1.timed(|| self.0.receive(from))
    }

    /// Traffic of this part so far.
    pub fn traffic(&self) -> Traffic {
        let [messages, bytes, nanoseconds] = [&self.1.messages, &self.1.bytes, &self.1.nanoseconds].map(|n| n.load(Ordering::Relaxed));
        Traffic { messages, bytes, seconds: 1e-9 * nanoseconds as f64 }
    }

    /// Returns true if parts are those of one process.
    pub fn shares_memory(&self) -> bool {
        self.0.shares_memory()
    }

    /// Way between the GPUs of all parts, which are processes and ask for it at the same time; nothing where there is none.
    pub(crate) fn between_gpus(&self, cuda: &Cuda) -> Result<Option<Arc<Communicator>>> {
        if let Some(known) = self.1.between_gpus.get() {
            return Ok(known.clone());
        }
        let found = parcels::join(cuda, self)?.map(Arc::new);
        Ok(self.1.between_gpus.get_or_init(|| found).clone())
    }

    /// Hands a value over to another part of the same process, and returns at once.
    pub fn hand(&self, to: usize, value: Handed) -> Result<()> {
        self.0.hand(to, value)
    }

    /// Waits for the next value that another part of the same process hands over.
    pub fn take(&self, from: usize) -> Result<Handed> {
        self.0.take(from)
    }

    /// Tells all other parts that this one ends with an error.
    pub fn abort(&self, error: &Error) {
        self.0.abort(error);
    }

    /// Sends every message, then receives one from each part of `from`, in that order.
    pub fn exchange(&self, send: impl IntoIterator<Item = (usize, Vec<u8>)>, from: &[usize]) -> Result<Vec<Vec<u8>>> {
        for (to, message) in send {
            self.send(to, message)?;
        }
        from.iter().map(|part| self.receive(*part)).collect()
    }

    /// The message of the first part, to all. What the others give is forgotten.
    pub fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        // A binomial tree: in each round, those who have the message send it as far again.
        let (rank, size) = (self.rank(), self.size());
        let message = if rank == 0 { message } else { self.receive(rank - (1 << rank.ilog2()))? };
        let mut step = if rank == 0 { 1 } else { 2 << rank.ilog2() };
        while rank + step < size {
            self.send(rank + step, message.clone())?;
            step *= 2;
        }
        Ok(message)
    }

    /// The messages of all parts in their order, at the first part; nothing at the others.
    pub fn gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        if !self.is_first() {
            self.send(0, message)?;
            return Ok(Vec::new());
        }
        std::iter::once(Ok(message)).chain((1..self.size()).map(|part| self.receive(part))).collect()
    }

    /// The messages of all parts in their order, at every part.
    pub fn all_gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        if self.is_alone() {
            return Ok(vec![message]);
        }
        // Lengths of all in front of all.
        let mut all = Vec::new();
        let parts = self.gather(message)?;
        all.extend(parts.iter().flat_map(|part| (part.len() as u64).to_le_bytes()));
        for part in &parts {
            all.extend_from_slice(part);
        }
        let all = self.broadcast(all)?;
        let (lengths, mut rest) = all.split_at(8 * self.size());
        let length = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i])) as usize;
        let cut = |bytes: &[u8]| {
            let (part, behind) = rest.split_at(length(bytes));
            rest = behind;
            part.to_vec()
        };
        Ok(lengths.chunks_exact(8).map(cut).collect())
    }

    /// Values of all parts in the order of the parts, at every part.
    pub fn joined<V: Pod>(&self, own: Vec<V>) -> Result<Vec<V>> {
        if self.is_alone() {
            return Ok(own);
        }
        let message = bytemuck::cast_slice(&own).to_vec();
        drop(own);
        Ok(all_values(self.all_gather(message)?))
    }

    /// Values of all parts in the order of the parts, at the first part; nothing at the others.
    pub fn joined_at_first<V: Pod>(&self, own: Vec<V>) -> Result<Vec<V>> {
        if self.is_alone() {
            return Ok(own);
        }
        let message = bytemuck::cast_slice(&own).to_vec();
        drop(own);
        Ok(all_values(self.gather(message)?))
    }

    /// The word of the first part, to all.
    pub fn first_says<T: Serialize + DeserializeOwned>(&self, word: T) -> Result<T> {
        if self.is_alone() {
            return Ok(word);
        }
        let text = if self.is_first() { serde_json::to_vec(&word).map_err(|e| unreadable(&e))? } else { Vec::new() };
        serde_json::from_slice(&self.broadcast(text)?).map_err(|e| unreadable(&e))
    }

    /// Numbers of the first part, bit by bit, to all.
    pub fn first_values(&self, values: &mut [f64]) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let message = if self.is_first() { bytemuck::cast_slice(values).to_vec() } else { Vec::new() };
        bytemuck::cast_slice_mut(values).copy_from_slice(&self.broadcast(message)?);
        Ok(())
    }

    /// Makes an error of any part one of all: those without one end because of the first that has one.
    pub fn together<T>(&self, result: Result<T>) -> Result<T> {
        if self.is_alone() {
            return result;
        }
        let words = self.all_say(&result.as_ref().err().map(|error| (error.to_string(), error.exit_code(), self.host())))?;
        let first = words.into_iter().enumerate().find_map(|(part, word)| word.map(|word| (part, word)));
        match first {
            None => result,
            Some((part, _)) if part == self.rank() => result,
            Some((part, (message, code, host))) => Err(Error::Part { part, host, message, code }),
        }
    }

    /// Makes an error of the first part one of all: results of the others stand where it has none.
    pub fn follow_first<T>(&self, result: Result<T>) -> Result<T> {
        if self.is_alone() {
            return result;
        }
        let word = result.as_ref().err().map(|error| (error.to_string(), error.exit_code()));
        match (self.first_says(word)?, result) {
            (Some((message, code)), Ok(_)) => Err(Error::Part { part: 0, host: None, message, code }),
            (_, result) => result,
        }
    }

    /// The words of all parts in their order, at every part.
    pub fn all_say<T: Serialize + DeserializeOwned>(&self, word: &T) -> Result<Vec<T>> {
        let all = self.all_gather(serde_json::to_vec(word).map_err(|e| unreadable(&e))?)?;
        all.iter().map(|text| serde_json::from_slice(text).map_err(|e| unreadable(&e))).collect()
    }

    /// Sums of counts over all parts: exact, so that they do not depend on how the domain is cut.
    pub fn sum(&self, counts: &mut [u64]) -> Result<()> {
        let all = self.joined(counts.to_vec())?;
        for (i, count) in counts.iter_mut().enumerate() {
            *count = all.iter().skip(i).step_by(all.len() / self.size()).sum();
        }
        Ok(())
    }

    /// Sum of a count over the parts before this one: where its values begin in an array of those of all.
    pub fn before(&self, count: usize) -> Result<usize> {
        let all = self.joined(vec![count as u64])?;
        Ok(all[..self.rank()].iter().sum::<u64>() as usize)
    }

    /// Largest values over all parts.
    pub fn max(&self, values: &mut [f64]) -> Result<()> {
        let all = self.joined(values.to_vec())?;
        for (i, value) in values.iter_mut().enumerate() {
            *value = all.iter().skip(i).step_by(all.len() / self.size()).copied().fold(f64::NEG_INFINITY, f64::max);
        }
        Ok(())
    }
}

/// Values of some messages, one behind the other; a message goes when its values are there.
fn all_values<V: Pod>(messages: Vec<Vec<u8>>) -> Vec<V> {
    let mut all = Vec::with_capacity(messages.iter().map(|message| message.len() / size_of::<V>()).sum());
    for message in messages {
        all.extend_from_slice(&values::<V>(&message));
    }
    all
}

/// Values out of a message, wherever in memory it lies.
pub fn values<V: Pod>(message: &[u8]) -> Vec<V> {
    let mut values = vec![V::zeroed(); message.len() / size_of::<V>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(message);
    values
}

/// Error of a message of another build.
fn unreadable(error: &serde_json::Error) -> Error {
    Error::input("parts of a run", Problem::new("", format!("a message of another part cannot be read: {error}")))
}
