//! Live progress on the terminal (stderr), silent when stderr is not one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("━╸ ")
}

/// Runs `work` while a bar follows `done` towards `total` rows.
pub fn rows<T>(label: &str, total: u64, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new(total)
        .with_style(style("{prefix:22} {bar:32} {percent:>3} %  {human_pos} rows, {per_sec}"))
        .with_prefix(label.to_owned());
    let finished = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                bar.set_position(done.load(Ordering::Relaxed).min(total));
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let result = work();
        finished.store(true, Ordering::Relaxed);
        bar.finish_and_clear();
        result
    })
}

/// A bar over time with a message about what goes on.
pub struct Live {
    bar: ProgressBar,
}

impl Live {
    pub fn new(label: &str, length: Duration) -> Live {
        let bar = ProgressBar::new(length.as_millis() as u64)
            .with_style(style("{prefix:22} {bar:32} {msg}"))
            .with_prefix(label.to_owned());
        Live { bar }
    }

    /// Shows the rate of `done` transactions since the warm-up.
    pub fn show(&self, elapsed: Duration, done: u64, warm_up: Duration) {
        let measured = elapsed.saturating_sub(warm_up).as_secs_f64();
        let text = if measured > 0.2 {
            format!("{:.0} tx/s", done as f64 / measured)
        } else {
            "warming up".to_owned()
        };
        self.message(elapsed, text);
    }

    pub fn message(&self, elapsed: Duration, text: String) {
        self.bar.set_position(elapsed.as_millis() as u64);
        self.bar.set_message(text);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
