// SPDX-License-Identifier: GPL-2.0-only
// Connections to Avocet between two queries. They belong to no session of MySQL: a session that kept one would keep the plugin from
// being uninstalled.

#ifndef AVOCET_POOL_H
#define AVOCET_POOL_H

#include <memory>
#include <mutex>
#include <vector>

#include "wire.h"

namespace avocet {

class Pool {
 public:
  /// One that is signed in at this endpoint; the last one given back first. None if there is none.
  std::unique_ptr<Connection> take(const Endpoint &endpoint);
  void give(std::unique_ptr<Connection> connection);
  void clear();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

/// Ends what a connection is doing at the other side, from a second one, and closes it.
void cancel(std::unique_ptr<Connection> connection, const Endpoint &endpoint);

}  // namespace avocet

#endif
