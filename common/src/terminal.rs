//! Progress bars at the bottom of a terminal that may be resized or closed at any time.
//!
//! [`indicatif`] fills every line of a bar to the terminal's width, so that a terminal that breaks lines anew when it is
//! resized leaves remains of them, and it panics where a log line meets a terminal that is gone. [`Resizable`]
//! stands between them: lines end where their text ends, the rows into which a narrower terminal has broken them are
//! cleared, and what cannot be written is lost.
//!
//! Behind the feature `command-line`.

use std::io;

use console::{Term, measure_text_width};
use indicatif::{MultiProgress, ProgressDrawTarget, TermLike};
use parking_lot::Mutex;

/// Looks a second at what there is to be drawn, at most.
const DRAWN_PER_SECOND: u8 = 20;

/// Progress bars on standard error. They are hidden where that is no terminal, or one that moves no cursor.
pub fn progress_bars() -> MultiProgress {
    if ProgressDrawTarget::stderr().is_hidden() {
        return MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
    }
    let term = Box::new(Resizable::new(Term::buffered_stderr()));
    MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(
        term,
        DRAWN_PER_SECOND,
    ))
}

/// The columns that standard error has at present.
pub fn columns() -> usize {
    usize::from(Term::stderr().size().1)
}

/// A terminal whose width may change between two drawings.
#[derive(Debug)]
struct Resizable<T> {
    term: T,
    drawn: Mutex<Drawn>,
}

/// What stands on the terminal.
#[derive(Debug, Default)]
struct Drawn {
    /// Width of the text of each line.
    widths: Vec<usize>,
    /// Columns of the terminal when they were drawn.
    columns: usize,
    /// Whether the last line's text was written, so that spaces come next, which fill it.
    is_filler_due: bool,
    /// Whether all of it was just cleared, so that clearing it line by line is left out.
    is_cleared: bool,
}

impl Drawn {
    /// Rows that the lines take on a terminal of this many columns.
    fn rows(&self, columns: usize) -> usize {
        let rows = |text: &usize| text.div_ceil(columns.max(1)).max(1);
        self.widths.iter().map(rows).sum()
    }
}

impl<T: TermLike> Resizable<T> {
    const fn new(term: T) -> Self {
        Self {
            term,
            drawn: Mutex::new(Drawn {
                widths: Vec::new(),
                columns: 0,
                is_filler_due: false,
                is_cleared: false,
            }),
        }
    }

    /// Does this with the terminal. If it is gone, the drawing is lost.
    fn draw(&self, write: impl FnOnce(&T, &mut Drawn) -> io::Result<()>) {
        let mut drawn = self.drawn.lock();
        drop(write(&self.term, &mut drawn));
    }
}

impl<T: TermLike> TermLike for Resizable<T> {
    fn width(&self) -> u16 {
        self.term.width()
    }

    fn height(&self) -> u16 {
        self.term.height()
    }

    /// Begins a drawing: from the last row that stands there to the first. `rows` is right for the width at which they
    /// were drawn.
    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.draw(|term, drawn| {
            if drawn.is_cleared {
                return Ok(());
            }
            let columns = usize::from(term.width());
            let (then, now) = (drawn.rows(drawn.columns), drawn.rows(columns));
            *drawn = Drawn {
                columns,
                is_cleared: then != now,
                ..Drawn::default()
            };
            let rows = (rows + now).saturating_sub(then);
            if rows > 0 {
                term.move_cursor_up(rows)?;
            }
            if drawn.is_cleared {
                term.write_str("\r\x1b[J")?;
            }
            Ok(())
        });
        Ok(())
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.draw(|term, drawn| match drawn.is_cleared {
            true => Ok(()),
            false => term.move_cursor_down(rows),
        });
        Ok(())
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.draw(|term, _| term.move_cursor_right(columns));
        Ok(())
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.draw(|term, _| term.move_cursor_left(columns));
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.draw(|term, _| term.write_line(text));
        Ok(())
    }

    /// A line's text, or the spaces that fill it up after that.
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.draw(|term, drawn| {
            drawn.is_cleared = false;
            if text == "\r" {
                return term.write_str(text);
            }
            drawn.is_filler_due = !drawn.is_filler_due;
            if drawn.is_filler_due {
                if !drawn.widths.is_empty() {
                    term.write_str("\r\n")?;
                }
                drawn.widths.push(measure_text_width(text));
                term.write_str(text)
            } else if text.is_empty() {
                // The cursor still stands on the last character, which must not be cleared.
                Ok(())
            } else {
                term.write_str("\x1b[K")
            }
        });
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.draw(|term, drawn| match drawn.is_cleared {
            true => Ok(()),
            false => term.clear_line(),
        });
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.draw(|term, drawn| {
            drawn.is_cleared = false;
            term.flush()
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};

    use indicatif::{ProgressBar, ProgressStyle};

    use super::*;

    /// A terminal that notes what it is sent.
    #[derive(Debug, Clone, Default)]
    struct Notes(Arc<Noted>);

    #[derive(Debug, Default)]
    struct Noted {
        width: AtomicU16,
        is_gone: AtomicBool,
        sent: Mutex<String>,
    }

    impl Notes {
        fn take(&self) -> String {
            std::mem::take(&mut self.0.sent.lock())
        }
    }

    impl TermLike for Notes {
        fn width(&self) -> u16 {
            self.0.width.load(Relaxed)
        }

        fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
            self.write_str(&format!("<up {rows}>"))
        }

        fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
            self.write_str(&format!("<down {rows}>"))
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            if self.0.is_gone.load(Relaxed) {
                return Err(io::Error::other("the terminal is gone"));
            }
            self.0.sent.lock().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write_str("<clear>")
        }

        fn flush(&self) -> io::Result<()> {
            self.write_str("")
        }
    }

    /// Two bars on a terminal of 40 columns, drawn once.
    fn two_bars() -> (Notes, MultiProgress, [ProgressBar; 2]) {
        let notes = Notes::default();
        notes.0.width.store(40, Relaxed);
        let term = Box::new(Resizable::new(notes.clone()));
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::term_like(term));
        let bars = ["twenty-five columns long.", "short"].map(|text| {
            let bar = screen.add(ProgressBar::new_spinner());
            bar.set_style(ProgressStyle::with_template("{msg}").unwrap());
            bar.set_message(text);
            bar.tick();
            bar
        });
        notes.take();
        bars[1].tick();
        (notes, screen, bars)
    }

    #[test]
    fn lines_end_where_their_text_ends() {
        let (notes, _screen, _bars) = two_bars();
        let drawn = notes.take();
        assert!(
            drawn.ends_with("twenty-five columns long.\u{1b}[K\r\nshort\u{1b}[K"),
            "{drawn:?}"
        );
    }

    #[test]
    fn rows_into_which_a_narrower_terminal_broke_a_line_are_cleared() {
        let (notes, _screen, bars) = two_bars();
        notes.take();
        let drawn_at = |columns| {
            notes.0.width.store(columns, Relaxed);
            bars[1].tick();
            notes.take()
        };
        // The first line takes three rows now, the second one.
        let drawn = drawn_at(10);
        assert!(drawn.starts_with("<up 3>\r\u{1b}[Jtwenty"), "{drawn:?}");
        // It was drawn in as many: they are four rows as long as the terminal stays so.
        let drawn = drawn_at(10);
        assert!(drawn.starts_with("<up 3><clear>"), "{drawn:?}");
        // A wider one has put them together.
        let drawn = drawn_at(40);
        assert!(drawn.starts_with("<up 1>\r\u{1b}[Jtwenty"), "{drawn:?}");
        let drawn = drawn_at(40);
        assert!(drawn.starts_with("<up 1><clear>"), "{drawn:?}");
    }

    #[test]
    fn a_terminal_that_is_gone_stops_nothing() {
        let (notes, screen, bars) = two_bars();
        notes.0.is_gone.store(true, Relaxed);
        bars[0].tick();
        assert_eq!(screen.suspend(|| 7), 7);
    }
}
