// SPDX-License-Identifier: GPL-2.0-only

#include "offload.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "my_config.h"

#include "my_sys.h"
#include "mysqld_error.h"
#include "sql/handler.h"
#include "sql/item.h"
#include "sql/opt_trace.h"
#include "sql/query_options.h"
#include "sql/query_result.h"
#include "sql/sql_class.h"
#include "sql/sql_cmd.h"
#include "sql/sql_error.h"
#include "sql/sql_lex.h"
#include "sql/sql_optimizer.h"
#include "sql/sql_prepare.h"
#include "sql/table.h"

#include "pool.h"
#include "session.h"
#include "statement.h"
#include "values.h"

namespace avocet {

Counters counters;

namespace {

Pool pool;
std::mutex last_mutex;
std::string last_reason;

/// What a query at Avocet needs from its beginning to its end.
class Execution : public Secondary_engine_execution_context {
 public:
  explicit Execution(Scan statement) : statement(std::move(statement)) {}

  ~Execution() override {
    if (!connection) return;
    if (connection->is_usable() && !connection->is_streaming())
      pool.give(std::move(connection));
    else
      cancel(std::move(connection), endpoint);
  }

  Scan statement;
  Endpoint endpoint;
  std::unique_ptr<Connection> connection;
  std::vector<Target> targets;
  std::optional<std::string> first_row;
};

Execution *execution_of(LEX *lex) { return static_cast<Execution *>(lex->secondary_engine_execution_context()); }

Patience patience_of(THD *thd) {
  Patience patience;
  patience.is_killed = [thd] { return thd->is_killed() != 0; };
  return patience;
}

/// The text as the client wrote it: with `?` where a prepared statement has them.
std::string_view text_of(THD *thd, LEX *lex) {
  if (const Prepared_statement *owner = lex->m_sql_cmd->owner(); owner != nullptr)
    return {owner->m_query_string.str, owner->m_query_string.length};
  return {thd->query().str, thd->query().length};
}

bool is_utf8(const CHARSET_INFO *charset) {
  return std::strcmp(charset->csname, "utf8mb4") == 0 || std::strcmp(charset->csname, "utf8mb3") == 0;
}

/// In these, no byte of a longer character is a quote or a backslash.
bool is_plain(const CHARSET_INFO *charset) {
  return is_utf8(charset) || std::strcmp(charset->csname, "latin1") == 0 || std::strcmp(charset->csname, "ascii") == 0;
}

Scan refused(std::string reason) {
  Scan scan;
  scan.reason = std::move(reason);
  return scan;
}

/// Whether a statement means the same in another session; its text for it.
Scan look(THD *thd, LEX *lex) {
  if (lex->sql_command != SQLCOM_SELECT) return refused("only SELECT is offloaded");
  if (lex->is_explain_analyze) return refused("EXPLAIN ANALYZE measures this server");
  if (thd->in_sub_stmt != 0 || thd->sp_runtime_ctx != nullptr) return refused("it is in a stored program");
  if (lex->uses_stored_routines() || lex->has_udf()) return refused("it calls stored or loadable functions");
  if (!is_plain(thd->variables.character_set_client))
    return refused("the client's character set is neither UTF-8 nor latin1 nor ascii");
  for (const Table_ref *table = lex->query_tables; table != nullptr; table = table->next_global) {
    if (is_temporary_table(const_cast<Table_ref *>(table))) return refused("it reads a temporary table");
    if (table->schema_table != nullptr) return refused("it reads tables of the server");
    if (!table->is_view()) continue;
    const std::string_view body(table->select_stmt.str, table->select_stmt.length);
    if (body.empty()) return refused("the definition of a view is not at hand");
    if (Scan view = scan(body, {}); !view.reason.empty())
      return refused("view " + std::string(table->get_table_name()) + ": " + view.reason);
  }
  const std::string_view text = text_of(thd, lex);
  if (lex->m_sql_cmd->owner() != nullptr && !is_utf8(thd->variables.collation_connection) &&
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    return refused("it was prepared in another character set than UTF-8");
  const bool ansi = (thd->variables.sql_mode & MODE_ANSI_QUOTES) != 0;
  const bool no_escapes = (thd->variables.sql_mode & MODE_NO_BACKSLASH_ESCAPES) != 0;
  return scan(text, {ansi, no_escapes});
}

void note_fallback(const std::string &reason) {
  ++counters.fallbacks;
  const std::lock_guard lock(last_mutex);
  last_reason = reason;
}

/// Ends the attempt: MySQL takes over, or tells the client if Avocet is forced.
bool give_up(THD *thd, const Failure &failure) {
  if (failure.kind == Failure::Kind::killed || thd->is_killed() != 0) {
    thd->send_kill_message();
    return true;
  }
  std::string reason = failure.text;
  if (failure.number != 0) reason = "Avocet: error " + std::to_string(failure.number) + ": " + reason;
  note_fallback(reason);
  my_error(ER_SECONDARY_ENGINE_PLUGIN, MYF(0), reason.c_str());
  return true;
}

/// A connection on which nothing runs.
std::unique_ptr<Connection> connect(const Endpoint &endpoint, const Patience &patience) {
  if (auto idle = pool.take(endpoint)) return idle;
  return std::make_unique<Connection>(endpoint, patience);
}

void apply_settings(Connection *connection, const Settings &settings, const Patience &patience) {
  if (!settings.database.empty() && connection->database != settings.database) {
    connection->database.clear();
    connection->query("USE " + identifier(settings.database), patience);
    connection->database = settings.database;
  }
  if (connection->settings != settings.lasting) {
    connection->settings.clear();
    connection->query(settings.lasting, patience);
    connection->settings = settings.lasting;
  }
  connection->query(settings.moment, patience);
}

/// Waits until Avocet shows all that has been committed here. Throws Failure.
void await_freshness(THD *thd, Connection *connection, std::chrono::milliseconds timeout) {
  Patience patience = patience_of(thd);
  patience.until = Clock::now() + timeout;
  const std::string set = committed(thd, patience);
  if (set.empty()) return;
  // Avocet ends the wait by itself; the second one is for an Avocet that does not answer.
  *patience.until += std::chrono::seconds(1);
  char seconds[32];
  snprintf(seconds, sizeof seconds, "%.3f", static_cast<double>(timeout.count()) / 1000.0);
  const auto rows =
      connection->query("SELECT WAIT_FOR_EXECUTED_GTID_SET('" + set + "', " + seconds + ")", patience);
  if (rows.size() != 1 || rows[0].size() != 1 || rows[0][0] != "0")
    throw Failure{Failure::Kind::late, 0,
                  "Avocet did not have what is committed here within " + std::to_string(timeout.count()) + " ms"};
}

/// Whether Avocet is there at all is asked so often while a query runs and nothing comes.
constexpr auto PULSE = std::chrono::seconds(2);

/// Whether Avocet still takes connections. What it says to them does not matter.
bool is_alive(const Endpoint &endpoint, const Patience &patience) {
  try {
    const Connection probe(endpoint, patience);
  } catch (const Failure &failure) {
    return failure.kind != Failure::Kind::connection && failure.kind != Failure::Kind::late;
  }
  return true;
}

/// Prepares, executes, and waits for the first row, as long as Avocet lives. Throws Failure.
void await_first_row(THD *thd, LEX *lex, Execution *execution, const std::vector<Parameter> &parameters) {
  const Patience patience = patience_of(thd);
  auto next_pulse = Clock::now() + PULSE;
  bool is_lost = false;
  Patience watchful = patience;
  watchful.is_killed = [&] {
    if (!is_lost && Clock::now() >= next_pulse) {
      is_lost = !is_alive(execution->endpoint, patience);
      next_pulse = Clock::now() + PULSE;
    }
    return is_lost || patience.is_killed();
  };
  try {
    const auto columns = execution->connection->begin(execution->statement.text, parameters, watchful);
    if (const std::string reason = pair_columns(lex, columns, &execution->targets); !reason.empty())
      throw Failure{Failure::Kind::unsupported, 0, reason};
    if (const auto row = execution->connection->fetch(watchful)) execution->first_row = *row;
  } catch (const Failure &) {
    if (is_lost && thd->is_killed() == 0)
      throw Failure{Failure::Kind::connection, 0, "Avocet at " + execution->endpoint.name() + " does not answer any more"};
    throw;
  }
}

/// Everything up to the first row. Throws Failure.
void start(THD *thd, LEX *lex, Execution *execution) {
  const Settings settings = settings_of(thd);
  if (!settings.reason.empty()) throw Failure{Failure::Kind::unsupported, 0, settings.reason};
  std::vector<Parameter> parameters;
  if (const std::string reason = bind_parameters(thd, lex, &parameters); !reason.empty())
    throw Failure{Failure::Kind::unsupported, 0, reason};
  if (parameters.size() != execution->statement.parameters)
    throw Failure{Failure::Kind::unsupported, 0, "its parameters cannot be told"};

  const Options current = options();
  execution->endpoint = current.endpoint;
  const Patience patience = patience_of(thd);
  execution->connection = connect(current.endpoint, patience);
  Connection *connection = execution->connection.get();
  Patience prompt = patience;
  prompt.until = Clock::now() + current.endpoint.connect_timeout;
  apply_settings(connection, settings, prompt);
  await_freshness(thd, connection, current.freshness_timeout);
  await_first_row(thd, lex, execution, parameters);
}

void pass_warnings(THD *thd, Connection *connection, const Patience &patience) {
  if (connection->warnings() == 0) return;
  for (const TextRow &row : connection->query("SHOW WARNINGS", patience)) {
    if (row.size() != 3 || !row[0] || !row[1] || !row[2]) continue;
    const auto level = *row[0] == "Note" ? Sql_condition::SL_NOTE : Sql_condition::SL_WARNING;
    push_warning(thd, level, static_cast<uint>(std::stoul(*row[1])), row[2]->c_str());
  }
}

bool fail_late(THD *thd, const std::string &text) {
  if (thd->is_killed() != 0)
    thd->send_kill_message();
  else
    my_error(ER_SECONDARY_ENGINE_PLUGIN, MYF(0), ("after the first row: " + text).c_str());
  return true;
}

/// Sends the rows. MySQL calls it for each block of a UNION; the first one has them all.
bool stream(JOIN *join, Query_result *) {
  THD *thd = join->thd;
  join->send_records = 0;
  if (join->query_block != join->query_expression()->first_query_block()) return false;
  Execution *execution = execution_of(thd->lex);
  const Patience patience = patience_of(thd);
  try {
    std::optional<std::string_view> row;
    if (execution->first_row) row = *execution->first_row;
    while (row) {
      if (thd->is_killed() != 0) return fail_late(thd, {});
      size_t column = 0;
      switch (send_row(thd, execution->targets, *row, &column)) {
        case Sent::yes:
          break;
        case Sent::client_gone:
          return true;
        case Sent::unlike:
          return fail_late(thd, "row " + std::to_string(join->send_records + 1) + " has a value in column " +
                                    std::to_string(column) + " that is none of its type");
      }
      ++join->send_records;
      row = execution->connection->fetch(patience);
    }
    pass_warnings(thd, execution->connection.get(), patience);
    execution->connection->finish(patience);
  } catch (const Failure &failure) {
    return fail_late(thd, failure.text);
  }
  ++counters.offloaded;
  counters.rows += static_cast<long long>(join->send_records);
  return false;
}

void trace_refusal(THD *thd, const std::string &reason) {
  Opt_trace_context *const trace = &thd->opt_trace;
  if (!trace->is_started()) return;
  const Opt_trace_object wrapper(trace);
  Opt_trace_object object(trace, "secondary_engine_not_used");
  object.add_utf8("reason", reason.data(), reason.size());
}

/// The prepare hook comes with the same statement: MySQL keeps this until then.
class Statement : public Secondary_engine_statement_context {};

}  // namespace

std::string last_fallback() {
  const std::lock_guard lock(last_mutex);
  return last_reason;
}

void close_connections() { pool.clear(); }

bool pre_prepare(THD *thd) {
  // The server leaves the comparison to the engine.
  if (thd->m_current_query_cost <= static_cast<double>(thd->variables.secondary_engine_cost_threshold)) {
    trace_refusal(thd, "its cost is not above secondary_engine_cost_threshold");
    return false;
  }
  std::string reason = look(thd, thd->lex).reason;
  if (reason.empty()) reason = settings_of(thd).reason;
  if (!reason.empty()) {
    note_fallback(reason);
    trace_refusal(thd, reason);
    return false;
  }
  if (thd->secondary_engine_statement_context() == nullptr)
    thd->set_secondary_engine_statement_context(std::make_unique<Statement>());
  return true;
}

bool prepare(THD *thd, LEX *lex) {
  Scan statement = look(thd, lex);
  if (!statement.reason.empty()) return give_up(thd, {Failure::Kind::unsupported, 0, statement.reason});
  auto *execution = new (thd->mem_root) Execution(std::move(statement));
  if (execution == nullptr) return true;
  lex->set_secondary_engine_execution_context(execution);
  // Nothing is to be read or evaluated while MySQL optimizes.
  lex->add_statement_options(OPTION_NO_CONST_TABLES | OPTION_NO_SUBQUERY_DURING_OPTIMIZATION);
  return false;
}

bool optimize(THD *thd, LEX *lex) {
  Execution *execution = execution_of(lex);
  if (execution == nullptr) return give_up(thd, {Failure::Kind::unsupported, 0, "it was not prepared"});
  if (lex->is_explain()) return false;
  // INTO, cursors and the like take rows in another way.
  if (dynamic_cast<Query_result_send *>(lex->unit->query_result()) == nullptr)
    return give_up(thd, {Failure::Kind::unsupported, 0, "its rows do not go to the client"});
  try {
    start(thd, lex, execution);
  } catch (const Failure &failure) {
    return give_up(thd, failure);
  }
  for (Query_block *block = lex->unit->first_query_block(); block != nullptr; block = block->next_query_block())
    block->join->override_executor_func = stream;
  return false;
}

std::string await_table(THD *thd, const std::string &database, const std::string &table) {
  const Options current = options();
  Patience patience = patience_of(thd);
  patience.until = Clock::now() + current.load_timeout;
  std::string state;
  try {
    auto connection = connect(current.endpoint, patience);
    await_freshness(thd, connection.get(), current.load_timeout);
    for (;;) {
      const auto rows = connection->query("SELECT state FROM avocet.replica_tables WHERE table_schema = " +
                                              literal(database) + " AND table_name = " + literal(table),
                                          patience);
      if (rows.empty()) break;
      state = rows[0][0].value_or("");
      if (state.starts_with("not followed")) return "Avocet does not have the table: " + state;
      if (Clock::now() >= *patience.until) return "Avocet does not have the table yet: " + state;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (thd->is_killed() != 0) return "interrupted";
    }
    connection->query("SELECT 1 FROM " + identifier(database) + "." + identifier(table) + " LIMIT 1", patience);
    pool.give(std::move(connection));
  } catch (const Failure &failure) {
    return failure.kind == Failure::Kind::server ? "Avocet does not have the table: " + failure.text : failure.text;
  }
  return {};
}

}  // namespace avocet
