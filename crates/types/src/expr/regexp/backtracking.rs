//! Patterns that look around or back, on an engine that backtracks, with bounds on what one search may take.
//!
//! A step back may try again what is linear in the text, so that the longer a text is, the fewer steps there may be. A search
//! tries one place after the other itself, since the engine would not be interrupted between them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fancy_regex::RegexInput;

use super::engine::{Flags, SIZE_LIMIT_BYTES};
use super::error::RegexpError;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;

/// The steps back that a match at one place of a text of at most so many bytes may take. MySQL's `regexp_time_limit` lets a search have
/// about 320,000 steps of another kind in all.
const STEPS_BACK: [(usize, usize); 5] =
    [(256, 400_000), (4 << 10, 50_000), (64 << 10, 5_000), (1 << 20, 1_000), (usize::MAX, 20)];

/// The time that a search may take. Between two places it looks at the clock, and for KILL.
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Backtracking {
    pattern: String,
    flags: Flags,
    /// By the length of texts.
    compiled: [OnceLock<fancy_regex::Regex>; STEPS_BACK.len()],
}

impl Backtracking {
    pub fn new(pattern: &str, flags: Flags) -> Result<Self, RegexpError> {
        let compiled = [const { OnceLock::new() }; STEPS_BACK.len()];
        let this = Self { pattern: pattern.to_owned(), flags, compiled };
        this.for_text("")?;
        Ok(this)
    }

    fn for_text(&self, text: &str) -> Result<&fancy_regex::Regex, RegexpError> {
        let fits = |(longest, _): &(usize, usize)| text.len() <= *longest;
        let at = STEPS_BACK.iter().position(fits).unwrap_or(STEPS_BACK.len() - 1);
        if let Some(regex) = self.compiled[at].get() {
            return Ok(regex);
        }
        let mut builder = fancy_regex::RegexBuilder::new(&self.pattern);
        builder
            .case_insensitive(self.flags.ignore_case)
            .multi_line(self.flags.multi_line)
            .dot_matches_new_line(self.flags.dot_all)
            .crlf(!self.flags.unix_lines)
            .backtrack_limit(STEPS_BACK[at].1)
            .delegate_size_limit(SIZE_LIMIT_BYTES);
        let regex = builder.build().map_err(|error| RegexpError::of_backtracking(&error))?;
        Ok(self.compiled[at].get_or_init(|| regex))
    }

    /// Any of them: they differ in their limits alone.
    pub fn any(&self) -> &fancy_regex::Regex {
        self.compiled[0].get().expect("it was compiled when it was made")
    }

    /// What `find` finds at the first place from byte `from` on where it finds something.
    pub fn first<T>(
        &self,
        text: &str,
        from: usize,
        ctx: &EvalContext,
        find: impl Fn(&fancy_regex::Regex, RegexInput<'_, str>) -> Result<Option<T>, fancy_regex::Error>,
    ) -> EvalResult<Option<T>> {
        let regex = self.for_text(text)?;
        let begun = Instant::now();
        for at in text[from..].char_indices().map(|(at, _)| from + at).chain([text.len()]) {
            let here = RegexInput::new(text).from_pos(at).anchored(true);
            if let Some(found) = find(regex, here).map_err(|error| RegexpError::of_backtracking(&error))? {
                return Ok(Some(found));
            }
            ctx.check()?;
            if begun.elapsed() > LONGEST {
                return Err(RegexpError::Timeout.into());
            }
        }
        Ok(None)
    }
}
