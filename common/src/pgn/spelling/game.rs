//! Where in a game its text has come: which line feeds would break it, and where the next game may begin.

/// How far the game is that is being read.
#[derive(Debug, Default)]
pub(super) struct Game {
    /// Moves since its tags, or since the result before; none after its own result.
    moves: u32,
    /// Variations within variations.
    depth: u32,
    /// Its result was there.
    pub(super) ended: bool,
    /// The last line feed was given on, and nothing but blanks came since.
    pub(super) line_is_blank: bool,
    /// A line feed after that one was held back.
    pub(super) held: bool,
    /// The word to come is the first of its line.
    pub(super) line_begins: bool,
}

impl Game {
    /// Whether the number of a first move, at the beginning of a line, is the next game's.
    pub(super) const fn may_be_over(&self) -> bool {
        self.moves > 1 && self.depth == 0 && self.line_begins
    }

    pub(super) fn word(&mut self, is_result: bool, is_number: bool) {
        self.line_begins = false;
        self.line_is_blank = false;
        self.held = false;
        if self.depth > 0 {
            return;
        }
        if is_result {
            (self.moves, self.ended) = (0, true);
        } else if !is_number {
            self.moves = self.moves.saturating_add(1);
            self.ended = false;
        }
    }

    /// Whether this is a line feed that would make an empty line within the game.
    pub(super) fn holds_back(&mut self, byte: u8) -> bool {
        let holds = byte == b'\n' && self.line_is_blank && self.moves > 0;
        self.held |= holds;
        self.line_begins |= holds;
        holds
    }

    /// Takes a byte between words that is passed on.
    pub(super) fn pass(&mut self, byte: u8) {
        match byte {
            b'\n' => (self.line_is_blank, self.line_begins) = (true, true),
            b'\r' => self.line_begins = true,
            b' ' | b'\t' => {}
            _ => {
                (self.line_is_blank, self.line_begins, self.held) = (false, false, false);
                match byte {
                    b'(' => self.depth += 1,
                    b')' => self.depth = self.depth.saturating_sub(1),
                    b'*' => self.word(true, false),
                    _ => {}
                }
            }
        }
    }
}
