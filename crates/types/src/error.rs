//! MySQL's errors: number, SQLSTATE and text, in one table.
//!
//! Clients decide by number and SQLSTATE, people and some drivers by text, so all three are MySQL's own. Everything
//! from the binder up reports errors as a [`SqlError`] made from a row of this table.

use std::fmt::{self, Display, Write};

use crate::convert::StoreError;
use crate::expr::EvalError;
use crate::json::JsonError;

/// An error as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {errno} ({}): {message}", std::str::from_utf8(.sqlstate).unwrap_or("HY000"))]
pub struct SqlError {
    pub errno: u16,
    pub sqlstate: [u8; 5],
    pub message: String,
}

impl SqlError {
    pub fn code(&self) -> u16 {
        self.errno
    }

    pub fn is(&self, code: ErrorCode) -> bool {
        self.errno == code.errno
    }

    /// 1235: something that is known but not served.
    pub fn unsupported(what: impl Display) -> Self {
        let message = format!("This version of Avocet doesn't yet support '{what}'");
        ErrorCode::NOT_SUPPORTED_YET.because(message)
    }
}

/// A row of the table: `ErrorCode::DUP_ENTRY.with(&[&"1", &"t.PRIMARY"])`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub errno: u16,
    pub sqlstate: [u8; 5],
    /// MySQL's text, with `{}` for each argument.
    pub text: &'static str,
}

impl ErrorCode {
    /// The error with its arguments filled in, in order.
    pub fn with(self, args: &[&dyn Display]) -> SqlError {
        let mut message = String::with_capacity(self.text.len() + 16 * args.len());
        let mut pieces = self.text.split("{}");
        message.push_str(pieces.next().unwrap_or_default());
        for (i, piece) in pieces.enumerate() {
            if let Some(arg) = args.get(i) {
                let _ = write!(message, "{arg}");
            }
            message.push_str(piece);
        }
        SqlError { errno: self.errno, sqlstate: self.sqlstate, message }
    }

    /// The SQLSTATE of a number; `HY000`, as MySQL has it, for those that have none of their own.
    pub fn sqlstate_of(errno: u16) -> [u8; 5] {
        Self::ALL.iter().find(|code| code.errno == errno).map_or(*b"HY000", |code| code.sqlstate)
    }

    /// The number and SQLSTATE with a text of our own, where MySQL's would mislead.
    pub fn because(self, message: impl Into<String>) -> SqlError {
        SqlError { errno: self.errno, sqlstate: self.sqlstate, message: message.into() }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErrorCode({})", self.errno)
    }
}

macro_rules! codes {
    ($($errno:literal $state:literal $name:ident $text:literal)*) => {
        impl ErrorCode {
            $(pub const $name: Self = Self { errno: $errno, sqlstate: *$state, text: $text };)*

            /// Every row, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    1 b"HY000" CANT_CREATE_FILE "Can't create/write to file '{}' (OS errno {} - {})"
    13 b"HY000" CANT_GET_STAT "Can't get stat of '{}' (OS errno {} - {})"
    1007 b"HY000" DB_CREATE_EXISTS "Can't create database '{}'; database exists"
    1008 b"HY000" DB_DROP_EXISTS "Can't drop database '{}'; database doesn't exist"
    1020 b"HY000" CHECKREAD "Record has changed since last read in table '{}'"
    1021 b"HY000" DISK_FULL "Disk full ({}); waiting for someone to free some space..."
    1022 b"23000" DUP_KEY "Can't write; duplicate key in table '{}'"
    1030 b"HY000" GET_ERRNO "Got error {} - '{}' from storage engine"
    1037 b"HY001" OUT_OF_MEMORY "Out of memory; restart server and try again (needed {} bytes)"
    1038 b"HY001" OUT_OF_SORTMEMORY "Out of sort memory, consider increasing server sort buffer size"
    1040 b"08004" CON_COUNT_ERROR "Too many connections"
    1041 b"HY000" OUT_OF_RESOURCES "Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to use 'ulimit' to allow mysqld to use more memory or you can add more swap space"
    1042 b"08S01" BAD_HOST_ERROR "Can't get hostname for your address"
    1043 b"08S01" HANDSHAKE_ERROR "Bad handshake"
    1044 b"42000" DBACCESS_DENIED_ERROR "Access denied for user '{}'@'{}' to database '{}'"
    1045 b"28000" ACCESS_DENIED_ERROR "Access denied for user '{}'@'{}' (using password: {})"
    1046 b"3D000" NO_DB_ERROR "No database selected"
    1047 b"08S01" UNKNOWN_COM_ERROR "Unknown command"
    1048 b"23000" BAD_NULL_ERROR "Column '{}' cannot be null"
    1049 b"42000" BAD_DB_ERROR "Unknown database '{}'"
    1050 b"42S01" TABLE_EXISTS_ERROR "Table '{}' already exists"
    1051 b"42S02" BAD_TABLE_ERROR "Unknown table '{}'"
    1052 b"23000" NON_UNIQ_ERROR "Column '{}' in {} is ambiguous"
    1053 b"08S01" SERVER_SHUTDOWN "Server shutdown in progress"
    1054 b"42S22" BAD_FIELD_ERROR "Unknown column '{}' in '{}'"
    1055 b"42000" WRONG_FIELD_WITH_GROUP "'{}' isn't in GROUP BY"
    1056 b"42000" WRONG_GROUP_FIELD "Can't group on '{}'"
    1057 b"42000" WRONG_SUM_SELECT "Statement has sum functions and columns in same statement"
    1058 b"21S01" WRONG_VALUE_COUNT "Column count doesn't match value count"
    1059 b"42000" TOO_LONG_IDENT "Identifier name '{}' is too long"
    1060 b"42S21" DUP_FIELDNAME "Duplicate column name '{}'"
    1061 b"42000" DUP_KEYNAME "Duplicate key name '{}'"
    1062 b"23000" DUP_ENTRY "Duplicate entry '{}' for key '{}'"
    1063 b"42000" WRONG_FIELD_SPEC "Incorrect column specifier for column '{}'"
    1064 b"42000" PARSE_ERROR "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}"
    1065 b"42000" EMPTY_QUERY "Query was empty"
    1066 b"42000" NONUNIQ_TABLE "Not unique table/alias: '{}'"
    1067 b"42000" INVALID_DEFAULT "Invalid default value for '{}'"
    1068 b"42000" MULTIPLE_PRI_KEY "Multiple primary key defined"
    1069 b"42000" TOO_MANY_KEYS "Too many keys specified; max {} keys allowed"
    1070 b"42000" TOO_MANY_KEY_PARTS "Too many key parts specified; max {} parts allowed"
    1071 b"42000" TOO_LONG_KEY "Specified key was too long; max key length is {} bytes"
    1072 b"42000" KEY_COLUMN_DOES_NOT_EXIST "Key column '{}' doesn't exist in table"
    1073 b"42000" BLOB_USED_AS_KEY "BLOB column '{}' can't be used in key specification with the used table type"
    1074 b"42000" TOO_BIG_FIELDLENGTH "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead"
    1075 b"42000" WRONG_AUTO_KEY "Incorrect table definition; there can be only one auto column and it must be defined as a key"
    1083 b"42000" WRONG_FIELD_TERMINATORS "Field separator argument is not what is expected; check the manual"
    1084 b"42000" BLOBS_AND_NO_TERMINATED "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'"
    1085 b"HY000" TEXTFILE_NOT_READABLE "The file '{}' must be in the database directory or be readable by all"
    1086 b"HY000" FILE_EXISTS_ERROR "File '{}' already exists"
    1089 b"HY000" WRONG_SUB_KEY "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys"
    1090 b"42000" CANT_REMOVE_ALL_FIELDS "You can't delete all columns with ALTER TABLE; use DROP TABLE instead"
    1091 b"42000" CANT_DROP_FIELD_OR_KEY "Can't DROP '{}'; check that column/key exists"
    1093 b"HY000" UPDATE_TABLE_USED "You can't specify target table '{}' for update in FROM clause"
    1094 b"HY000" NO_SUCH_THREAD "Unknown thread id: {}"
    1095 b"HY000" KILL_DENIED_ERROR "You are not owner of thread {}"
    1096 b"HY000" NO_TABLES_USED "No tables used"
    1097 b"HY000" TOO_BIG_SET "Too many strings for column {} and {}"
    1099 b"HY000" TABLE_NOT_LOCKED_FOR_WRITE "Table '{}' was locked with a READ lock and can't be updated"
    1100 b"HY000" TABLE_NOT_LOCKED "Table '{}' was not locked with LOCK TABLES"
    1101 b"42000" BLOB_CANT_HAVE_DEFAULT "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value"
    1102 b"42000" WRONG_DB_NAME "Incorrect database name '{}'"
    1103 b"42000" WRONG_TABLE_NAME "Incorrect table name '{}'"
    1105 b"HY000" UNKNOWN_ERROR "Unknown error"
    1109 b"42S02" UNKNOWN_TABLE "Unknown table '{}' in {}"
    1110 b"42000" FIELD_SPECIFIED_TWICE "Column '{}' specified twice"
    1111 b"HY000" INVALID_GROUP_FUNC_USE "Invalid use of group function"
    1113 b"42000" TABLE_MUST_HAVE_COLUMNS "A table must have at least 1 column"
    1114 b"HY000" RECORD_FILE_FULL "The table '{}' is full"
    1115 b"42000" UNKNOWN_CHARACTER_SET "Unknown character set: '{}'"
    1116 b"HY000" TOO_MANY_TABLES "Too many tables; MySQL can only use {} tables in a join"
    1117 b"42000" TOO_MANY_FIELDS "Too many columns"
    1118 b"42000" TOO_BIG_ROWSIZE "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"
    1129 b"HY000" HOST_IS_BLOCKED "Host '{}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"
    1130 b"HY000" HOST_NOT_PRIVILEGED "Host '{}' is not allowed to connect to this MySQL server"
    1133 b"42000" PASSWORD_NO_MATCH "Can't find any matching row in the user table"
    1136 b"21S01" WRONG_VALUE_COUNT_ON_ROW "Column count doesn't match value count at row {}"
    1138 b"22004" INVALID_USE_OF_NULL "Invalid use of NULL value"
    1139 b"42000" REGEXP_ERROR "Got error '{}' from regexp"
    1140 b"42000" MIX_OF_GROUP_FUNC_AND_FIELDS "In aggregated query without GROUP BY, expression #{} of SELECT list contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by"
    1141 b"42000" NONEXISTING_GRANT "There is no such grant defined for user '{}' on host '{}'"
    1142 b"42000" TABLEACCESS_DENIED_ERROR "{} command denied to user '{}'@'{}' for table '{}'"
    1143 b"42000" COLUMNACCESS_DENIED_ERROR "{} command denied to user '{}'@'{}' for column '{}' in table '{}'"
    1144 b"42000" ILLEGAL_GRANT_FOR_TABLE "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used"
    1146 b"42S02" NO_SUCH_TABLE "Table '{}.{}' doesn't exist"
    1147 b"42000" NONEXISTING_TABLE_GRANT "There is no such grant defined for user '{}' on host '{}' on table '{}'"
    1153 b"08S01" NET_PACKET_TOO_LARGE "Got a packet bigger than 'max_allowed_packet' bytes"
    1156 b"08S01" NET_PACKETS_OUT_OF_ORDER "Got packets out of order"
    1158 b"08S01" NET_READ_ERROR "Got an error reading communication packets"
    1159 b"08S01" NET_READ_INTERRUPTED "Got timeout reading communication packets"
    1160 b"08S01" NET_ERROR_ON_WRITE "Got an error writing communication packets"
    1162 b"42000" TOO_LONG_STRING "Result string is longer than 'max_allowed_packet' bytes"
    1166 b"42000" WRONG_COLUMN_NAME "Incorrect column name '{}'"
    1170 b"42000" BLOB_KEY_WITHOUT_LENGTH "BLOB/TEXT column '{}' used in key specification without a key length"
    1171 b"42000" PRIMARY_CANT_HAVE_NULL "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead"
    1172 b"42000" TOO_MANY_ROWS "Result consisted of more than one row"
    1175 b"HY000" UPDATE_WITHOUT_KEY_IN_SAFE_MODE "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. "
    1176 b"42000" KEY_DOES_NOT_EXIST "Key '{}' doesn't exist in table '{}'"
    1178 b"42000" CHECK_NOT_IMPLEMENTED "The storage engine for the table doesn't support {}"
    1192 b"HY000" LOCK_OR_ACTIVE_TRANSACTION "Can't execute the given command because you have active locked tables or an active transaction"
    1193 b"HY000" UNKNOWN_SYSTEM_VARIABLE "Unknown system variable '{}'"
    1197 b"HY000" TRANS_CACHE_FULL "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this mysqld variable and try again"
    1200 b"HY000" BAD_REPLICA "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE TO"
    1203 b"42000" TOO_MANY_USER_CONNECTIONS "User {} already has more than 'max_user_connections' active connections"
    1204 b"HY000" SET_CONSTANTS_ONLY "You may only use constant expressions with SET"
    1205 b"HY000" LOCK_WAIT_TIMEOUT "Lock wait timeout exceeded; try restarting transaction"
    1210 b"HY000" WRONG_ARGUMENTS "Incorrect arguments to {}"
    1213 b"40001" LOCK_DEADLOCK "Deadlock found when trying to get lock; try restarting transaction"
    1214 b"HY000" TABLE_CANT_HANDLE_FT "The used table type doesn't support FULLTEXT indexes"
    1215 b"HY000" CANNOT_ADD_FOREIGN "Cannot add foreign key constraint"
    1221 b"HY000" WRONG_USAGE "Incorrect usage of {} and {}"
    1222 b"21000" WRONG_NUMBER_OF_COLUMNS_IN_SELECT "The used SELECT statements have a different number of columns"
    1223 b"HY000" CANT_UPDATE_WITH_READLOCK "Can't execute the query because you have a conflicting read lock"
    1225 b"HY000" DUP_ARGUMENT "Option '{}' used twice in statement"
    1227 b"42000" SPECIFIC_ACCESS_DENIED_ERROR "Access denied; you need (at least one of) the {} privilege(s) for this operation"
    1228 b"HY000" LOCAL_VARIABLE "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL"
    1229 b"HY000" GLOBAL_VARIABLE "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL"
    1231 b"42000" WRONG_VALUE_FOR_VAR "Variable '{}' can't be set to the value of '{}'"
    1232 b"42000" WRONG_TYPE_FOR_VAR "Incorrect argument type to variable '{}'"
    1234 b"42000" CANT_USE_OPTION_HERE "Incorrect usage/placement of '{}'"
    1235 b"42000" NOT_SUPPORTED_YET "This version of MySQL doesn't yet support '{}'"
    1238 b"HY000" INCORRECT_GLOBAL_LOCAL_VAR "Variable '{}' is a {} variable"
    1239 b"42000" WRONG_FK_DEF "Incorrect foreign key definition for '{}': {}"
    1241 b"21000" OPERAND_COLUMNS "Operand should contain {} column(s)"
    1242 b"21000" SUBQUERY_NO_1_ROW "Subquery returns more than 1 row"
    1243 b"HY000" UNKNOWN_STMT_HANDLER "Unknown prepared statement handler ({}) given to {}"
    1247 b"42S22" ILLEGAL_REFERENCE "Reference '{}' not supported ({})"
    1248 b"42000" DERIVED_MUST_HAVE_ALIAS "Every derived table must have its own alias"
    1250 b"42000" TABLENAME_NOT_ALLOWED_HERE "Table '{}' from one of the SELECTs cannot be used in {}"
    1251 b"08004" NOT_SUPPORTED_AUTH_MODE "Client does not support authentication protocol requested by server; consider upgrading MySQL client"
    1252 b"42000" SPATIAL_CANT_HAVE_NULL "All parts of a SPATIAL index must be NOT NULL"
    1253 b"42000" COLLATION_CHARSET_MISMATCH "COLLATION '{}' is not valid for CHARACTER SET '{}'"
    1261 b"01000" WARN_TOO_FEW_RECORDS "Row {} doesn't contain data for all columns"
    1262 b"01000" WARN_TOO_MANY_RECORDS "Row {} was truncated; it contained more data than there were input columns"
    1263 b"22004" WARN_NULL_TO_NOTNULL "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}"
    1264 b"22003" WARN_DATA_OUT_OF_RANGE "Out of range value for column '{}' at row {}"
    1265 b"01000" WARN_DATA_TRUNCATED "Data truncated for column '{}' at row {}"
    1267 b"HY000" CANT_AGGREGATE_2COLLATIONS "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'"
    1269 b"HY000" REVOKE_GRANTS "Can't revoke all privileges for one or more of the requested users"
    1273 b"HY000" UNKNOWN_COLLATION "Unknown collation: '{}'"
    1283 b"HY000" BAD_FT_COLUMN "Column '{}' cannot be part of FULLTEXT index"
    1286 b"42000" UNKNOWN_STORAGE_ENGINE "Unknown storage engine '{}'"
    1287 b"HY000" WARN_DEPRECATED_SYNTAX "{}"
    1288 b"HY000" NON_UPDATABLE_TABLE "The target table {} of the {} is not updatable"
    1290 b"HY000" OPTION_PREVENTS_STATEMENT "The MySQL server is running with the {} option so it cannot execute this statement"
    1291 b"HY000" DUPLICATED_VALUE_IN_TYPE "Column '{}' has duplicated value '{}' in {}"
    1292 b"22007" TRUNCATED_WRONG_VALUE "Truncated incorrect {} value: '{}'"
    1294 b"HY000" INVALID_ON_UPDATE "Invalid ON UPDATE clause for '{}' column"
    1295 b"HY000" UNSUPPORTED_PS "This command is not supported in the prepared statement protocol yet"
    1298 b"HY000" UNKNOWN_TIME_ZONE "Unknown or incorrect time zone: '{}'"
    1300 b"HY000" INVALID_CHARACTER_STRING "Invalid {} character string: '{}'"
    1302 b"HY000" CONFLICTING_DECLARATIONS "Conflicting declarations: '{}' and '{}'"
    1305 b"42000" SP_DOES_NOT_EXIST "{} {} does not exist"
    1317 b"70100" QUERY_INTERRUPTED "Query execution was interrupted"
    1318 b"42000" SP_WRONG_NO_OF_ARGS "Incorrect number of arguments for {} {}; expected {}, got {}"
    1327 b"42000" SP_UNDECLARED_VAR "Undeclared variable: {}"
    1329 b"02000" SP_FETCH_NO_DATA "No data - zero rows fetched, selected, or processed"
    1345 b"HY000" VIEW_NO_EXPLAIN "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table"
    1347 b"HY000" WRONG_OBJECT "'{}.{}' is not {}"
    1348 b"HY000" NONUPDATEABLE_COLUMN "Column '{}' is not updatable"
    1350 b"HY000" VIEW_SELECT_CLAUSE "View's SELECT contains a '{}' clause"
    1351 b"HY000" VIEW_SELECT_VARIABLE "View's SELECT contains a variable or parameter"
    1352 b"HY000" VIEW_SELECT_TMPTABLE "View's SELECT refers to a temporary table '{}'"
    1353 b"HY000" VIEW_WRONG_LIST "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts"
    1354 b"HY000" WARN_VIEW_MERGE "View merge algorithm can't be used here for now (assumed undefined algorithm)"
    1356 b"HY000" VIEW_INVALID "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them"
    1360 b"HY000" TRG_DOES_NOT_EXIST "Trigger does not exist"
    1364 b"HY000" NO_DEFAULT_FOR_FIELD "Field '{}' doesn't have a default value"
    1365 b"22012" DIVISION_BY_ZERO "Division by 0"
    1366 b"HY000" TRUNCATED_WRONG_VALUE_FOR_FIELD "Incorrect {} value: '{}' for column '{}' at row {}"
    1367 b"22007" ILLEGAL_VALUE_FOR_TYPE "Illegal {} '{}' value found during parsing"
    1368 b"HY000" VIEW_NONUPD_CHECK "CHECK OPTION on non-updatable view '{}.{}'"
    1369 b"HY000" VIEW_CHECK_FAILED "CHECK OPTION failed '{}.{}'"
    1370 b"42000" PROCACCESS_DENIED_ERROR "{} command denied to user '{}'@'{}' for routine '{}'"
    1390 b"HY000" PS_MANY_PARAM "Prepared statement contains too many placeholders"
    1393 b"HY000" VIEW_MULTIUPDATE "Can not modify more than one base table through a join view '{}.{}'"
    1394 b"HY000" VIEW_NO_INSERT_FIELD_LIST "Can not insert into join view '{}.{}' without fields list"
    1395 b"HY000" VIEW_DELETE_MERGE_VIEW "Can not delete from join view '{}.{}'"
    1396 b"HY000" CANNOT_USER "Operation {} failed for {}"
    1403 b"42000" NONEXISTING_PROC_GRANT "There is no such grant defined for user '{}' on host '{}' on routine '{}'"
    1406 b"22001" DATA_TOO_LONG "Data too long for column '{}' at row {}"
    1409 b"HY000" LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR "Can't load value from file with fixed size rows to variable"
    1410 b"42000" CANT_CREATE_USER_WITH_GRANT "You are not allowed to create a user with GRANT"
    1412 b"HY000" TABLE_DEF_CHANGED "Table definition has changed, please retry transaction"
    1414 b"42000" SP_NOT_VAR_ARG "OUT or INOUT argument {} for routine {} is not a variable or NEW pseudo-variable in BEFORE trigger"
    1421 b"HY000" STMT_HAS_NO_OPEN_CURSOR "The statement ({}) has no open cursor."
    1423 b"HY000" NO_DEFAULT_FOR_VIEW_FIELD "Field of view '{}.{}' underlying table doesn't have a default value"
    1425 b"42000" TOO_BIG_SCALE "Too big scale {} specified for column '{}'. Maximum is {}."
    1426 b"42000" TOO_BIG_PRECISION "Too-big precision {} specified for '{}'. Maximum is {}."
    1427 b"42000" M_BIGGER_THAN_D "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}')."
    1436 b"HY000" STACK_OVERRUN_NEED_MORE "The statement is too deep: {}"
    1439 b"42000" TOO_BIG_DISPLAYWIDTH "Display width out of range for column '{}' (max = {})"
    1441 b"22008" DATETIME_FUNCTION_OVERFLOW "Datetime function: {} field overflow"
    1443 b"HY000" VIEW_PREVENT_UPDATE "The definition of table '{}' prevents operation {} on table '{}'."
    1449 b"HY000" NO_SUCH_USER "The user specified as a definer ('{}'@'{}') does not exist"
    1450 b"HY000" FORBID_SCHEMA_CHANGE "Changing schema from '{}' to '{}' is not allowed."
    1451 b"23000" ROW_IS_REFERENCED_2 "Cannot delete or update a parent row: a foreign key constraint fails (`{}`.`{}`, {})"
    1452 b"23000" NO_REFERENCED_ROW_2 "Cannot add or update a child row: a foreign key constraint fails (`{}`.`{}`, {})"
    1461 b"42000" MAX_PREPARED_STMT_COUNT_REACHED "Can't create more than max_prepared_stmt_count statements (current value: {})"
    1462 b"HY000" VIEW_RECURSIVE "`{}`.`{}` contains view recursion"
    1467 b"HY000" AUTOINC_READ_FAILED "Failed to read auto-increment value from storage engine"
    1470 b"HY000" WRONG_STRING_LENGTH "String '{}' is too long for {} (should be no longer than {})"
    1471 b"HY000" NON_INSERTABLE_TABLE "The target table {} of the {} is not insertable-into"
    1473 b"HY000" TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT "Too high level of nesting for select"
    1480 b"HY000" PARTITION_WRONG_VALUES_ERROR "Only {} PARTITIONING can use VALUES {} in partition definition"
    1481 b"HY000" PARTITION_MAXVALUE_ERROR "MAXVALUE can only be used in last partition definition"
    1486 b"HY000" WRONG_EXPR_IN_PARTITION_FUNC_ERROR "Constant, random or timezone-dependent expressions in (sub)partitioning function are not allowed"
    1488 b"HY000" FIELD_NOT_FOUND_PART_ERROR "Field in list of fields for partition function not found in table"
    1491 b"HY000" PARTITION_FUNC_NOT_ALLOWED_ERROR "The {} function returns the wrong type"
    1492 b"HY000" PARTITIONS_MUST_BE_DEFINED_ERROR "For {} partitions each partition must be defined"
    1493 b"HY000" RANGE_NOT_INCREASING_ERROR "VALUES LESS THAN value must be strictly increasing for each partition"
    1495 b"HY000" MULTIPLE_DEF_CONST_IN_LIST_PART_ERROR "Multiple definition of same constant in list partitioning"
    1497 b"HY000" MIX_HANDLER_ERROR "The mix of handlers in the partitions is not allowed in this version of MySQL"
    1499 b"HY000" TOO_MANY_PARTITIONS_ERROR "Too many partitions (including subpartitions) were defined"
    1500 b"HY000" SUBPARTITION_ERROR "It is only possible to mix RANGE/LIST partitioning with HASH/KEY partitioning for subpartitioning"
    1502 b"HY000" BLOB_FIELD_IN_PART_FUNC_ERROR "A BLOB field is not allowed in partition function"
    1503 b"HY000" UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF "A {} must include all columns in the table's partitioning function (prefixed columns are not considered)."
    1504 b"HY000" NO_PARTS_ERROR "Number of {} = 0 is not an allowed value"
    1505 b"HY000" PARTITION_MGMT_ON_NONPARTITIONED "Partition management on a not partitioned table is not possible"
    1506 b"HY000" FOREIGN_KEY_ON_PARTITIONED "Foreign keys are not yet supported in conjunction with partitioning"
    1507 b"HY000" DROP_PARTITION_NON_EXISTENT "Error in list of partitions to {}"
    1508 b"HY000" DROP_LAST_PARTITION "Cannot remove all partitions, use DROP TABLE instead"
    1509 b"HY000" COALESCE_ONLY_ON_HASH_PARTITION "COALESCE PARTITION can only be used on HASH/KEY partitions"
    1512 b"HY000" ONLY_ON_RANGE_LIST_PARTITION "{} PARTITION can only be used on RANGE/LIST partitions"
    1514 b"HY000" ADD_PARTITION_NO_NEW_PARTITION "At least one partition must be added"
    1515 b"HY000" COALESCE_PARTITION_NO_PARTITION "At least one partition must be coalesced"
    1516 b"HY000" REORG_PARTITION_NOT_EXIST "More partitions to reorganize than there are partitions"
    1517 b"HY000" SAME_NAME_PARTITION "Duplicate partition name {}"
    1519 b"HY000" CONSECUTIVE_REORG_PARTITIONS "When reorganizing a set of partitions they must be in consecutive order"
    1520 b"HY000" REORG_OUTSIDE_RANGE "Reorganize of range partitions cannot change total ranges except for last partition where it can extend the range"
    1525 b"HY000" WRONG_VALUE "Incorrect {} value: '{}'"
    1526 b"HY000" NO_PARTITION_FOR_GIVEN_VALUE "Table has no partition for value {}"
    1539 b"HY000" EVENT_DOES_NOT_EXIST "Unknown event '{}'"
    1553 b"HY000" DROP_INDEX_FK "Cannot drop index '{}': needed in a foreign key constraint"
    1562 b"HY000" PARTITION_NO_TEMPORARY "Cannot create temporary table with partitions"
    1563 b"HY000" PARTITION_CONST_DOMAIN_ERROR "Partition constant is out of partition function domain"
    1564 b"HY000" PARTITION_FUNCTION_IS_NOT_ALLOWED "This partition function is not allowed"
    1566 b"HY000" NULL_IN_VALUES_LESS_THAN "Not allowed to use NULL value in VALUES LESS THAN"
    1568 b"25001" CANT_CHANGE_TX_CHARACTERISTICS "Transaction characteristics can't be changed while a transaction is in progress"
    1582 b"42000" WRONG_PARAMCOUNT_TO_NATIVE_FCT "Incorrect parameter count in the call to native function '{}'"
    1583 b"42000" WRONG_PARAMETERS_TO_NATIVE_FCT "Incorrect parameters in the call to native function '{}'"
    1621 b"HY000" VARIABLE_IS_READONLY "{} variable '{}' is read-only. Use SET {} to assign the value"
    1628 b"HY000" TOO_LONG_TABLE_COMMENT "Comment for table '{}' is too long (max = {})"
    1629 b"HY000" TOO_LONG_FIELD_COMMENT "The maximum supported character limit for the field, '{}', has been exceeded (max = {})"
    1649 b"HY000" UNKNOWN_LOCALE "Unknown locale: '{}'"
    1652 b"HY000" SAME_NAME_PARTITION_FIELD "Duplicate partition field name '{}'"
    1653 b"HY000" PARTITION_COLUMN_LIST_ERROR "Inconsistency in usage of column lists for partitioning"
    1654 b"HY000" WRONG_TYPE_COLUMN_VALUE_ERROR "Partition column values of incorrect type"
    1655 b"HY000" TOO_MANY_PARTITION_FUNC_FIELDS_ERROR "Too many fields in '{}'"
    1659 b"HY000" FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD "Field '{}' is of a not allowed type for this type of partitioning"
    1674 b"HY000" BINLOG_UNSAFE_SYSTEM_FUNCTION "Statement is unsafe because it uses a system function that may return a different value on the replica."
    1687 b"42000" SPATIAL_MUST_HAVE_GEOM_COL "A SPATIAL index may only contain a geometrical type column"
    1688 b"HY000" TOO_LONG_INDEX_COMMENT "Comment for index '{}' is too long (max = {})"
    1690 b"22003" DATA_OUT_OF_RANGE "{} value is out of range in '{}'"
    1697 b"HY000" VALUES_IS_NOT_INT_TYPE_ERROR "VALUES value for partition '{}' must have type INT"
    1701 b"42000" TRUNCATE_ILLEGAL_FK "Cannot truncate a table referenced in a foreign key constraint (`{}`.`{}`, CONSTRAINT `{}`)"
    1706 b"HY000" MULTI_UPDATE_KEY_CONFLICT "Primary key/partition key update is not allowed since the table is updated both as '{}' and as '{}'."
    1735 b"HY000" UNKNOWN_PARTITION "Unknown partition '{}' in table '{}'"
    1747 b"HY000" PARTITION_CLAUSE_ON_NONPARTITIONED "PARTITION () clause on non partitioned table"
    1748 b"HY000" ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET "Found a row not matching the given partition set"
    1758 b"35000" DA_INVALID_CONDITION_NUMBER "Invalid condition number"
    1760 b"HY000" INSECURE_CHANGE_SOURCE "Storing MySQL user name or password information in the connection metadata repository is not secure and is therefore not recommended. Please consider using the USER and PASSWORD connection options for START REPLICA; see the 'START REPLICA Syntax' in the MySQL Manual for more information."
    1776 b"HY000" BAD_REPLICA_AUTO_POSITION "Parameters SOURCE_LOG_FILE, SOURCE_LOG_POS, RELAY_LOG_FILE and RELAY_LOG_POS cannot be set when SOURCE_AUTO_POSITION is active."
    1791 b"HY000" UNKNOWN_EXPLAIN_FORMAT "Unknown EXPLAIN format name: '{}'"
    1792 b"25006" CANT_EXECUTE_IN_READ_ONLY_TRANSACTION "Cannot execute statement in a READ ONLY transaction."
    1796 b"HY000" INNODB_NO_FT_TEMP_TABLE "Cannot create FULLTEXT index on temporary InnoDB table"
    1800 b"HY000" UNKNOWN_ALTER_ALGORITHM "Unknown ALGORITHM '{}'"
    1801 b"HY000" UNKNOWN_ALTER_LOCK "Unknown LOCK type '{}'"
    1815 b"HY000" INTERNAL_ERROR "Internal error: {}"
    1818 b"HY000" INVALID_YEAR_COLUMN_LENGTH "Invalid display width. Use YEAR instead."
    1819 b"HY000" NOT_VALID_PASSWORD "Your password does not satisfy the current policy requirements"
    1820 b"HY000" MUST_CHANGE_PASSWORD "You must reset your password using ALTER USER statement before executing this statement."
    1824 b"HY000" FK_CANNOT_OPEN_PARENT "Failed to open the referenced table '{}'"
    1826 b"HY000" FK_DUP_NAME "Duplicate foreign key constraint name '{}'"
    1827 b"HY000" PASSWORD_FORMAT "The password hash doesn't have the expected format."
    1828 b"HY000" FK_COLUMN_CANNOT_DROP "Cannot drop column '{}': needed in a foreign key constraint '{}'"
    1829 b"HY000" FK_COLUMN_CANNOT_DROP_CHILD "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'"
    1830 b"HY000" FK_COLUMN_NOT_NULL "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL"
    1831 b"HY000" DUP_INDEX "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release."
    1835 b"HY000" MALFORMED_PACKET "Malformed communication packet."
    1845 b"0A000" ALTER_OPERATION_NOT_SUPPORTED "{} is not supported for this operation. Try {}."
    1862 b"HY000" MUST_CHANGE_PASSWORD_LOGIN "Your password has expired. To log in you must change it using a client that supports expired passwords."
    3004 b"0Z002" GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER "GET STACKED DIAGNOSTICS when handler not active"
    3008 b"HY000" FK_DEPTH_EXCEEDED "Foreign key cascade delete/update exceeds max depth of {}."
    3013 b"HY000" INVALID_FIELD_SIZE "Invalid size for column '{}'."
    3021 b"HY000" REPLICA_CHANNEL_IO_THREAD_MUST_STOP "This operation cannot be performed with a running replica io thread; run STOP REPLICA IO_THREAD FOR CHANNEL '{}' first."
    3024 b"HY000" QUERY_TIMEOUT "Query execution was interrupted, maximum statement execution time exceeded"
    3028 b"HY000" AGGREGATE_ORDER_FOR_UNION "Expression #{} of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT"
    3029 b"HY000" AGGREGATE_ORDER_NON_AGG_QUERY "Expression #{} of ORDER BY contains aggregate function and applies to the result of a non-aggregated query"
    3037 b"22023" GIS_INVALID_DATA "Invalid GIS data provided to function {}."
    3057 b"42000" USER_LOCK_WRONG_NAME "Incorrect user-level lock name '{}'."
    3058 b"HY000" USER_LOCK_DEADLOCK "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition."
    3061 b"42000" ILLEGAL_USER_VAR "User variable name '{}' is illegal"
    3074 b"HY000" REPLICA_CHANNEL_DOES_NOT_EXIST "Replica channel '{}' does not exist."
    3076 b"HY000" REPLICA_CHANNEL_NAME_INVALID_OR_TOO_LONG "Couldn't create channel: Channel name is either invalid or too long."
    3079 b"HY000" REPLICA_MULTIPLE_CHANNELS_CMD "Multiple channels exist on the replica. Please provide channel name as an argument."
    3080 b"HY000" REPLICA_MAX_CHANNELS_EXCEEDED "Maximum number of replication channels allowed exceeded."
    3081 b"HY000" REPLICA_CHANNEL_MUST_STOP "This operation cannot be performed with running replication threads; run STOP REPLICA FOR CHANNEL '{}' first"
    3083 b"HY000" REPLICA_CHANNEL_WAS_RUNNING "Replication thread(s) for channel '{}' are already runnning."
    3084 b"HY000" REPLICA_CHANNEL_WAS_NOT_RUNNING "Replication thread(s) for channel '{}' are already stopped."
    3102 b"HY000" GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED "Expression of generated column '{}' contains a disallowed function."
    3104 b"HY000" WRONG_FK_OPTION_FOR_GENERATED_COLUMN "Cannot define foreign key with {} clause on a generated column."
    3105 b"HY000" NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN "The value specified for generated column '{}' in table '{}' is not allowed."
    3106 b"HY000" UNSUPPORTED_ACTION_ON_GENERATED_COLUMN "'{}' is not supported for generated columns."
    3107 b"HY000" GENERATED_COLUMN_NON_PRIOR "Generated column can refer only to generated columns defined prior to it."
    3108 b"HY000" DEPENDENT_BY_GENERATED_COLUMN "Column '{}' has a generated column dependency."
    3109 b"HY000" GENERATED_COLUMN_REF_AUTO_INC "Generated column '{}' cannot refer to auto-increment column."
    3118 b"HY000" ACCOUNT_HAS_BEEN_LOCKED "Access denied for user '{}'@'{}'. Account is locked."
    3135 b"HY000" SQL_MODE_MERGED "'NO_ZERO_DATE', 'NO_ZERO_IN_DATE' and 'ERROR_FOR_DIVISION_BY_ZERO' sql modes should be used with strict mode. They will be merged with strict mode in a future release."
    3140 b"22032" INVALID_JSON_TEXT "Invalid JSON text: \"{}\" at position {} in value for column '{}'."
    3141 b"22032" INVALID_JSON_TEXT_IN_PARAM "Invalid JSON text in argument {} to function {}: \"{}\" at position {}."
    3143 b"42000" INVALID_JSON_PATH "Invalid JSON path expression. The error is around character position {}."
    3144 b"22032" INVALID_JSON_CHARSET "Cannot create a JSON value from a string with CHARACTER SET '{}'."
    3146 b"22032" INVALID_TYPE_FOR_JSON "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type is required."
    3149 b"42000" INVALID_JSON_PATH_WILDCARD "In this situation, path expressions may not contain the * and ** tokens or an array range."
    3150 b"22032" JSON_VALUE_TOO_BIG "The JSON value is too big to be stored in a JSON column."
    3151 b"22032" JSON_KEY_TOO_BIG "The JSON object contains a key name that is too long."
    3152 b"42000" JSON_USED_AS_KEY "JSON column '{}' supports indexing only via generated columns on a specified JSON path."
    3153 b"42000" JSON_VACUOUS_PATH "The path expression '$' is not allowed in this context."
    3154 b"42000" JSON_BAD_ONE_OR_ALL_ARG "The oneOrAll argument to {} may take these values: 'one' or 'all'."
    3156 b"22018" INVALID_JSON_VALUE_FOR_CAST "Invalid JSON value for CAST to {} from column {} at row {}"
    3157 b"22032" JSON_DOCUMENT_TOO_DEEP "The JSON document exceeds the maximum depth."
    3158 b"22032" JSON_DOCUMENT_NULL_KEY "JSON documents may not contain NULL member names."
    3159 b"HY000" SECURE_TRANSPORT_REQUIRED "Connections using insecure transport are prohibited while --require_secure_transport=ON."
    3162 b"HY000" USER_DOES_NOT_EXIST "Authorization ID {} does not exist."
    3163 b"HY000" USER_ALREADY_EXISTS "Authorization ID {} already exists."
    3165 b"42000" INVALID_JSON_PATH_ARRAY_CELL "A path expression is not a path to a cell in an array."
    3169 b"HY000" SESSION_WAS_KILLED "Session was killed"
    3186 b"HY000" CAPACITY_EXCEEDED "Memory capacity of {} bytes for '{}' exceeded. {}"
    3503 b"42Y07" NO_SUCH_DB "Database '{}' doesn't exist"
    3505 b"HY000" TOO_LONG_SET_ENUM_VALUE "Too long enumeration/set value for column {}."
    3516 b"22S01" UNEXPECTED_GEOMETRY_TYPE "{} value is a geometry of unexpected type {} in {}."
    3522 b"HY000" PK_INDEX_CANT_BE_INVISIBLE "A primary key index cannot be invisible"
    3523 b"HY000" UNKNOWN_AUTHID "Unknown authorization ID `{}`@`{}`"
    3530 b"HY000" ROLE_NOT_GRANTED "{} is not granted to {}"
    3532 b"HY000" RENAME_ROLE "Renaming of a role identifier is forbidden"
    3548 b"SR001" SRS_NOT_FOUND "There's no spatial reference system with SRID {}."
    3552 b"HY000" NO_SYSTEM_SCHEMA_ACCESS "Access to system schema '{}' is rejected."
    3558 b"22023" INVALID_OPTION_KEY "Invalid option key '{}' in function {}."
    3559 b"22023" INVALID_OPTION_VALUE "Invalid value '{}' for option '{}' in function '{}'."
    3560 b"22023" INVALID_OPTION_KEY_VALUE_PAIR "The string '{}' is not a valid key {} value pair in function {}."
    3561 b"22023" INVALID_OPTION_START_CHARACTER "The options argument in function {} starts with the invalid character '{}'."
    3562 b"22023" INVALID_OPTION_END_CHARACTER "The options argument in function {} ends with the invalid character '{}'."
    3564 b"22023" DUPLICATE_OPTION_KEY "Duplicate option key '{}' in funtion '{}'."
    3567 b"HY000" RESET_SOURCE_TO_VALUE_OUT_OF_RANGE "The requested value '{}' for the next binary log index is out of range. Please use a value between '1' and '{}'."
    3568 b"HY000" UNRESOLVED_TABLE_LOCK "Unresolved table name `{}` in locking clause."
    3569 b"HY000" DUPLICATE_TABLE_LOCK "Table {} appears in multiple locking clauses."
    3572 b"HY000" LOCK_NOWAIT "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."
    3573 b"HY000" CTE_RECURSIVE_REQUIRES_UNION "Recursive Common Table Expression '{}' should contain a UNION"
    3574 b"HY000" CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or more recursive ones"
    3575 b"HY000" CTE_RECURSIVE_FORBIDS_AGGREGATION "Recursive Common Table Expression '{}' can contain neither aggregation nor window functions in recursive query block"
    3576 b"HY000" CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints"
    3577 b"HY000" CTE_RECURSIVE_NOT_ONCE "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery"
    3579 b"HY000" WINDOW_NO_SUCH_WINDOW "Window name '{}' is not defined."
    3580 b"HY000" WINDOW_CIRCULARITY_IN_WINDOW_GRAPH "There is a circularity in the window dependency graph."
    3581 b"HY000" WINDOW_NO_CHILD_PARTITIONING "A window which depends on another cannot define partitioning."
    3582 b"HY000" WINDOW_NO_INHERIT_FRAME "Window '{}' has a frame definition, so cannot be referenced by another window."
    3583 b"HY000" WINDOW_NO_REDEFINE_ORDER_BY "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause."
    3584 b"HY000" WINDOW_FRAME_START_ILLEGAL "Window '{}': frame start cannot be UNBOUNDED FOLLOWING."
    3585 b"HY000" WINDOW_FRAME_END_ILLEGAL "Window '{}': frame end cannot be UNBOUNDED PRECEDING."
    3586 b"HY000" WINDOW_FRAME_ILLEGAL "Window '{}': frame start or end is negative, NULL or of non-integral type"
    3587 b"HY000" WINDOW_RANGE_FRAME_ORDER_TYPE "Window '{}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type"
    3588 b"HY000" WINDOW_RANGE_FRAME_TEMPORAL_TYPE "Window '{}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed."
    3589 b"HY000" WINDOW_RANGE_FRAME_NUMERIC_TYPE "Window '{}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed."
    3591 b"HY000" WINDOW_DUPLICATE_NAME "Window '{}' is defined twice."
    3592 b"HY000" WINDOW_ILLEGAL_ORDER_BY "Window '{}': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression."
    3593 b"HY000" WINDOW_INVALID_WINDOW_FUNC_USE "You cannot use the window function '{}' in this context."
    3594 b"HY000" WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE "You cannot use the alias '{}' of an expression containing a window function in this context.'"
    3602 b"HY000" FIELD_IN_GROUPING_NOT_GROUP_BY "Argument #{} of GROUPING function is not in GROUP BY"
    3615 b"HY000" VAR_DOES_NOT_EXIST "Variable {} does not exist in persisted config file"
    3616 b"22S02" LONGITUDE_OUT_OF_RANGE "Longitude {} is out of range in function {}. It must be within (-180.000000, 180.000000]."
    3617 b"22S03" LATITUDE_OUT_OF_RANGE "Latitude {} is out of range in function {}. It must be within [-90.000000, 90.000000]."
    3619 b"HY000" ILLEGAL_PRIVILEGE_LEVEL "Illegal privilege level specified for {}"
    3628 b"HY000" MANDATORY_ROLE "The role {} is a mandatory role and can't be revoked or dropped. The restriction can be lifted by excluding the role identifier from the global variable mandatory_roles."
    3636 b"HY000" CTE_MAX_RECURSION_DEPTH "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value."
    3638 b"HY000" CREDENTIALS_CONTRADICT_TO_HISTORY "Cannot use these credentials for '{}@{}' because they contradict the password history policy"
    3644 b"HY000" CANNOT_ALTER_SRID_DUE_TO_INDEX "The SRID specification on the column '{}' cannot be changed because there is a spatial index on the column. Please remove the spatial index before altering the SRID specification."
    3665 b"22035" MISSING_JSON_TABLE_VALUE "Missing value for JSON_TABLE column '{}'"
    3666 b"2203F" WRONG_JSON_TABLE_VALUE "Can't store an array or an object in the scalar JSON_TABLE column '{}'"
    3667 b"42000" TF_MUST_HAVE_ALIAS "Every table function must have an alias"
    3669 b"22003" JT_VALUE_OUT_OF_RANGE "Value is out of range for JSON_TABLE's column '{}'"
    3675 b"HY000" CREATE_FILEGROUP_FAILED "Create table/tablespace '{}' failed, as disk is full"
    3676 b"HY000" PARSE_ERROR_IN_DIGEST_FN "Could not parse argument to digest function: \"{}\"."
    3721 b"HY000" INVALID_DEFAULT_UTF8MB4_COLLATION "Invalid default collation {}: utf8mb4_0900_ai_ci or utf8mb4_general_ci expected"
    3726 b"22S00" SRS_NOT_GEOGRAPHIC "Function {} is only defined for geographic spatial reference systems, but one of its arguments is in SRID {}, which is not geographic."
    3728 b"HY000" INDEX_TYPE_NOT_SUPPORTED_FOR_SPATIAL_INDEX "Spatial indexes can't be primary or unique indexes."
    3730 b"HY000" FK_CANNOT_DROP_PARENT "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'."
    3731 b"22S02" GEOMETRY_PARAM_LONGITUDE_OUT_OF_RANGE "A parameter of function {} contains a geometry with longitude {}, which is out of range. It must be within (-180.000000, 180.000000]."
    3732 b"22S03" GEOMETRY_PARAM_LATITUDE_OUT_OF_RANGE "A parameter of function {} contains a geometry with latitude {}, which is out of range. It must be within [-90.000000, 90.000000]."
    3733 b"HY000" FK_CANNOT_USE_VIRTUAL_COLUMN "Foreign key '{}' uses virtual column '{}' which is not supported."
    3734 b"HY000" FK_NO_COLUMN_PARENT "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in the referenced table '{}'"
    3750 b"HY000" TABLE_WITHOUT_PK "Unable to create or change a table without a primary key, when the system variable 'sql_require_primary_key' is set. Add a primary key to the table or unset this variable to avoid this message. Note that tables without a primary key can cause performance problems in row-based replication, so please consult your DBA before changing this setting."
    3751 b"01000" WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX "Data truncated for functional index '{}' at row {}"
    3752 b"22003" WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX "Value is out of range for functional index '{}' at row {}"
    3753 b"42000" FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION "Cannot create a functional index on a function that returns a JSON or GEOMETRY value."
    3754 b"HY000" FUNCTIONAL_INDEX_REF_AUTO_INCREMENT "Functional index '{}' cannot refer to an auto-increment column."
    3756 b"HY000" FUNCTIONAL_INDEX_PRIMARY_KEY "The primary key cannot be a functional index"
    3757 b"HY000" FUNCTIONAL_INDEX_ON_LOB "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST."
    3758 b"HY000" FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED "Expression of functional index '{}' contains a disallowed function."
    3759 b"HY000" FULLTEXT_FUNCTIONAL_INDEX "Fulltext functional index is not supported."
    3760 b"HY000" SPATIAL_FUNCTIONAL_INDEX "Spatial functional index is not supported."
    3761 b"HY000" WRONG_KEY_COLUMN_FUNCTIONAL_INDEX "The used storage engine cannot index the expression '{}'."
    3762 b"HY000" FUNCTIONAL_INDEX_ON_FIELD "Functional index on a column is not supported. Consider using a regular index instead."
    3763 b"HY000" GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED "Expression of generated column '{}' contains a disallowed function: {}."
    3766 b"HY000" DEPENDENT_BY_DEFAULT_GENERATED_VALUE "Column '{}' of table '{}' has a default value expression dependency and cannot be dropped or renamed."
    3767 b"HY000" DEFAULT_VAL_GENERATED_NON_PRIOR "Default value expression of column '{}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value."
    3768 b"HY000" DEFAULT_VAL_GENERATED_REF_AUTO_INC "Default value expression of column '{}' cannot refer to an auto-increment column."
    3769 b"HY000" DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED "Default value expression of column '{}' contains a disallowed function."
    3770 b"HY000" DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED "Default value expression of column '{}' contains a disallowed function: {}."
    3772 b"HY000" DEFAULT_VAL_GENERATED_VARIABLES "Default value expression of column '{}' cannot refer user or system variables."
    3773 b"HY000" DEFAULT_AS_VAL_GENERATED "DEFAULT function cannot be used with default value expressions"
    3780 b"HY000" FK_INCOMPATIBLE_COLUMNS "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible."
    3800 b"HY000" FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED "Expression of functional index '{}' cannot refer to a row value."
    3812 b"HY000" NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT "An expression of non-boolean type specified to a check constraint '{}'."
    3813 b"HY000" COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN "Column check constraint '{}' references other column."
    3814 b"HY000" CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED "An expression of a check constraint '{}' contains disallowed function: {}."
    3815 b"HY000" CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED "An expression of a check constraint '{}' contains disallowed function."
    3816 b"HY000" CHECK_CONSTRAINT_VARIABLES "An expression of a check constraint '{}' cannot refer to a user or system variable."
    3818 b"HY000" CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN "Check constraint '{}' cannot refer to an auto-increment column."
    3819 b"HY000" CHECK_CONSTRAINT_VIOLATED "Check constraint '{}' is violated."
    3820 b"HY000" CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN "Check constraint '{}' refers to non-existing column '{}'."
    3821 b"HY000" CHECK_CONSTRAINT_NOT_FOUND "Check constraint '{}' is not found in the table."
    3822 b"HY000" CHECK_CONSTRAINT_DUP_NAME "Duplicate check constraint name '{}'."
    3823 b"HY000" CHECK_CONSTRAINT_CLAUSE_USING_FK_REFER_ACTION_COLUMN "Column '{}' cannot be used in a check constraint '{}': needed in a foreign key constraint '{}' referential action."
    3837 b"HY000" DEPENDENT_BY_FUNCTIONAL_INDEX "Column '{}' has a functional index dependency and cannot be dropped or renamed."
    3853 b"22032" INVALID_JSON_TYPE "Invalid JSON type in argument {} to function {}; an {} is required."
    3855 b"HY000" DEPENDENT_BY_PARTITION_FUNC "Column '{}' has a partitioning function dependency and cannot be dropped or renamed."
    3878 b"HY000" SECOND_PASSWORD_CANNOT_BE_EMPTY "Empty password can not be retained as second password for user '{}'@'{}'."
    3880 b"HY000" SYSTEM_PRIVILEGE_IN_MANDATORY_ROLES "Cannot set mandatory_roles: AuthId {} has '{}' privilege."
    3886 b"HY000" TOO_LONG_KEY_AFTER_CONVERSION "Could not change column '{}' of table '{}'. The resulting size of index '{}' would exceed the max key length of {} bytes."
    3891 b"HY000" INCORRECT_CURRENT_PASSWORD "Incorrect current password. Specify the correct password which has to be replaced."
    3892 b"HY000" MISSING_CURRENT_PASSWORD "Current password needs to be specified in the REPLACE clause in order to change it."
    3893 b"HY000" CURRENT_PASSWORD_NOT_REQUIRED "Do not specify the current password while changing it for other users."
    3894 b"HY000" PASSWORD_CANNOT_BE_RETAINED_ON_PLUGIN_CHANGE "Current password can not be retained for user '{}'@'{}' because authentication plugin is being changed."
    3895 b"HY000" CURRENT_PASSWORD_CANNOT_BE_RETAINED "Current password can not be retained for user '{}'@'{}' because new password is empty."
    3897 b"HY000" SYSTEM_PRIVILEGE_TO_MANDATORY_ROLE "AuthId {} is set as mandatory_roles. Cannot grant the '{}' privilege."
    3907 b"22001" FUNCTIONAL_INDEX_DATA_IS_TOO_LONG "Data too long for functional index '{}'."
    3939 b"HY000" MULTIPLE_CONSTRAINTS_WITH_SAME_NAME "Table has multiple constraints with the name '{}'. Please use constraint specific '{}' clause."
    3940 b"HY000" CONSTRAINT_NOT_FOUND "Constraint '{}' does not exist."
    3948 b"42000" CLIENT_LOCAL_FILES_DISABLED "Loading local data is disabled; this must be enabled on both the client and server sides"
    3953 b"42000" MULTIPLE_INTO_CLAUSES "Multiple INTO clauses in one query block."
    3954 b"HY000" MISPLACED_INTO "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses."
    3955 b"HY000" USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK "Access denied for user '{}'@'{}'. Account is blocked for {} day(s) ({} day(s) remaining) due to {} consecutive failed logins."
    3959 b"HY000" DEPENDENT_BY_CHECK_CONSTRAINT "Check constraint '{}' uses column '{}', hence column cannot be dropped or renamed."
    3966 b"22035" MISSING_JSON_VALUE "No value was found by '{}' on the specified path."
    3967 b"22034" MULTIPLE_JSON_VALUES "More than one value was found by '{}' on the specified path."
    4027 b"HY000" ROLE_GRANTED_TO_ITSELF "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop"
    4028 b"HY000" TABLE_MUST_HAVE_A_VISIBLE_COLUMN "A table must have at least one visible column."
    4031 b"HY000" CLIENT_INTERACTION_TIMEOUT "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior."
    4086 b"HY000" TOO_MANY_WINDOWS "Too many windows in SELECT: {}. Maximum allowed is {}. Use named windows to share windows between window functions."
    4163 b"42000" USER_LOCK_OVERLONG_NAME "User-level lock name '{}' should not exceed {} characters."
    6125 b"HY000" FK_NO_UNIQUE_INDEX_PARENT "Failed to add the foreign key constraint. Missing unique key for constraint '{}' in the referenced table '{}'"
    6437 b"HY000" CANNOT_PERSIST_TRANSACTION_ISOLATION "Cannot persist transaction isolation."
}

impl From<EvalError> for SqlError {
    fn from(error: EvalError) -> Self {
        let errno = error.errno();
        SqlError { errno, sqlstate: ErrorCode::sqlstate_of(errno), message: error.shown() }
    }
}

/// 1235: something that is known but not served.
pub fn unsupported(what: impl std::fmt::Display) -> SqlError {
    SqlError::unsupported(what)
}

/// A value that a column does not take; `row` counts from 1.
pub fn store_error(problem: &StoreError, column: &str, row: u64) -> SqlError {
    let sqlstate = problem.sqlstate().as_bytes().try_into().unwrap_or(*b"HY000");
    SqlError { errno: problem.errno(), sqlstate, message: problem.message(column, row) }
}

/// An error of a column's expression, or of storing its value: that of a functional key part names its `index`.
pub fn error_of_column(error: SqlError, index: Option<&str>, row: u64) -> SqlError {
    let Some(index) = index else { return error };
    match error.errno {
        1264 => ErrorCode::WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX.with(&[&index, &row]),
        1265 | 1292 | 1366 => ErrorCode::WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX.with(&[&index, &row]),
        1406 => ErrorCode::FUNCTIONAL_INDEX_DATA_IS_TOO_LONG.with(&[&index]),
        _ => error,
    }
}

/// The same, of a table's column: where a text is no document, MySQL names both.
pub fn column_error(problem: &StoreError, table: &str, column: &str, row: u64) -> SqlError {
    match problem {
        StoreError::Json(JsonError::Syntax { .. }) => store_error(problem, &format!("{table}.{column}"), row),
        _ => store_error(problem, column, row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fill_the_text_in_order() {
        let error = ErrorCode::DUP_ENTRY.with(&[&7, &"t.PRIMARY"]);
        assert_eq!(error.errno, 1062);
        assert_eq!(&error.sqlstate, b"23000");
        assert_eq!(error.message, "Duplicate entry '7' for key 't.PRIMARY'");
        assert_eq!(error.to_string(), "ERROR 1062 (23000): Duplicate entry '7' for key 't.PRIMARY'");
    }

    #[test]
    fn the_table_is_sorted_and_without_doubles() {
        assert!(ErrorCode::ALL.windows(2).all(|w| w[0].errno < w[1].errno));
    }
}
