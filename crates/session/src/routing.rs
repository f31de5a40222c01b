//! Where a session's queries are to run when this server stands before the MySQL that it follows, and how fresh answers from
//! here have to be: the variables `avocet_route…` and `avocet_freshness…` in the form in which the server's front reads them.

mod journal;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use journal::{Journal, Routed};

/// Which of the two servers a query may run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The one that has less work with it.
    #[default]
    Auto,
    /// The source, always.
    Source,
    /// Here, whatever it costs, if it can be answered here at all.
    Here,
}

/// How much of what the source has committed an answer from here must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// All that was committed when the query came.
    #[default]
    Latest,
    /// What this session has committed, and all that it has seen.
    Session,
    /// All that was committed so long before the query came.
    Bounded(Duration),
    /// Whatever is here.
    Any,
}

impl FromStr for Route {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let places = [("auto", Self::Auto), ("source", Self::Source), ("here", Self::Here)];
        places.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, route)| *route).ok_or(())
    }
}

impl FromStr for Freshness {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim().to_ascii_lowercase();
        if let Some(bound) = text.strip_prefix("bounded(").and_then(|rest| rest.strip_suffix(')')) {
            let millis = bound.trim().parse().map_err(drop)?;
            return Ok(Self::Bounded(Duration::from_millis(millis)));
        }
        match &*text {
            "latest" => Ok(Self::Latest),
            "session" => Ok(Self::Session),
            "any" => Ok(Self::Any),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Session => f.write_str("session"),
            Self::Bounded(bound) => write!(f, "bounded({})", bound.as_millis()),
            Self::Any => f.write_str("any"),
        }
    }
}

/// What a session asks of the front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    pub route: Route,
    /// Queries that the source's optimizer puts lower stay there (in its units: about a tenth of a row read).
    pub least_cost: f64,
    pub freshness: Freshness,
    /// For how long a query waits until the data here is as fresh as that.
    pub patience: Duration,
    /// After that it fails, rather than run on the source.
    pub fails_when_late: bool,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            route: Route::Auto,
            least_cost: 10_000.0,
            freshness: Freshness::Latest,
            patience: Duration::from_secs(1),
            fails_when_late: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_reads_what_it_writes() {
        for text in ["latest", "session", "bounded(0)", "bounded(250)", "any"] {
            assert_eq!(text.parse::<Freshness>().map(|f| f.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(" Bounded( 7 ) ".parse(), Ok(Freshness::Bounded(Duration::from_millis(7))));
        for text in ["", "bounded", "bounded()", "bounded(-1)", "bounded(1", "newest"] {
            assert_eq!(text.parse::<Freshness>(), Err(()), "{text}");
        }
    }
}
