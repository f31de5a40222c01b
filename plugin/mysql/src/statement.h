// SPDX-License-Identifier: GPL-2.0-only
// What a query's text says of where it may run. The text is what is sent, so it is what has to be looked at: items of the resolved
// statement may have been folded away.

#ifndef AVOCET_STATEMENT_H
#define AVOCET_STATEMENT_H

#include <string>
#include <string_view>

namespace avocet {

/// How the session reads texts.
struct Reading {
  bool ansi_quotes = false;
  bool no_backslash_escapes = false;
};

struct Scan {
  /// Why it has to run where its session is; empty if it may run elsewhere.
  std::string reason;
  /// The text without optimizer hints, which are for MySQL alone.
  std::string text;
  size_t parameters = 0;
};

/// Looks at a query, or at the body of a view.
Scan scan(std::string_view text, const Reading &reading);

}  // namespace avocet

#endif
