// SPDX-License-Identifier: GPL-2.0-only
// One SELECT's way to Avocet. MySQL has resolved it and checked the privileges; its text goes to Avocet, and the rows come back
// through MySQL's own protocol.
//
//   pre_prepare      is it dear, and may it go?         no: MySQL goes on, nothing is lost
//   prepare          again for FORCED, with an error
//   optimize         settings, GTIDs, prepare, execute, first row      an error: MySQL runs the statement itself
//   stream           rows                                             an error: is the client's
//
// 1. The tables' metadata locks are held from before the GTIDs are read until the last row, so no DDL comes between.
// 2. Nothing reaches the client before Avocet's first row, or the end of an empty result, is here.

#ifndef AVOCET_OFFLOAD_H
#define AVOCET_OFFLOAD_H

#include <atomic>
#include <string>

#include "wire.h"

class THD;
struct LEX;

namespace avocet {

/// The plugin's system variables.
struct Options {
  Endpoint endpoint;
  std::chrono::milliseconds freshness_timeout;
  std::chrono::milliseconds load_timeout;
};
Options options();

/// Counters that SHOW STATUS shows.
struct Counters {
  std::atomic<long long> offloaded{0};
  std::atomic<long long> fallbacks{0};
  std::atomic<long long> rows{0};
};
extern Counters counters;
std::string last_fallback();

bool pre_prepare(THD *thd);
bool prepare(THD *thd, LEX *lex);
bool optimize(THD *thd, LEX *lex);

/// Until Avocet has this table, or the reason why it will not.
std::string await_table(THD *thd, const std::string &database, const std::string &table);

/// Closes the connections that wait for the next query.
void close_connections();

}  // namespace avocet

#endif
