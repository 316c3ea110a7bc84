//! Two programs in AlphaZero's line: DeltaZero, which begins with games of people, and a thesis's AlphaZero, which begins
//! with nothing but puzzles. Search, self-play and training are Rookery's; here is what sets the two apart.
//!
//! ```text
//! rookery-trainer init -> warm start -> [ self-play -> chunks, PGN -> rookery-trainer train ] … -> match with the first
//! ```
//!
//! - [`rounds`]: that circle, and [`selfplay`]: its games;
//! - [`trainer`]: `rookery-trainer`, which knows libtorch, as another program;
//! - [`losses`]: the plot of what training logs; [`evaluation`]: a match in both colours.

pub mod evaluation;
pub mod losses;
pub mod rounds;
pub mod selfplay;
pub mod trainer;

use rookery_common::params::{
    AdjudicationParams, EngineParams, Fpu, LearningRate, Noise, Optimizer, PuctParams,
    PuzzleParams, ResignParams, SearchParams, SelfPlayParams, Temperature, TrainingParams,
};

rookery_common::names! {
    /// Which of the two; by the name that its network has in `rookery-trainer init`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum System {
        /// `DeltaZero`: `classic-19`, moves of a flat list, games of people first.
        DeltaZero = "deltazero",
        /// The thesis: `classic-19`, 73 planes of moves, self-play and puzzles.
        Thesis = "thesis",
    }
}

impl System {
    /// What `rookery-trainer init` is told: its own network, or one of another shape with the same input and outputs.
    pub fn network(self, shape: Option<&str>) -> Vec<&str> {
        let Some(shape) = shape else {
            return vec![self.name()];
        };
        let outputs = match self {
            Self::DeltaZero => "--policy flat-1968 --value-dropout 0.4",
            Self::Thesis => "--policy az-73",
        };
        let same = "--input classic-19 --value scalar --se-ratio 0";
        [shape]
            .into_iter()
            .chain(same.split(' '))
            .chain(outputs.split(' '))
            .collect()
    }

    /// How it searches where strength counts: PUCT with the published constants, 0 for moves without a visit, and no proofs
    /// of mates.
    pub fn search(self) -> SearchParams {
        let (c_base, c_init) = match self {
            Self::DeltaZero => (4.0, 1.0),
            Self::Thesis => (20_000.0, 2.0),
        };
        SearchParams {
            puct: PuctParams {
                c_base,
                c_init,
                fpu: Fpu::Absolute { value: 0.0 },
            },
            noise: None,
            solver: false,
            ..SearchParams::default()
        }
    }

    /// The same with its noise, in games to learn from.
    fn noisy_search(self, visits: u32) -> SearchParams {
        let (alpha, epsilon) = match self {
            Self::DeltaZero => (0.15, 0.1),
            Self::Thesis => (0.3, 0.25),
        };
        SearchParams {
            visits,
            noise: Some(Noise { alpha, epsilon }),
            ..self.search()
        }
    }

    /// How it plays itself. `DeltaZero` gives up below -0.85, samples ten plies ever more sharply, and lets an engine that sees two
    /// pawns more end games, if there is one.
    pub fn selfplay(self, visits: u32, ply_limit: u32) -> SelfPlayParams {
        let search = self.noisy_search(visits);
        let params = SelfPlayParams {
            search,
            ply_limit,
            ..SelfPlayParams::default()
        };
        match self {
            Self::DeltaZero => SelfPlayParams {
                temperature: Temperature {
                    start: 0.175,
                    end: 0.0,
                    plies: 10,
                },
                resign: Some(ResignParams {
                    threshold: -0.85,
                    ..ResignParams::default()
                }),
                adjudication: Some(AdjudicationParams {
                    win_value: 0.5,
                    engine: Some(EngineParams {
                        centipawns: 200,
                        ..EngineParams::default()
                    }),
                    ..AdjudicationParams::default()
                }),
                ..params
            },
            Self::Thesis => SelfPlayParams {
                temperature: Temperature {
                    start: 1.0,
                    end: 1.0,
                    plies: 0,
                },
                ..params
            },
        }
    }

    /// How it plays puzzles: four plies, as published.
    pub fn puzzles(self, visits: u32) -> PuzzleParams {
        PuzzleParams {
            search: self.noisy_search(visits),
            ply_limit: 4,
            ..PuzzleParams::default()
        }
    }

    /// How it learns: Adam, and the game's result alone as the value's target.
    pub fn training(self, learning_rate: f64) -> TrainingParams {
        TrainingParams {
            batch_size: match self {
                Self::DeltaZero => 256,
                Self::Thesis => 64,
            },
            optimizer: Optimizer::Adam,
            learning_rate: LearningRate {
                base: learning_rate,
                warmup_steps: 0,
                ..LearningRate::default()
            },
            q_ratio: 0.0,
            ..TrainingParams::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_in_range() {
        for system in [System::DeltaZero, System::Thesis] {
            assert_eq!(System::from_name(system.name()), Some(system));
            system.selfplay(100, 200).check().unwrap();
            system.puzzles(100).check().unwrap();
            system.training(0.001).check().unwrap();
            assert_eq!(system.training(0.001).optimizer, Optimizer::Adam);
            assert_eq!(system.search().noise, None);
            let searches = [system.search(), system.selfplay(100, 200).search];
            assert!(searches.iter().all(|search| !search.solver));
        }
        assert_eq!(System::from_name("dqn"), None);
    }

    #[test]
    fn constants_are_as_published() {
        for (system, batch, [c_base, c_init], [alpha, epsilon], [start, end], plies, threshold) in [
            (
                System::DeltaZero,
                256,
                [4.0, 1.0],
                [0.15, 0.1],
                [0.175, 0.0],
                10,
                Some(-0.85),
            ),
            (
                System::Thesis,
                64,
                [20_000.0, 2.0],
                [0.3, 0.25],
                [1.0, 1.0],
                0,
                None,
            ),
        ] {
            assert_eq!(system.training(0.001).batch_size, batch);
            let play = system.selfplay(100, 200);
            let puzzles = system.puzzles(100);
            let fpu = Fpu::Absolute { value: 0.0 };
            for search in [&play.search, &puzzles.search, &system.search()] {
                assert_eq!(
                    search.puct,
                    PuctParams {
                        c_base,
                        c_init,
                        fpu
                    }
                );
            }
            for search in [play.search, puzzles.search] {
                assert_eq!(search.noise, Some(Noise { alpha, epsilon }));
            }
            assert_eq!(play.temperature, Temperature { start, end, plies });
            assert_eq!(play.resign.map(|resign| resign.threshold), threshold);
            assert_eq!(puzzles.ply_limit, 4);
        }
        let judged = System::DeltaZero.selfplay(100, 200).adjudication.unwrap();
        assert_eq!((judged.win_value, judged.plies), (0.5, 8));
        assert_eq!(judged.engine.unwrap().centipawns, 200);
        assert_eq!(System::Thesis.selfplay(100, 200).adjudication, None);
    }

    #[test]
    fn a_small_network_differs_in_its_shape_alone() {
        assert_eq!(System::Thesis.network(None), ["thesis"]);
        let small = System::DeltaZero.network(Some("2x32")).join(" ");
        let expected = "2x32 --input classic-19 --value scalar --se-ratio 0 --policy flat-1968 --value-dropout 0.4";
        assert_eq!(small, expected);
    }
}
