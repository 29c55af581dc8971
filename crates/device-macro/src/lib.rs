//! `#[device]`: one Rust function, also as CUDA C++.
//!
//! The attribute leaves the item as it is and adds a constant with the same item in C++: for `fn boris` the constant
//! `BORIS_CUDA`, for `struct Vec3` `VEC3_CUDA`, for `const OMEGA` `OMEGA_CUDA`. [`device_source!`] collects them, in the
//! order in which C++ needs them (a function after what it calls), for `Program::compile`:
//!
//! ```ignore
//! use zellige_device_macro::{device, device_source};
//! use zellige_engine::real::{Real, select};
//!
//! #[device]
//! pub fn limited<R: Real>(u: R, bound: R) -> R {
//!     select(u.abs().lt(bound), u, R::ZERO)
//! }
//!
//! pub const PHYSICS: &[&str] = &device_source![limited];
//! ```
//!
//! # Structs of kernels
//!
//! Fields may also be arrays, other device structs, and pointers to memory of the device, also of types that only the
//! kernel has: `*const real` is `const real*` in C++ and, since only the device follows it, the address as `u64` in Rust.
//! The C++ text compares size and offsets with those that Rust's compiler has. Launches take such structs with `arg`,
//! which leaves zeros between fields; those generic over a real type, with `f32` or `f64`.
//!
//! # What it says
//!
//! Scalars (`f32 f64 i32 u32 i64 u64 usize bool`; `usize` is `unsigned long long`), plain structs, `let`, assignment,
//! `if` and `else` as statement and as value, `for i in a..b`, `break`, `continue`, `return`, arithmetic, comparisons,
//! logic, bits, `as`, fields, struct literals, constants, calls of other device functions, and the methods listed in
//! `methods.rs`. Functions generic over `R: Real` (or `RealScalar`) become templates. Everything else is a compile
//! error at its token.
//!
//! # What is the same and what is not
//!
//! With contraction off the C++ gives the bits of Rust, except for: `exp`, `ln`, `sin`, `cos`, `powf`, whose last bits
//! are the library's; overflow of signed integers, division of integers by zero and shifts by the width or more, which
//! panic in Rust's debug build and are undefined in C++: write `wrapping_add` and so on where they can happen; `as` from
//! a real that is not a number. A GPU compiler contracts `a * b + c` unless told not to.

use proc_macro::TokenStream;

mod emit;
mod expr;
mod item;
mod literal;
mod methods;
mod names;
mod stmt;
mod structure;
mod types;

/// Emits the function, struct or constant that it stands on as CUDA C++ too. See the crate's documentation.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match item::device(&arguments.into(), item.clone().into()) {
        Ok(tokens) => tokens.into(),
        // The item itself stays, so that the one error is not followed by others about a name that is missing.
        Err(error) => {
            let mut tokens = TokenStream::from(structure::without_pointers(item.into()));
            tokens.extend(TokenStream::from(error.to_compile_error()));
            tokens
        }
    }
}

/// `device_source![vec3::Vec3, cross]`: an array with the C++ text of each item, in the order given.
#[proc_macro]
pub fn device_source(items: TokenStream) -> TokenStream {
    item::source(items.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
