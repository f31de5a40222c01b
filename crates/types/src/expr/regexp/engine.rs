//! One regular expression on the engine that it needs: linear in the text where that is enough, else one that backtracks.

use regex::{Regex, RegexBuilder};

use super::backtracking::Backtracking;
use super::error::RegexpError;
use super::pattern::Pattern;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;

/// A regular expression may take so much memory once it is compiled.
pub(super) const SIZE_LIMIT_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    /// A line feed alone ends a line.
    pub unix_lines: bool,
}

#[derive(Clone, Debug)]
pub struct Matcher {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Regex),
    Backtracking(Box<Backtracking>),
}

/// Where a match and its groups are, in bytes.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Matcher {
    pub fn new(pattern: &str, flags: Flags) -> Result<Self, RegexpError> {
        if pattern.is_empty() {
            return Err(RegexpError::Argument);
        }
        let pattern = Pattern::read(pattern, flags)?;
        let engine = if pattern.backtracks {
            Engine::Backtracking(Box::new(Backtracking::new(&pattern.text, flags)?))
        } else {
            RegexpError::check(&pattern.text)?;
            let regex = RegexBuilder::new(&pattern.text)
                .case_insensitive(flags.ignore_case)
                .multi_line(flags.multi_line)
                .dot_matches_new_line(flags.dot_all)
                .crlf(!flags.unix_lines)
                .size_limit(SIZE_LIMIT_BYTES)
                .build();
            Engine::Linear(regex.map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => RegexpError::TooBig,
                _ => RegexpError::Argument,
            })?)
        };
        Ok(Self { engine })
    }

    pub fn is_match(&self, text: &str, ctx: &EvalContext) -> EvalResult<bool> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(_) => Ok(self.find_at(text, 0, ctx)?.is_some()),
        }
    }

    /// The first match from byte `at` on; what is before it can be looked back at.
    pub fn find_at(&self, text: &str, at: usize, ctx: &EvalContext) -> EvalResult<Option<(usize, usize)>> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.find_at(text, at).map(|found| (found.start(), found.end()))),
            Engine::Backtracking(engine) => engine.first(text, at, ctx, |regex, here| {
                Ok(regex.find_input(here)?.map(|found| (found.start(), found.end())))
            }),
        }
    }

    /// The same with its groups; the first one is all of the match.
    pub fn groups_at(&self, text: &str, at: usize, ctx: &EvalContext) -> EvalResult<Option<Groups>> {
        match &self.engine {
            Engine::Linear(regex) => {
                let groups = |found: regex::Captures<'_>| {
                    found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
                };
                Ok(regex.captures_at(text, at).map(groups))
            }
            Engine::Backtracking(engine) => engine.first(text, at, ctx, |regex, here| {
                let groups = |found: fancy_regex::Captures<'_, str>| {
                    found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
                };
                Ok(regex.captures_input(here)?.map(groups))
            }),
        }
    }

    /// How many groups there are besides the match itself.
    pub fn group_count(&self) -> usize {
        let all = match &self.engine {
            Engine::Linear(regex) => regex.captures_len(),
            Engine::Backtracking(engine) => engine.any().captures_len(),
        };
        all - 1
    }

    pub fn group_named(&self, name: &str) -> Option<usize> {
        match &self.engine {
            Engine::Linear(regex) => regex.capture_names().position(|group| group == Some(name)),
            Engine::Backtracking(engine) => {
                engine.any().capture_names().position(|group| group == Some(name))
            }
        }
    }
}

/// Where the search for another match begins: behind the last one, and a character further if that was empty. `None` at the end.
pub fn behind(text: &str, (start, end): (usize, usize)) -> Option<usize> {
    if start < end {
        return Some(end);
    }
    text[end..].chars().next().map(|next| end + next.len_utf8())
}
