//! A recorded session: what of its state decides about answers, and how a connection is brought to it.

use avocet_types::expr::SqlMode;

use crate::decide::{Left, Setting, Shape};

/// Settings of a session that are kept; more are not followed, and the session is said to lack them.
const SETTINGS: usize = 512;

/// A statement that changes the session's state, and what it sets.
#[derive(Clone, Debug)]
struct Kept {
    settings: Vec<Setting>,
    text: String,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub database: Option<String>,
    pub mode: SqlMode,
    /// As sessions of the source begin.
    base_mode: SqlMode,
    /// Its own `SET timestamp` is in force.
    pub has_clock: bool,
    kept: Vec<Kept>,
    left: Vec<Left>,
    has_too_many: bool,
}

impl Session {
    /// A new one, on a source whose sessions begin in this mode.
    pub fn new(mode: SqlMode) -> Self {
        Self {
            database: None,
            mode,
            base_mode: mode,
            has_clock: false,
            kept: Vec::new(),
            left: Vec::new(),
            has_too_many: false,
        }
    }
}

/// Whether `new` makes `old` superfluous.
fn replaces(new: &Setting, old: &Setting) -> bool {
    match (new, old) {
        (Setting::Variable { name: new, .. }, Setting::Variable { name: old, .. }) => new == old,
        (
            Setting::Prepare { name: new, .. } | Setting::Deallocate(new),
            Setting::Prepare { name: old, .. },
        ) => new == old,
        (_, Setting::Mixed | Setting::Deallocate(_)) => true,
        _ => false,
    }
}

impl Session {
    /// Notes a statement that was applied, or will be when the session has connections.
    pub fn keep(&mut self, settings: Vec<Setting>, text: &str) {
        for setting in &settings {
            match setting {
                Setting::Database(name) => self.database = Some(name.clone()),
                Setting::Variable { sets_clock, mode, .. } => {
                    self.has_clock = sets_clock.unwrap_or(self.has_clock);
                    self.mode = mode.unwrap_or(self.mode);
                }
                Setting::Prepare { .. } | Setting::Deallocate(_) | Setting::Mixed => {}
            }
        }
        let is_superseded =
            |kept: &Kept| kept.settings.iter().all(|old| settings.iter().any(|new| replaces(new, old)));
        self.kept.retain(|kept| !is_superseded(kept));
        let only_database = settings.iter().all(|setting| matches!(setting, Setting::Database(_)));
        let only_drops = settings.iter().all(|setting| matches!(setting, Setting::Deallocate(_)));
        if only_database || only_drops {
            return;
        }
        if self.kept.len() == SETTINGS {
            self.has_too_many = true;
            return;
        }
        self.kept.push(Kept { settings, text: text.to_owned() });
    }

    /// The statements that bring a new connection to this state, besides the default database.
    pub fn setup(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(|kept| kept.text.as_str())
    }

    /// The text of a statement that was prepared by name; `None` if there is none, or it is not known.
    pub fn prepared(&self, name: &str) -> Option<&str> {
        let settings = self.kept.iter().rev().flat_map(|kept| &kept.settings);
        let mut of_name = settings.filter_map(|setting| match setting {
            Setting::Prepare { name: known, text } if known == name => Some(text.as_deref()),
            _ => None,
        });
        of_name.next().flatten()
    }

    /// A statement was not replayed that would have left something.
    pub fn lacks(&mut self, left: Left) {
        if self.left.len() < SETTINGS && !self.left.contains(&left) {
            self.left.push(left);
        }
    }

    /// Why a statement's answer would be of another session's state.
    pub fn misses(&self, shape: &Shape) -> Option<&'static str> {
        if self.has_too_many {
            return Some("the session has more settings than are followed");
        }
        if shape.needs_user_variables && self.left.contains(&Left::UserVariables) {
            return Some("it reads variables that a statement has set that is not replayed");
        }
        let is_temporary = |table: &String| {
            self.left.iter().any(|left| matches!(left, Left::Temporary(name) if name == table))
        };
        shape.tables.iter().any(is_temporary).then_some("it reads a temporary table")
    }

    /// Settings are the defaults again.
    pub fn reset(&mut self) {
        *self = Self { database: self.database.take(), ..Self::new(self.base_mode) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Decision, decide};

    fn run(session: &mut Session, text: &str) {
        match decide(text, session.mode, false) {
            Decision::Session(settings) => session.keep(settings, text),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_set_again_is_kept_once() {
        let base = SqlMode::DEFAULT.with(SqlMode::PIPES_AS_CONCAT);
        let mut session = Session::new(base);
        for text in
            ["SET @a = 1", "SET sql_mode = 'ANSI_QUOTES'", "USE shop", "SET @a = 2", "SET @b = 3, @a = 4"]
        {
            run(&mut session, text);
        }
        assert_eq!(
            session.setup().collect::<Vec<_>>(),
            ["SET sql_mode = 'ANSI_QUOTES'", "SET @b = 3, @a = 4"]
        );
        assert_eq!(session.database.as_deref(), Some("shop"));
        assert!(session.mode.has(SqlMode::ANSI_QUOTES));
        session.reset();
        assert_eq!((session.setup().count(), session.mode), (0, base));
    }

    #[test]
    fn prepared_statements_have_texts_until_they_are_dropped() {
        let mut session = Session::new(SqlMode::DEFAULT);
        run(&mut session, "PREPARE p FROM 'SELECT 1'");
        assert_eq!(session.prepared("p"), Some("SELECT 1"));
        run(&mut session, "DEALLOCATE PREPARE p");
        assert_eq!((session.prepared("p"), session.setup().count()), (None, 0));
    }

    #[test]
    fn what_depends_on_unreplayed_statements_is_told() {
        let mut session = Session::new(SqlMode::DEFAULT);
        session.lacks(Left::Temporary("x".into()));
        let shape = |text: &str| match decide(text, SqlMode::DEFAULT, false) {
            Decision::Replay(shape) => *shape,
            other => panic!("{text}: {other:?}"),
        };
        assert!(session.misses(&shape("SELECT * FROM X")).is_some());
        assert!(session.misses(&shape("SELECT @a")).is_none());
        session.lacks(Left::UserVariables);
        assert!(session.misses(&shape("SELECT @a")).is_some());
    }
}
