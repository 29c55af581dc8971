//! Nothing but a place for the tests of `#[device]`. In the macro's own package what they need (trybuild, and all under it)
//! and what the macro needs (syn) would be compiled twice, for macros and for programs.
