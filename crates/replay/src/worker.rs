//! Replays the events of some sessions, each on a pair of connections of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use avocet_sql::parse::digest_text::digest_text;
use avocet_types::expr::SqlMode;
use parking_lot::Mutex;

use crate::answer::Answer;
use crate::decide::{Decision, Setting, Shape, decide, mode_named};
use crate::error::Result;
use crate::judge::{self, Rules, Verdict, has_ties_beyond, judge, widened};
use crate::log::{Action, Event};
use crate::report::{Found, Report, Took};
use crate::servers::{Asker, MODE, Servers};
use crate::session::Session;
use crate::side::{Control, Side, Which};

/// How often a difference is looked at while the source is written to, and how often it must be the same.
const LOOKS: u32 = 12;
const SAME: u32 = 3;
/// Sessions that are known at a time. The one that was quiet for the longest is forgotten.
const SESSIONS: usize = 20_000;

/// What all workers have in common.
pub struct Shared {
    pub servers: Servers,
    pub control: Arc<Control>,
    pub rules: Rules,
    /// How often each statement runs on either side.
    pub runs: u32,
    /// Pairs of connections that a worker has open at a time.
    pub pairs: usize,
    pub log_has_executions: bool,
    pub report: Mutex<Report>,
}

struct Pair {
    source: Side,
    avocet: Side,
    database: Option<String>,
}

struct Live {
    session: Session,
    pair: Option<Pair>,
    used: u64,
}

impl Live {
    fn new(mode: SqlMode) -> Self {
        Self { session: Session::new(mode), pair: None, used: 0 }
    }
}

pub struct Worker<'a> {
    shared: &'a Shared,
    sessions: HashMap<u64, Live>,
    asker: Option<Asker>,
    now: u64,
}

/// A statement on its way.
struct Task<'e> {
    event: &'e Event,
    text: &'e str,
    digest: String,
    shape: Shape,
}

impl<'a> Worker<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self { shared, sessions: HashMap::new(), asker: None, now: 0 }
    }

    /// # Errors
    /// If a server is gone.
    pub fn handle(&mut self, event: &Event) -> Result<()> {
        self.now += 1;
        if !self.sessions.contains_key(&event.session) {
            self.forget_one();
            self.shared.report.lock().sessions += 1;
        }
        let mode = self.shared.servers.mode;
        let mut live = self.sessions.remove(&event.session).unwrap_or_else(|| Live::new(mode));
        live.used = self.now;
        if event.database.is_some() {
            live.session.database.clone_from(&event.database);
        }
        let outcome = self.act(event, &mut live);
        if event.action != Action::Quit {
            self.sessions.insert(event.session, live);
        }
        outcome
    }

    /// Makes room for one more session.
    fn forget_one(&mut self) {
        if self.sessions.len() >= SESSIONS
            && let Some(oldest) = self.sessions.iter().min_by_key(|(_, live)| live.used).map(|(id, _)| *id)
        {
            self.sessions.remove(&oldest);
        }
    }

    fn act(&mut self, event: &Event, live: &mut Live) -> Result<()> {
        match &event.action {
            Action::Connect(database) => {
                *live = Live { used: live.used, ..Live::new(self.shared.servers.mode) };
                live.session.database.clone_from(database);
            }
            Action::Database(name) => live.session.database = Some(name.clone()),
            Action::Reset => {
                live.session.reset();
                live.pair = None;
            }
            Action::Quit | Action::Other(_) => {}
            Action::Statement(text) => match std::str::from_utf8(text) {
                Ok(text) => return self.statement(event, text, live),
                Err(_) => self.skip("statements that are not UTF-8"),
            },
        }
        Ok(())
    }

    fn skip(&self, kind: &str) {
        self.shared.report.lock().skip(kind);
    }

    fn decide(&self, text: &str, session: &Session) -> Decision {
        decide(text, session.mode, self.shared.log_has_executions)
    }

    fn statement(&mut self, event: &Event, text: &str, live: &mut Live) -> Result<()> {
        let digest = |text: &str| digest_of(text, live.session.mode);
        match self.decide(text, &live.session) {
            Decision::Skip(kind) => self.skip(kind),
            Decision::SkipLeaving(kind, left) => {
                live.session.lacks(left);
                self.skip(kind);
            }
            Decision::Replay(shape) => {
                let task = Task { event, text, digest: digest(text), shape: *shape };
                return self.replay(&task, live);
            }
            Decision::Session(settings) => return self.set(event, text, settings, live),
            Decision::Execute(name) => {
                let prepared = live.session.prepared(&name).map(str::to_owned);
                let Some(prepared) = prepared else {
                    self.skip("EXECUTE of a text that is not known");
                    return Ok(());
                };
                let Some(mut shape) = self.prepared_shape(&prepared, &live.session) else {
                    self.skip("EXECUTE of what is no read");
                    return Ok(());
                };
                // Its bounds stand in another text, or are parameters.
                shape.odd_limit |= shape.limit.take().is_some();
                shape.needs_user_variables = true;
                let task = Task { event, text, digest: digest(&prepared), shape };
                return self.replay(&task, live);
            }
            Decision::Unread(error) => return self.unread(event, text, error.errno, &error.message, live),
        }
        Ok(())
    }

    /// The shape of a text with parameters.
    fn prepared_shape(&self, text: &str, session: &Session) -> Option<Shape> {
        match crate::decide::decide_prepared(text, session.mode) {
            Decision::Replay(shape) => Some(*shape),
            _ => None,
        }
    }

    fn pair<'l>(&mut self, live: &'l mut Live) -> Result<&'l mut Pair> {
        if live.pair.is_none() {
            self.close_one();
            let (servers, control) = (&self.shared.servers, &self.shared.control);
            let source = servers.open(Which::Source, control)?;
            let avocet = servers.open(Which::Avocet, control)?;
            let mut pair = Pair { source, avocet, database: None };
            for text in live.session.setup() {
                pair.source.run(text)?;
                pair.avocet.run(text)?;
            }
            restore(&mut pair)?;
            live.pair = Some(pair);
        }
        Ok(live.pair.as_mut().expect("it was just opened"))
    }

    /// Closes the connections of the session that was quiet for the longest, if there are as many as may be.
    fn close_one(&mut self) {
        let open = self.sessions.values_mut().filter(|live| live.pair.is_some());
        let mut open: Vec<&mut Live> = open.collect();
        if open.len() >= self.shared.pairs
            && let Some(oldest) = open.iter_mut().min_by_key(|live| live.used)
        {
            oldest.pair = None;
        }
    }

    /// A statement that sets something. It is compared whether both sides take it.
    fn set(&mut self, event: &Event, text: &str, settings: Vec<Setting>, live: &mut Live) -> Result<()> {
        let prepared = settings.iter().find_map(|setting| match setting {
            Setting::Prepare { text, .. } => Some(text.as_deref()),
            _ => None,
        });
        if let Some(Some(prepared)) = prepared
            && self.prepared_shape(prepared, &live.session).is_none()
        {
            self.skip("PREPARE of what is no read");
            return Ok(());
        }
        let only_database = settings.iter().all(|setting| matches!(setting, Setting::Database(_)));
        let asks_mode = settings.iter().any(
            |setting| matches!(setting, Setting::Variable { name, mode: None, .. } if name == "sql_mode"),
        );
        let mut mode = None;
        let is_mixed = settings.contains(&Setting::Mixed);
        if !only_database {
            let pair = self.pair(live)?;
            let (there, here) = (pair.source.run(text)?, pair.avocet.run(text)?);
            if is_mixed {
                restore(pair)?;
            }
            if asks_mode && there.error.is_none() {
                mode = pair.source.value(MODE)?.as_deref().map(mode_named);
            }
            let rules = Rules { compares_warnings: false, ..self.shared.rules.clone() };
            let verdict = judge(&there, &here, &Shape { deterministic: true, ..Shape::default() }, &rules);
            let failed = there.error.is_some();
            if verdict != Verdict::Same {
                let digest = digest_of(text, live.session.mode);
                self.shared.report.lock().add(found(event, text, digest, &live.session), None, &verdict);
            } else {
                self.skip("settings of sessions, which are applied to both sides");
            }
            if failed {
                return Ok(());
            }
        } else {
            self.skip("settings of sessions, which are applied to both sides");
        }
        live.session.keep(settings, text);
        live.session.mode = mode.unwrap_or(live.session.mode);
        Ok(())
    }

    /// What the parser does not read. If it looks like a query, the source is asked whether it is one, without running it.
    fn unread(&mut self, event: &Event, text: &str, code: u16, message: &str, live: &mut Live) -> Result<()> {
        let first = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let may_be_query = text.trim_start().starts_with('(')
            || ["SELECT", "WITH", "TABLE", "VALUES"].iter().any(|word| first.eq_ignore_ascii_case(word));
        if !may_be_query {
            self.skip("statements that are not read here, and are no queries");
            return Ok(());
        }
        let digest = digest_of(text, live.session.mode);
        let no_escapes = live.session.mode.has(avocet_types::expr::SqlMode::NO_BACKSLASH_ESCAPES);
        let quoted = text.replace('\'', "''");
        let quoted = if no_escapes { quoted } else { quoted.replace('\\', "\\\\") };
        let database = live.session.database.clone();
        let pair = self.pair(live)?;
        enter(pair, database.as_deref())?;
        let prepared = pair.source.run(&format!("PREPARE avocet_replay FROM '{quoted}'"))?;
        let verdict = match prepared.error {
            Some((there, _)) if there == code => Verdict::Same,
            Some((there, said)) => Verdict::Different(judge::Difference {
                of: "error",
                detail: format!("error {there} ({said}) at the source, error {code} ({message}) at Avocet"),
            }),
            None => {
                pair.source.run("DEALLOCATE PREPARE avocet_replay")?;
                Verdict::Unsupported(format!("{code}: {message}"))
            }
        };
        self.shared.report.lock().add(found(event, text, digest, &live.session), None, &verdict);
        Ok(())
    }

    fn replay(&mut self, task: &Task<'_>, live: &mut Live) -> Result<()> {
        if let Some(why) = live.session.misses(&task.shape) {
            self.skip(why);
            return Ok(());
        }
        let database = live.session.database.clone();
        let pins = task.shape.clock && !live.session.has_clock;
        let pair = self.pair(live)?;
        enter(pair, database.as_deref())?;
        if pins {
            let set = format!("SET timestamp = {}", clock(task.event));
            pair.source.run(&set)?;
            pair.avocet.run(&set)?;
        }
        let (there, here, took) = self.timed(task, live)?;
        let mut verdict = judge(&there, &here, &task.shape, &self.shared.rules);
        if matches!(verdict, Verdict::Different(_) | Verdict::Ties(_)) {
            verdict = self.look_again(task, live)?;
        }
        if self.shared.control.is_stopped() && (there.killed || here.killed) {
            self.skip("statements that were running when the replay was stopped");
            return Ok(());
        }
        let found = found(task.event, task.text, task.digest.clone(), &live.session);
        self.shared.report.lock().add(found, Some(took), &verdict);
        Ok(())
    }

    /// The answers of the first runs, and the times of all.
    fn timed(&mut self, task: &Task<'_>, live: &mut Live) -> Result<(Answer, Answer, Took)> {
        let runs = self.shared.runs;
        let pair = self.pair(live)?;
        let of = |side: &mut Side| -> Result<(Answer, (Duration, Duration))> {
            let first = side.run(task.text)?;
            let mut best = first.took;
            for _ in 1..runs {
                let again = side.run(task.text)?;
                if again.error.is_none() {
                    best = best.min(again.took);
                }
            }
            let times = (first.took, best);
            Ok((first, times))
        };
        let (there, source) = of(&mut pair.source)?;
        let (here, avocet) = of(&mut pair.avocet)?;
        Ok((there, here, Took { source, avocet }))
    }

    /// Answers that differ are asked for again, from states that are known to be the same, or by which the source's state is bracketed:
    /// what stays the same difference while nothing is written, or each time, is one.
    fn look_again(&mut self, task: &Task<'_>, live: &mut Live) -> Result<Verdict> {
        let mut asker = match self.asker.take() {
            Some(asker) => asker,
            None => self.shared.servers.asker(&self.shared.control)?,
        };
        let verdict = self.looks(task, live, &mut asker);
        self.asker = Some(asker);
        verdict
    }

    fn looks(&mut self, task: &Task<'_>, live: &mut Live, asker: &mut Asker) -> Result<Verdict> {
        let Shared { servers, control, rules, .. } = self.shared;
        let (mut before, mut times) = (None, 0);
        for look in 0..LOOKS {
            if control.is_stopped() {
                return Ok(Verdict::Incomparable(
                    "the replay was stopped before a difference was looked at again",
                ));
            }
            let begin = servers.position(asker)?;
            let pair = self.pair(live)?;
            let there = pair.source.run(task.text)?;
            let after = servers.position(asker)?;
            if !servers.reaches(asker, &after, servers.patience)? {
                return Ok(Verdict::Incomparable("Avocet does not come to the source's position in time"));
            }
            let here_at = servers.position_here(asker)?;
            let here = pair.avocet.run(task.text)?;
            let end = servers.position(asker)?;
            let verdict = match judge(&there, &here, &task.shape, rules) {
                Verdict::Ties(difference) => ties(task, pair, difference, rules)?,
                verdict => verdict,
            };
            if !matches!(verdict, Verdict::Different(_)) {
                return Ok(verdict);
            }
            let is_quiet = begin == end && here_at == begin;
            let seen = Some((there.fingerprint(), here.fingerprint()));
            times = if seen == before { times + 1 } else { 1 };
            if is_quiet || times >= SAME {
                return Ok(verdict);
            }
            before = seen;
            std::thread::sleep(Duration::from_millis(10 * u64::from(look)));
        }
        Ok(Verdict::Incomparable("its answer changes all the time under writes"))
    }
}

/// By what statements are counted together.
fn digest_of(text: &str, mode: SqlMode) -> String {
    /// Of a digest that is shown or kept, in bytes.
    const LONGEST: usize = 4096;
    digest_text(text.as_bytes(), mode, LONGEST)
}

/// A difference among rows that are tied at the bounds of a LIMIT is one if no ties go beyond.
fn ties(task: &Task<'_>, pair: &mut Pair, difference: judge::Difference, rules: &Rules) -> Result<Verdict> {
    const WHY: &str = "LIMIT cuts through rows that ORDER BY does not tell apart";
    let Some(bounds) = task.shape.limit else { return Ok(Verdict::Incomparable(WHY)) };
    let wide = pair.source.run(&widened(task.text, bounds))?;
    Ok(match wide.error.is_some() || has_ties_beyond(&wide, &task.shape, bounds, rules) {
        true => Verdict::Incomparable(WHY),
        false => Verdict::Different(difference),
    })
}

/// Goes to a database on both sides. Where that fails, the statement fails as well.
fn enter(pair: &mut Pair, database: Option<&str>) -> Result<()> {
    if let Some(name) = database.filter(|name| pair.database.as_deref() != Some(name)) {
        let text = format!("USE `{}`", name.replace('`', "``"));
        pair.source.run(&text)?;
        pair.avocet.run(&text)?;
        pair.database = Some(name.to_owned());
    }
    Ok(())
}

/// Replayed reads are each for themselves, whatever transactions the session had.
fn restore(pair: &mut Pair) -> Result<()> {
    pair.source.run("SET autocommit = 1")?;
    pair.source.run("SET SESSION TRANSACTION READ ONLY")?;
    pair.avocet.run("SET autocommit = 1").map(drop)
}

/// What NOW() is to be: what it was, or the time of the replay.
fn clock(event: &Event) -> String {
    let us = event.clock.map(|seconds| seconds * 1_000_000).or(event.at_us).filter(|us| *us > 0);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as i64);
    let us = us.unwrap_or_else(now);
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn found(event: &Event, text: &str, digest: String, session: &Session) -> Found {
    Found {
        digest,
        of: String::new(),
        detail: String::new(),
        line: event.line,
        database: session.database.clone(),
        setup: session.setup().map(str::to_owned).collect(),
        statement: text.to_owned(),
    }
}
