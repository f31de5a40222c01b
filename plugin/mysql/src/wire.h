// SPDX-License-Identifier: GPL-2.0-only
// A client of the MySQL protocol, as far as the engine needs one. The client library of MySQL does not serve: its symbols are mysqld's
// own, with other state behind them.
//
// 1. Nothing here blocks longer than SLICE_MS without asking whether the statement was killed or its time is over.
// 2. A connection on which something failed is not used again (`is_usable`).
// 3. Nothing here knows the server's types.

#ifndef AVOCET_WIRE_H
#define AVOCET_WIRE_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace avocet {

using Clock = std::chrono::steady_clock;

/// Where Avocet listens and as whom the plugin signs in.
struct Endpoint {
  std::string host;
  unsigned port = 0;
  std::string socket;  ///< A Unix socket; empty: TCP.
  std::string user;
  std::string password;
  std::chrono::milliseconds connect_timeout{2000};

  /// Connections with another one than the variables say now are not used again.
  std::string identity() const { return name() + '\0' + user + '\0' + password; }
  std::string name() const {
    return socket.empty() ? host + ":" + std::to_string(port) : socket;
  }
};

/// What went wrong with a statement or a connection.
struct Failure {
  enum class Kind { connection, server, killed, late, unsupported };
  Kind kind;
  unsigned number = 0;  ///< The server's error number.
  std::string text;
};

/// What limits a wait.
struct Patience {
  std::function<bool()> is_killed;
  std::optional<Clock::time_point> until;
};

/// A column of a result, as Avocet announces it.
struct Column {
  uint8_t type = 0;
  uint16_t charset = 0;
  uint16_t flags = 0;
  uint8_t decimals = 0;
};

/// A value to execute a prepared statement with.
struct Parameter {
  uint8_t type = 0;  ///< MYSQL_TYPE_NULL for NULL.
  bool is_unsigned = false;
  std::string bytes;  ///< As the binary protocol has it, length included.
};

using TextRow = std::vector<std::optional<std::string>>;

class Connection {
 public:
  /// Throws Failure.
  Connection(const Endpoint &endpoint, const Patience &patience);
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  /// A statement whose result is small. Throws Failure.
  std::vector<TextRow> query(std::string_view text, const Patience &patience);

  /// Prepares and executes; the result's rows are then to be fetched. Throws Failure.
  std::vector<Column> begin(std::string_view text, const std::vector<Parameter> &parameters,
                            const Patience &patience);

  /// The next row in the binary protocol's form, valid until the next call; none at the end. Throws Failure.
  std::optional<std::string_view> fetch(const Patience &patience);

  /// Lets go of the statement that `begin` prepared. Throws Failure.
  void finish(const Patience &patience);

  bool is_usable() const { return fd_ >= 0 && !broken_; }
  /// Whether rows are left that nobody has fetched.
  bool is_streaming() const { return streaming_; }
  unsigned warnings() const { return warnings_; }
  uint32_t id() const { return id_; }
  const std::string &identity() const { return identity_; }
  /// Whether the other side has said or done something since the last answer, such as closing the connection.
  bool is_stale() const;

  /// What the session there was set to last (`Settings`).
  std::string settings;
  std::string database;

 private:
  void open(const Endpoint &endpoint, const Patience &patience);
  void sign_in(const Endpoint &endpoint, const Patience &patience);
  void authenticate(const Endpoint &endpoint, std::string plugin, std::string salt, const Patience &patience);
  void full_authentication(const Endpoint &endpoint, const std::string &salt, const Patience &patience);
  void send(std::string_view payload, const Patience &patience);
  void command(uint8_t code, std::string_view body, const Patience &patience);
  /// One packet's payload, in `packet_`.
  void receive(const Patience &patience);
  void fill(size_t bytes, const Patience &patience);
  void wait(short events, const Patience &patience);
  std::vector<Column> columns(uint64_t count, const Patience &patience);
  void skip(uint64_t packets, const Patience &patience);
  [[noreturn]] void fail(Failure::Kind kind, std::string text);
  [[noreturn]] void fail_as_told();

  int fd_ = -1;
  bool broken_ = false;
  bool streaming_ = false;
  bool is_local_ = false;
  uint8_t sequence_ = 0;
  uint32_t id_ = 0;
  uint32_t statement_ = 0;
  unsigned warnings_ = 0;
  std::string identity_;
  std::string where_;
  std::string buffer_;  ///< Bytes received.
  size_t at_ = 0;       ///< How many of them have been read.
  std::string packet_;
};

/// Reads the protocol's integers and strings; past the end everything is 0 and empty, and `is_good` false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t integer(size_t bytes);
  uint64_t length();
  std::string_view string(size_t length);
  std::string_view counted() { return string(length()); }
  std::string_view until_zero();
  std::string_view rest() { return string(bytes_.size()); }
  bool is_good() const { return good_; }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

void put_integer(std::string &out, uint64_t value, size_t bytes);
void put_length(std::string &out, uint64_t value);
void put_counted(std::string &out, std::string_view bytes);

}  // namespace avocet

#endif
