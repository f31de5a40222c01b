//! The `Com_…` counters: how often statements of each kind were run. Those that have compiled plans count apart, in
//! [`Counters`](crate::counters::Counters): this is asked for on the general path alone.

use std::sync::atomic::{AtomicU64, Ordering};

use avocet_sql::parse::statement::{ProgramKind, ShowKind, StatementKind};

/// Sorted.
const NAMES: &[&str] = &[
    "Com_alter_db",
    "Com_alter_table",
    "Com_alter_user",
    "Com_alter_user_default_role",
    "Com_analyze",
    "Com_begin",
    "Com_call_procedure",
    "Com_change_db",
    "Com_change_replication_source",
    "Com_check",
    "Com_checksum",
    "Com_create_db",
    "Com_create_index",
    "Com_create_role",
    "Com_create_table",
    "Com_create_user",
    "Com_create_view",
    "Com_dealloc_sql",
    "Com_do",
    "Com_drop_db",
    "Com_drop_event",
    "Com_drop_function",
    "Com_drop_index",
    "Com_drop_procedure",
    "Com_drop_role",
    "Com_drop_table",
    "Com_drop_trigger",
    "Com_drop_user",
    "Com_drop_view",
    "Com_empty_query",
    "Com_execute_sql",
    "Com_flush",
    "Com_get_diagnostics",
    "Com_grant",
    "Com_grant_roles",
    "Com_help",
    "Com_kill",
    "Com_load",
    "Com_lock_instance",
    "Com_lock_tables",
    "Com_optimize",
    "Com_prepare_sql",
    "Com_purge",
    "Com_release_savepoint",
    "Com_rename_table",
    "Com_rename_user",
    "Com_repair",
    "Com_replica_start",
    "Com_replica_stop",
    "Com_reset",
    "Com_revoke",
    "Com_revoke_all",
    "Com_revoke_roles",
    "Com_rollback_to_savepoint",
    "Com_savepoint",
    "Com_set_option",
    "Com_set_password",
    "Com_set_role",
    "Com_show_binlog_events",
    "Com_show_charsets",
    "Com_show_collations",
    "Com_show_create_db",
    "Com_show_create_table",
    "Com_show_create_user",
    "Com_show_databases",
    "Com_show_errors",
    "Com_show_events",
    "Com_show_fields",
    "Com_show_grants",
    "Com_show_keys",
    "Com_show_plugins",
    "Com_show_privileges",
    "Com_show_processlist",
    "Com_show_relaylog_events",
    "Com_show_replica_status",
    "Com_show_status",
    "Com_show_storage_engines",
    "Com_show_table_status",
    "Com_show_tables",
    "Com_show_triggers",
    "Com_show_variables",
    "Com_show_warnings",
    "Com_truncate",
    "Com_unlock_instance",
    "Com_unlock_tables",
];

/// What a statement counts as; `None` for kinds that are counted elsewhere, or that MySQL does not count.
fn name_of(kind: &StatementKind) -> Option<&'static str> {
    use StatementKind as S;
    Some(match kind {
        S::Empty => "Com_empty_query",
        S::LoadData(_) => "Com_load",
        S::CreateTable(_) | S::CreateTableLike { .. } => "Com_create_table",
        S::DropTable { .. } => "Com_drop_table",
        S::CreateView(_) => "Com_create_view",
        S::DropView { .. } => "Com_drop_view",
        S::AlterTable { .. } => "Com_alter_table",
        S::RenameTable(_) => "Com_rename_table",
        S::TruncateTable(_) => "Com_truncate",
        S::CreateIndex { .. } => "Com_create_index",
        S::DropIndex { .. } => "Com_drop_index",
        S::CreateDatabase { .. } => "Com_create_db",
        S::AlterDatabase { .. } => "Com_alter_db",
        S::DropDatabase { .. } => "Com_drop_db",
        S::DropProgram { kind, .. } => match kind {
            ProgramKind::Procedure => "Com_drop_procedure",
            ProgramKind::Function => "Com_drop_function",
            ProgramKind::Trigger => "Com_drop_trigger",
            ProgramKind::Event => "Com_drop_event",
        },
        S::Use(_) => "Com_change_db",
        S::Set(_) => "Com_set_option",
        S::Show(show) => return name_of_show(&show.kind),
        S::Describe { .. } => "Com_show_fields",
        S::Begin { .. } => "Com_begin",
        S::Savepoint(_) => "Com_savepoint",
        S::RollbackTo(_) => "Com_rollback_to_savepoint",
        S::ReleaseSavepoint(_) => "Com_release_savepoint",
        S::LockTables(_) => "Com_lock_tables",
        S::UnlockTables => "Com_unlock_tables",
        S::ResetPersist { .. } | S::ResetLogs { .. } => "Com_reset",
        S::ChangeSource(_) => "Com_change_replication_source",
        S::StartReplica { .. } => "Com_replica_start",
        S::StopReplica { .. } => "Com_replica_stop",
        S::ResetReplica { .. } => "Com_reset",
        S::Flush(_) | S::FlushWithReadLock(_) => "Com_flush",
        S::Prepare { .. } => "Com_prepare_sql",
        S::Execute { .. } => "Com_execute_sql",
        S::Deallocate(_) => "Com_dealloc_sql",
        S::PurgeLogs(_) => "Com_purge",
        S::Kill { .. } => "Com_kill",
        S::Do(_) => "Com_do",
        S::Call { .. } => "Com_call_procedure",
        S::Analyze(_) => "Com_analyze",
        S::Check { .. } => "Com_check",
        S::Checksum { .. } => "Com_checksum",
        S::Optimize(_) => "Com_optimize",
        S::Repair(_) => "Com_repair",
        S::GetDiagnostics(_) => "Com_get_diagnostics",
        S::Help(_) => "Com_help",
        S::LockInstance => "Com_lock_instance",
        S::UnlockInstance => "Com_unlock_instance",
        S::CheckReplication { .. } | S::PromoteReplica(_) => return None,
        S::CreateUser { .. } => "Com_create_user",
        S::AlterUser { .. } => "Com_alter_user",
        S::DropUser { .. } => "Com_drop_user",
        S::RenameUser(_) => "Com_rename_user",
        S::SetPassword { .. } => "Com_set_password",
        S::CreateRole { .. } => "Com_create_role",
        S::DropRole { .. } => "Com_drop_role",
        S::SetRole(_) => "Com_set_role",
        S::SetDefaultRole { .. } => "Com_alter_user_default_role",
        S::GrantRoles { .. } => "Com_grant_roles",
        S::RevokeRoles { .. } => "Com_revoke_roles",
        S::Grant { .. } => "Com_grant",
        S::Revoke { .. } => "Com_revoke",
        S::RevokeAll { .. } => "Com_revoke_all",
        _ => return None,
    })
}

fn name_of_show(kind: &ShowKind) -> Option<&'static str> {
    use ShowKind as K;
    Some(match kind {
        K::Databases => "Com_show_databases",
        K::Tables { .. } => "Com_show_tables",
        K::TableStatus { .. } => "Com_show_table_status",
        K::Columns { .. } => "Com_show_fields",
        K::Indexes { .. } => "Com_show_keys",
        K::CreateTable(_) | K::CreateView(_) => "Com_show_create_table",
        K::CreateDatabase { .. } => "Com_show_create_db",
        K::CreateUser(_) => "Com_show_create_user",
        K::Variables(_) => "Com_show_variables",
        K::Status(_) => "Com_show_status",
        K::Warnings { .. } | K::CountWarnings => "Com_show_warnings",
        K::Errors { .. } | K::CountErrors => "Com_show_errors",
        K::Processlist { .. } => "Com_show_processlist",
        K::Grants { .. } => "Com_show_grants",
        K::Engines => "Com_show_storage_engines",
        K::Charset => "Com_show_charsets",
        K::Collation => "Com_show_collations",
        K::Plugins => "Com_show_plugins",
        K::Privileges => "Com_show_privileges",
        K::Events { .. } => "Com_show_events",
        K::Triggers { .. } => "Com_show_triggers",
        K::LogEvents(asked) if asked.is_relay => "Com_show_relaylog_events",
        K::LogEvents(_) => "Com_show_binlog_events",
        K::ReplicaStatus { .. } => "Com_show_replica_status",
        K::Other(_) => return None,
    })
}

/// Since start, of the whole server.
pub(crate) struct Commands([AtomicU64; NAMES.len()]);

impl Default for Commands {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Commands {
    pub fn add(&self, kind: &StatementKind) {
        if let Some(at) = name_of(kind).and_then(|name| NAMES.binary_search(&name).ok()) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.iter().zip(&self.0).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        assert!(NAMES.is_sorted());
        let commands = Commands::default();
        let mode = avocet_types::expr::SqlMode::DEFAULT;
        for sql in [
            "CREATE TABLE t (a INT)",
            "SHOW TABLES",
            "USE d",
            "UNLOCK TABLES",
            "ALTER DATABASE d COLLATE utf8mb4_bin",
        ] {
            let statements = avocet_sql::parse::parse(sql.as_bytes(), mode).expect("it parses");
            commands.add(&statements[0].kind);
        }
        let counted = commands.list().filter(|(_, count)| *count == 1).count();
        assert_eq!(counted, 5);
    }
}
