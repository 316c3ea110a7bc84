//! A picture of coloured dots.

use std::io::{self, Write};

use super::font;

/// A colour: red, green, blue.
pub(super) type Color = [u8; 3];

/// A picture.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    width: usize,
    height: usize,
    dots: Vec<u8>,
}

impl Canvas {
    /// A picture of one colour.
    pub(super) fn new(width: usize, height: usize, color: Color) -> Self {
        Self {
            width,
            height,
            dots: color.repeat(width * height),
        }
    }

    /// Fills a box; what is outside the picture is left out.
    pub(super) fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, color: Color) {
        let right = (x + width).min(self.width);
        for row in y..(y + height).min(self.height) {
            for column in x..right {
                let at = 3 * (row * self.width + column);
                self.dots[at..at + 3].copy_from_slice(&color);
            }
        }
    }

    /// Writes a line of text, its top left corner at `x`, `y`, its dots `scale` wide.
    pub(super) fn write(&mut self, x: usize, y: usize, scale: usize, color: Color, text: &str) {
        for (place, letter) in text.chars().enumerate() {
            let left = x + place * font::ADVANCE * scale;
            for (row, bits) in font::glyph(letter).iter().enumerate() {
                for column in (0..font::WIDTH).filter(|c| bits >> (font::WIDTH - 1 - c) & 1 == 1) {
                    self.fill(left + column * scale, y + row * scale, scale, scale, color);
                }
            }
        }
    }

    /// The colour of a dot.
    #[cfg(test)]
    pub(super) fn dot(&self, x: usize, y: usize) -> Color {
        let at = 3 * (y * self.width + x);
        [self.dots[at], self.dots[at + 1], self.dots[at + 2]]
    }

    /// Writes the picture as PNG.
    pub(super) fn write_png(&self, target: impl Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(target, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.dots)?;
        writer.finish()?;
        Ok(())
    }
}
