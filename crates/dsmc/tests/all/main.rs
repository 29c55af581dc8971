//! Everything that is tested from outside, in one program: linking a program for each file took most of the time of building them.

mod along_z;
mod audit;
mod averages;
mod channels;
mod common;
mod cylinder;
mod examples;
mod flat;
mod flows;
mod kinetic;
mod loads;
mod mixtures;
mod physics;
mod refusals;
mod relaxation;
mod restart;
mod seed;
mod shock;
mod slit;
mod sources;
mod subsonic;
mod twins_collisions;
mod twins_flows;
mod twins_walls;
mod vibration;
mod weights;
