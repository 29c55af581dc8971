//! Functions and constants of an MPI library, by address. MPI names its objects by pointers (the MPI ABI, Open MPI) or by integers
//! (MPICH and what is built like it): the rest of this program is one for both.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

use libloading::os::unix::Library;

use crate::cuda::library::reason;

type Code = c_int;

/// Return value of a call that has done its work, in every library.
const SUCCESS: Code = 0;
/// Tag of all messages of a run, so that those of another program in the same process are told apart.
const TAG: c_int = 7311;
/// Bytes for any text that a library gives: the longest, a version, takes 8192.
const TEXT: usize = 8192;

/// Name of an object inside the library: a communicator, a type, a request.
pub(super) trait Handle: Copy + fmt::Debug + Send + Sync + 'static {
    /// Value that names nothing, for the library to write over.
    const NOTHING: Self;
}

/// Handle of the MPI ABI and of Open MPI.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Pointer(*mut c_void);

// SAFETY: only the library looks at what lies behind.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Handle for Pointer {
    const NOTHING: Self = Self(ptr::null_mut());
}

/// Handle of MPICH.
pub(super) type Number = c_int;

impl Handle for Number {
    const NOTHING: Self = 0;
}

/// Facts about a message, which only the library reads: 20 bytes in MPICH, 24 in Open MPI, 32 in the ABI.
#[repr(C, align(16))]
struct Status([u8; 64]);

impl Status {
    const EMPTY: Self = Self([0; 64]);
}

/// Constants of `mpi.h`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants<H> {
    /// `MPI_COMM_WORLD`.
    world: H,
    /// `MPI_BYTE`.
    byte: H,
    /// `MPI_ERRORS_RETURN`.
    errors_return: H,
    /// `MPI_THREAD_SERIALIZED`: one thread at a time calls MPI, that of a pool or the one outside.
    serialized: c_int,
    /// `MPI_THREAD_MULTIPLE`: threads of others may call it meanwhile.
    multiple: c_int,
}

impl Constants<Pointer> {
    /// Those of the MPI ABI, version 1.
    pub(super) fn of_abi() -> Self {
        let handle = |number| Pointer(ptr::without_provenance_mut(number));
        Self { world: handle(0x101), byte: handle(0x247), errors_return: handle(0x143), serialized: 2048, multiple: 4096 }
    }

    /// Those of Open MPI: addresses of its variables.
    pub(super) fn of_open_mpi(library: &Library) -> Result<Self, String> {
        let handle = |name: &str| {
            // SAFETY: the address of a variable is asked for, and nothing is read from there.
            let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
            symbol.map(|symbol| Pointer(symbol.into_raw())).map_err(|e| reason(&e))
        };
        let (world, byte) = (handle("ompi_mpi_comm_world")?, handle("ompi_mpi_byte")?);
        Ok(Self { world, byte, errors_return: handle("ompi_mpi_errors_return")?, serialized: 2, multiple: 3 })
    }
}

impl Constants<Number> {
    /// Those of MPICH, which Intel, Cray, MVAPICH and ParaStation keep.
    pub(super) const MPICH: Self = Self { world: 0x4400_0000, byte: 0x4c00_010d, errors_return: 0x5400_0001, serialized: 2, multiple: 3 };
}

/// The functions that are used, and the constants that they take. A fault is told in the library's own words.
#[derive(Debug, Clone)]
pub(super) struct Table<H> {
    constants: Constants<H>,
    initialized: unsafe extern "C" fn(*mut c_int) -> Code,
    init_thread: unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> Code,
    query_thread: unsafe extern "C" fn(*mut c_int) -> Code,
    comm_rank: unsafe extern "C" fn(H, *mut c_int) -> Code,
    comm_size: unsafe extern "C" fn(H, *mut c_int) -> Code,
    comm_set_errhandler: unsafe extern "C" fn(H, H) -> Code,
    get_processor_name: unsafe extern "C" fn(*mut c_char, *mut c_int) -> Code,
    isend: unsafe extern "C" fn(*const c_void, c_int, H, c_int, c_int, H, *mut H) -> Code,
    test: unsafe extern "C" fn(*mut H, *mut c_int, *mut Status) -> Code,
    improbe: unsafe extern "C" fn(c_int, c_int, H, *mut c_int, *mut H, *mut Status) -> Code,
    get_count: unsafe extern "C" fn(*const Status, H, *mut c_int) -> Code,
    mrecv: unsafe extern "C" fn(*mut c_void, c_int, H, *mut H, *mut Status) -> Code,
    error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> Code,
    abort: unsafe extern "C" fn(H, c_int) -> Code,
    finalize: unsafe extern "C" fn() -> Code,
}

/// Address of a function.
pub(super) fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: each name is asked for with the type that the MPI standard declares for it.
    unsafe { library.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|_| format!("it has no {name}"))
}

/// Version of the MPI ABI that the library speaks, 0 for its own.
pub(super) fn abi_version(library: &Library) -> c_int {
    let Ok(ask) = symbol::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code>(library, "MPI_Abi_get_version") else { return 0 };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both pointers are to live integers; the call needs no initialisation.
    let code = unsafe { ask(&raw mut major, &raw mut minor) };
    if code == SUCCESS { major.max(0) } else { 0 }
}

/// Library's description of itself.
pub(super) fn version(library: &Library) -> Result<String, String> {
    let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> Code = symbol(library, "MPI_Get_library_version")?;
    // SAFETY: the buffer holds the longest version; the call needs no initialisation.
    text(|buffer, length| unsafe { ask(buffer, length) }).ok_or_else(|| "it does not tell its version".into())
}

/// Text that a call writes with its length.
fn text(call: impl FnOnce(*mut c_char, *mut c_int) -> Code) -> Option<String> {
    let mut buffer = vec![0_u8; TEXT + 1];
    let mut length = 0;
    let code = call(buffer.as_mut_ptr().cast(), &raw mut length);
    let length = usize::try_from(length).unwrap_or(0).min(TEXT);
    (code == SUCCESS).then(|| String::from_utf8_lossy(&buffer[..length]).trim_end_matches('\0').trim().to_owned())
}

impl<H: Handle> Table<H> {
    /// Takes the functions from a library whose handles are `H`.
    pub(super) fn bind(library: &Library, constants: Constants<H>) -> Result<Self, String> {
        Ok(Self {
            constants,
            initialized: symbol(library, "MPI_Initialized")?,
            init_thread: symbol(library, "MPI_Init_thread")?,
            query_thread: symbol(library, "MPI_Query_thread")?,
            comm_rank: symbol(library, "MPI_Comm_rank")?,
            comm_size: symbol(library, "MPI_Comm_size")?,
            comm_set_errhandler: symbol(library, "MPI_Comm_set_errhandler")?,
            get_processor_name: symbol(library, "MPI_Get_processor_name")?,
            isend: symbol(library, "MPI_Isend")?,
            test: symbol(library, "MPI_Test")?,
            improbe: symbol(library, "MPI_Improbe")?,
            get_count: symbol(library, "MPI_Get_count")?,
            mrecv: symbol(library, "MPI_Mrecv")?,
            error_string: symbol(library, "MPI_Error_string")?,
            abort: symbol(library, "MPI_Abort")?,
            finalize: symbol(library, "MPI_Finalize")?,
        })
    }

    fn check(&self, call: &str, code: Code) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the buffer holds the longest text of an error.
        let words = text(|buffer, length| unsafe { (self.error_string)(code, buffer, length) });
        Err(format!("{call}: {}", words.unwrap_or_else(|| format!("error {code}"))))
    }

    /// Starts MPI; true if that was still to be done. Faults return from now on, and end no process.
    pub(super) fn start(&self) -> Result<bool, String> {
        let (mut started, mut threads) = (0, 0);
        // SAFETY: the pointer is to a live integer.
        self.check("MPI_Initialized", unsafe { (self.initialized)(&raw mut started) })?;
        if started == 0 {
            // SAFETY: the arguments of the program may be absent; the last pointer is to a live integer.
            let code = unsafe { (self.init_thread)(ptr::null_mut(), ptr::null_mut(), self.constants.serialized, &raw mut threads) };
            self.check("MPI_Init_thread", code)?;
            if threads < self.constants.serialized {
                return Err("MPI_Init_thread: this library cannot be used by a program with threads (MPI_THREAD_SERIALIZED)".into());
            }
        } else {
            // Calls of who has started it and of a thread of ours may then come at the same time.
            // SAFETY: the pointer is to a live integer.
            self.check("MPI_Query_thread", unsafe { (self.query_thread)(&raw mut threads) })?;
            if threads < self.constants.multiple {
                return Err("MPI was started by another program without MPI_THREAD_MULTIPLE: start it with MPI_Init_thread for that".into());
            }
        }
        // SAFETY: MPI has been started, and both are handles of this library.
        let code = unsafe { (self.comm_set_errhandler)(self.constants.world, self.constants.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)?;
        Ok(started == 0)
    }

    /// Number of this process and of all.
    pub(super) fn rank_and_size(&self) -> Result<(usize, usize), String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI has been started; the pointer is to a live integer.
        self.check("MPI_Comm_rank", unsafe { (self.comm_rank)(self.constants.world, &raw mut rank) })?;
        // SAFETY: as above.
        self.check("MPI_Comm_size", unsafe { (self.comm_size)(self.constants.world, &raw mut size) })?;
        Ok((rank as usize, size as usize))
    }

    /// Name of the host.
    pub(super) fn host(&self) -> Option<String> {
        // SAFETY: the buffer holds the longest name.
        text(|buffer, length| unsafe { (self.get_processor_name)(buffer, length) }).filter(|name| !name.is_empty())
    }

    /// Begins to send, below 2^31 bytes.
    ///
    /// # Safety
    /// The bytes stay where they are until the request that is returned is [`done`](Self::done).
    pub(super) unsafe fn send(&self, bytes: &[u8], to: usize) -> Result<H, String> {
        let Constants { world, byte, .. } = self.constants;
        let count = c_int::try_from(bytes.len()).map_err(|_| "MPI_Isend: a message of 2^31 bytes or more".to_owned())?;
        let mut request = H::NOTHING;
        // SAFETY: the bytes are there, as the caller promises; the request is live.
        let code = unsafe { (self.isend)(bytes.as_ptr().cast(), count, byte, to as c_int, TAG, world, &raw mut request) };
        self.check("MPI_Isend", code).map(|()| request)
    }

    /// Returns true if a message has been sent: its request is then gone.
    pub(super) fn done(&self, request: &mut H) -> Result<bool, String> {
        let (mut done, mut status) = (0, Status::EMPTY);
        // SAFETY: all three are live.
        let code = unsafe { (self.test)(&raw mut *request, &raw mut done, &raw mut status) };
        self.check("MPI_Test", code).map(|()| done != 0)
    }

    /// The next message from a process and its length, if it is there already.
    pub(super) fn arrived(&self, from: usize) -> Result<Option<(H, usize)>, String> {
        let Constants { world, byte, .. } = self.constants;
        let (mut there, mut message, mut status, mut count) = (0, H::NOTHING, Status::EMPTY, 0);
        // SAFETY: all pointers are to live values.
        let code = unsafe { (self.improbe)(from as c_int, TAG, world, &raw mut there, &raw mut message, &raw mut status) };
        self.check("MPI_Improbe", code)?;
        if there == 0 {
            return Ok(None);
        }
        // SAFETY: as above.
        self.check("MPI_Get_count", unsafe { (self.get_count)(&raw const status, byte, &raw mut count) })?;
        let length = usize::try_from(count).map_err(|_| "MPI_Get_count: a message of 2^31 bytes or more".to_owned())?;
        Ok(Some((message, length)))
    }

    /// Takes a message that has [`arrived`](Self::arrived), of this length, into all of `bytes`.
    pub(super) fn take(&self, mut message: H, bytes: &mut [MaybeUninit<u8>]) -> Result<(), String> {
        let mut status = Status::EMPTY;
        let (start, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        // SAFETY: `bytes` may be written to, and is as long as the message.
        let code = unsafe { (self.mrecv)(start, count, self.constants.byte, &raw mut message, &raw mut status) };
        self.check("MPI_Mrecv", code)
    }

    /// Ends all processes with this code.
    pub(super) fn abort(&self, code: u8) {
        // SAFETY: MPI has been started.
        unsafe { (self.abort)(self.constants.world, c_int::from(code)) };
    }

    /// Ends MPI in this process.
    pub(super) fn finish(&self) -> Result<(), String> {
        // SAFETY: MPI has been started, and nothing is under way.
        self.check("MPI_Finalize", unsafe { (self.finalize)() })
    }
}
