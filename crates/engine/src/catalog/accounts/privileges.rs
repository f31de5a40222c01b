//! Sets of privileges.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of MySQL's privileges. The bits are in logs and checkpoints: they are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Privileges(u64);

macro_rules! privileges {
    ($($bit:literal $name:ident $text:literal)*) => {
        impl Privileges {
            $(pub const $name: Self = Self(1 << $bit);)*

            /// Each privilege with MySQL's name of it, in the order in which MySQL lists them.
            pub const NAMES: &[(Self, &str)] = &[$((Self::$name, $text)),*];
        }
    };
}

privileges! {
    0 SELECT "SELECT"
    1 INSERT "INSERT"
    2 UPDATE "UPDATE"
    3 DELETE "DELETE"
    4 CREATE "CREATE"
    5 DROP "DROP"
    6 RELOAD "RELOAD"
    7 SHUTDOWN "SHUTDOWN"
    8 PROCESS "PROCESS"
    9 FILE "FILE"
    10 GRANT "GRANT OPTION"
    11 REFERENCES "REFERENCES"
    12 INDEX "INDEX"
    13 ALTER "ALTER"
    14 SHOW_DATABASES "SHOW DATABASES"
    15 SUPER "SUPER"
    16 CREATE_TEMPORARY_TABLES "CREATE TEMPORARY TABLES"
    17 LOCK_TABLES "LOCK TABLES"
    18 EXECUTE "EXECUTE"
    19 REPLICATION_SLAVE "REPLICATION SLAVE"
    20 REPLICATION_CLIENT "REPLICATION CLIENT"
    21 CREATE_VIEW "CREATE VIEW"
    22 SHOW_VIEW "SHOW VIEW"
    23 CREATE_ROUTINE "CREATE ROUTINE"
    24 ALTER_ROUTINE "ALTER ROUTINE"
    25 CREATE_USER "CREATE USER"
    26 EVENT "EVENT"
    27 TRIGGER "TRIGGER"
    28 CREATE_TABLESPACE "CREATE TABLESPACE"
    29 CREATE_ROLE "CREATE ROLE"
    30 DROP_ROLE "DROP ROLE"
    32 CONNECTION_ADMIN "CONNECTION_ADMIN"
    33 SYSTEM_USER "SYSTEM_USER"
    34 SYSTEM_VARIABLES_ADMIN "SYSTEM_VARIABLES_ADMIN"
    35 APPLICATION_PASSWORD_ADMIN "APPLICATION_PASSWORD_ADMIN"
    36 ROLE_ADMIN "ROLE_ADMIN"
    37 SESSION_VARIABLES_ADMIN "SESSION_VARIABLES_ADMIN"
    38 FLUSH_PRIVILEGES "FLUSH_PRIVILEGES"
    39 FLUSH_STATUS "FLUSH_STATUS"
    40 FLUSH_TABLES "FLUSH_TABLES"
    41 FLUSH_USER_RESOURCES "FLUSH_USER_RESOURCES"
}

impl Privileges {
    pub const NONE: Self = Self(0);
    /// All that there are, GRANT OPTION among them.
    pub const ALL: Self = Self(Self::STATIC.0 | Self::DYNAMIC.0);

    /// Those that MySQL has a column for in `mysql.user`.
    pub const STATIC: Self = Self((1 << 31) - 1);

    /// Those that MySQL keeps by name; SHOW GRANTS lists them in a line of their own.
    pub const DYNAMIC: Self = Self(((1 << 42) - 1) & !((1 << 32) - 1));

    /// Those that there were when catalogs first had privileges.
    const FIRST: Self = Self(
        Self::STATIC.0 | Self::CONNECTION_ADMIN.0 | Self::SYSTEM_USER.0 | Self::SYSTEM_VARIABLES_ADMIN.0,
    );

    /// What may be granted on a column.
    pub const OF_COLUMNS: Self = Self(Self::SELECT.0 | Self::INSERT.0 | Self::UPDATE.0 | Self::REFERENCES.0);

    /// What may be granted on a routine.
    pub const OF_ROUTINES: Self = Self(Self::EXECUTE.0 | Self::ALTER_ROUTINE.0 | Self::GRANT.0);

    /// What may be granted on a table.
    pub const OF_TABLES: Self = Self(
        Self::SELECT.0
            | Self::INSERT.0
            | Self::UPDATE.0
            | Self::DELETE.0
            | Self::CREATE.0
            | Self::DROP.0
            | Self::GRANT.0
            | Self::REFERENCES.0
            | Self::INDEX.0
            | Self::ALTER.0
            | Self::CREATE_VIEW.0
            | Self::SHOW_VIEW.0
            | Self::TRIGGER.0,
    );

    /// What may be granted on a database.
    pub const OF_DATABASES: Self = Self(
        Self::OF_TABLES.0
            | Self::CREATE_TEMPORARY_TABLES.0
            | Self::LOCK_TABLES.0
            | Self::EXECUTE.0
            | Self::CREATE_ROUTINE.0
            | Self::ALTER_ROUTINE.0
            | Self::EVENT.0,
    );

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is among these.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// As a number, for the log.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What a set means that was written before there were others: who had all has all.
    pub(super) fn of_first_catalogs(bits: u64) -> Self {
        if bits == Self::FIRST.0 { Self::ALL } else { Self(bits) }
    }

    /// Those of a set that have a name, in MySQL's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(one, _)| self.contains(*one)).map(|(_, name)| *name)
    }

    /// The privilege of a name in upper case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }
}

impl BitOr for Privileges {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_privileges() {
        let some = Privileges::SELECT | Privileges::CREATE_TEMPORARY_TABLES | Privileges::GRANT;
        assert_eq!(some.to_string(), "SELECT, GRANT OPTION, CREATE TEMPORARY TABLES");
        assert!(some.contains(Privileges::SELECT | Privileges::GRANT) && some.contains(Privileges::NONE));
        assert!(!some.contains(Privileges::SELECT | Privileges::DROP));
        assert!(some.intersects(Privileges::SELECT | Privileges::DROP) && !some.intersects(Privileges::DROP));
        assert_eq!(some.without(Privileges::GRANT).names().count(), 2);
        for (one, name) in Privileges::NAMES {
            assert_eq!(Privileges::by_name(name), Some(*one));
            assert!(Privileges::ALL.contains(*one));
        }
        assert_eq!(Privileges::ALL.names().count(), Privileges::NAMES.len());
    }
}
