// SPDX-License-Identifier: GPL-2.0-only
// How Avocet's session is made like MySQL's, and what it has to have seen.

#ifndef AVOCET_SESSION_H
#define AVOCET_SESSION_H

#include <string>
#include <string_view>

#include "wire.h"

class THD;

namespace avocet {

struct Settings {
  /// Why a session there cannot be like this one; empty if it can.
  std::string reason;
  /// One SET for what lasts, and one for what the statement alone has.
  std::string lasting;
  std::string moment;
  std::string database;
};

Settings settings_of(THD *thd);

/// Everything that has been committed here, and that any session may have seen: a set of GTIDs. Waits for transactions that others
/// may see already, but that are not among the executed ones yet. Throws Failure.
std::string committed(THD *thd, const Patience &patience);

/// A string literal that reads the same in every sql_mode.
std::string literal(std::string_view text);
/// A name in back quotes.
std::string identifier(std::string_view name);

}  // namespace avocet

#endif
