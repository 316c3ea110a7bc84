//! Chunks with games of their own, cheaply.
//!
//! The engine plays a pool of games under the run's parameters. A
//! chunk takes games from the pool under its job's seeds, and in each of them some plies move a
//! visit to the move that has most, from another: a number written in binary along the plies. So no two
//! games are equal, all of them pass every check, and a chunk costs microseconds. Nothing in such a run may
//! be drawn by the seed of a game: its moves are those with most visits, and all searches are full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use hyper::body::Bytes;
use prost::Message as _;
use rookery_common::chunk::{GameRecord, wire};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::params::{SelfPlayParams, Temperature};
use rookery_common::protocol::jobs::{Job, Work};
use rookery_tests::player::{Chunk, header, honest_chunk, play};

/// Games of the pool.
const POOL: u32 = 32;
/// zstd's level: a fast one, since the generator shares the machine with what it measures.
const LEVEL: i32 = 3;

/// Games that were played for one set of parameters.
pub(crate) struct Pool {
    params: SelfPlayParams,
    header: wire::Header,
    games: Vec<Prepared>,
    next: AtomicU64,
}

struct Prepared {
    game: wire::Game,
    /// Where in the column of visits each ply's largest count begins, and another one that is not 0.
    shifts: Vec<(usize, usize)>,
}

/// A chunk, and its content to make others from.
pub(crate) struct Made {
    content: wire::Chunk,
    pub(crate) hash: ContentHash,
    pub(crate) bytes: Bytes,
}

/// What a lying worker does to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// A game under another seed.
    Seed,
    /// The result that the board does not show.
    Result,
    /// Another network than the leased one.
    Network,
    /// The games in an order that repeats an index.
    Index,
}

impl Lie {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Seed, Self::Result, Self::Network, Self::Index];
}

impl Pool {
    /// Plays the pool for jobs like this one.
    ///
    /// # Errors
    ///
    /// If it is no self-play job, or its games are too short to be told apart.
    pub(crate) fn play(job: &Job, seed: u64) -> anyhow::Result<Self> {
        let Work::SelfPlay {
            network, params, ..
        } = &job.work
        else {
            anyhow::bail!("the run hands out no self-play, but {:?}", job.work.kind());
        };
        ensure!(
            params.temperature == Temperature::NONE && params.full_search_share >= 1.0,
            "the run draws moves or efforts by the games' seeds"
        );
        let template = Job {
            seed: Seed(seed),
            work: Work::SelfPlay {
                network: *network,
                games: POOL,
                openings: Vec::new(),
                params: params.clone(),
            },
            ..job.clone()
        };
        let mut records = play(&template)?;
        let longest = records
            .iter()
            .map(|game| game.plies.len())
            .max()
            .unwrap_or(0);
        // Games of one length make chunks of one size.
        records.retain(|game| game.plies.len() == longest);
        let content = content(&Chunk::of(&header(&template), &records)?)?;
        let games: Vec<_> = content
            .games
            .into_iter()
            .zip(&records)
            .map(prepare)
            .collect();
        ensure!(!games.is_empty(), "the engine played no game");
        Ok(Self {
            params: params.clone(),
            header: content.header.context("a chunk has a header")?,
            games,
            next: AtomicU64::new(first_number()),
        })
    }

    /// A chunk with all games of a job, unlike every other.
    ///
    /// # Errors
    ///
    /// If the job cannot be played.
    pub(crate) fn chunk(&self, job: &Job) -> anyhow::Result<Made> {
        match &job.work {
            Work::SelfPlay {
                games,
                openings,
                params,
                ..
            } if openings.is_empty() && *params == self.params => Made::of(wire::Chunk {
                header: Some(self.header_of(job)),
                games: (0..*games).map(|index| self.game(job, index)).collect(),
            }),
            _ => Made::played(job),
        }
    }

    fn header_of(&self, job: &Job) -> wire::Header {
        wire::Header {
            run: job.run.to_string(),
            job: job.id.0.as_bytes().to_vec(),
            networks: job
                .work
                .networks()
                .iter()
                .map(|hash| hash.as_bytes().to_vec())
                .collect(),
            ..self.header.clone()
        }
    }

    fn game(&self, job: &Job, index: u32) -> wire::Game {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (place, digits) = (
            number % self.games.len() as u64,
            number / self.games.len() as u64,
        );
        let prepared = &self.games[place as usize];
        let mut game = prepared.game.clone();
        game.index = index;
        game.seed = job.seed.of_game(index).0;
        for (digit, (top, other)) in prepared.shifts.iter().take(64).enumerate() {
            let shifted = (digits >> digit & 1) as u8;
            game.visits[*top] += shifted;
            game.visits[*other] -= shifted;
        }
        game
    }
}

/// Where to begin to count, so that two swarms at one coordinator do not repeat each other.
fn first_number() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

fn prepare((game, record): (wire::Game, &GameRecord)) -> Prepared {
    let mut shifts = Vec::new();
    let mut place = 0;
    for (ply, rank) in record.plies.iter().zip(&game.moves) {
        let most = ply.visits.iter().max();
        let top = ply.visits.iter().position(|n| Some(n) == most);
        let (mut largest, mut other) = (None, None);
        for (index, count) in ply.visits.iter().enumerate() {
            // A count's first byte holds its lowest seven bits; one more or less must stay within them.
            if Some(index) == top {
                largest = (count % 128 != 127).then_some(place);
            } else if count % 128 > 0 {
                other = Some(place);
            }
            place += (32 - count.leading_zeros()).div_ceil(7).max(1) as usize;
        }
        // Of moves with equally many visits another one may have been played.
        shifts.extend(largest.zip(other).filter(|_| *rank == 0));
    }
    Prepared { game, shifts }
}

fn content(chunk: &Chunk) -> anyhow::Result<wire::Chunk> {
    Ok(wire::Chunk::decode(
        zstd::decode_all(&chunk.bytes[..])?.as_slice(),
    )?)
}

impl Made {
    /// A chunk whose games the engine plays now.
    ///
    /// # Errors
    ///
    /// If the job cannot be played.
    pub(crate) fn played(job: &Job) -> anyhow::Result<Self> {
        Self::of(content(&honest_chunk(job)?)?)
    }

    fn of(content: wire::Chunk) -> anyhow::Result<Self> {
        let message = content.encode_to_vec();
        let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
        encoder.set_pledged_src_size(Some(message.len() as u64))?;
        encoder.include_checksum(true)?;
        std::io::Write::write_all(&mut encoder, &message)?;
        let bytes = encoder.finish()?;
        Ok(Self {
            content,
            hash: ContentHash::of(&bytes),
            bytes: bytes.into(),
        })
    }

    /// The same games in another file.
    ///
    /// # Errors
    ///
    /// If it cannot be compressed.
    pub(crate) fn repacked(&self) -> anyhow::Result<Self> {
        let mut content = self.content.clone();
        if let Some(header) = &mut content.header {
            header.worker_version.push_str("-again");
        }
        Self::of(content)
    }

    /// The same chunk with a lie in it.
    ///
    /// # Errors
    ///
    /// If it cannot be compressed.
    pub(crate) fn with(&self, lie: Lie) -> anyhow::Result<Self> {
        let mut content = self.content.clone();
        let game = content.games.first_mut().context("a chunk has a game")?;
        match lie {
            Lie::Seed => game.seed ^= 1,
            Lie::Index => game.index = u32::MAX,
            Lie::Result => {
                let white = wire::Result::WhiteWins.into();
                let black = wire::Result::BlackWins.into();
                game.result = if game.result == white { black } else { white };
            }
            Lie::Network => {
                let header = content.header.as_mut().context("a chunk has a header")?;
                header.networks = vec![ContentHash::of(b"weaker").as_bytes().to_vec()];
            }
        }
        Self::of(content)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rookery_common::chunk::{Caps, Lease, verify};
    use rookery_common::ids::{JobId, RunName};
    use rookery_tests::params::tiny;

    use super::*;

    fn job(seed: u64) -> Job {
        let run: RunName = "main".parse().expect("a run's name");
        let mut params = tiny().selfplay;
        params.temperature = Temperature::NONE;
        let network = ContentHash::of(b"network");
        let id = Seed(seed).of_game(0).0;
        Job {
            id: JobId(uuid_of(id)),
            run,
            lease_seconds: 60,
            heartbeat_seconds: 20,
            seed: Seed(seed),
            work: Work::SelfPlay {
                network,
                games: 3,
                openings: Vec::new(),
                params,
            },
            networks: Vec::new(),
            run_key: None,
            notices: Vec::new(),
        }
    }

    fn uuid_of(n: u64) -> uuid::Uuid {
        uuid::Uuid::from_u64_pair(n, n)
    }

    #[test]
    fn every_chunk_is_valid_and_every_game_is_another() {
        let pool = Pool::play(&job(1), 1).expect("a pool");
        let mut prints = HashSet::new();
        for seed in 0..100 {
            let job = job(seed);
            let made = pool.chunk(&job).expect("a chunk");
            let lease = Lease {
                run: &job.run,
                job: job.id,
                seed: job.seed,
                work: &job.work,
                tables: None,
            };
            let verified = verify(&made.bytes, &Caps::default(), &lease).expect("an honest chunk");
            assert_eq!(verified.games.len(), 3);
            for game in verified.games {
                assert!(
                    prints.insert(game.fingerprint),
                    "game {} of job {seed}",
                    game.index
                );
            }
            for lie in Lie::ALL {
                let lied = made.with(lie).expect("a lie");
                assert!(
                    verify(&lied.bytes, &Caps::default(), &lease).is_err(),
                    "{lie:?}"
                );
            }
            assert_ne!(made.repacked().expect("another file").hash, made.hash);
        }
    }
}
