//! From bytes to games, one at a time, each replayed move by move.

use prost::Message;

use super::error::{ChunkError, ChunkErrorCode};
use super::frame::{Field, Frame};
use super::record::GameRecord;
use super::replay::Replayed;
use super::{Caps, FORMAT_VERSION, replay, wire};
use crate::ids::{ContentHash, JobId, RunName};
use crate::protocol::jobs::{Backend, WorkKind};
use crate::text::is_plain;

/// What a chunk says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The run.
    pub run: RunName,
    /// The job.
    pub job: JobId,
    /// The networks: the only one, or the candidate and its opponent.
    pub networks: Vec<ContentHash>,
    /// The worker's program version, at most 64 characters.
    pub worker_version: String,
    /// Where evaluations were computed.
    pub backend: Backend,
    /// What the games were played for.
    pub kind: WorkKind,
}

/// Reads a chunk game by game; only one game is in memory at a time.
pub struct ChunkReader<'a> {
    frame: Frame<'a>,
    caps: Caps,
    header: ChunkHeader,
    games: u32,
}

impl<'a> ChunkReader<'a> {
    /// Opens a chunk and reads its header.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the bytes are no chunk of a known version, or exceed the caps.
    pub fn open(bytes: &'a [u8], caps: &Caps) -> Result<Self, ChunkError> {
        let mut frame = Frame::open(bytes, caps)?;
        let Some(Field::Header(message)) = frame.next_field()? else {
            let detail = "the content does not begin with a header";
            return Err(ChunkError::new(ChunkErrorCode::BadSchema, detail));
        };
        let wire = parse::<wire::Header>(message)?;
        let known = wire.encoded_len();
        // A later version may have more fields; it is refused as such.
        let header = ChunkHeader::from_wire(wire)?;
        check_length(message, known)?;
        Ok(Self {
            frame,
            caps: *caps,
            header,
            games: 0,
        })
    }

    /// What the chunk says of itself.
    pub const fn header(&self) -> &ChunkHeader {
        &self.header
    }

    /// The next game, or none at the chunk's end.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] naming the game and ply if a move is not legal, counts do not fit, a value
    /// is out of range, or result and termination are not what the board shows.
    pub fn next_game(&mut self) -> Result<Option<GameRecord>, ChunkError> {
        Ok(self.next_replayed()?.map(|replayed| replayed.game))
    }

    /// The next game with what replaying it has shown.
    pub(super) fn next_replayed(&mut self) -> Result<Option<Replayed>, ChunkError> {
        let (place, kind, caps) = (self.games, self.header.kind, self.caps);
        let Some(message) = self.next_message()? else {
            return Ok(None);
        };
        let game = parse::<wire::Game>(message)
            .and_then(|game| check_length(message, game.encoded_len()).map(|()| game))
            .and_then(|game| replay::game_from_wire(&game, kind, &caps));
        game.map(Some).map_err(|error| error.in_game(place))
    }

    /// Bytes of the chunk's content read so far: of all of it, once there is no next game.
    pub(super) fn content_bytes(&self) -> usize {
        self.frame.bytes_read()
    }

    /// Passes over the next game without looking into it; false at the chunk's end.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the chunk exceeds the caps, or is cut off or damaged before its next game.
    pub fn skip_game(&mut self) -> Result<bool, ChunkError> {
        self.next_message().map(|message| message.is_some())
    }

    /// The next game as it stands in the chunk, or none at the chunk's end.
    fn next_message(&mut self) -> Result<Option<&[u8]>, ChunkError> {
        let place = self.games;
        let message = match self.frame.next_field()? {
            Some(Field::Game(message)) => message,
            Some(Field::Header(_)) => {
                let detail = "the content has a second header";
                return Err(ChunkError::new(ChunkErrorCode::BadSchema, detail));
            }
            None if place == 0 => {
                return Err(ChunkError::new(
                    ChunkErrorCode::Empty,
                    "the chunk holds no game",
                ));
            }
            None => return Ok(None),
        };
        if place == self.caps.games {
            let detail = format!("the chunk holds more than {} games", self.caps.games);
            return Err(ChunkError::new(ChunkErrorCode::TooLarge, detail));
        }
        self.games += 1;
        Ok(Some(message))
    }
}

/// Reads a whole chunk.
///
/// # Errors
///
/// As [`ChunkReader::open`] and [`ChunkReader::next_game`].
///
/// # Examples
///
/// ```
/// use rookery_common::chess::{GameEnd, GameHistory, Termination};
/// use rookery_common::chunk::{
///     Caps, ChunkHeader, GameKind, GameRecord, GameStart, encode, read,
/// };
/// use rookery_common::ids::{ContentHash, JobId, Seed};
/// use rookery_common::protocol::jobs::{Backend, WorkKind};
///
/// let header = ChunkHeader {
///     run: "main".parse()?,
///     job: JobId(uuid::Uuid::nil()),
///     networks: vec![ContentHash::of(b"a network's file")],
///     worker_version: "0.1.0".to_owned(),
///     backend: Backend::CpuF32,
///     kind: WorkKind::SelfPlay,
/// };
/// let game = GameRecord {
///     index: 0,
///     kind: GameKind::SelfPlay { play_on: false },
///     seed: Seed(1),
///     start: GameStart::default(),
///     plies: Vec::new(),
///     end: GameEnd::draw(Termination::PlyLimit),
/// };
/// let bytes = encode(&header, &[game.clone()])?;
/// assert_eq!(read(&bytes, &Caps::default())?, (header, vec![game]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(bytes: &[u8], caps: &Caps) -> Result<(ChunkHeader, Vec<GameRecord>), ChunkError> {
    let mut reader = ChunkReader::open(bytes, caps)?;
    let mut games = Vec::new();
    while let Some(game) = reader.next_game()? {
        games.push(game);
    }
    Ok((reader.header, games))
}

fn parse<M: Message + Default>(message: &[u8]) -> Result<M, ChunkError> {
    M::decode(message)
        .map_err(|error| ChunkError::new(ChunkErrorCode::BadSchema, error.to_string()))
}

/// Refuses a message that is longer than what was read from it: no check covers fields that are not
/// known, and chunks are kept and handed on.
fn check_length(message: &[u8], known: usize) -> Result<(), ChunkError> {
    if message.len() == known {
        return Ok(());
    }
    let detail = format!(
        "a message has {} bytes for what fits into {known}: it has fields that are not known, or the same twice",
        message.len()
    );
    Err(ChunkError::new(ChunkErrorCode::BadSchema, detail))
}

impl ChunkHeader {
    fn from_wire(header: wire::Header) -> Result<Self, ChunkError> {
        let bad = |what: &str| ChunkError::new(ChunkErrorCode::BadSchema, what);
        if header.version != FORMAT_VERSION {
            let detail = format!(
                "format version {}, known is {FORMAT_VERSION}",
                header.version
            );
            return Err(ChunkError::new(ChunkErrorCode::BadVersion, detail));
        }
        let kind = header
            .kind()
            .known()
            .ok_or_else(|| bad("the header names no kind of games"))?;
        let expected = match kind {
            WorkKind::SelfPlay | WorkKind::Puzzles => 1..=1,
            WorkKind::Match => 2..=2,
            WorkKind::Audit => 1..=2,
        };
        if !expected.contains(&header.networks.len()) {
            return Err(bad(&format!(
                "{} networks, expected {}",
                header.networks.len(),
                expected.end()
            )));
        }
        let networks = header
            .networks
            .iter()
            .map(|hash| <[u8; 32]>::try_from(hash.as_slice()).map(ContentHash::from_bytes))
            .collect::<Result<_, _>>()
            .map_err(|_| bad("a network's hash is not 32 bytes"))?;
        let job = uuid::Uuid::from_slice(&header.job)
            .map_err(|_| bad("the job's identifier is not 16 bytes"))?;
        if !is_plain(&header.worker_version, 64) {
            return Err(bad(
                "the worker's version is longer than 64 characters, or has characters of control",
            ));
        }
        Ok(Self {
            run: header
                .run
                .parse()
                .map_err(|_| bad("the run's name is not one"))?,
            job: JobId(job),
            networks,
            worker_version: header.worker_version,
            backend: Backend::from_name(&header.backend)
                .ok_or_else(|| bad("the backend is not a known one"))?,
            kind,
        })
    }

    pub(super) fn to_wire(&self) -> wire::Header {
        wire::Header {
            version: FORMAT_VERSION,
            run: self.run.as_str().to_owned(),
            job: self.job.0.as_bytes().to_vec(),
            networks: self
                .networks
                .iter()
                .map(|hash| hash.as_bytes().to_vec())
                .collect(),
            worker_version: self.worker_version.clone(),
            backend: self.backend.name().to_owned(),
            kind: wire::Kind::from(self.kind).into(),
        }
    }
}
