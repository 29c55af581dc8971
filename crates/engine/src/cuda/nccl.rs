//! Copies from GPU to GPU of several processes by NCCL, in the order of the main stream or of one beside it.
//!
//! The table of its functions is our own: nine of them are used, and what is exchanged are bytes between two parts.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use libloading::Symbol;

use super::context::Cuda;
use super::library;
use super::memory::Memory;
use super::stream::Stream;
use crate::error::{Error, Result};

/// Error in words of its own.
fn fault(cuda: &Cuda, message: &str) -> Error {
    Error::Device {
        device: format!("cuda:{}", cuda.ordinal()),
        message: message.to_owned(),
        hint: Some("`ZELLIGE_NCCL=off` exchanges through the hosts".into()),
    }
}

/// Bytes of an identifier by which processes find each other.
pub(crate) const ID: usize = 128;
/// Number of the type of bytes, `ncclUint8`.
const BYTES: c_int = 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct Id([u8; ID]);

type Handle = *mut c_void;
type Transfer = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Handle, *mut c_void) -> c_int;

/// Functions of the library, which stays open.
struct Functions {
    id: Symbol<'static, unsafe extern "C" fn(*mut Id) -> c_int>,
    init: Symbol<'static, unsafe extern "C" fn(*mut Handle, c_int, Id, c_int) -> c_int>,
    destroy: Symbol<'static, unsafe extern "C" fn(Handle) -> c_int>,
    send: Symbol<'static, Transfer>,
    receive: Symbol<'static, Transfer>,
    begin: Symbol<'static, unsafe extern "C" fn() -> c_int>,
    end: Symbol<'static, unsafe extern "C" fn() -> c_int>,
    fault: Symbol<'static, unsafe extern "C" fn(c_int) -> *const c_char>,
    last: Symbol<'static, unsafe extern "C" fn(Handle) -> *const c_char>,
}

impl Functions {
    /// The functions, where the library is usable and has all of them.
    fn new() -> Option<Self> {
        let library = library::nccl_handle()?;
        // SAFETY: the names are asked for with the types of nccl.h, where the buffers of `ncclSend` are `const`.
        unsafe {
            Some(Self {
                id: library.get(b"ncclGetUniqueId").ok()?,
                init: library.get(b"ncclCommInitRank").ok()?,
                destroy: library.get(b"ncclCommDestroy").ok()?,
                send: library.get(b"ncclSend").ok()?,
                receive: library.get(b"ncclRecv").ok()?,
                begin: library.get(b"ncclGroupStart").ok()?,
                end: library.get(b"ncclGroupEnd").ok()?,
                fault: library.get(b"ncclGetErrorString").ok()?,
                last: library.get(b"ncclGetLastError").ok()?,
            })
        }
    }

    /// An error of `doing`, in the library's words.
    fn checked(&self, cuda: &Cuda, status: c_int, doing: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = |text: *const c_char| {
            // SAFETY: the library gives texts that stay, or none.
            if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
        };
        // SAFETY: a number of its own; without a communicator it tells its last fault.
        let (told, last) = unsafe { (text((self.fault)(status)), text((self.last)(std::ptr::null_mut()))) };
        let detail = if last.is_empty() { String::new() } else { format!(": {}", last.trim()) };
        Err(fault(cuda, &format!("NCCL: {doing}: {told}{detail}")))
    }
}

/// A GPU of each of several processes.
pub(crate) struct Communicator {
    functions: Functions,
    handle: Handle,
    cuda: Cuda,
    /// Processes that this one is connected with.
    connected: Mutex<BTreeSet<usize>>,
}

// SAFETY: the library lets any thread use a communicator, one at a time: all uses are behind the turn of the stream.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Communicator of cuda:{}", self.cuda.ordinal())
    }
}

/// Returns true if the library is there with all that is used of it.
pub(crate) fn usable() -> bool {
    Functions::new().is_some()
}

/// An identifier for one communicator, made by one process for all.
pub(crate) fn identifier(cuda: &Cuda) -> Result<Vec<u8>> {
    let functions = Functions::new().ok_or_else(|| fault(cuda, "NCCL is not there"))?;
    let mut id = Id([0; ID]);
    // SAFETY: the pointer is to a live identifier.
    let status = unsafe { (functions.id)(&raw mut id) };
    functions.checked(cuda, status, "no identifier").map(|()| id.0.to_vec())
}

/// Bytes of memory that go to another process, or come from it.
pub(crate) struct Portion<'a> {
    pub(crate) part: usize,
    pub(crate) memory: &'a Memory,
    pub(crate) at: usize,
    pub(crate) bytes: usize,
}

impl Communicator {
    /// Joins the processes that have the same identifier, each with a GPU of its own: all call this at the same time.
    pub(crate) fn new(cuda: &Cuda, id: &[u8], rank: usize, size: usize) -> Result<Self> {
        let functions = Functions::new().ok_or_else(|| fault(cuda, "NCCL is not there"))?;
        let id = Id(id.try_into().map_err(|_| fault(cuda, "NCCL: an identifier of another length"))?);
        cuda.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle, and the context of the GPU is bound.
        let status = unsafe { (functions.init)(&raw mut handle, size as c_int, id, rank as c_int) };
        functions.checked(cuda, status, "the processes do not find each other")?;
        Ok(Self { functions, handle, cuda: cuda.clone(), connected: Mutex::default() })
    }

    /// Connects this process with `parts`, which call this at the same time, unless they are already. NCCL would do so within their
    /// first exchange, for up to a second in which the step waits. Waits for the GPU.
    pub(crate) fn connect(&self, parts: &[usize]) -> Result<()> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh: BTreeSet<usize> = parts.iter().copied().filter(|part| !connected.contains(part)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let bytes = || self.cuda.alloc_zeros::<u8>(fresh.len(), "connections of NCCL");
        let [out, back] = [bytes()?, bytes()?];
        let portion = |memory| fresh.iter().enumerate().map(move |(at, part)| Portion { part: *part, memory, at, bytes: 1 });
        self.exchange(&portion(out.memory()).collect::<Vec<_>>(), &portion(back.memory()).collect::<Vec<_>>())?;
        self.cuda.synchronize()?;
        connected.extend(fresh);
        Ok(())
    }

    /// Sends and receives, as the stream has written what goes by now; what is put on the stream afterwards finds what came. Until
    /// all of it has gone and come the stream waits: what goes here is to come in one exchange there, in the same order, and the
    /// exchanges of all processes follow each other in one order. Waits for no GPU.
    ///
    /// # Panics
    /// If bytes do not lie in their memory.
    pub(crate) fn exchange(&self, out: &[Portion<'_>], back: &[Portion<'_>]) -> Result<()> {
        self.exchange_on(self.cuda.stream().cast(), out, back)
    }

    /// Sends and receives as [`Self::exchange`] does, in the order of a stream beside the main one, which waits for it before it
    /// goes on with the memory, or exchanges.
    ///
    /// # Panics
    /// If bytes do not lie in their memory.
    pub(crate) fn exchange_beside(&self, stream: &Stream, out: &[Portion<'_>], back: &[Portion<'_>]) -> Result<()> {
        self.exchange_on(stream.handle().cast(), out, back)
    }

    fn exchange_on(&self, stream: *mut c_void, out: &[Portion<'_>], back: &[Portion<'_>]) -> Result<()> {
        for Portion { memory, at, bytes, .. } in out.iter().chain(back) {
            assert!(memory.has(*at, *bytes), "{bytes} bytes at {at} of {memory:?}");
        }
        let Self { functions, handle, cuda, .. } = self;
        cuda.bind()?;
        let _turn = cuda.turn();
        let carried = |transfer: &Transfer, all: &[Portion<'_>], doing: &str| {
            all.iter().filter(|of| of.bytes > 0).try_for_each(|Portion { part, memory, at, bytes }| {
                let address = memory.address(*at) as *mut c_void;
                // SAFETY: the bytes lie in memory of this GPU that is held: who frees it waits for the stream.
                let status = unsafe { transfer(address, *bytes, BYTES, *part as c_int, *handle, stream) };
                functions.checked(cuda, status, doing)
            })
        };
        // SAFETY: no preconditions; each begin has its end.
        functions.checked(cuda, unsafe { (functions.begin)() }, "no group")?;
        let begun = carried(&functions.send, out, "cannot send").and_then(|()| carried(&functions.receive, back, "cannot receive"));
        // SAFETY: as above.
        let ended = functions.checked(cuda, unsafe { (functions.end)() }, "an exchange failed");
        begun.and(ended)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.cuda.synchronize().is_ok() {
            // SAFETY: made by `ncclCommInitRank`, ended once, with nothing of this process under way.
            unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn bytes_go_from_a_gpu_to_itself() {
        let Some(cuda) = testing::gpu() else { return };
        if !usable() {
            println!("skipped: {:?}", library::nccl().0.refusal);
            return;
        }
        let alone = Communicator::new(&cuda, &identifier(&cuda).unwrap(), 0, 1).unwrap();
        // Twice in one call and again: connected once.
        alone.connect(&[0, 0]).unwrap();
        alone.connect(&[0]).unwrap();
        assert_eq!(*alone.connected.lock().unwrap(), BTreeSet::from([0]));
        let from = cuda.buffer_from(&(0..5000_u32).collect::<Vec<_>>(), "test").unwrap();
        let to = cuda.alloc_zeros::<u32>(5000, "test").unwrap();
        let of = |memory, at, bytes| Portion { part: 0, memory, at, bytes };
        for turn in 0..20 {
            let out = [of(from.memory(), 400, 4000), of(from.memory(), 16, 4 * turn)];
            alone.exchange(&out, &[of(to.memory(), 8000, 4000), of(to.memory(), 0, 4 * turn)]).unwrap();
        }
        let found = cuda.download(&to).unwrap();
        let expected = |k: usize| match k {
            0..19 => k as u32 + 4,
            2000..3000 => k as u32 - 1900,
            _ => 0,
        };
        assert_eq!(found, (0..5000).map(expected).collect::<Vec<_>>());
        let wrong = Communicator::new(&cuda, &[1, 2, 3], 0, 1);
        assert!(wrong.is_err_and(|error| error.to_string().contains("another length")));
    }
}
