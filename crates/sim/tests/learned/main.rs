//! Learned depth: its bound against adversaries, its windows against the optimal program, and its
//! gain over competitive depth and Linux on whole files and pieces.

mod adversary;
mod gain;
mod player;
mod program;
mod table;
