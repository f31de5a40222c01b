// SPDX-License-Identifier: GPL-2.0-only

#include "session.h"

#include <cstring>
#include <thread>

#include "my_config.h"

#include "my_sys.h"
#include "mysql/service_mysql_alloc.h"
#include "sql/mysqld.h"
#include "sql/query_options.h"
#include "sql/rpl_gtid.h"
#include "sql/set_var.h"
#include "sql/sql_class.h"
#include "sql/sql_locale.h"
#include "sql/tztime.h"

namespace avocet {

std::string literal(std::string_view text) {
  // As hexadecimal digits, neither quotes nor backslashes can be misread.
  static constexpr char DIGITS[] = "0123456789ABCDEF";
  if (text.empty()) return "''";
  std::string out = "_utf8mb4 X'";
  for (const char c : text) {
    out.push_back(DIGITS[static_cast<unsigned char>(c) >> 4]);
    out.push_back(DIGITS[static_cast<unsigned char>(c) & 15]);
  }
  return out + "'";
}

std::string identifier(std::string_view name) {
  std::string out = "`";
  for (const char c : name) {
    if (c == '`') out.push_back('`');
    out.push_back(c);
  }
  return out + "`";
}

namespace {

/// A name of MySQL's own, such as a collation's.
std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string zone(const THD *thd) {
  std::string name(thd->variables.time_zone->get_name()->ptr(), thd->variables.time_zone->get_name()->length());
  if (name != "SYSTEM") return name;
  for (const char *utc : {"UTC", "GMT", "Etc/UTC", "Universal"})
    if (std::strcmp(system_time_zone_dst_off, utc) == 0) return "+00:00";
  return {};
}

}  // namespace

Settings settings_of(THD *thd) {
  Settings settings;
  const auto &own = thd->variables;
  const std::string time_zone = zone(thd);
  if (time_zone.empty())
    settings.reason =
        "the session's time zone is the host's own; SET time_zone to a name or an offset";
  else if ((own.option_bits & OPTION_AUTO_IS_NULL) != 0)
    settings.reason = "sql_auto_is_null is set";
  else if (own.my_aes_mode != 0)
    settings.reason = "block_encryption_mode is not its default";
  else if (!own.windowing_use_high_precision)
    settings.reason = "windowing_use_high_precision is off";
  if (!settings.reason.empty()) return settings;

  LEX_STRING mode{nullptr, 0};
  if (sql_mode_string_representation(thd, own.sql_mode, &mode)) {
    settings.reason = "sql_mode cannot be told";
    return settings;
  }
  const auto add = [&](const char *name, const std::string &value) {
    settings.lasting += settings.lasting.empty() ? "SET SESSION " : ", ";
    settings.lasting += std::string(name) + " = " + value;
  };
  add("sql_mode", quoted({mode.str, mode.length}));
  add("time_zone", quoted(time_zone));
  add("character_set_client", quoted(own.character_set_client->csname));
  add("collation_connection", quoted(own.collation_connection->m_coll_name));
  add("character_set_results", "'utf8mb4'");
  add("default_collation_for_utf8mb4", quoted(own.default_collation_for_utf8mb4->m_coll_name));
  add("lc_time_names", quoted(own.lc_time_names->name));
  add("sql_select_limit", std::to_string(own.select_limit));
  add("group_concat_max_len", std::to_string(own.group_concat_max_len));
  add("div_precision_increment", std::to_string(own.div_precincrement));
  add("default_week_format", std::to_string(own.default_week_format));
  add("cte_max_recursion_depth", std::to_string(own.cte_max_recursion_depth));

  const my_timeval now = thd->query_start_timeval_trunc(6);
  char moment[64];
  snprintf(moment, sizeof moment, "SET timestamp = %lld.%06lld", static_cast<long long>(now.m_tv_sec),
           static_cast<long long>(now.m_tv_usec));
  settings.moment = moment;
  if (thd->db().str != nullptr) settings.database = thd->db().str;
  return settings;
}

std::string committed(THD *thd, const Patience &patience) {
  if (global_gtid_mode.get() != Gtid_mode::ON)
    throw Failure{Failure::Kind::unsupported, 0, "gtid_mode is not ON: it cannot be told what Avocet has to have seen"};
  // A transaction's rows can be seen before its GTID is among the executed ones; until then the GTID is owned.
  Gtid_set owned(global_tsid_map, nullptr);
  global_tsid_lock->wrlock();
  gtid_state->get_owned_gtids()->get_gtids(owned);
  global_tsid_lock->unlock();
  while (!owned.is_empty()) {
    global_tsid_lock->wrlock();
    const bool is_waiting = gtid_state->get_owned_gtids()->is_intersection_nonempty(&owned);
    global_tsid_lock->unlock();
    if (!is_waiting) break;
    if (thd->killed) throw Failure{Failure::Kind::killed, 0, "interrupted"};
    if (patience.until && Clock::now() >= *patience.until)
      throw Failure{Failure::Kind::late, 0, "transactions that are being committed did not end in time"};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  char *text = nullptr;
  global_tsid_lock->wrlock();
  const long length = gtid_state->get_executed_gtids()->to_string(&text);
  global_tsid_lock->unlock();
  if (length < 0 || text == nullptr) throw Failure{Failure::Kind::unsupported, 0, "out of memory"};
  std::string set(text, static_cast<size_t>(length));
  my_free(text);
  std::erase(set, '\n');
  return set;
}

}  // namespace avocet
