//! Probes: early signs of what a network has learnt, from games that were played anyway ([`games`]) and from its values
//! ([`missing`]). Captures are weighed by static exchange evaluation ([`exchange`]).

pub mod exchange;
pub mod games;
pub mod missing;
