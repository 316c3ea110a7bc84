//! How the threads that play stand beside other programs that want the processor.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What becomes of others' wish for the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Other programs go first.
    #[default]
    Low,
    /// As the program was started.
    Unchanged,
}

/// How nice threads are that play on the processor: the nicest that there is.
const ON_PROCESSOR: i32 = 19;
/// How nice threads are that keep a GPU busy. They need little of the processor, but without it the GPU stands still.
const ON_GPU: i32 = 10;

impl Priority {
    /// Gives it to the calling thread, which plays on the processor or keeps a GPU busy; on macOS, where threads have no niceness of their own, to the program. It
    /// has no effect on Windows.
    pub fn take(self, on_cpu: bool) {
        if self == Self::Low {
            be_nice(if on_cpu { ON_PROCESSOR } else { ON_GPU });
        }
    }
}

/// Makes the calling thread this nice, if it was not started nicer.
#[cfg(unix)]
fn be_nice(nice: i32) {
    use rustix::process::{getpriority_process, setpriority_process};

    let set = getpriority_process(None).and_then(|present| {
        if present < nice {
            setpriority_process(None, nice)
        } else {
            Ok(())
        }
    });
    if let Err(error) = set {
        tracing::warn!("the priority of this worker's threads cannot be lowered: {error}");
    }
}

#[cfg(not(unix))]
const fn be_nice(_nice: i32) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    fn present() -> i32 {
        getpriority_process(None).unwrap()
    }

    /// How nice a thread is that has done this.
    fn niceness_after(work: impl FnOnce() + Send + 'static) -> i32 {
        let thread = std::thread::spawn(move || {
            work();
            present()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_thread_lets_others_go_first_and_the_rest_of_the_program_stays_as_it_is() {
        let before = present();
        let after = |priority: Priority| niceness_after(move || priority.take(true));
        assert_eq!(after(Priority::Unchanged), before);
        assert_eq!(after(Priority::Low), ON_PROCESSOR);
        assert_eq!(present(), before);
    }

    #[test]
    fn who_was_started_nicer_stays_so() {
        let twice = || {
            be_nice(ON_PROCESSOR);
            be_nice(ON_GPU);
        };
        assert_eq!(niceness_after(twice), ON_PROCESSOR);
    }
}
