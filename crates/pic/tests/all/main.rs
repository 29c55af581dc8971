//! Everything that is tested from outside, in one program: linking a program for each file took most of the time of building them.

mod amounts;
mod charge;
mod checks;
mod closed_forms;
mod common;
mod conservation;
mod dense;
mod field_records;
mod field_setups;
mod fields;
mod listed;
mod memory_cuda;
mod parts;
mod parts_cuda;
mod paths;
mod physics;
mod refusals;
mod start;
mod teams;
mod twins;
mod twins_diagnostics;
mod twins_runs;
mod twins_walls;
mod warnings;
mod waves;
mod window;
