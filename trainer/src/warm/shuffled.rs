//! The batches of a block, for threads that make them ahead of the training step.

use rookery_train::TrainBatch;

use super::block::Block;
use crate::pipeline::{BatchSource, Sampler};

/// A block in the order in which it is learnt.
#[derive(Debug)]
pub struct Shuffled {
    block: Block,
    order: Vec<u32>,
    mirroring: Mirroring,
    size: usize,
}

/// Which positions are mirrored, where they can be.
#[derive(Debug, Clone, Copy)]
pub struct Mirroring {
    /// The seed of that choice.
    pub sampler: Sampler,
    /// The share of them.
    pub share: f64,
    /// Steps that were taken before the block's first batch: the choice follows from the step.
    pub first_step: u64,
}

impl Shuffled {
    /// A block shuffled by this seed, for batches of `size` positions.
    pub fn new(block: Block, seed: u64, size: usize, mirroring: Mirroring) -> Self {
        let order = block.order(seed);
        Self {
            block,
            order,
            mirroring,
            size: size.max(1),
        }
    }

    /// How many batches there are. The last one may be smaller; one of less than half the size teaches noise, and is none.
    pub fn batches(&self) -> u64 {
        let rest = self.order.len() % self.size;
        (self.order.len() / self.size + usize::from(2 * rest >= self.size)) as u64
    }

    fn places(&self, number: u64) -> &[u32] {
        let places = self.order.chunks(self.size).nth(number as usize);
        places.unwrap_or_default()
    }
}

impl BatchSource for Shuffled {
    fn empty(&self) -> TrainBatch {
        self.block.batch(&[])
    }

    fn make(&self, number: u64, batch: &mut TrainBatch) {
        let places = self.places(number);
        let Mirroring {
            sampler,
            share,
            first_step,
        } = self.mirroring;
        let mirrored = sampler.mirrored(first_step + number, places.len(), share);
        self.block.batch_into(batch, places);
        self.block.mirror(batch, places, &mirrored);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::NetworkSpec;
    use rookery_common::pgn::Games;

    use super::super::filter::Filter;
    use super::*;
    use crate::pipeline::Prefetcher;

    /// Positions of a king and a pawn against a king, all of which can be mirrored.
    fn block(positions: usize) -> Block {
        let moves = [
            "Ka2 Kd7", "Kb1 Ke8", "Kc1 Kd8", "Kb2 Ke7", "Ka1 Kf8", "Kb1 Kg8",
        ];
        let moves = moves.iter().zip(1..).map(|(m, n)| format!("{n}. {m} "));
        let game = format!(
            "[WhiteElo \"2000\"]\n[BlackElo \"1500\"]\n[FEN \"4k3/8/8/8/8/8/6P1/1K6 w - - 0 1\"]\n[Result \"1-0\"]\n\n{}1-0\n",
            moves.collect::<String>()
        );
        let read = Games::new(game.as_bytes()).next();
        let filter = Filter {
            min_elo: 0.0,
            assumed_elo: None,
            skip_plies: 0,
            positions_per_game: None,
        };
        let spec = NetworkSpec::resnet(1, 8);
        let mut one = Block::new(&spec, 0.25);
        one.add(&read.unwrap().unwrap().unwrap(), &filter, 1)
            .unwrap();
        assert_eq!(one.len(), 12);
        let mut all = Block::new(&spec, 0.25);
        while all.len() < positions {
            all.take_from(&one, positions);
        }
        all
    }

    fn shuffled(positions: usize, share: f64) -> Shuffled {
        let mirroring = Mirroring {
            sampler: Sampler {
                seed: 5,
                candidate: 0,
            },
            share,
            first_step: 100,
        };
        Shuffled::new(block(positions), 7, 16, mirroring)
    }

    #[test]
    fn a_block_has_no_batch_of_a_few_positions() {
        for (positions, batches) in [(1, 0), (7, 0), (8, 1), (16, 1), (23, 1), (24, 2), (40, 3)] {
            assert_eq!(shuffled(positions, 0.0).batches(), batches, "{positions}");
        }
    }

    /// As one after the other gives them, from wherever a warm start goes on.
    #[test]
    fn batches_made_ahead_are_those_of_the_blocks_order() {
        let (block, order) = (block(120), block(120).order(7));
        let sampler = Sampler {
            seed: 5,
            candidate: 0,
        };
        let mut turned = 0;
        for (begin, threads) in [(0, 1), (3, 1), (3, 2)] {
            let source = shuffled(120, 0.5);
            assert_eq!(source.batches(), 8);
            let mut batches = Prefetcher::start(source, begin..8, threads).unwrap();
            for number in begin..8 {
                let places = order.chunks(16).nth(number as usize).unwrap();
                let (plain, mut expected) = (block.batch(places), block.batch(places));
                let mirrored = sampler.mirrored(100 + number, places.len(), 0.5);
                block.mirror(&mut expected, places, &mirrored);
                let found = batches.next_batch().unwrap();
                assert_eq!(found.positions.binary(), expected.positions.binary());
                assert_eq!(found.positions.moves(), expected.positions.moves());
                assert_eq!(found.policy, expected.policy);
                assert_eq!(found.values, expected.values);
                assert_eq!(found.ahead, expected.ahead);
                turned += usize::from(plain.positions.binary() != found.positions.binary());
                batches.give_back(found);
            }
            assert!(batches.next_batch().is_none());
        }
        assert!(turned > 10, "{turned}");
    }
}
