//! Files to blocks, on a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rookery_common::pgn::{PgnGame, Skipped};
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::filter::Filter;
use rookery_cli::pgn::{BytesRead, Ended, each_game};

/// What is read, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The files, in this order.
    pub files: Vec<PathBuf>,
    /// How often all of them are read.
    pub epochs: u32,
    /// What is learnt from a game.
    pub filter: Filter,
    /// Share of the games held out, chosen by their moves.
    pub held_out: f64,
    /// Positions of a block, at least.
    pub block: usize,
    /// The seed of all chance.
    pub seed: u64,
}

/// How far reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// Passes over all files that are complete.
    pub epoch: u32,
    /// Games of this pass that were read, those passed over among them.
    pub games: u64,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Games that were trained on.
    pub games: u64,
    /// Games held out.
    pub held_out: u64,
    /// Positions encoded for training.
    pub positions: u64,
    /// Games passed over, by reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Files whose rest could not be read.
    pub broken_files: u64,
}

impl Counts {
    /// Games that were used or passed over.
    pub fn games_read(&self) -> u64 {
        self.games + self.held_out + self.skipped.values().sum::<u64>()
    }
}

/// A block with what belongs to it.
#[derive(Debug)]
pub struct Read {
    /// Positions to train on.
    pub block: Block,
    /// Where the block begins.
    pub begin: Place,
    /// Where the next one does.
    pub end: Place,
    /// What was read since the stream began, this block among it.
    pub counts: Counts,
    /// Positions held out so far, the first ones met.
    pub held_out: Arc<Block>,
}

/// Blocks, being made. Dropping the stream ends its thread.
#[derive(Debug)]
pub struct Stream {
    blocks: Option<Receiver<anyhow::Result<Read>>>,
    thread: Option<JoinHandle<()>>,
    read: BytesRead,
}

/// Positions held out that are kept.
const HELD_OUT: usize = 16_384;

impl Stream {
    /// Begins to read after `from` into blocks like this empty one; `counts` are those up to there.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(plan: Plan, empty: Block, from: Place, counts: Counts) -> io::Result<Self> {
        let read = BytesRead::default();
        let (sender, blocks) = sync_channel(0);
        let mut maker = Maker {
            read: BytesRead::clone(&read),
            block: empty.clone(),
            held_out: Arc::new(empty.clone()),
            first_epoch: from.epoch,
            empty,
            counts,
            begin: from,
            here: Place {
                epoch: from.epoch,
                games: 0,
            },
            plan,
        };
        let thread = std::thread::Builder::new().name("pgn".to_owned());
        let thread = thread.spawn(move || {
            if let Err(error) = maker.run(&sender) {
                // Without a receiver the reason is dropped.
                drop(sender.send(Err(error)));
            }
        })?;
        Ok(Self {
            blocks: Some(blocks),
            thread: Some(thread),
            read,
        })
    }

    /// The next block; none after the last.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn next_block(&self) -> anyhow::Result<Option<Read>> {
        match self.blocks.as_ref().map(Receiver::recv) {
            Some(Ok(block)) => block.map(Some),
            Some(Err(_)) | None => Ok(None),
        }
    }

    /// Bytes of the files that were read, as they are on disk.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.blocks.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

/// The thread's state.
struct Maker {
    plan: Plan,
    read: BytesRead,
    block: Block,
    held_out: Arc<Block>,
    /// A block without positions, to measure one game in.
    empty: Block,
    counts: Counts,
    begin: Place,
    here: Place,
    /// The pass in which positions are held out; later ones meet the same games.
    first_epoch: u32,
}

/// The receiver of the blocks is gone.
struct Gone;

impl Maker {
    fn run(&mut self, sender: &SyncSender<anyhow::Result<Read>>) -> anyhow::Result<()> {
        while self.here.epoch < self.plan.epochs {
            for path in self.plan.files.clone() {
                if self.read_file(&path, sender)?.is_err() {
                    return Ok(());
                }
            }
            self.here = Place {
                epoch: self.here.epoch + 1,
                games: 0,
            };
        }
        // What is left, and the last counts. A receiver that is gone is no error.
        self.hand_over(sender).unwrap_or(());
        Ok(())
    }

    fn read_file(
        &mut self,
        path: &Path,
        sender: &SyncSender<anyhow::Result<Read>>,
    ) -> anyhow::Result<Result<(), Gone>> {
        let read = BytesRead::clone(&self.read);
        let ended = each_game(path, &read, |game| {
            self.take(game);
            let full = self.block.len() >= self.plan.block;
            Ok(if full && self.hand_over(sender).is_err() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        self.counts.broken_files += u64::from(ended == Ended::Broken);
        Ok(if ended == Ended::Stopped {
            Err(Gone)
        } else {
            Ok(())
        })
    }

    /// Takes a game in, unless it lies before the place to begin at.
    fn take(&mut self, game: Result<PgnGame, Skipped>) {
        let passed = self.here.epoch == self.begin.epoch && self.here.games < self.begin.games;
        self.here.games += 1;
        let added = game.and_then(|game| self.add(&game, passed));
        if let Err(reason) = added
            && !passed
            // Every pass meets the same ones.
            && self.here.epoch == 0
        {
            *self.counts.skipped.entry(reason).or_default() += 1;
        }
    }

    fn add(&mut self, game: &PgnGame, passed: bool) -> Result<(), Skipped> {
        let (hash, filter) = (game.fingerprint(), self.plan.filter);
        let held_out = (hash >> 11) as f64 / 2_f64.powi(53) < self.plan.held_out;
        if held_out {
            // Games that are passed over count too, so that it is always the same set.
            if self.here.epoch == self.first_epoch && self.held_out.len() < HELD_OUT {
                self.empty.clear();
                self.empty.add(game, &filter, hash)?;
                Arc::make_mut(&mut self.held_out).take_from(&self.empty, HELD_OUT);
            }
            self.counts.held_out += u64::from(!passed && self.here.epoch == 0);
            return Ok(());
        }
        if passed {
            return Ok(());
        }
        let before = self.block.len();
        let seed = hash ^ self.plan.seed ^ u64::from(self.here.epoch);
        self.block.add(game, &filter, seed)?;
        self.counts.games += 1;
        self.counts.positions += (self.block.len() - before) as u64;
        Ok(())
    }

    fn hand_over(&mut self, sender: &SyncSender<anyhow::Result<Read>>) -> Result<(), Gone> {
        let mut empty = self.empty.clone();
        empty.clear();
        let read = Read {
            block: std::mem::replace(&mut self.block, empty),
            begin: self.begin,
            end: self.here,
            counts: self.counts.clone(),
            held_out: Arc::clone(&self.held_out),
        };
        self.begin = self.here;
        sender.send(Ok(read)).map_err(|_| Gone)
    }
}
