//! A stream that ends with the same damage at the same position each time does not get over it by itself.

use crate::error::{After, ReplicateError};
use crate::gtid::GtidSet;
use crate::state::LogPlace;

/// So often an event may come damaged: a connection that breaks may break an event, too.
const MOST: u32 = 10;

/// How often the stream has ended so without getting further.
#[derive(Default)]
pub struct Stuck {
    times: u32,
    text: String,
    at: (GtidSet, Option<LogPlace>),
}

impl Stuck {
    /// What is to be done after an error with this text, at this position.
    pub fn after(
        &mut self,
        error: &ReplicateError,
        text: &str,
        (executed, place): (&GtidSet, Option<&LogPlace>),
    ) -> After {
        let after = error.after();
        if !matches!(error, ReplicateError::Damaged(_)) {
            // A source that is away meanwhile says nothing of what it will send.
            return after;
        }
        let is_same = self.text == text && self.at.0 == *executed && self.at.1.as_ref() == place;
        if !is_same {
            *self = Self { times: 0, text: text.to_owned(), at: (executed.clone(), place.cloned()) };
        }
        self.times += 1;
        if self.times < MOST { after } else { After::Halt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_damage_is_not_met_for_ever() {
        let damage = |text: &str| ReplicateError::damaged(text);
        let (none, place) = (GtidSet::default(), LogPlace { file: "log.000001".into(), offset: 4 });
        let mut stuck = Stuck::default();
        let mut after =
            |error: &ReplicateError, place| stuck.after(error, &error.to_string(), (&none, place));
        for _ in 1..MOST {
            assert_eq!(after(&damage("a"), None), After::Retry);
            assert_eq!(
                after(&ReplicateError::Source(std::io::Error::other("away").into()), None),
                After::Retry
            );
        }
        assert_eq!(after(&damage("b"), None), After::Retry);
        for _ in 1..MOST {
            assert_eq!(after(&damage("a"), None), After::Retry);
        }
        // It has got further.
        assert_eq!(after(&damage("a"), Some(&place)), After::Retry);
        for _ in 2..MOST {
            assert_eq!(after(&damage("a"), Some(&place)), After::Retry);
        }
        assert_eq!(after(&damage("a"), Some(&place)), After::Halt);
    }
}
