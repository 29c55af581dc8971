//! Tests from outside, in one program: linking one for each file took most of the time of building them.

mod layout;
mod real;
mod run;
mod twins;
