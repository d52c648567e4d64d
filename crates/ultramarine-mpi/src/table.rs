//! MPI's functions and predefined objects, for the two binary interfaces.
//!
//! The functions have the same C declarations in both. The interfaces differ in the size of handles
//! (`MPI_Comm`, `MPI_Op`, ...) and in the values of predefined objects. So one table,
//! [`Functions`], is generic over the handle, and each interface has its own [`Constants`].

use crate::error::Error;
use crate::operations::{self, UserFunction};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The status of a received message: 20 bytes in MPICH, 24 in Open MPI.
pub type Status = [u64; 8];

/// The thread level at which any thread may call MPI at any time.
pub const THREAD_MULTIPLE: c_int = 3;

/// An MPI handle.
pub trait Handle: Copy + Send + Sync + PartialEq + 'static {
    /// Placeholder for results.
    const ZERO: Self;

    /// The interface's predefined objects.
    fn constants(library: &Library) -> Result<Constants<Self>, Error>;
}

/// Open MPI's handle: the address of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(*mut c_void);

// SAFETY: the address of an MPI object, which only MPI reads.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// Predefined MPI objects: communicators, datatypes, operations.
pub struct Constants<H> {
    pub world: H,
    /// The communicator with only this process.
    pub own: H,
    pub errors_return: H,
    pub sum: H,
    pub byte: H,
    pub uint16: H,
    pub uint32: H,
    pub uint64: H,
    pub float: H,
    pub double: H,
    /// `MPI_IN_PLACE`.
    pub in_place: *mut c_void,
    /// `MPI_STATUS_IGNORE`.
    pub no_status: *mut c_void,
    /// `MPI_ERR_TRUNCATE`.
    pub truncate: c_int,
}

// SAFETY: numbers in the form of addresses.
unsafe impl<H: Handle> Send for Constants<H> {}
// SAFETY: as above.
unsafe impl<H: Handle> Sync for Constants<H> {}

impl Handle for Address {
    const ZERO: Self = Address(std::ptr::null_mut());

    /// Open MPI's predefined objects are data of the library.
    fn constants(library: &Library) -> Result<Constants<Self>, Error> {
        let object = |name: &CStr| {
            // SAFETY: only the address is taken, and nothing is read.
            unsafe { address(library, name) }.map(Address)
        };
        Ok(Constants {
            world: object(c"ompi_mpi_comm_world")?,
            own: object(c"ompi_mpi_comm_self")?,
            errors_return: object(c"ompi_mpi_errors_return")?,
            sum: object(c"ompi_mpi_op_sum")?,
            byte: object(c"ompi_mpi_byte")?,
            uint16: object(c"ompi_mpi_uint16_t")?,
            uint32: object(c"ompi_mpi_uint32_t")?,
            uint64: object(c"ompi_mpi_uint64_t")?,
            float: object(c"ompi_mpi_float")?,
            double: object(c"ompi_mpi_double")?,
            in_place: std::ptr::without_provenance_mut(1),
            no_status: std::ptr::null_mut(),
            truncate: 15,
        })
    }
}

impl Handle for c_int {
    const ZERO: Self = 0;

    /// The values of MPICH's `mpi.h`, which are part of its binary interface.
    fn constants(_: &Library) -> Result<Constants<Self>, Error> {
        Ok(Constants {
            world: 0x4400_0000,
            own: 0x4400_0001,
            errors_return: 0x5400_0001,
            sum: 0x5800_0003,
            byte: 0x4c00_010d,
            uint16: 0x4c00_023c,
            uint32: 0x4c00_043d,
            uint64: 0x4c00_083e,
            float: 0x4c00_040a,
            double: 0x4c00_080b,
            in_place: std::ptr::without_provenance_mut(usize::MAX),
            no_status: std::ptr::without_provenance_mut(1),
            truncate: 14,
        })
    }
}

/// # Safety
/// The caller uses the address according to the symbol's declaration.
unsafe fn address(library: &Library, name: &CStr) -> Result<*mut c_void, Error> {
    // SAFETY: as documented for this function.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|_| {
        Error::Unusable(format!(
            "the MPI library has no symbol {}. Use Open MPI 4 or 5, or MPICH 3.1 or later",
            name.to_string_lossy()
        ))
    })
}

macro_rules! functions {
    ($($(#[$m:meta])* $field:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// MPI's functions. Each returns 0 or an error code.
        pub struct Functions<H> {
            $($(#[$m])* pub $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handle> Functions<H> {
            /// Looks up the functions in a library.
            ///
            /// # Safety
            /// The library is an MPI library with handles of the type `H`, and stays open.
            pub unsafe fn load(library: &Library) -> Result<Self, Error> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the types are those of MPI's standard.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(
                                address(library, $symbol)?,
                            )
                        }
                    },)*
                })
            }
        }
    };
}

type In = *const c_void;
type Out = *mut c_void;
type Int = *mut c_int;

functions! {
    initialized c"MPI_Initialized" (Int);
    finalized c"MPI_Finalized" (Int);
    init_thread c"MPI_Init_thread" (Int, *mut *mut *mut c_char, c_int, Int);
    query_thread c"MPI_Query_thread" (Int);
    finalize c"MPI_Finalize" ();
    abort c"MPI_Abort" (H, c_int);
    error_string c"MPI_Error_string" (c_int, *mut c_char, Int);
    error_class c"MPI_Error_class" (c_int, Int);
    comm_rank c"MPI_Comm_rank" (H, Int);
    comm_size c"MPI_Comm_size" (H, Int);
    comm_dup c"MPI_Comm_dup" (H, *mut H);
    comm_split c"MPI_Comm_split" (H, c_int, c_int, *mut H);
    set_errhandler c"MPI_Comm_set_errhandler" (H, H);
    op_create c"MPI_Op_create" (UserFunction, c_int, *mut H);
    /// Send, receive, count, datatype, operation, communicator, request.
    iallreduce c"MPI_Iallreduce" (In, Out, c_int, H, H, H, *mut H);
    /// Send, receive, count of a part, datatype, operation, communicator, request.
    ireduce_scatter_block c"MPI_Ireduce_scatter_block" (In, Out, c_int, H, H, H, *mut H);
    /// Send, receive, count, datatype, operation, root, communicator, request.
    ireduce c"MPI_Ireduce" (In, Out, c_int, H, H, c_int, H, *mut H);
    /// Send, count, datatype, receive, count of a part, datatype, communicator, request.
    iallgather c"MPI_Iallgather" (In, c_int, H, Out, c_int, H, H, *mut H);
    /// Buffer, count, datatype, root, communicator, request.
    ibcast c"MPI_Ibcast" (Out, c_int, H, c_int, H, *mut H);
    /// Buffer, count, datatype, receiver, tag, communicator, request.
    isend c"MPI_Isend" (In, c_int, H, c_int, c_int, H, *mut H);
    /// Buffer, count, datatype, sender, tag, communicator, request.
    irecv c"MPI_Irecv" (Out, c_int, H, c_int, c_int, H, *mut H);
    /// Request, flag, status.
    test c"MPI_Test" (*mut H, Int, Out);
    /// Status, datatype, count.
    get_count c"MPI_Get_count" (In, H, Int);
}

/// A binary interface of MPI: its functions, its predefined objects and, once MPI runs, this
/// crate's own reductions.
pub struct Table<H> {
    pub functions: Functions<H>,
    pub constants: Constants<H>,
    pub operations: Vec<H>,
}

impl<H: Handle> Table<H> {
    /// # Safety
    /// That of [`Functions::load`].
    pub unsafe fn load(library: &Library) -> Result<Self, Error> {
        // SAFETY: as documented for this function.
        let functions = unsafe { Functions::load(library) }?;
        Ok(Table { functions, constants: H::constants(library)?, operations: Vec::new() })
    }

    /// Registers this crate's reductions. It is called once, after MPI has started.
    pub fn create_operations(&mut self) -> Result<(), String> {
        for function in operations::ALL.iter().copied() {
            let mut made = H::ZERO;
            // SAFETY: the function follows MPI's rules for reductions: it is associative, commutative and reads `*len` elements.
            let code = unsafe { (self.functions.op_create)(function, 1, &raw mut made) };
            self.check(code)?;
            self.operations.push(made);
        }
        Ok(())
    }

    /// Returns MPI's text for an error code; `Ok` for success.
    pub fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // The interfaces allow at most 512 bytes.
        let mut text = [0u8; 1024];
        let mut length = 0;
        // SAFETY: room for the longest text; a code of this library.
        unsafe { (self.functions.error_string)(code, text.as_mut_ptr().cast(), &raw mut length) };
        let text = CStr::from_bytes_until_nul(&text).unwrap_or(c"unknown error");
        Err(text.to_string_lossy().trim().to_owned())
    }

    /// Returns true if the error means that a message is longer than its receiver's memory.
    pub fn is_truncation(&self, code: c_int) -> bool {
        let mut class = 0;
        // SAFETY: a code of this library.
        unsafe { (self.functions.error_class)(code, &raw mut class) };
        code != 0 && class == self.constants.truncate
    }

    /// Reads a flag through one of MPI's functions.
    pub fn flag(&self, function: unsafe extern "C" fn(Int) -> c_int) -> bool {
        let mut flag = 0;
        // SAFETY: MPI_Initialized and MPI_Finalized may be called at any time.
        unsafe { function(&raw mut flag) };
        flag != 0
    }
}
