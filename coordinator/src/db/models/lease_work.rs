//! How the ledger keeps the work of a lease: by reference.
//!
//! ```text
//! jobs.work: {"by":"puzzles","rules":HASH,"puzzles":64,"of":9000} ──> lease_values: rules, opening books
//!            + jobs.seed ─────────────────────────────────────────> puzzles of the run that were drawn
//! ```
//!
//! A job of puzzles is 100 kB and more as a worker gets it, and is some 150 bytes here. Everything that a
//! reference names stays as it is: rules and books are found by their hashes, puzzles are never renumbered,
//! and the draws ([`crate::random::sample`], [`OpeningBook::draw`], [`OpeningBook::of_pairs`]) are the same in every
//! version. Leases of earlier versions have the work itself in the column.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rookery_common::ids::{ContentHash, MatchId, Seed};
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::audits::AuditedRules;
use rookery_common::protocol::jobs::{PairTask, Work};
use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::puzzles;
use crate::db::sql::rows::{from_json, hash, to_json, unreadable};
use crate::db::sql::statement::{LISTED, Statement, parts};

/// The work of a lease, as its column has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub(crate) enum WorkReference {
    /// Self-play games; the openings follow from the book and the job's seed.
    SelfPlay {
        rules: ContentHash,
        games: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        book: Option<ContentHash>,
    },
    /// Puzzles drawn by the job's seed of the first `of` puzzles of the run.
    Puzzles {
        rules: ContentHash,
        puzzles: u32,
        of: u32,
    },
    /// Pairs of a match from `first` on, whose openings follow from the book and the match's seed.
    Match {
        rules: ContentHash,
        match_id: MatchId,
        match_seed: Seed,
        first: u32,
        pairs: u32,
        book: ContentHash,
    },
    /// The tasks are those of the audit that the job makes, as long as it does.
    Audit,
}

/// Something that many leases have in common.
#[derive(Debug, Clone)]
pub(crate) enum LeaseValue {
    /// How games are played, by which networks.
    Rules(Arc<AuditedRules>),
    Book(Arc<OpeningBook>),
}

impl LeaseValue {
    fn content(&self) -> Result<String> {
        match self {
            Self::Rules(rules) => to_json(&**rules),
            Self::Book(book) => Ok(book.to_lines()),
        }
    }
}

/// What a lease names, by its hash.
pub(crate) type Named = Vec<(ContentHash, LeaseValue)>;

pub(crate) fn name_rules(rules: AuditedRules, named: &mut Named) -> Result<ContentHash> {
    let hash = ContentHash::of(to_json(&rules)?.as_bytes());
    named.push((hash, LeaseValue::Rules(Arc::new(rules))));
    Ok(hash)
}

pub(crate) fn name_book(book: &Arc<OpeningBook>, named: &mut Named) -> ContentHash {
    named.push((book.hash(), LeaseValue::Book(book.clone())));
    book.hash()
}

/// Enters those values that the ledger does not have yet.
pub(crate) async fn enter(
    conn: &mut AnyConnection,
    values: &HashMap<ContentHash, LeaseValue>,
) -> Result<()> {
    let hashes: Vec<ContentHash> = values.keys().copied().collect();
    let mut missing = values.clone();
    for part in hashes.chunks(LISTED) {
        let mut query = Statement::new("SELECT hash FROM lease_values WHERE hash IN (");
        let columns: Vec<_> = part.iter().map(column).collect();
        query.bind_all(&columns)?.push(")");
        let known: Vec<(Vec<u8>,)> = query.fetch_all(&mut *conn).await?;
        for (bytes,) in known {
            missing.remove(&hash(&bytes)?);
        }
    }
    let missing: Vec<_> = missing.into_iter().collect();
    for part in parts(&missing) {
        let mut query = Statement::new("INSERT INTO lease_values (hash, content)");
        query.rows(part, |row, (hash, value)| {
            row.bind(column(hash))?.bind(value.content()?)?;
            Ok(())
        })?;
        query.execute(conn).await?;
    }
    Ok(())
}

fn column(hash: &ContentHash) -> Vec<u8> {
    hash.as_bytes().to_vec()
}

/// Rules that are kept in memory: one for each network that is played with, of each kind.
const RULES: usize = 256;
/// Books that are kept in memory: those of runs, and of jobs whose games come in. A million positions take some 100 MB.
const BOOKS: usize = 8;

/// A cache of [`LeaseValue`]s, whose hashes say what they are for good.
#[derive(Debug, Default)]
pub(crate) struct LeaseValues {
    rules: Mutex<HashMap<ContentHash, Arc<AuditedRules>>>,
    books: Mutex<HashMap<ContentHash, Arc<OpeningBook>>>,
}

impl LeaseValues {
    async fn rules(
        &self,
        conn: &mut AnyConnection,
        name: ContentHash,
    ) -> Result<Arc<AuditedRules>> {
        if let Some(known) = get(&self.rules, &name) {
            return Ok(known);
        }
        let rules = Arc::new(from_json("rules", &content(conn, name).await?)?);
        Ok(cache(&self.rules, RULES, name, rules))
    }

    pub(crate) async fn book(
        &self,
        conn: &mut AnyConnection,
        name: ContentHash,
    ) -> Result<Arc<OpeningBook>> {
        if let Some(known) = get(&self.books, &name) {
            return Ok(known);
        }
        let text = content(conn, name).await?;
        let book = OpeningBook::from_lines(&text);
        let book = book.map_err(|error| unreadable("opening book", &error))?;
        Ok(cache(&self.books, BOOKS, name, Arc::new(book)))
    }
}

fn get<T>(cache: &Mutex<HashMap<ContentHash, Arc<T>>>, name: &ContentHash) -> Option<Arc<T>> {
    let cache = cache.lock();
    cache.get(name).cloned()
}

fn cache<T>(
    cache: &Mutex<HashMap<ContentHash, Arc<T>>>,
    most: usize,
    name: ContentHash,
    value: Arc<T>,
) -> Arc<T> {
    let mut cache = cache.lock();
    if cache.len() >= most {
        cache.clear();
    }
    cache.insert(name, value.clone());
    value
}

async fn content(conn: &mut AnyConnection, name: ContentHash) -> Result<String> {
    let found: Option<String> =
        sqlx::query_scalar("SELECT content FROM lease_values WHERE hash = $1")
            .bind(column(&name))
            .fetch_optional(conn)
            .await?;
    found.ok_or_else(|| unreadable("job", &format!("the ledger lacks value {name}")))
}

/// The rules of a lease's games; none of an audit.
pub(crate) async fn rules(
    conn: &mut AnyConnection,
    column: &str,
    values: &LeaseValues,
) -> Result<Option<AuditedRules>> {
    let Ok(reference) = serde_json::from_str(column) else {
        return Ok(AuditedRules::of(&from_json("job", column)?));
    };
    match reference {
        WorkReference::SelfPlay { rules, .. }
        | WorkReference::Puzzles { rules, .. }
        | WorkReference::Match { rules, .. } => {
            Ok(Some((*values.rules(conn, rules).await?).clone()))
        }
        WorkReference::Audit => Ok(None),
    }
}

/// The work of a lease as its worker got it; none of an audit that is kept by reference.
pub(crate) async fn work(
    conn: &mut AnyConnection,
    (run, seed): (i64, Seed),
    column: &str,
    values: &LeaseValues,
) -> Result<Option<Work>> {
    let Ok(reference) = serde_json::from_str::<WorkReference>(column) else {
        return from_json("job", column).map(Some);
    };
    let work = match reference {
        WorkReference::SelfPlay { rules, games, book } => {
            let AuditedRules::SelfPlay { network, params } =
                load_rules(conn, rules, values).await?
            else {
                return Err(other_rules(rules));
            };
            let openings = match book {
                Some(book) => {
                    let book = values.book(conn, book).await?;
                    book.draw(params.book_share, games, seed)
                }
                None => Vec::new(),
            };
            Work::SelfPlay {
                network,
                games,
                openings,
                params,
            }
        }
        WorkReference::Puzzles { rules, puzzles, of } => {
            let AuditedRules::Puzzles { network, params } = load_rules(conn, rules, values).await?
            else {
                return Err(other_rules(rules));
            };
            Work::Puzzles {
                network,
                puzzles: puzzles::draw(conn, run, puzzles, of, seed).await?,
                params,
            }
        }
        WorkReference::Match {
            rules,
            match_id,
            match_seed,
            first,
            pairs,
            book,
        } => {
            let AuditedRules::Match {
                candidate,
                opponent,
                params,
            } = load_rules(conn, rules, values).await?
            else {
                return Err(other_rules(rules));
            };
            let book = values.book(conn, book).await?;
            Work::Match {
                match_id,
                candidate,
                opponent,
                pairs: pair_tasks(&book, match_seed, first, pairs),
                params,
            }
        }
        WorkReference::Audit => return Ok(None),
    };
    Ok(Some(work))
}

async fn load_rules(
    conn: &mut AnyConnection,
    rules: ContentHash,
    values: &LeaseValues,
) -> Result<AuditedRules> {
    Ok((*values.rules(conn, rules).await?).clone())
}

fn other_rules(name: ContentHash) -> crate::db::DbError {
    unreadable(
        "job",
        &format!("{name} has the rules of another kind of job"),
    )
}

/// Pairs of a match from `first` on, with their openings.
pub(crate) fn pair_tasks(
    book: &OpeningBook,
    match_seed: Seed,
    first: u32,
    pairs: u32,
) -> Vec<PairTask> {
    let openings = book.of_pairs(match_seed, first, pairs);
    (first..)
        .zip(openings)
        .map(|(pair, opening)| PairTask {
            pair,
            opening: opening.clone(),
        })
        .collect()
}
