// SPDX-License-Identifier: GPL-2.0-only

#include "wire.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "password.h"

namespace avocet {

namespace {

/// How long a wait goes on before it asks whether it should.
constexpr int SLICE_MS = 20;
constexpr size_t LARGEST_PACKET = 0xffffff;
/// A row larger than this is not taken: what MySQL itself may send in one packet.
constexpr size_t LARGEST_PAYLOAD = size_t{1} << 30;

enum : uint8_t { COM_QUERY = 0x03, COM_STMT_PREPARE = 0x16, COM_STMT_EXECUTE = 0x17, COM_STMT_CLOSE = 0x19 };
enum : uint8_t { OK = 0x00, MORE = 0x01, EOF_ = 0xfe, ERR = 0xff };

constexpr uint32_t CLIENT_LONG_PASSWORD = 1, CLIENT_LONG_FLAG = 4, CLIENT_PROTOCOL_41 = 1 << 9,
                   CLIENT_TRANSACTIONS = 1 << 13, CLIENT_SECURE_CONNECTION = 1 << 15,
                   CLIENT_PLUGIN_AUTH = 1 << 19;
constexpr uint8_t UTF8MB4_0900_AI_CI = 255;

}  // namespace

uint64_t Reader::integer(size_t bytes) {
  if (bytes_.size() < bytes) {
    good_ = false;
    bytes_ = {};
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
  bytes_.remove_prefix(bytes);
  return value;
}

uint64_t Reader::length() {
  const uint64_t first = integer(1);
  switch (first) {
    case 0xfc:
      return integer(2);
    case 0xfd:
      return integer(3);
    case 0xfe:
      return integer(8);
    default:
      return first;
  }
}

std::string_view Reader::string(size_t length) {
  if (bytes_.size() < length) {
    good_ = false;
    bytes_ = {};
    return {};
  }
  const std::string_view found = bytes_.substr(0, length);
  bytes_.remove_prefix(length);
  return found;
}

std::string_view Reader::until_zero() {
  const size_t end = bytes_.find('\0');
  if (end == std::string_view::npos) return rest();
  const std::string_view found = bytes_.substr(0, end);
  bytes_.remove_prefix(end + 1);
  return found;
}

void put_integer(std::string &out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void put_length(std::string &out, uint64_t value) {
  if (value < 251) {
    put_integer(out, value, 1);
  } else if (value < 0x10000) {
    out.push_back('\xfc');
    put_integer(out, value, 2);
  } else if (value < 0x1000000) {
    out.push_back('\xfd');
    put_integer(out, value, 3);
  } else {
    out.push_back('\xfe');
    put_integer(out, value, 8);
  }
}

void put_counted(std::string &out, std::string_view bytes) {
  put_length(out, bytes.size());
  out.append(bytes);
}

Connection::Connection(const Endpoint &endpoint, const Patience &patience)
    : identity_(endpoint.identity()), where_(endpoint.name()) {
  Patience bounded = patience;
  const auto end = Clock::now() + endpoint.connect_timeout;
  if (!bounded.until || *bounded.until > end) bounded.until = end;
  try {
    open(endpoint, bounded);
    sign_in(endpoint, bounded);
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    throw;
  }
}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

void Connection::fail(Failure::Kind kind, std::string text) {
  broken_ = true;
  throw Failure{kind, 0, std::move(text)};
}

void Connection::fail_as_told() {
  Reader reader(std::string_view(packet_).substr(1));
  const auto number = static_cast<unsigned>(reader.integer(2));
  std::string_view text = reader.rest();
  if (text.starts_with('#') && text.size() >= 6) text.remove_prefix(6);
  streaming_ = false;
  throw Failure{Failure::Kind::server, number, std::string(text)};
}

void Connection::open(const Endpoint &endpoint, const Patience &patience) {
  const auto begin = [&](int family, const sockaddr *address, socklen_t length) {
    fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return errno;
    if (::connect(fd_, address, length) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    wait(POLLOUT, patience);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  };
  int error = ENOENT;
  if (!endpoint.socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.socket.size() >= sizeof address.sun_path)
      fail(Failure::Kind::connection, "the path of avocet_socket is too long");
    std::memcpy(address.sun_path, endpoint.socket.data(), endpoint.socket.size());
    is_local_ = true;
    error = begin(AF_UNIX, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  } else {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *found = nullptr;
    const int code = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
    if (code != 0)
      fail(Failure::Kind::connection, "cannot resolve avocet_host '" + endpoint.host + "': " + ::gai_strerror(code));
    try {
      for (const addrinfo *at = found; at != nullptr && error != 0; at = at->ai_next) {
        if (fd_ >= 0) ::close(fd_);
        error = begin(at->ai_family, at->ai_addr, at->ai_addrlen);
      }
    } catch (...) {
      ::freeaddrinfo(found);
      throw;
    }
    ::freeaddrinfo(found);
    const int on = 1;
    if (error == 0) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (error != 0) fail(Failure::Kind::connection, "cannot connect to Avocet at " + where_ + ": " + std::strerror(error));
}

void Connection::wait(short events, const Patience &patience) {
  for (;;) {
    if (patience.is_killed && patience.is_killed()) fail(Failure::Kind::killed, "interrupted");
    int slice = SLICE_MS;
    if (patience.until) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*patience.until - Clock::now()).count();
      if (left <= 0) fail(Failure::Kind::late, "Avocet at " + where_ + " did not answer in time");
      if (left < slice) slice = static_cast<int>(left);
    }
    pollfd poll{fd_, events, 0};
    const int ready = ::poll(&poll, 1, slice);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR)
      fail(Failure::Kind::connection, std::string("waiting for Avocet: ") + std::strerror(errno));
  }
}

void Connection::fill(size_t bytes, const Patience &patience) {
  if (at_ > 0 && buffer_.size() - at_ < bytes) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  while (buffer_.size() - at_ < bytes) {
    const size_t had = buffer_.size();
    const size_t room = std::max<size_t>(bytes - (had - at_), 64 * 1024);
    ssize_t got = 0;
    int error = 0;
    buffer_.resize_and_overwrite(had + room, [&](char *data, size_t) {
      got = ::recv(fd_, data + had, room, 0);
      error = errno;
      return had + static_cast<size_t>(std::max<ssize_t>(got, 0));
    });
    if (got > 0) continue;
    if (got == 0) fail(Failure::Kind::connection, "Avocet at " + where_ + " has closed the connection");
    if (error == EAGAIN || error == EWOULDBLOCK)
      wait(POLLIN, patience);
    else if (error != EINTR)
      fail(Failure::Kind::connection, "reading from Avocet at " + where_ + ": " + std::strerror(error));
  }
}

void Connection::receive(const Patience &patience) {
  packet_.clear();
  for (;;) {
    fill(4, patience);
    Reader header(std::string_view(buffer_).substr(at_, 4));
    const size_t length = header.integer(3);
    const auto number = static_cast<uint8_t>(header.integer(1));
    if (number != sequence_) fail(Failure::Kind::connection, "packets of Avocet come out of order");
    ++sequence_;
    if (packet_.size() + length > LARGEST_PAYLOAD) fail(Failure::Kind::connection, "a packet of Avocet is too large");
    at_ += 4;
    fill(length, patience);
    packet_.append(buffer_, at_, length);
    at_ += length;
    if (length < LARGEST_PACKET) break;
  }
  if (packet_.empty()) fail(Failure::Kind::connection, "an empty packet from Avocet");
}

void Connection::send(std::string_view payload, const Patience &patience) {
  std::string out;
  out.reserve(payload.size() + 4);
  for (bool is_last = false; !is_last;) {
    const std::string_view part = payload.substr(0, LARGEST_PACKET);
    is_last = part.size() < LARGEST_PACKET;
    payload.remove_prefix(part.size());
    put_integer(out, part.size(), 3);
    put_integer(out, sequence_++, 1);
    out.append(part);
  }
  for (std::string_view left = out; !left.empty();) {
    const ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      left.remove_prefix(static_cast<size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      wait(POLLOUT, patience);
    else if (errno != EINTR)
      fail(Failure::Kind::connection, "writing to Avocet at " + where_ + ": " + std::strerror(errno));
  }
}

void Connection::command(uint8_t code, std::string_view body, const Patience &patience) {
  sequence_ = 0;
  std::string payload(1, static_cast<char>(code));
  payload.append(body);
  send(payload, patience);
}

void Connection::sign_in(const Endpoint &endpoint, const Patience &patience) {
  receive(patience);
  if (static_cast<uint8_t>(packet_[0]) == ERR) fail_as_told();
  Reader greeting(packet_);
  if (greeting.integer(1) != 10) fail(Failure::Kind::connection, "what listens at " + where_ + " is no MySQL");
  greeting.until_zero();
  id_ = static_cast<uint32_t>(greeting.integer(4));
  std::string salt(greeting.string(8));
  greeting.integer(1);
  greeting.string(2 + 1 + 2 + 2 + 1 + 10);  // capabilities, charset, status, more capabilities, salt's length, filler
  salt += greeting.string(12);
  greeting.integer(1);
  const std::string plugin(greeting.until_zero());
  if (!greeting.is_good()) fail(Failure::Kind::connection, "what listens at " + where_ + " is too old");

  const std::optional<std::string> proof = password_proof(plugin, endpoint.password, salt);
  std::string reply;
  put_integer(reply,
              CLIENT_LONG_PASSWORD | CLIENT_LONG_FLAG | CLIENT_PROTOCOL_41 | CLIENT_TRANSACTIONS |
                  CLIENT_SECURE_CONNECTION | CLIENT_PLUGIN_AUTH,
              4);
  put_integer(reply, LARGEST_PAYLOAD, 4);
  put_integer(reply, UTF8MB4_0900_AI_CI, 1);
  reply.append(23, '\0');
  reply.append(endpoint.user).push_back('\0');
  put_integer(reply, proof ? proof->size() : 0, 1);
  if (proof) reply.append(*proof);
  reply.append(plugin).push_back('\0');
  send(reply, patience);
  authenticate(endpoint, plugin, salt, patience);
}

void Connection::authenticate(const Endpoint &endpoint, std::string plugin, std::string salt,
                              const Patience &patience) {
  for (;;) {
    receive(patience);
    Reader reader(packet_);
    switch (reader.integer(1)) {
      case OK:
        return;
      case ERR:
        fail_as_told();
      case EOF_: {  // another authentication plugin is wanted
        plugin = reader.until_zero();
        salt = reader.rest().substr(0, 20);
        const auto proof = password_proof(plugin, endpoint.password, salt);
        if (!proof) fail(Failure::Kind::connection, "Avocet wants the authentication plugin " + plugin);
        send(*proof, patience);
        break;
      }
      case MORE: {
        const uint64_t what = reader.integer(1);
        if (what == 3) break;  // the proof is good; OK follows
        if (what != 4) fail(Failure::Kind::connection, "an authentication step that is not known");
        full_authentication(endpoint, salt, patience);
        break;
      }
      default:
        fail(Failure::Kind::connection, "an authentication step that is not known");
    }
  }
}

void Connection::full_authentication(const Endpoint &endpoint, const std::string &salt, const Patience &patience) {
  std::string password = endpoint.password;
  password.push_back('\0');
  if (is_local_) {
    send(password, patience);
    return;
  }
  send(std::string_view("\x02", 1), patience);  // asks for the public key
  receive(patience);
  if (static_cast<uint8_t>(packet_[0]) == ERR) fail_as_told();
  const auto sealed = sealed_password(password, salt, std::string_view(packet_).substr(1));
  if (!sealed) fail(Failure::Kind::connection, "Avocet's public key cannot be used");
  send(*sealed, patience);
}

std::vector<Column> Connection::columns(uint64_t count, const Patience &patience) {
  std::vector<Column> columns;
  for (uint64_t i = 0; i < count; ++i) {
    receive(patience);
    Reader reader(packet_);
    for (int name = 0; name < 6; ++name) reader.counted();
    reader.length();
    Column column;
    column.charset = static_cast<uint16_t>(reader.integer(2));
    reader.integer(4);
    column.type = static_cast<uint8_t>(reader.integer(1));
    column.flags = static_cast<uint16_t>(reader.integer(2));
    column.decimals = static_cast<uint8_t>(reader.integer(1));
    if (!reader.is_good()) fail(Failure::Kind::connection, "a column's definition is cut");
    columns.push_back(column);
  }
  if (count > 0) skip(1, patience);  // EOF
  return columns;
}

void Connection::skip(uint64_t packets, const Patience &patience) {
  for (uint64_t i = 0; i < packets; ++i) receive(patience);
}

std::vector<TextRow> Connection::query(std::string_view text, const Patience &patience) {
  command(COM_QUERY, text, patience);
  receive(patience);
  if (static_cast<uint8_t>(packet_[0]) == ERR) fail_as_told();
  if (static_cast<uint8_t>(packet_[0]) == OK) return {};
  const uint64_t count = Reader(packet_).length();
  columns(count, patience);
  std::vector<TextRow> rows;
  for (;;) {
    receive(patience);
    if (static_cast<uint8_t>(packet_[0]) == ERR) fail_as_told();
    if (static_cast<uint8_t>(packet_[0]) == EOF_ && packet_.size() < 9) return rows;
    Reader reader(packet_);
    TextRow row;
    for (uint64_t i = 0; i < count; ++i) {
      if (reader.left() > 0 && static_cast<uint8_t>(packet_[packet_.size() - reader.left()]) == 0xfb) {
        reader.integer(1);
        row.emplace_back(std::nullopt);
      } else {
        row.emplace_back(std::string(reader.counted()));
      }
    }
    if (!reader.is_good()) fail(Failure::Kind::connection, "a row is cut");
    rows.push_back(std::move(row));
  }
}

std::vector<Column> Connection::begin(std::string_view text, const std::vector<Parameter> &parameters,
                                      const Patience &patience) {
  finish(patience);
  command(COM_STMT_PREPARE, text, patience);
  receive(patience);
  if (static_cast<uint8_t>(packet_[0]) == ERR) fail_as_told();
  Reader reader(std::string_view(packet_).substr(1));
  statement_ = static_cast<uint32_t>(reader.integer(4));
  const uint64_t column_count = reader.integer(2);
  const uint64_t parameter_count = reader.integer(2);
  columns(parameter_count, patience);
  columns(column_count, patience);
  if (parameter_count != parameters.size())
    fail(Failure::Kind::unsupported, "Avocet sees " + std::to_string(parameter_count) + " parameters");

  std::string body;
  put_integer(body, statement_, 4);
  put_integer(body, 0, 1);
  put_integer(body, 1, 4);
  if (!parameters.empty()) {
    std::string nulls((parameters.size() + 7) / 8, '\0');
    std::string types;
    std::string values;
    for (size_t i = 0; i < parameters.size(); ++i) {
      constexpr uint8_t NULL_TYPE = 6;
      if (parameters[i].type == NULL_TYPE)
        nulls[i / 8] = static_cast<char>(nulls[i / 8] | (1 << (i % 8)));
      put_integer(types, parameters[i].type, 1);
      put_integer(types, parameters[i].is_unsigned ? 0x80 : 0, 1);
      values += parameters[i].bytes;
    }
    body.append(nulls).append(1, '\1').append(types).append(values);
  }
  command(COM_STMT_EXECUTE, body, patience);
  receive(patience);
  if (static_cast<uint8_t>(packet_[0]) == ERR) {
    try {
      fail_as_told();
    } catch (const Failure &failure) {
      finish(patience);
      throw failure;
    }
  }
  const uint64_t count = Reader(packet_).length();
  if (count == 0) fail(Failure::Kind::unsupported, "Avocet answers without rows");
  streaming_ = true;
  return columns(count, patience);
}

std::optional<std::string_view> Connection::fetch(const Patience &patience) {
  if (!streaming_) return std::nullopt;
  receive(patience);
  const auto first = static_cast<uint8_t>(packet_[0]);
  if (first == OK) return packet_;
  streaming_ = false;
  if (first == ERR) {
    try {
      fail_as_told();
    } catch (const Failure &failure) {
      finish(patience);
      throw failure;
    }
  }
  warnings_ = static_cast<unsigned>(Reader(std::string_view(packet_).substr(1)).integer(2));
  return std::nullopt;
}

void Connection::finish(const Patience &patience) {
  if (statement_ == 0 || streaming_) return;
  std::string body;
  put_integer(body, statement_, 4);
  statement_ = 0;
  command(COM_STMT_CLOSE, body, patience);
}

bool Connection::is_stale() const {
  if (at_ < buffer_.size()) return true;
  pollfd poll{fd_, POLLIN, 0};
  return ::poll(&poll, 1, 0) != 0;
}

}  // namespace avocet
