//! What is done to a root before its first move is walked: policy temperature and noise.

use rand::distr::Distribution;
use rand_chacha::ChaCha8Rng;
use rand_distr::Gamma;
use rookery_common::params::{Noise, RootSearch};

use super::{Budget, Exploration, RootState, Search};
use crate::tree::{Edge, NodeId, Tree};

impl Search {
    /// Changes the root's priors as the parameters say. Only the root's: what a subtree holds
    /// stays as evaluated, and becomes another root's raw priors.
    pub(super) fn prepare_root(&mut self, budget: &Budget<'_>, rng: &mut ChaCha8Rng) {
        let params = &budget.settings.params;
        self.early_stop.begin();
        self.tree.sort_root();
        apply_temperature(
            self.tree.edges_mut(NodeId::ROOT),
            params.root_policy_temperature,
        );
        self.root = match &params.root {
            RootSearch::Puct => {
                if budget.exploration == Exploration::Noisy {
                    if let Some(noise) = &params.noise {
                        add_noise(&mut self.tree, noise, rng);
                    }
                    self.forced = params.forced_playouts.as_ref().map(|forced| forced.k);
                }
                RootState::Puct
            }
            RootSearch::Gumbel(gumbel) => {
                self.gumbel.prepare(&self.tree, budget, gumbel, rng);
                RootState::Gumbel
            }
        };
    }
}

/// Mixes Dirichlet noise into the root's priors: `(1 - epsilon) p + epsilon eta`.
pub(crate) fn add_noise(tree: &mut Tree, noise: &Noise, rng: &mut ChaCha8Rng) {
    let Ok(gamma) = Gamma::new(f64::from(noise.alpha), 1.0) else {
        return;
    };
    let edges = tree.edges_mut(NodeId::ROOT);
    let eta: Vec<f64> = edges.iter().map(|_| gamma.sample(rng)).collect();
    let sum: f64 = eta.iter().sum();
    // With a tiny alpha all samples may underflow.
    if sum > 0.0 {
        for (edge, eta) in edges.iter_mut().zip(eta) {
            edge.prior += noise.epsilon * ((eta / sum) as f32 - edge.prior);
        }
        tree.sort_root();
    }
}

/// Divides the logits behind priors by a temperature: `p^(1 / t)`, normalised. The order stays.
pub(crate) fn apply_temperature(edges: &mut [Edge], temperature: f32) {
    let highest = edges.first().map_or(0.0, |edge| edge.prior);
    if temperature == 1.0 || highest <= 0.0 {
        return;
    }
    for edge in edges.iter_mut() {
        edge.prior = (edge.prior / highest).powf(1.0 / temperature);
    }
    let sum: f32 = edges.iter().map(|edge| edge.prior).sum();
    edges.iter_mut().for_each(|edge| edge.prior /= sum);
}
