//! The sequential test on pairs: play until the counts decide between two hypotheses.
//!
//! A generalised sequential probability ratio test (GSPRT) on the pentanomial counts, as fishtest
//! runs it (`server/fishtest/stats/LLRcalc.py`): the log-likelihood ratio (LLR) compares the best
//! distributions of pair scores that have exactly the strength `elo1` and `elo0`. Theory: M. Van den
//! Bergh, <https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf> (logistic) and
//! <https://www.cantate.be/Fishtest/normalized_elo_practical.pdf> (normalised); bounds: A. Wald,
//! *Sequential Analysis* (1947). fishtest's correction for overshooting a bound is left out, so the
//! error rates are kept with a little to spare.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::elo::{NELO_PER_DEVIATION, score_from_elo};
use super::error::{RatingError, within};
use super::multinomial::Shares;
use super::pentanomial::Pentanomial;

/// Largest hypothesis in logistic Elo.
const MAX_ELO: f64 = 1000.0;
/// Largest hypothesis in normalised Elo: beyond it the likelihood's iteration may not settle.
const MAX_NELO: f64 = 200.0;
/// Smallest error rate.
const MIN_ERROR: f64 = 1e-9;
/// Largest error rate.
const MAX_ERROR: f64 = 0.499;

/// The scale on which the hypotheses are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EloModel {
    /// Logistic Elo: a hypothesis fixes the mean score.
    #[default]
    Logistic,
    /// Normalised Elo: a hypothesis fixes the mean score in deviations of one game.
    #[serde(alias = "normalized")]
    Normalised,
}

/// What a sequential test distinguishes, and how surely.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SprtParams {
    /// H0: the candidate is this many points stronger, or fewer. -1,000 to 1,000 (normalised: 200).
    pub elo0: f64,
    /// H1: the candidate is this many points stronger, or more. Above `elo0`.
    pub elo1: f64,
    /// Probability of accepting H1 at `elo0`, below 0.5.
    pub alpha: f64,
    /// Probability of accepting H0 at `elo1`, below 0.5.
    pub beta: f64,
    /// The scale of `elo0` and `elo1`.
    #[serde(default)]
    pub model: EloModel,
}

/// What the test says so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More pairs are needed.
    Continue,
    /// The candidate is stronger: `elo1` fits better than `elo0`.
    AcceptH1,
    /// The candidate is not stronger: `elo0` fits better than `elo1`.
    AcceptH0,
}

/// Where a sequential test stands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SprtStatus {
    /// Log-likelihood ratio of H1 over H0, in nats.
    pub llr: f64,
    /// At or below it H0 is accepted.
    pub lower: f64,
    /// At or above it H1 is accepted.
    pub upper: f64,
    /// What follows.
    pub verdict: Verdict,
}

impl Default for SprtParams {
    /// 0 against 30 Elo with errors of 5 %.
    fn default() -> Self {
        Self {
            elo0: 0.0,
            elo1: 30.0,
            alpha: 0.05,
            beta: 0.05,
            model: EloModel::Logistic,
        }
    }
}

impl SprtParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is not a number or outside, or hypotheses in the wrong order.
    pub fn check(&self) -> Result<(), RatingError> {
        let most = match self.model {
            EloModel::Logistic => MAX_ELO,
            EloModel::Normalised => MAX_NELO,
        };
        within("elo0", self.elo0, -most, most)?;
        within("elo1", self.elo1, -most, most)?;
        within("alpha", self.alpha, MIN_ERROR, MAX_ERROR)?;
        within("beta", self.beta, MIN_ERROR, MAX_ERROR)?;
        if self.elo0 < self.elo1 {
            Ok(())
        } else {
            Err(RatingError::HypothesesOrder {
                elo0: self.elo0,
                elo1: self.elo1,
            })
        }
    }

    /// Wald's bounds on the log-likelihood ratio: `ln(beta / (1 - alpha))` and
    /// `ln((1 - beta) / alpha)`.
    pub fn bounds(&self) -> (f64, f64) {
        (
            (self.beta / (1.0 - self.alpha)).ln(),
            ((1.0 - self.beta) / self.alpha).ln(),
        )
    }

    /// The log-likelihood ratio of H1 over H0 in nats; 0 without pairs.
    ///
    /// # Errors
    ///
    /// Parameters that [`SprtParams::check`] refuses.
    pub fn llr(&self, pairs: &Pentanomial) -> Result<f64, RatingError> {
        self.check()?;
        if pairs.pairs() == 0 {
            return Ok(0.0);
        }
        let shares = Shares::new(&pairs.counts);
        let (at0, at1) = (
            self.loss(&shares, self.elo0)?,
            self.loss(&shares, self.elo1)?,
        );
        Ok(shares.total() * (at0 - at1))
    }

    /// The log-likelihood ratio, its bounds and what follows.
    ///
    /// # Errors
    ///
    /// Parameters that [`SprtParams::check`] refuses.
    pub fn status(&self, pairs: &Pentanomial) -> Result<SprtStatus, RatingError> {
        let llr = self.llr(pairs)?;
        let (lower, upper) = self.bounds();
        let verdict = if llr >= upper {
            Verdict::AcceptH1
        } else if llr <= lower {
            Verdict::AcceptH0
        } else {
            Verdict::Continue
        };
        Ok(SprtStatus {
            llr,
            lower,
            upper,
            verdict,
        })
    }

    /// The log-likelihood lost, for each pair, if the true strength is `elo`.
    fn loss(&self, shares: &Shares<5>, elo: f64) -> Result<f64, RatingError> {
        match self.model {
            EloModel::Logistic => Ok(shares.loss_at_mean(score_from_elo(elo))),
            // A pair's mean has the deviation of one game over the root of 2.
            EloModel::Normalised => {
                shares.loss_at_ratio(elo / NELO_PER_DEVIATION * std::f64::consts::SQRT_2)
            }
        }
    }
}

#[cfg(test)]
mod tests;
