//! SVG as PNG, with a font that is the same on every machine, and the newest picture of each run.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use anyhow::Context as _;
use axum::body::Bytes;
use parking_lot::Mutex;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Tree, fontdb};
use rookery_common::ids::{ContentHash, RunName};

/// How many runs' pictures are kept.
const PICTURES: usize = 64;
/// The letters of all pictures, on every machine.
const FONT: &[u8] = include_bytes!("../../assets/fonts/DejaVuSans.ttf");
const FAMILY: &str = "DejaVu Sans";

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    Arc::new(fonts)
});

/// The newest picture of each run, by the hash of its drawing.
#[derive(Debug, Clone, Default)]
pub(super) struct Pictures(Arc<Mutex<HashMap<RunName, (ContentHash, Bytes)>>>);

impl Pictures {
    pub(super) fn get(&self, run: &RunName, hash: &ContentHash) -> Option<Bytes> {
        let kept = self.0.lock();
        let (of, png) = kept.get(run)?;
        (of == hash).then(|| png.clone())
    }

    pub(super) fn keep(&self, run: RunName, hash: ContentHash, png: Bytes) {
        let mut kept = self.0.lock();
        if kept.len() >= PICTURES && !kept.contains_key(&run) {
            kept.clear();
        }
        kept.insert(run, (hash, png));
    }
}

/// Whether the font has a character.
pub(super) fn has_glyph(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{17f}' | 'Ά'..='ώ' | 'Ѐ'..='џ' | '‐'..='…')
}

pub(super) fn rasterize(svg: &str) -> anyhow::Result<Vec<u8>> {
    let options = usvg::Options {
        font_family: FAMILY.to_owned(),
        fontdb: FONTS.clone(),
        ..usvg::Options::default()
    };
    let tree = Tree::from_str(svg, &options).context("a run's picture cannot be read")?;
    let size = tree.size().to_int_size();
    let mut pixels =
        Pixmap::new(size.width(), size.height()).context("a picture without pixels")?;
    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    pixels
        .encode_png()
        .context("a run's picture cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::chart::preview;

    #[test]
    fn letters_are_drawn() {
        let ink = |heading: &str| {
            let svg = preview(heading, "", None).unwrap();
            let png = rasterize(&svg).unwrap();
            let pixels = Pixmap::decode_png(&png).unwrap();
            assert_eq!((pixels.width(), pixels.height()), (1_200, 630));
            pixels
                .pixels()
                .iter()
                .filter(|pixel| pixel.red() > 200)
                .count()
        };
        assert_eq!(ink(" "), 0);
        let (short, long) = (ink("<Ω>"), ink(&"Ж".repeat(200)));
        assert!(short > 300 && long > short, "{short} {long}");
    }

    #[test]
    fn the_newest_picture_of_a_run_is_kept_and_not_of_too_many_runs() {
        let pictures = Pictures::default();
        let (old, new) = (ContentHash::of(b"old"), ContentHash::of(b"new"));
        let run = |number: usize| -> RunName { format!("r{number}").parse().unwrap() };
        for hash in [old, new] {
            pictures.keep(run(0), hash, Bytes::from_static(b"png"));
        }
        assert_eq!(pictures.get(&run(0), &old), None);
        assert!(pictures.get(&run(0), &new).is_some());
        for number in 1..2 * PICTURES {
            pictures.keep(run(number), new, Bytes::new());
        }
        assert!(pictures.0.lock().len() <= PICTURES);
    }
}
