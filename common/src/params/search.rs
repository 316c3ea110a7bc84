//! Search parameters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::range::{ParamsError, inside, outside, within};

/// How one move is searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SearchParams {
    /// Visits of the root for each move, 2 to 100,000.
    pub visits: u32,
    /// How the root spends its visits.
    pub root: RootSearch,
    /// Selection below the root, and at a PUCT root.
    pub puct: PuctParams,
    /// Noise added to a PUCT root's priors in self-play.
    pub noise: Option<Noise>,
    /// The policy logits of every position are divided by this, 0.1 to 10 (Lc0's
    /// `PolicyTemperature`; lc0 plays with 1.36). Above 1 the search looks at more moves.
    pub policy_temperature: f32,
    /// The root's policy logits are divided by this, too, before noise, 0.1 to 10 (Lc0's root policy
    /// temperature).
    pub root_policy_temperature: f32,
    /// Forced playouts and pruned policy targets of a PUCT root, in searches with noise.
    pub forced_playouts: Option<ForcedPlayouts>,
    /// Ends a PUCT search when more visits hardly change their distribution.
    pub kld_stop: Option<KldStop>,
    /// Ends a PUCT search when no other move can get most visits any more. Only where nothing but
    /// the move with most visits matters: in matches and fast searches that play their best move.
    /// Visits that are a policy target, or from which the move is sampled, are made in full.
    pub stop_when_decided: bool,
    /// MCTS-solver (Winands et al. 2008; lc0's sticky endgames): a mate in one is seen before it is
    /// visited, proven wins and losses pass up the tree, a proven win is played, and a move that
    /// loses for certain is not, where another one is left (at a Gumbel root, where another of the most
    /// visited moves is left). On by default; off in messages and ledgers that do not name it, as they are
    /// from before it.
    #[serde(default)]
    pub solver: bool,
}

impl Default for SearchParams {
    fn default() -> Self {
        Self {
            visits: 100,
            root: RootSearch::Puct,
            puct: PuctParams::default(),
            noise: Some(Noise::default()),
            policy_temperature: 1.0,
            root_policy_temperature: 1.0,
            forced_playouts: None,
            kld_stop: None,
            stop_when_decided: false,
            solver: true,
        }
    }
}

impl SearchParams {
    /// How a network is searched where only its strength counts, in play and on a ladder: without noise, with the
    /// [solver](Self::solver), and with lc0's [policy temperature](Self::policy_temperature) of 1.36.
    pub fn for_strength() -> Self {
        Self {
            noise: None,
            policy_temperature: 1.36,
            solver: true,
            ..Self::default()
        }
    }
}

/// How the root spends its visits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RootSearch {
    /// AlphaZero: PUCT with noise, the policy target is the visit distribution.
    #[default]
    Puct,
    /// Gumbel AlphaZero (Danihelka et al., ICLR 2022): sampled actions, sequential halving, the
    /// policy target is the completed-Q improved policy.
    Gumbel(GumbelParams),
}

/// Parameters of Gumbel root search (Danihelka et al. 2022). `considered` and `c_visit` have the paper's defaults; `c_scale`
/// is half of its 1, which is for Q from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct GumbelParams {
    /// Actions considered at first, 2 to 256.
    pub considered: u32,
    /// `c_visit` of the Q transformation, 0 to 1,000,000.
    pub c_visit: f32,
    /// `c_scale` of the Q transformation, for Q from -1 to 1; 0 to 1,000,000.
    pub c_scale: f32,
}

impl Default for GumbelParams {
    fn default() -> Self {
        Self {
            considered: 16,
            c_visit: 50.0,
            c_scale: 0.5,
        }
    }
}

/// PUCT as AlphaZero writes it: `U = P * (c_init + ln((N + c_base + 1) / c_base)) * sqrt(N) /
/// (1 + n)` (Silver et al., Science 2018, pseudocode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PuctParams {
    /// `c_base`, 1 to 1,000,000,000.
    pub c_base: f32,
    /// `c_init`, 0 to 100.
    pub c_init: f32,
    /// The value of a child that was never visited.
    pub fpu: Fpu,
}

impl Default for PuctParams {
    fn default() -> Self {
        Self {
            c_base: 19_652.0,
            c_init: 1.25,
            fpu: Fpu::default(),
        }
    }
}

/// First-play urgency: the value of a child that was never visited, as its parent's mover sees it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fpu {
    /// A fixed value from -1 to 1 (AlphaZero: -1, a loss).
    Absolute {
        /// The value.
        value: f32,
    },
    /// The parent's value less `value * sqrt(visited policy)` (Leela Zero, Lc0).
    Reduction {
        /// The reduction, 0 to 2.
        value: f32,
    },
}

impl Default for Fpu {
    fn default() -> Self {
        Self::Reduction { value: 0.33 }
    }
}

/// Dirichlet noise mixed into the root's priors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Noise {
    /// The distribution's concentration, 0.001 to 100 (AlphaZero for chess: 0.3).
    pub alpha: f32,
    /// The share of noise, 0 to 1 (AlphaZero: 0.25).
    pub epsilon: f32,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            alpha: 0.3,
            epsilon: 0.25,
        }
    }
}

/// Forced playouts with policy-target pruning (Wu, "Accelerating Self-Play Learning in Go", 2019,
/// section 3.2): noise can show that a move is good only if the search looks long enough. Each
/// visited move of the root gets at least `sqrt(k * P * N)` visits, N being those of all moves.
/// The policy target, and the visits from which the move is sampled, are without those that only
/// this rule has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ForcedPlayouts {
    /// `k`, 0.01 to 100 (KataGo: 2).
    pub k: f32,
}

impl Default for ForcedPlayouts {
    fn default() -> Self {
        Self { k: 2.0 }
    }
}

/// Ends a search when visits change their own distribution by less than this (Lc0's
/// `MinimumKLDGainPerNode` and `KLDGainAverageInterval`, with the defaults of its training runs).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KldStop {
    /// Least gain: the divergence of the distribution from that of `interval` visits before, in
    /// nats for each visit, 0 to 1.
    pub minimum_gain: f32,
    /// Visits between two looks, 2 to 100,000. A search of less than twice as many never ends
    /// early.
    pub interval: u32,
}

impl Default for KldStop {
    fn default() -> Self {
        Self {
            minimum_gain: 5e-6,
            interval: 100,
        }
    }
}

/// How self-play samples its moves from visits: `visits^(1 / temperature)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Temperature {
    /// Temperature at the first ply, 0 (most visits) to 10.
    pub start: f32,
    /// Temperature at and after `plies`, 0 to 10; between, it falls linearly.
    pub end: f32,
    /// Plies over which it falls, 0 to 100,000.
    pub plies: u32,
}

impl Default for Temperature {
    fn default() -> Self {
        Self {
            start: 1.0,
            end: 0.2,
            plies: 60,
        }
    }
}

impl Temperature {
    /// Most visits at every ply.
    pub const NONE: Self = Self {
        start: 0.0,
        end: 0.0,
        plies: 0,
    };

    /// The temperature at `ply`, counted from 0.
    pub fn at(&self, ply: u32) -> f32 {
        if ply >= self.plies {
            return self.end;
        }
        let share = ply as f32 / self.plies as f32;
        self.start + (self.end - self.start) * share
    }
}

impl SearchParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        within("visits", self.visits, 2.0, 100_000.0)?;
        for (name, temperature) in [
            ("policy_temperature", self.policy_temperature),
            ("root_policy_temperature", self.root_policy_temperature),
        ] {
            within(name, temperature, 0.1, 10.0)?;
        }
        inside("puct", self.puct.check())?;
        if let Some(noise) = &self.noise {
            within("noise.alpha", noise.alpha, 0.001, 100.0)?;
            within("noise.epsilon", noise.epsilon, 0.0, 1.0)?;
        }
        if let Some(forced) = &self.forced_playouts {
            within("forced_playouts.k", forced.k, 0.01, 100.0)?;
        }
        if let Some(stop) = &self.kld_stop {
            within("kld_stop.minimum_gain", stop.minimum_gain, 0.0, 1.0)?;
            within("kld_stop.interval", stop.interval, 2.0, 100_000.0)?;
        }
        if let RootSearch::Gumbel(gumbel) = &self.root {
            within("root.considered", gumbel.considered, 2.0, 256.0)?;
            within("root.c_visit", gumbel.c_visit, 0.0, 1e6)?;
            within("root.c_scale", gumbel.c_scale, 0.0, 1e6)?;
        }
        Ok(())
    }

    /// Checks that what was asked for can happen: that a search which is to end early has visits enough
    /// to do so. Apart from [`check`](Self::check), as runs that began without it go on.
    ///
    /// # Errors
    ///
    /// The first parameter that has no effect.
    pub fn check_effect(&self) -> Result<(), ParamsError> {
        match &self.kld_stop {
            Some(stop)
                if self.root == RootSearch::Puct
                    && self.visits < stop.interval.saturating_mul(2) =>
            {
                let allowed = format!("at most half of the visits, which are {}", self.visits);
                Err(outside("kld_stop.interval", stop.interval.into(), &allowed))
            }
            _ => Ok(()),
        }
    }

    /// Whether full searches have a policy target beside their visits: what a Gumbel root makes of
    /// them, or the visits that forced playouts leave.
    pub const fn has_target(&self) -> bool {
        match self.root {
            RootSearch::Puct => self.forced_playouts.is_some(),
            RootSearch::Gumbel(_) => true,
        }
    }
}

impl PuctParams {
    fn check(&self) -> Result<(), ParamsError> {
        within("c_base", self.c_base, 1.0, 1e9)?;
        within("c_init", self.c_init, 0.0, 100.0)?;
        match self.fpu {
            Fpu::Absolute { value } => within("fpu.value", value, -1.0, 1.0),
            Fpu::Reduction { value } => within("fpu.value", value, 0.0, 2.0),
        }
    }
}

impl Temperature {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        within("start", self.start, 0.0, 10.0)?;
        within("end", self.end, 0.0, 10.0)?;
        within("plies", self.plies, 0.0, 100_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_falls_linearly_and_stays() {
        let temperature = Temperature {
            start: 1.0,
            end: 0.2,
            plies: 40,
        };
        assert_eq!(temperature.at(0), 1.0);
        assert!((temperature.at(20) - 0.6).abs() < 1e-6);
        assert_eq!(temperature.at(40), 0.2);
        assert_eq!(Temperature::NONE.at(0), 0.0);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let params = SearchParams {
            visits: 1,
            ..SearchParams::default()
        };
        assert_eq!(params.check().unwrap_err().path, "visits");
        let noise = Some(Noise {
            alpha: f32::NAN,
            epsilon: 0.25,
        });
        let params = SearchParams {
            noise,
            ..SearchParams::default()
        };
        assert_eq!(params.check().unwrap_err().path, "noise.alpha");
        assert!(SearchParams::default().check().is_ok());
    }

    #[test]
    fn unknown_fields_are_ignored_and_missing_ones_default() {
        let json = r#"{"visits": 32, "root": {"kind": "gumbel", "considered": 8}, "future": 1}"#;
        let params: SearchParams = serde_json::from_str(json).unwrap();
        assert_eq!(params.visits, 32);
        let gumbel = GumbelParams {
            considered: 8,
            ..GumbelParams::default()
        };
        assert_eq!(params.root, RootSearch::Gumbel(gumbel));
    }
}
