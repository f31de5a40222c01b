//! SHOW REPLICA STATUS.

use avocet_types::error::SqlError;
use avocet_types::{Datum, Value};

use crate::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use crate::replication::ReplicaStatus;
use crate::state::Session;

/// The columns of MySQL 8.4, in its order; those that are not named in `value_of` have no value here.
const COLUMNS: [&str; 58] = [
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "Source_Port",
    "Connect_Retry",
    "Source_Log_File",
    "Read_Source_Log_Pos",
    "Relay_Log_File",
    "Relay_Log_Pos",
    "Relay_Source_Log_File",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Last_Errno",
    "Last_Error",
    "Skip_Counter",
    "Exec_Source_Log_Pos",
    "Relay_Log_Space",
    "Until_Condition",
    "Until_Log_File",
    "Until_Log_Pos",
    "Source_SSL_Allowed",
    "Source_SSL_CA_File",
    "Source_SSL_CA_Path",
    "Source_SSL_Cert",
    "Source_SSL_Cipher",
    "Source_SSL_Key",
    "Seconds_Behind_Source",
    "Source_SSL_Verify_Server_Cert",
    "Last_IO_Errno",
    "Last_IO_Error",
    "Last_SQL_Errno",
    "Last_SQL_Error",
    "Replicate_Ignore_Server_Ids",
    "Source_Server_Id",
    "Source_UUID",
    "Source_Info_File",
    "SQL_Delay",
    "SQL_Remaining_Delay",
    "Replica_SQL_Running_State",
    "Source_Retry_Count",
    "Source_Bind",
    "Last_IO_Error_Timestamp",
    "Last_SQL_Error_Timestamp",
    "Source_SSL_Crl",
    "Source_SSL_Crlpath",
    "Retrieved_Gtid_Set",
    "Executed_Gtid_Set",
    "Auto_Position",
    "Replicate_Rewrite_DB",
    "Channel_Name",
    "Source_TLS_Version",
    "Network_Namespace",
];

/// What MySQL numbers errors of replication by: ER_REPLICA_FATAL_ERROR.
const FATAL: u64 = 1593;

fn value_of(column: &str, status: &ReplicaStatus) -> Value {
    let errno = |is_error: bool| Datum::UInt(if is_error { FATAL } else { 0 });
    let left_out = || {
        let each = status.left_out.iter().map(|out| format!("{}.{}: {}", out.database, out.table, out.state));
        each.collect::<Vec<_>>().join("; ")
    };
    // What stops all of it does not hide what some tables wait for.
    let error = || match (&status.last_error, status.left_out.is_empty()) {
        (Some(error), false) => format!("{error}; {}", left_out()),
        (Some(error), true) => error.clone(),
        (None, _) => left_out(),
    };
    let is_stopped = status.last_error.is_some();
    match column {
        "Replica_IO_State" => text(&*status.state),
        "Source_Host" => text(&*status.source_host),
        "Source_User" => text(&*status.source_user),
        "Source_Port" => Datum::UInt(status.source_port.into()),
        "Source_Log_File" => text(&*status.log_file),
        "Read_Source_Log_Pos" => Datum::UInt(status.log_position),
        "Relay_Source_Log_File" => text(status.visible.as_ref().map_or("", |(file, _)| file)),
        "Exec_Source_Log_Pos" => Datum::UInt(status.visible.as_ref().map_or(0, |(_, position)| *position)),
        "Replica_IO_Running" => text(status.reads),
        "Replica_SQL_Running" => text(if status.applies { "Yes" } else { "No" }),
        "Last_Errno" | "Last_SQL_Errno" => errno(is_stopped || !status.left_out.is_empty()),
        "Last_Error" | "Last_SQL_Error" => text(error()),
        "Last_IO_Errno" => errno(is_stopped),
        "Last_IO_Error" => text(status.last_error.clone().unwrap_or_default()),
        "Seconds_Behind_Source" => status.seconds_behind.map_or(Datum::Null, Datum::UInt),
        "Source_UUID" => text(&*status.source_uuid),
        "Retrieved_Gtid_Set" | "Executed_Gtid_Set" => text(&*status.executed),
        "Auto_Position" => Datum::UInt(status.auto_position.into()),
        "Channel_Name" => text(&*status.channel),
        "Connect_Retry" => Datum::UInt(status.connect_retry_seconds.into()),
        "Until_Condition" => text("None"),
        "Source_SSL_Allowed" => yes_or_no(status.ssl),
        "Source_SSL_CA_File" => text(status.ssl_ca.clone().unwrap_or_default()),
        "Source_SSL_Verify_Server_Cert" => yes_or_no(status.ssl_ca.is_some()),
        "SQL_Remaining_Delay" => optional(None::<String>),
        "Replica_SQL_Running_State" => text(if status.applies { "applying" } else { "" }),
        column if is_number(column) => Datum::UInt(0),
        _ => text(""),
    }
}

fn yes_or_no(is_so: bool) -> Value {
    text(if is_so { "Yes" } else { "No" })
}

fn is_number(column: &str) -> bool {
    matches!(
        column,
        "Source_Port"
            | "Connect_Retry"
            | "Read_Source_Log_Pos"
            | "Relay_Log_Pos"
            | "Last_Errno"
            | "Skip_Counter"
            | "Exec_Source_Log_Pos"
            | "Relay_Log_Space"
            | "Until_Log_Pos"
            | "Seconds_Behind_Source"
            | "Last_IO_Errno"
            | "Last_SQL_Errno"
            | "Source_Server_Id"
            | "SQL_Delay"
            | "SQL_Remaining_Delay"
            | "Source_Retry_Count"
            | "Auto_Position"
    )
}

impl Session {
    /// SHOW REPLICA STATUS: a row for each source that is known, or for that of a channel.
    pub(super) fn replica_status(&self, channel: Option<&str>) -> Result<Rowset, SqlError> {
        self.check_channel(channel)?;
        let columns = COLUMNS.map(|name| {
            let ty = match name {
                name if is_number(name) => COUNT,
                name if name.ends_with("Error") || name.ends_with("Gtid_Set") => LONG_TEXT,
                _ => varchar(1024),
            };
            (name, ty)
        });
        let mut rows = Rowset::new("", &columns);
        let is_meant = |status: &ReplicaStatus| channel.is_none_or(|name| *name == status.channel);
        for status in self.shared.sources().iter().filter(|status| is_meant(status)) {
            rows.push(COLUMNS.iter().map(|column| value_of(column, status)).collect());
        }
        Ok(rows)
    }
}
