//! The channels of this server: the sources that it follows, by name. The default one's name is empty.
//!
//! ```text
//!  CHANGE REPLICATION SOURCE … FOR CHANNEL 'b' ─▶ Channels ─┬─ ''  ─▶ Replica ─▶ its source: databases shop, log
//!                                                          └─ 'b' ─▶ Replica ─▶ its source: database stock
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_replicate::SOURCE;
use avocet_replicate::gtid::GtidSet;
use avocet_replicate::promote::Applied;
use avocet_session::Database;
use avocet_session::replication::{
    CheckedTable, PlaceWait, PromoteOptions, Promotion, ReplicaStatus, Replication, SourceOptions,
};
use avocet_types::error::{ErrorCode, SqlError};
use parking_lot::{Condvar, Mutex};

use super::Replica;
use super::promoted::Promoted;
use super::role::Role;
use super::settings::{DEFAULT, Kept};
use super::told::failed;
use crate::Failure;
use crate::binary_log::OwnLog;

/// As many as MySQL has, the default one among them.
const MOST_CHANNELS: usize = 256;

/// For how long a source may say nothing that is asked for rows to compare.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// What of each source is in force here; all of it is the variable gtid_executed.
pub(super) struct Executed {
    database: Database,
    /// By the source's number.
    sets: Mutex<BTreeMap<u32, GtidSet>>,
    moved: Condvar,
}

impl Executed {
    pub fn of(database: &Database) -> Arc<Self> {
        Arc::new(Self { database: database.clone(), sets: Mutex::default(), moved: Condvar::new() })
    }

    /// What is in force of a source that may not be followed for long.
    fn begin_with(&self, number: u32) -> Result<(), Failure> {
        if let Some(applied) = Applied::of(self.database.engine(), number)? {
            self.sets.lock().entry(number).or_insert(applied.executed);
        }
        Ok(())
    }

    pub fn tell(&self, number: u32, executed: &GtidSet) {
        let mut sets = self.sets.lock();
        let of_source = sets.entry(number).or_default();
        of_source.clone_from(executed);
        let text = match sets.len() {
            1 => executed.to_string(),
            _ => all_of(&sets).to_string(),
        };
        // It is a variable that there is. Under the lock: the texts follow one another as the sets do.
        let _ = self.database.set_option("gtid_executed", &text);
        self.moved.notify_all();
    }

    fn wait_for(&self, wanted: &GtidSet, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        let until = Instant::now().checked_add(at_most);
        let mut sets = self.sets.lock();
        while !all_of(&sets).contains_all(wanted) {
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || stop() {
                return false;
            }
            self.moved.wait_for(&mut sets, left.min(LOOK));
        }
        true
    }
}

fn all_of(sets: &BTreeMap<u32, GtidSet>) -> GtidSet {
    let mut all = GtidSet::default();
    sets.values().for_each(|set| all.add_all(set));
    all
}

pub struct Channels {
    database: Database,
    /// `None` if the command line names the source: then there is the default channel alone.
    kept: Option<Arc<Kept>>,
    executed: Arc<Executed>,
    /// Of a server that keeps one.
    log: Option<Arc<OwnLog>>,
    role: Arc<Role>,
    /// By name; the default one is always there.
    replicas: Mutex<BTreeMap<String, Arc<Replica>>>,
}

impl std::fmt::Debug for Channels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channels").field("replicas", &*self.replicas.lock()).finish_non_exhaustive()
    }
}

impl Channels {
    /// Of a replica whose source the command line names.
    pub fn of(replica: Arc<Replica>) -> Arc<Self> {
        Arc::new(Self {
            database: replica.database.clone(),
            kept: None,
            executed: replica.executed.clone(),
            log: replica.log.clone(),
            role: replica.role.clone(),
            replicas: Mutex::new(BTreeMap::from([(DEFAULT.to_owned(), replica)])),
        })
    }

    /// Those whose sources statements have named. They follow if they did when the server ended. `log`: that of a server that keeps a
    /// binary log.
    ///
    /// # Errors
    /// Files of the data directory that cannot be read.
    pub fn resume(database: Database, data: &Path, log: Option<Arc<OwnLog>>) -> Result<Arc<Self>, Failure> {
        let kept = Kept::open(&database, data)?;
        let channels = Arc::new(Self {
            executed: Executed::of(&database),
            database: database.clone(),
            kept: Some(kept.clone()),
            log,
            role: Arc::default(),
            replicas: Mutex::default(),
        });
        let default = channels.add(&kept, DEFAULT)?;
        if let Some(promoted) = Promoted::open(&database)? {
            default.be_promoted(promoted)?;
            return Ok(channels);
        }
        default.warn_of_interrupted();
        for name in kept.named() {
            channels.add(&kept, &name)?;
        }
        for replica in channels.all() {
            if let Some(settings) = &replica.settings {
                replica.resume(settings)?;
            }
        }
        Ok(channels)
    }

    /// Ends them, each at a boundary of its source's transactions.
    pub fn end(&self) {
        self.all().iter().for_each(|replica| _ = replica.end());
    }

    fn add(&self, kept: &Arc<Kept>, name: &str) -> Result<Arc<Replica>, Failure> {
        let settings = kept.channel(name);
        self.executed.begin_with(settings.number())?;
        let (database, log, executed) = (self.database.clone(), self.log.clone(), self.executed.clone());
        let replica = Replica::with(database, Some(settings), log, executed, self.role.clone());
        self.replicas.lock().insert(name.to_owned(), replica.clone());
        Ok(replica)
    }

    fn all(&self) -> Vec<Arc<Replica>> {
        self.replicas.lock().values().cloned().collect()
    }

    /// Those whose sources are known.
    fn known(&self) -> Vec<Arc<Replica>> {
        self.all().into_iter().filter(|replica| replica.is_known()).collect()
    }

    fn default_one(&self) -> Arc<Replica> {
        self.replicas.lock()[DEFAULT].clone()
    }

    fn named(&self, name: &str) -> Result<Arc<Replica>, SqlError> {
        let replica = self.replicas.lock().get(name).cloned();
        let replica = replica.filter(|replica| name == DEFAULT || replica.exists());
        replica.ok_or_else(|| ErrorCode::REPLICA_CHANNEL_DOES_NOT_EXIST.with(&[&name]))
    }

    /// Those that a statement means. One about a channel is about the default one where no source is known.
    fn meant(&self, channel: Option<&str>) -> Result<Vec<Arc<Replica>>, SqlError> {
        if let Some(name) = channel {
            return self.named(name).map(|replica| vec![replica]);
        }
        let known = self.known();
        Ok(if known.is_empty() { vec![self.default_one()] } else { known })
    }

    /// Does it for each of them, also if it fails for one; the names of those for which it was done before.
    fn each(
        &self,
        channel: Option<&str>,
        does: impl Fn(&Replica) -> Result<bool, SqlError>,
    ) -> Result<Vec<String>, SqlError> {
        let (mut before, mut failed) = (Vec::new(), None);
        for replica in self.meant(channel)? {
            match does(&replica) {
                Ok(true) => {}
                Ok(false) => before.push(replica.name.clone()),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(before), Err)
    }

    /// The one whose source is followed, for what is about one source alone.
    fn only(&self) -> Result<Arc<Replica>, SqlError> {
        let mut known = self.known();
        match known.len() {
            0 => Ok(self.default_one()),
            1 => Ok(known.remove(0)),
            _ => {
                let names: Vec<String> = known.iter().map(|replica| format!("'{}'", replica.name)).collect();
                Err(failed(format!(
                    "sources are followed from channels {}: this server cannot take the place of all of them; RESET REPLICA ALL FOR \
                     CHANNEL those whose databases it is to keep as they are",
                    names.join(", ")
                )))
            }
        }
    }
}

impl Replication for Channels {
    fn status(&self) -> Vec<ReplicaStatus> {
        self.all().iter().filter_map(|replica| replica.shown()).collect()
    }

    fn change_source(&self, options: &SourceOptions) -> Result<(), SqlError> {
        let name = match &options.channel {
            Some(name) => name,
            None if self.known().iter().any(|replica| replica.name != DEFAULT) => {
                return Err(ErrorCode::REPLICA_MULTIPLE_CHANNELS_CMD.with(&[]));
            }
            None => DEFAULT,
        };
        let known = self.replicas.lock().get(name).cloned();
        let replica = match (known, &self.kept) {
            (Some(replica), _) => replica,
            (None, Some(kept)) => {
                self.role.may_begin().map_err(failed)?;
                let named = self.all().into_iter().filter(|other| other.name != DEFAULT && other.exists());
                if named.count() + 1 >= MOST_CHANNELS {
                    return Err(ErrorCode::REPLICA_MAX_CHANNELS_EXCEEDED.with(&[]));
                }
                self.add(kept, name).map_err(failed)?
            }
            (None, None) => return Err(SqlError::unsupported("another source than that of avocet attach")),
        };
        replica.change_source(options)
    }

    fn start(&self, channel: Option<&str>) -> Result<Vec<String>, SqlError> {
        self.each(channel, Replica::start)
    }

    fn stop(&self, channel: Option<&str>) -> Result<Vec<String>, SqlError> {
        self.each(channel, Replica::stop)
    }

    fn reset(&self, all: bool, channel: Option<&str>) -> Result<(), SqlError> {
        self.each(channel, |replica| replica.reset(all).map(|()| true)).map(drop)
    }

    fn knows(&self, channel: &str) -> Result<(), SqlError> {
        self.named(channel).map(drop)
    }

    fn check(
        &self,
        tables: &[(String, String)],
        repairs: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<CheckedTable>, String> {
        let known = self.known();
        let Some(kept) = self.kept.as_ref().filter(|_| known.len() > 1) else {
            let replica = known.into_iter().next().unwrap_or_else(|| self.default_one());
            return replica.check(tables, repairs, PATIENCE, stop);
        };
        let mut checked = Vec::new();
        for replica in known {
            let is_its = |(database, _): &&(String, String)| match kept.owner(database) {
                Some(owner) => owner == replica.name,
                None => replica.number == SOURCE,
            };
            let its: Vec<(String, String)> = tables.iter().filter(is_its).cloned().collect();
            if tables.is_empty() || !its.is_empty() {
                let told = replica.check(&its, repairs, PATIENCE, stop);
                checked.extend(told.map_err(|why| format!("channel '{}': {why}", replica.name))?);
            }
        }
        Ok(checked)
    }

    fn promote(&self, options: &PromoteOptions) -> Result<Box<dyn Promotion>, SqlError> {
        let promoting = self.role.promote();
        let promoting = promoting.ok_or_else(|| failed("another session is promoting this server"))?;
        // From here on, no other source begins to be followed.
        self.only()?.promote(options, promoting)
    }

    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool> {
        // A MariaDB's positions are sets here too.
        let wanted = GtidSet::of_mysql_text(set).ok().or_else(|| set.parse().ok())?;
        Some(match self.only() {
            Ok(replica) => replica.wait_for(&wanted, at_most, stop),
            Err(_) => self.executed.wait_for(&wanted, at_most, stop),
        })
    }

    fn wait_for_place(
        &self,
        file: &str,
        position: u64,
        channel: Option<&str>,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> PlaceWait {
        let replica = match channel {
            Some(name) => self.named(name),
            None => self.only(),
        };
        match (replica, channel) {
            (Ok(replica), _) => replica.wait_for_place(file, position, at_most, stop),
            (Err(_), Some(_)) => PlaceWait::Never,
            (Err(_), None) => PlaceWait::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use avocet_base::Timestamp;

    use super::*;

    #[test]
    fn a_promotion_of_one_channel_holds_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine =
            avocet_engine::Engine::open(avocet_engine::EngineOptions::new(folder.path())).expect("an engine");
        let database = Database::new(engine, None).expect("a database");
        let channels = Channels::resume(database.clone(), folder.path(), None).expect("channels");
        let change = |channels: &Channels, channel: &str| {
            let channel = (channel != DEFAULT).then(|| channel.to_owned());
            let host = Some("127.0.0.1".into());
            let options =
                SourceOptions { host, channel, auto_position: Some(true), ..SourceOptions::default() };
            channels.change_source(&options)
        };
        for name in ["b", "forgotten"] {
            change(&channels, name).expect("kept");
        }
        channels.reset(true, Some("forgotten")).expect("forgotten");
        let refuse = |channels: &Channels, names: &[&str], words: &str| {
            for name in names {
                let refused = change(channels, name).expect_err(name);
                assert!(refused.message.contains(words), "{name}: {refused:?}");
            }
            let refused = channels.start(None).expect_err("nobody is followed");
            assert!(refused.message.contains(words), "{refused:?}");
        };
        // While one channel takes its source's place, no other gets a source.
        let promoting = channels.role.promote().expect("none runs");
        assert!(channels.role.promote().is_none());
        refuse(&channels, &["b", "forgotten", "new"], "is about to take the place of its source");
        let repaired = channels.check(&[], true, &|| false).expect_err("nothing is copied anew");
        assert!(repaired.contains("is about to take the place of its source"), "{repaired}");
        drop(promoting);
        change(&channels, "forgotten").expect("kept");
        channels.reset(true, Some("forgotten")).expect("forgotten");
        let promoted = Promoted {
            source: "127.0.0.1:3306".into(),
            source_id: "3e11fa47-71ca-11e1-9e33-c80aa9429562".into(),
            executed: GtidSet::default(),
            ts: Timestamp(1),
            logs: false,
        };
        promoted.keep(&database).expect("kept");
        let replica = channels.named("b").expect("a channel");
        replica.be_promoted(promoted).expect("promoted");
        let all = [DEFAULT, "b", "forgotten", "new"];
        refuse(&channels, &all, "has taken the place of");
        assert!(channels.status().is_empty());
        let again = Channels::resume(database, folder.path(), None).expect("channels");
        refuse(&again, &all, "has taken the place of");
    }
}
