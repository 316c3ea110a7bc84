//! Which searches of a chunk an audit makes again.

use super::Disagreement;
use crate::chess::moves::{castling_mode, uci};
use crate::chess::{StartError, Termination};
use crate::chunk::record::{GameKind, GameRecord};
use crate::ids::Seed;
use crate::params::RootSearch;
use crate::protocol::audits::{AuditTask, AuditedRules};
use crate::protocol::jobs::Opening;

/// Plies of a span that are compared.
const SPAN_PLIES: u32 = 8;
/// Searches made before them where a search begins with what the one before has left. With four, some of the first's visits
/// reach into the trees that are compared, so that one honest audit in some hundreds failed; with eight, none do.
const WARM_UP: u32 = 8;

/// How much of a chunk an audit makes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditDepth {
    /// A few searches: enough to find a chunk in which every search differs.
    Brief,
    /// As many as tell small differences from the rounding of honest machines.
    Full,
}

impl AuditDepth {
    /// Most spans.
    pub const fn spans(self) -> usize {
        match self {
            Self::Brief => 3,
            Self::Full => 8,
        }
    }

    /// Most games whose last search is repeated, beside the spans.
    const fn ends(self) -> usize {
        match self {
            Self::Brief => 1,
            Self::Full => 4,
        }
    }
}

/// A game of a chunk that an audit may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledGame {
    /// Its index in its job.
    pub index: u32,
    /// Its searched plies.
    pub plies: u32,
    /// Why it ended.
    pub termination: Termination,
}

impl SampledGame {
    /// Whether its result rests on the values of its last searches.
    const fn is_ended_by_values(&self) -> bool {
        matches!(
            self.termination,
            Termination::Resignation | Termination::Adjudication
        )
    }
}

/// Searched plies of a game that are looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// The game's index in its job.
    pub game: u32,
    /// The first search that is made again.
    pub first: u32,
    /// The first that is compared: those before it only grow the tree.
    pub compared: u32,
    /// The ply after the last.
    pub end: u32,
}

impl Span {
    /// The searches of a game from `compared` to before `end`, after those that grow their tree.
    fn of(game: &SampledGame, warm_up: u32, compared: u32, end: u32) -> Self {
        Self {
            game: game.index,
            first: compared.saturating_sub(warm_up),
            compared,
            end,
        }
    }
}

/// Searches to be made before those that are compared.
pub const fn warm_up(rules: &AuditedRules) -> u32 {
    let kept = match rules {
        AuditedRules::SelfPlay { params, .. } => params.reuse_tree,
        AuditedRules::Puzzles { .. } | AuditedRules::Match { .. } => true,
    };
    match rules.search().root {
        RootSearch::Puct if kept => WARM_UP,
        RootSearch::Puct | RootSearch::Gumbel(_) => 0,
    }
}

/// Chooses spans by chance: of as many games as there are, so that a contributor who plays only
/// some games honestly is found out.
///
/// A game that is given up has its result from the values of a single search, which a span holds in one game of
/// ten. So the search that ended it is a span of its own, of a few of these games.
pub fn sample(games: &[SampledGame], warm_up: u32, depth: AuditDepth, chance: Seed) -> Vec<Span> {
    let mut spans = Vec::new();
    for game in games {
        let own = Seed(chance.of_game(game.index).0);
        let blocks = game.plies.div_ceil(SPAN_PLIES);
        let mut drawn: Vec<(u64, u32)> = (0..blocks).map(|b| (own.of_game(b).0, b)).collect();
        drawn.sort_unstable();
        for (round, (luck, block)) in drawn.into_iter().enumerate() {
            let compared = block * SPAN_PLIES;
            let end = (compared + SPAN_PLIES).min(game.plies);
            spans.push((round, luck, Span::of(game, warm_up, compared, end)));
        }
    }
    // A second span of a game only after one of each. The luck of a game's first block is its
    // smallest, which favours long games; another draw is fair.
    spans.sort_unstable_by_key(|(round, luck, span)| (*round, Seed(*luck).of_game(0).0, span.game));
    spans.truncate(depth.spans());
    let mut spans: Vec<Span> = spans.into_iter().map(|(_, _, span)| span).collect();
    let ends = ends(games, warm_up, chance, &spans);
    spans.extend(ends.into_iter().take(depth.ends()));
    spans
}

/// Of the games that values ended, the last search, where no span holds it; by chance the first of them first.
fn ends(games: &[SampledGame], warm_up: u32, chance: Seed, spans: &[Span]) -> Vec<Span> {
    let mut ends: Vec<(u64, Span)> = games
        .iter()
        .filter(|game| game.is_ended_by_values() && game.plies > 0)
        .map(|game| {
            let luck = chance.of_game(game.index).of_game(u32::MAX).0;
            (luck, Span::of(game, warm_up, game.plies - 1, game.plies))
        })
        .filter(|(_, end)| {
            let holds = |span: &Span| span.game == end.game && span.end == end.end;
            !spans.iter().any(holds)
        })
        .collect();
    ends.sort_unstable_by_key(|(luck, span)| (*luck, span.game));
    ends.into_iter().map(|(_, span)| span).collect()
}

/// What an auditor is told of a span of a game that has drawn so many of its last moves before the first
/// search.
///
/// # Errors
///
/// [`StartError`] if the game's start is not a position; in games read from a chunk it
/// always is one.
///
/// # Panics
///
/// If the span is not of this game.
pub fn task(game: &GameRecord, span: &Span, drawn: u32) -> Result<AuditTask, StartError> {
    let mode = castling_mode(game.start.origin()?.position());
    let (first, end) = (span.first as usize, span.end as usize);
    let text = |m| uci(m, mode);
    let played = |plies: &[crate::chunk::PlyRecord]| -> Vec<String> {
        plies.iter().map(|ply| text(ply.played)).collect()
    };
    let given = game.start.moves.iter().map(|m| text(*m));
    Ok(AuditTask {
        seed: game.seed,
        start: Opening {
            fen: game.start.fen.clone(),
            moves: given.chain(played(&game.plies[..first])).collect(),
        },
        first_ply: span.first,
        drawn: if span.first == 0 { drawn } else { 0 },
        moves: played(&game.plies[first..end]),
        candidate: match game.kind {
            GameKind::Match { candidate, .. } => Some(candidate),
            _ => None,
        },
    })
}

/// The distances between the searches of a span as they were played and the same made again, one by one;
/// before them those of the moves that were drawn before the first search.
pub fn span_distances<'a>(
    played: &'a GameRecord,
    span: &Span,
    again: &'a GameRecord,
) -> impl Iterator<Item = Disagreement> + 'a {
    let warm_up = (span.compared - span.first) as usize;
    // Only games of audits say what would have been played.
    let chosen = match &again.kind {
        GameKind::Audit { chosen } => chosen.as_slice(),
        _ => &[],
    };
    let drawn = chosen.len().saturating_sub(again.plies.len());
    let (drawn, chosen) = chosen.split_at(drawn);
    let opening = played.start.moves.iter().rev().zip(drawn.iter().rev());
    let opening = opening.map(|(played, chosen)| Disagreement::of_move(played == chosen));
    let played = played
        .plies
        .iter()
        .take(span.end as usize)
        .skip(span.compared as usize);
    let again = again.plies.iter().enumerate().skip(warm_up);
    let searched = played.zip(again).map(|(played, (place, again))| {
        let chosen = chosen.get(place).copied().unwrap_or(played.played);
        Disagreement::between(played, again, chosen)
    });
    opening.chain(searched)
}

/// The distances of a span together.
pub fn compare_span(played: &GameRecord, span: &Span, again: &GameRecord) -> Disagreement {
    span_distances(played, span, again).fold(Disagreement::default(), Disagreement::and)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn game(index: u32, plies: u32) -> SampledGame {
        SampledGame {
            index,
            plies,
            termination: Termination::Checkmate,
        }
    }

    #[test]
    fn every_game_has_its_turn_before_one_has_a_second() {
        let games: Vec<_> = (0..20).map(|index| game(index, 90)).collect();
        let spans = sample(&games, 4, AuditDepth::Full, Seed(1));
        assert_eq!(spans.len(), 8);
        let chosen: HashSet<_> = spans.iter().map(|span| span.game).collect();
        assert_eq!(chosen.len(), 8);
        let brief = sample(&games, 4, AuditDepth::Brief, Seed(1));
        assert_eq!(brief, spans[..3], "the first of the same");
        assert_ne!(spans, sample(&games, 4, AuditDepth::Full, Seed(2)));
        let two = sample(&[game(3, 40), game(7, 3)], 4, AuditDepth::Full, Seed(1));
        assert_eq!(two.len(), 6, "all there is");
        assert!(two.iter().all(|span| span.end > span.compared));
    }

    #[test]
    fn spans_lie_in_their_games_and_begin_with_the_warm_up() {
        for luck in 0..50 {
            for span in sample(&[game(0, 21), game(1, 9)], 4, AuditDepth::Full, Seed(luck)) {
                let plies = if span.game == 0 { 21 } else { 9 };
                assert!(span.end <= plies && span.compared < span.end);
                assert_eq!(span.first, span.compared.saturating_sub(4));
            }
        }
    }

    /// A liar who gives won games up lies in one search of each.
    #[test]
    fn the_searches_that_ended_games_are_looked_at() {
        let ended = |termination| -> Vec<_> {
            let game = |index| SampledGame {
                termination,
                ..game(index, 90)
            };
            (0..20).map(game).collect()
        };
        let last = |spans: &[Span]| spans.iter().filter(|span| span.end == 90).count();
        for termination in [Termination::Resignation, Termination::Adjudication] {
            for (luck, depth) in
                (0..50).zip([AuditDepth::Full, AuditDepth::Brief].into_iter().cycle())
            {
                let spans = sample(&ended(termination), 4, depth, Seed(luck));
                assert_eq!(spans.len(), depth.spans() + depth.ends());
                assert!(last(&spans) >= depth.ends());
                let searches: HashSet<_> = spans.iter().map(|span| (span.game, span.end)).collect();
                assert_eq!(searches.len(), spans.len(), "nothing is compared twice");
                let ends = &spans[depth.spans()..];
                assert!(
                    ends.iter()
                        .all(|span| (span.first, span.compared) == (85, 89))
                );
            }
        }
        let others = sample(&ended(Termination::PlyLimit), 4, AuditDepth::Full, Seed(1));
        assert_eq!(others.len(), 8);
    }

    #[test]
    fn every_ply_can_be_chosen() {
        let seen: HashSet<u32> = (0..400)
            .flat_map(|luck| sample(&[game(0, 200)], 0, AuditDepth::Brief, Seed(luck)))
            .flat_map(|span| span.compared..span.end)
            .collect();
        assert_eq!(seen.len(), 200);
    }
}
