//! What becomes of policy indices in a mirror that makes the files a to h the files h to a.

use std::sync::LazyLock;

use super::{PolicyEncoding, flat_moves, lc0_moves, listed};

impl PolicyEncoding {
    /// The index of the move that stands at `index`, mirrored; an index that no move has is its own
    /// image. Castling has none: it is for positions that
    /// [`can_mirror`](crate::encoding::can_mirror) allows.
    ///
    /// # Panics
    ///
    /// If the index is not below [`size`](Self::size).
    pub fn mirrored(self, index: u16) -> u16 {
        static AZ: LazyLock<Vec<u16>> = LazyLock::new(|| images(PolicyEncoding::Az73));
        static FLAT: LazyLock<Vec<u16>> = LazyLock::new(|| images(PolicyEncoding::Flat1968));
        static LC0: LazyLock<Vec<u16>> = LazyLock::new(|| images(PolicyEncoding::Lc01858));
        let images = match self {
            Self::Az73 => &AZ,
            Self::Flat1968 => &FLAT,
            Self::Lc01858 => &LC0,
        };
        images[usize::from(index)]
    }
}

/// The mirror image of each index.
fn images(encoding: PolicyEncoding) -> Vec<u16> {
    let moves = match encoding {
        PolicyEncoding::Lc01858 => lc0_moves(),
        PolicyEncoding::Az73 | PolicyEncoding::Flat1968 => flat_moves(),
    };
    let table = encoding.table();
    let mut images: Vec<u16> = (0..encoding.size() as u16).collect();
    for (m, _) in listed(moves) {
        let index = table.get(m.packed());
        images[usize::from(index)] = table.get(m.packed().mirrored());
    }
    images
}
