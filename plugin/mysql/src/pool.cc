// SPDX-License-Identifier: GPL-2.0-only

#include "pool.h"

#include <algorithm>

namespace avocet {

namespace {

/// Further ones are closed when their query is done.
constexpr size_t MOST_IDLE = 64;

}  // namespace

std::unique_ptr<Connection> Pool::take(const Endpoint &endpoint) {
  const std::lock_guard lock(mutex_);
  std::erase_if(idle_, [&](const auto &idle) { return idle->identity() != endpoint.identity() || idle->is_stale(); });
  if (idle_.empty()) return nullptr;
  auto found = std::move(idle_.back());
  idle_.pop_back();
  return found;
}

void Pool::give(std::unique_ptr<Connection> connection) {
  if (!connection->is_usable() || connection->is_streaming()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < MOST_IDLE) idle_.push_back(std::move(connection));
}

void Pool::clear() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

void cancel(std::unique_ptr<Connection> connection, const Endpoint &endpoint) {
  Patience patience;
  patience.until = Clock::now() + std::chrono::seconds(2);
  try {
    Connection second(endpoint, patience);
    second.query("KILL " + std::to_string(connection->id()), patience);
  } catch (const Failure &) {
    // Closing is what is left; the other side finds out when it sends.
  }
}

}  // namespace avocet
