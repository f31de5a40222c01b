//! Both servers before a replay: whether they can be compared, in which state, and with which settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_types::expr::SqlMode;

use crate::decide::mode_named;
use crate::error::{Error, Result};
use crate::side::{Control, Place, Side, Which};

/// Variables of a session whose defaults may be others on either side, and which decide about answers.
const SETTINGS: [&str; 16] = [
    "sql_mode",
    "time_zone",
    "character_set_client",
    "collation_connection",
    "character_set_results",
    "default_collation_for_utf8mb4",
    "lc_time_names",
    "sql_select_limit",
    "group_concat_max_len",
    "div_precision_increment",
    "default_week_format",
    "cte_max_recursion_depth",
    "max_execution_time",
    "max_error_count",
    "sql_auto_is_null",
    "sql_big_selects",
];

/// What asks a session how it reads texts.
pub const MODE: &str = "SELECT @@session.sql_mode";

/// Two servers that can be compared.
pub struct Servers {
    pub source: Place,
    pub avocet: Place,
    /// What asks the source for all that it has committed; `None`: states are the same by promise.
    pub position: Option<&'static str>,
    /// For how long the copy may take to get to the source's position.
    pub patience: Duration,
    /// How new sessions on the source read texts.
    pub mode: SqlMode,
    /// What new sessions on Avocet are set to, so that they are as new ones on the source.
    pub base: Vec<String>,
    /// Of the source's new sessions, in case theirs cannot be expressed otherwise.
    pub base_of_source: Vec<String>,
}

/// For questions beside the sessions that are replayed.
pub struct Asker {
    pub source: Side,
    pub avocet: Side,
}

impl Servers {
    /// # Errors
    /// If one of them does not answer, or Avocet does not follow the source.
    pub fn meet(
        source: Place,
        avocet: Place,
        waits: bool,
        patience: Duration,
        control: &Arc<Control>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let mut servers = Self {
            source,
            avocet,
            position: None,
            patience,
            mode: SqlMode::DEFAULT,
            base: Vec::new(),
            base_of_source: Vec::new(),
        };
        let mut asker = servers.asker(control)?;
        servers.mode = mode_named(&asker.source.value(MODE)?.unwrap_or_default());
        let version = asker.source.value("SELECT VERSION()")?.unwrap_or_default();
        let here = asker.avocet.value("SELECT VERSION()")?.unwrap_or_default();
        notes.push(format!(
            "the source is {version} at {}, Avocet {here} at {}",
            servers.source.address(),
            servers.avocet.address()
        ));
        if waits {
            let is_mariadb = version.to_lowercase().contains("mariadb");
            servers.position = Some(match is_mariadb {
                true => "SELECT @@GLOBAL.gtid_binlog_pos",
                false => "SELECT @@GLOBAL.gtid_executed",
            });
            servers.check_following(&mut asker, is_mariadb)?;
            servers.settle(&mut asker, control, notes)?;
        }
        servers.carry_settings(&mut asker, notes)?;
        Ok(servers)
    }

    pub fn asker(&self, control: &Arc<Control>) -> Result<Asker> {
        Ok(Asker { source: Side::open(&self.source, control)?, avocet: Side::open(&self.avocet, control)? })
    }

    fn check_following(&self, asker: &mut Asker, is_mariadb: bool) -> Result<()> {
        let place = self.avocet.address();
        let status = asker.avocet.run("SHOW REPLICA STATUS")?;
        let Some(row) = status.kept.first() else {
            return Err(Error::Unfit(format!(
                "Avocet at {place} follows no source: start it by `avocet attach`, or say --no-wait if both servers have the same rows and nobody writes"
            )));
        };
        let value = |name: &str| {
            let at = status.columns.iter().position(|column| column.name == name);
            let bytes = at.and_then(|at| row.get(at)).and_then(Option::as_deref).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        if value("Replica_SQL_Running") != "Yes" {
            return Err(Error::Unfit(format!(
                "Avocet at {place} has stopped following: {} {}",
                value("Last_IO_Error"),
                value("Last_SQL_Error")
            )));
        }
        let (theirs, ours) = (value("Source_UUID"), asker.source.run("SELECT @@server_uuid")?);
        let ours = ours.kept.into_iter().flatten().flatten().next().unwrap_or_default();
        let ours = String::from_utf8_lossy(&ours).into_owned();
        match is_mariadb || theirs.is_empty() || theirs == ours {
            true => Ok(()),
            false => Err(Error::Unfit(format!(
                "Avocet at {place} follows another server ({theirs}) than {} ({ours})",
                self.source.address()
            ))),
        }
    }

    /// Waits for the source's position, and for tables that are being copied.
    fn settle(&self, asker: &mut Asker, control: &Control, notes: &mut Vec<String>) -> Result<()> {
        let begin = Instant::now();
        let position = self.position(asker)?;
        loop {
            let reached = self.reaches(asker, &position, Duration::from_secs(1))?;
            let tables = asker.avocet.run("SELECT * FROM avocet.replica_tables")?;
            let states: Vec<String> = tables
                .kept
                .iter()
                .map(|row| {
                    let values =
                        row.iter().map(|value| String::from_utf8_lossy(value.as_deref().unwrap_or_default()));
                    values.collect::<Vec<_>>().join(" ")
                })
                .collect();
            let is_copied = |state: &&String| {
                ["waiting to be copied", "being copied", "the stream is not there yet"]
                    .iter()
                    .any(|s| state.contains(s))
            };
            if reached && !states.iter().any(|state| is_copied(&state)) {
                notes.extend(states.iter().map(|state| format!("Avocet does not follow {state}")));
                return Ok(());
            }
            if control.is_stopped() {
                return Err(Error::Unfit("it was stopped before Avocet had the source's rows".into()));
            }
            if begin.elapsed() > self.patience {
                return Err(Error::Unfit(format!(
                    "Avocet at {} has not come to the source's position within {} s (--wait): {}",
                    self.avocet.address(),
                    self.patience.as_secs(),
                    states.join("; ")
                )));
            }
            if reached {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// All that the source has committed; empty if nobody asks.
    pub fn position(&self, asker: &mut Asker) -> Result<String> {
        let Some(question) = self.position else { return Ok(String::new()) };
        Ok(plain(&asker.source.value(question)?.unwrap_or_default()))
    }

    pub fn position_here(&self, asker: &mut Asker) -> Result<String> {
        match self.position {
            Some(_) => Ok(plain(&asker.avocet.value("SELECT @@GLOBAL.gtid_executed")?.unwrap_or_default())),
            None => Ok(String::new()),
        }
    }

    /// Whether Avocet has all of these transactions, within this time.
    pub fn reaches(&self, asker: &mut Asker, position: &str, at_most: Duration) -> Result<bool> {
        if self.position.is_none() {
            return Ok(true);
        }
        let seconds = at_most.as_secs_f64();
        let text = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', {seconds:.3})");
        Ok(asker.avocet.value(&text)?.as_deref() == Some("0"))
    }

    /// Finds what new sessions on Avocet are to be set to.
    fn carry_settings(&mut self, asker: &mut Asker, notes: &mut Vec<String>) -> Result<()> {
        for name in SETTINGS {
            let question = format!("SELECT @@session.{name}");
            let (there, here) = (asker.source.run(&question)?, asker.avocet.run(&question)?);
            let first = |answer: crate::answer::Answer| answer.kept.into_iter().flatten().next();
            let (Some(there), here) = (first(there), first(here)) else { continue };
            let there = there.map(|value| String::from_utf8_lossy(&value).into_owned());
            if name == "time_zone" && there.as_deref() == Some("SYSTEM") {
                self.carry_zone(asker, notes)?;
                continue;
            }
            if Some(&there)
                == here.map(|value| value.map(|v| String::from_utf8_lossy(&v).into_owned())).as_ref()
            {
                continue;
            }
            let value = match &there {
                None => "NULL".to_owned(),
                Some(number) if number.parse::<u64>().is_ok() => number.clone(),
                Some(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
            };
            let set = format!("SET SESSION {name} = {value}");
            match asker.avocet.run(&set)?.error {
                None => self.base.push(set),
                Some((code, message)) => notes
                    .push(format!("{set}, as on the source, is not possible on Avocet: {code} {message}")),
            }
        }
        Ok(())
    }

    /// A zone that is the machine's: the same on both, or its offset of now.
    fn carry_zone(&mut self, asker: &mut Asker, notes: &mut Vec<String>) -> Result<()> {
        const OFFSET: &str = "SELECT TIME_FORMAT(TIMEDIFF(NOW(), UTC_TIMESTAMP()), '%H:%i')";
        let (there, here) = (asker.source.value(OFFSET)?, asker.avocet.value(OFFSET)?);
        if there == here {
            return Ok(());
        }
        let offset = there.unwrap_or_default();
        let set =
            format!("SET SESSION time_zone = '{}{offset}'", if offset.starts_with('-') { "" } else { "+" });
        notes.push(format!("the machines' time zones differ: both sides have {set}"));
        self.base.push(set.clone());
        self.base_of_source.push(set);
        Ok(())
    }

    /// A new connection to a side, set as new sessions are on the source.
    pub fn open(&self, which: Which, control: &Arc<Control>) -> Result<Side> {
        let (place, base) = match which {
            Which::Source => (&self.source, &self.base_of_source),
            Which::Avocet => (&self.avocet, &self.base),
        };
        let mut side = Side::open(place, control)?;
        // What a function or view may do that the text does not show, is refused.
        let guard = side.run("SET SESSION TRANSACTION READ ONLY")?;
        if let (Which::Source, Some((code, message))) = (which, guard.error) {
            return Err(Error::Unfit(format!(
                "the source refuses sessions that only read: {code} {message}"
            )));
        }
        base.iter().try_for_each(|set| side.run(set).map(drop))?;
        Ok(side)
    }
}

/// Sets are wrapped into lines.
fn plain(position: &str) -> String {
    position.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase()
}
