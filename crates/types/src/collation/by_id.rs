//! Collations by their ids.

use super::mariadb::{self, collations_of_mariadb};
use super::names::{self, CollationInfo};

/// An id that is not there is taken for the default collation's.
#[inline]
pub(super) fn info(id: u16) -> &'static CollationInfo {
    names::info_of_mysql(id).unwrap_or_else(|| {
        mariadb::position(id).map_or(names::default_info(), |position| &collations_of_mariadb()[position])
    })
}
