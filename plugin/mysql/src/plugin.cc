// SPDX-License-Identifier: GPL-2.0-only
// What MySQL is told of the plugin: the engine, its hooks, its variables and its counters.

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "my_config.h"

#include "mysql/plugin.h"
#include "mysql/service_my_plugin_log.h"
#include "mysql/status_var.h"
#include "mysql_version.h"
#include "sql/handler.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"

#include "ha_avocet.h"
#include "offload.h"

namespace {

/// The variables' values.
struct {
  char *host;
  char *socket;
  char *user;
  char *password;
  unsigned port;
  unsigned connect_timeout;
  unsigned freshness_timeout;
  unsigned load_timeout;
} value;

MYSQL_SYSVAR_STR(host, value.host, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC, "Where Avocet listens", nullptr, nullptr,
                 "127.0.0.1");
MYSQL_SYSVAR_UINT(port, value.port, PLUGIN_VAR_RQCMDARG, "The port at which it listens", nullptr, nullptr, 3307, 1, 65535, 0);
MYSQL_SYSVAR_STR(socket, value.socket, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
                 "A Unix socket to reach it through; empty: host and port", nullptr, nullptr, "");
MYSQL_SYSVAR_STR(user, value.user, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
                 "The account there, which may read all tables", nullptr, nullptr, "root");
MYSQL_SYSVAR_STR(password, value.password, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC | PLUGIN_VAR_SENSITIVE,
                 "Its password", nullptr, nullptr, "");
MYSQL_SYSVAR_UINT(connect_timeout, value.connect_timeout, PLUGIN_VAR_RQCMDARG,
                  "Milliseconds to connect and sign in within; then MySQL runs the query", nullptr, nullptr, 2000, 1,
                  3600000, 0);
MYSQL_SYSVAR_UINT(freshness_timeout, value.freshness_timeout, PLUGIN_VAR_RQCMDARG,
                  "Milliseconds to wait for Avocet to have what is committed here; then MySQL runs the query", nullptr,
                  nullptr, 1000, 1, 3600000, 0);
MYSQL_SYSVAR_UINT(load_timeout, value.load_timeout, PLUGIN_VAR_RQCMDARG,
                  "Seconds that SECONDARY_LOAD waits for Avocet to have copied the table", nullptr, nullptr, 600, 1,
                  86400, 0);

SYS_VAR *variables[] = {MYSQL_SYSVAR(host),
                        MYSQL_SYSVAR(port),
                        MYSQL_SYSVAR(socket),
                        MYSQL_SYSVAR(user),
                        MYSQL_SYSVAR(password),
                        MYSQL_SYSVAR(connect_timeout),
                        MYSQL_SYSVAR(freshness_timeout),
                        MYSQL_SYSVAR(load_timeout),
                        nullptr};

template <std::atomic<long long> avocet::Counters::*COUNTER>
int show_counter(MYSQL_THD, SHOW_VAR *variable, char *buffer) {
  const long long count = (avocet::counters.*COUNTER).load();
  std::memcpy(buffer, &count, sizeof count);
  variable->type = SHOW_LONGLONG;
  variable->value = buffer;
  return 0;
}

int show_last_fallback(MYSQL_THD, SHOW_VAR *variable, char *buffer) {
  const std::string reason = avocet::last_fallback();
  const size_t length = std::min<size_t>(reason.size(), SHOW_VAR_FUNC_BUFF_SIZE - 1);
  std::memcpy(buffer, reason.data(), length);
  buffer[length] = '\0';
  variable->type = SHOW_CHAR;
  variable->value = buffer;
  return 0;
}

#define AVOCET_STATUS(name, function) \
  { name, reinterpret_cast<char *>(function), SHOW_FUNC, SHOW_SCOPE_GLOBAL }

SHOW_VAR status[] = {
    AVOCET_STATUS("avocet_offloaded_queries", show_counter<&avocet::Counters::offloaded>),
    AVOCET_STATUS("avocet_offloaded_rows", show_counter<&avocet::Counters::rows>),
    AVOCET_STATUS("avocet_fallbacks", show_counter<&avocet::Counters::fallbacks>),
    AVOCET_STATUS("avocet_last_fallback", show_last_fallback),
    {nullptr, nullptr, SHOW_LONG, SHOW_SCOPE_GLOBAL},
};

handler *create(handlerton *hton, TABLE_SHARE *share, bool, MEM_ROOT *root) {
  return new (root) avocet::ha_avocet(hton, share);
}

uint partition_flags() {
  return HA_CAN_EXCHANGE_PARTITION | HA_CANNOT_PARTITION_FK | HA_TRUNCATE_PARTITION_PRECLOSE;
}

/// The join order is for statistics alone: each plan that costs less is the better one.
bool compare_cost(THD *, const JOIN &, double optimizer_cost, bool *use_best_so_far, bool *cheaper,
                  double *engine_cost) {
  *use_best_so_far = true;
  *cheaper = true;
  *engine_cost = optimizer_cost;
  return false;
}

/// The plugin reads structures of the server in the form that they have in this version.
bool is_built_for_this_server() {
  const std::string_view built = MYSQL_SERVER_VERSION;
  const std::string_view runs = server_version;
  return runs.starts_with(built) && (runs.size() == built.size() || runs[built.size()] == '-');
}

int start(MYSQL_PLUGIN plugin) {
  if (!is_built_for_this_server()) {
    my_plugin_log_message(&plugin, MY_ERROR_LEVEL, "was built for MySQL %s, and this is %s", MYSQL_SERVER_VERSION,
                          server_version);
    return 1;
  }
  auto *hton = static_cast<handlerton *>(plugin);
  hton->create = create;
  hton->state = SHOW_OPTION_YES;
  hton->db_type = DB_TYPE_UNKNOWN;
  hton->flags = HTON_IS_SECONDARY_ENGINE | HTON_SECONDARY_ENGINE_SUPPORTS_DDL;
  hton->secondary_engine_pre_prepare_hook = avocet::pre_prepare;
  hton->prepare_secondary_engine = avocet::prepare;
  hton->optimize_secondary_engine = avocet::optimize;
  hton->compare_secondary_engine_cost = compare_cost;
  hton->secondary_engine_flags = MakeSecondaryEngineFlags(
      SecondaryEngineFlag::SUPPORTS_HASH_JOIN, SecondaryEngineFlag::SUPPORTS_NESTED_LOOP_JOIN,
      SecondaryEngineFlag::USE_EXTERNAL_EXECUTOR);
  hton->partition_flags = partition_flags;
  return 0;
}

int stop(MYSQL_PLUGIN) {
  avocet::close_connections();
  return 0;
}

st_mysql_storage_engine engine{MYSQL_HANDLERTON_INTERFACE_VERSION};

}  // namespace

namespace avocet {

Options options() {
  // The lock under which SET GLOBAL exchanges the strings.
  mysql_mutex_lock(&LOCK_global_system_variables);
  const auto text = [](const char *found) { return std::string(found == nullptr ? "" : found); };
  Options options;
  options.endpoint.host = text(value.host);
  options.endpoint.port = value.port;
  options.endpoint.socket = text(value.socket);
  options.endpoint.user = text(value.user);
  options.endpoint.password = text(value.password);
  options.endpoint.connect_timeout = std::chrono::milliseconds(value.connect_timeout);
  options.freshness_timeout = std::chrono::milliseconds(value.freshness_timeout);
  options.load_timeout = std::chrono::seconds(value.load_timeout);
  mysql_mutex_unlock(&LOCK_global_system_variables);
  return options;
}

}  // namespace avocet

// MySQL finds these by name.
#pragma GCC visibility push(default)
mysql_declare_plugin(avocet){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &engine,
    "AVOCET",
    "Avocet",
    "Runs analytical queries on an Avocet that follows this server",
    PLUGIN_LICENSE_GPL,
    start,
    nullptr,
    stop,
    0x0001,
    status,
    variables,
    nullptr,
    0,
} mysql_declare_plugin_end;
#pragma GCC visibility pop
