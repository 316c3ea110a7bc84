//! What tells without playing a move that it gives no check, or no mate.

use shakmaty::{
    Bitboard, Board, Chess, Color, File, Move, Piece, Position, Rank, Role, Square, attacks,
};

/// What tells cheaply that a move gives no check, or that the king can flee from it.
pub(super) struct Checks<'a> {
    board: &'a Board,
    color: Color,
    king: Option<Square>,
    /// From where each role would give check, by the role's number.
    squares: [Bitboard; 7],
    /// Own pieces that the king sees along a line.
    visible: Bitboard,
    /// Those of them whose move may open a line.
    openers: Bitboard,
}

impl<'a> Checks<'a> {
    pub(super) fn of(position: &'a Chess) -> Self {
        let (board, color) = (position.board(), position.turn());
        let none = Self {
            board,
            color,
            king: board.king_of(!color),
            squares: [Bitboard::EMPTY; 7],
            visible: Bitboard::EMPTY,
            openers: Bitboard::EMPTY,
        };
        let Some(king) = none.king else { return none };
        let (occupied, own) = (board.occupied(), board.by_color(color));
        let rooks = attacks::rook_attacks(king, occupied);
        let bishops = attacks::bishop_attacks(king, occupied);
        let mut squares = none.squares;
        squares[Role::Pawn as usize] = attacks::pawn_attacks(!color, king);
        squares[Role::Knight as usize] = attacks::knight_attacks(king);
        squares[Role::Bishop as usize] = bishops;
        squares[Role::Rook as usize] = rooks;
        squares[Role::Queen as usize] = bishops | rooks;
        let visible = (rooks | bishops) & own;
        let checks = Self {
            squares,
            visible,
            ..none
        };
        let opens = visible.any() && checks.has_slider_behind(king, occupied ^ visible);
        Self {
            openers: if opens { visible } else { Bitboard::EMPTY },
            ..checks
        }
    }

    /// Whether the king would see another slider if the visible pieces were not there.
    fn has_slider_behind(&self, king: Square, behind: Bitboard) -> bool {
        let board = self.board;
        let sliders = attacks::rook_attacks(king, behind) & board.rooks_and_queens()
            | attacks::bishop_attacks(king, behind) & board.bishops_and_queens();
        (sliders & board.by_color(self.color) & !self.visible).any()
    }

    /// Where pieces stand that have a move that may mate: in most positions none. It costs less than to
    /// look at every move.
    pub(super) fn may_mate_from(&self, position: &Chess) -> Bitboard {
        let (board, color) = (self.board, self.color);
        let (own, occupied) = (board.by_color(color), board.occupied());
        let answered = |role, from, to| self.is_answered(role, from, to);
        let mut from = self.openers | self.pawns_that_may_mate(position);
        let mut add = |pieces: Bitboard, role: Role, attacks: fn(Square, Bitboard) -> Bitboard| {
            for square in pieces & own {
                let checks = attacks(square, occupied) & self.squares[role as usize] & !own;
                if !checks.into_iter().all(|to| answered(role, square, to)) {
                    from.add(square);
                }
            }
        };
        add(board.knights(), Role::Knight, |square, _| {
            attacks::knight_attacks(square)
        });
        add(board.bishops(), Role::Bishop, attacks::bishop_attacks);
        add(board.rooks(), Role::Rook, attacks::rook_attacks);
        add(board.queens(), Role::Queen, attacks::queen_attacks);
        if let (Some(king), Some(own_king)) = (self.king, board.king_of(color))
            && position.castles().has_color(color)
        {
            // The rook checks from where it ends up, or along the rank that the king has left.
            let files = Bitboard::from(File::D) | File::F;
            let rank = Bitboard::from(own_king.rank());
            let rooks = self.squares[Role::Rook as usize] & files & rank;
            if rooks.any() || rank.contains(king) {
                from.add(own_king);
            }
        }
        from
    }

    /// Where pawns stand that may mate: by a step or a capture, by promotion, en passant.
    fn pawns_that_may_mate(&self, position: &Chess) -> Bitboard {
        let ranks = (Rank::Second, Rank::Seventh);
        let (back, second, seventh) = self
            .color
            .fold_wb((-8, ranks.0, ranks.1), (8, ranks.1, ranks.0));
        let pawns = self.board.pawns() & self.board.by_color(self.color);
        let captures = |to: Square| attacks::pawn_attacks(!self.color, to) & pawns;
        let mut all = pawns & seventh;
        if let Some(to) = position.maybe_ep_square() {
            all |= captures(to);
        }
        for to in self.squares[Role::Pawn as usize] {
            let step = Bitboard::from(to).shift(back);
            let from = if self.board.occupied().contains(to) {
                captures(to)
            } else {
                (step | step.shift(back) & second) & pawns
            };
            let mut squares = from.into_iter();
            if squares.any(|from| !self.is_answered(Role::Pawn, from, to)) {
                all |= from;
            }
        }
        all
    }

    /// False only if the move cannot give check; true for all checks and a few other moves.
    pub(super) fn may_check(&self, m: Move) -> bool {
        match m {
            Move::Normal {
                role,
                from,
                to,
                promotion,
                ..
            } => {
                self.squares[promotion.unwrap_or(role) as usize].contains(to)
                    || self.openers.contains(from)
                    // The new piece may look back along the line of its pawn.
                    || promotion.is_some() && self.visible.contains(from)
            }
            // En passant opens lines of both pawns.
            Move::EnPassant { .. } | Move::Castle { .. } => true,
            Move::Put { .. } => false,
        }
    }

    /// False only if the move cannot mate.
    pub(super) fn may_mate(&self, m: Move) -> bool {
        let is_answered = match m {
            Move::Normal {
                role,
                from,
                to,
                promotion,
                ..
            } => self.is_answered(promotion.unwrap_or(role), from, to),
            Move::EnPassant { .. } | Move::Castle { .. } | Move::Put { .. } => false,
        };
        self.may_check(m) && !is_answered
    }

    /// Whether there is certainly a reply when a piece of this role has come from one square to another.
    pub(super) fn is_answered(&self, role: Role, from: Square, to: Square) -> bool {
        self.king.is_some_and(|king| {
            self.king_flees(king, role, from, to) || self.check_is_parried(king, from, to)
        })
    }

    /// Whether the king can step to another square, or take the piece.
    fn king_flees(&self, king: Square, role: Role, from: Square, to: Square) -> bool {
        let (board, color) = (self.board, self.color);
        // Without the king, which does not shield what is behind it.
        let occupied = board.occupied().without(from).with(to).without(king);
        let covered = attacks::attacks(to, Piece { color, role }, occupied);
        let steps = attacks::king_attacks(king) & !board.by_color(!color) & !covered;
        steps.into_iter().any(|step| {
            let attackers = board.attacks_to(step, color, occupied);
            attackers.without(from).is_empty()
        })
    }

    /// Whether another piece can take the one that has moved, or come between it and the king.
    fn check_is_parried(&self, king: Square, from: Square, to: Square) -> bool {
        let board = self.board;
        let occupied = board.occupied().without(from).with(to);
        let own = board.by_color(self.color).without(from);
        let theirs = board.by_color(!self.color).without(king).without(to);
        let can_go = |piece: Square, square: Square| {
            let after = occupied.without(piece).with(square);
            let sliders = attacks::rook_attacks(king, after) & board.rooks_and_queens()
                | attacks::bishop_attacks(king, after) & board.bishops_and_queens();
            (sliders & own).is_empty()
        };
        let goes = |square: Square, pieces: Bitboard| {
            let attackers = board.attacks_to(square, !self.color, occupied);
            let mut pieces = (attackers & pieces).into_iter();
            pieces.any(|piece| can_go(piece, square))
        };
        let mut between = attacks::between(king, to).into_iter();
        goes(to, theirs) || between.any(|square| goes(square, theirs & !board.pawns()))
    }
}
