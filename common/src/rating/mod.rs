//! Rating mathematics.

pub mod gate;
pub mod pentanomial;
