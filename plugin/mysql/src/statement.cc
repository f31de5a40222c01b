// SPDX-License-Identifier: GPL-2.0-only

#include "statement.h"

#include <algorithm>
#include <array>

namespace avocet {

namespace {

/// Functions whose value is the session's, the server's or another one at each call. Sorted.
constexpr std::array SESSION_FUNCTIONS = std::to_array<std::string_view>({
    "BENCHMARK", "CONNECTION_ID", "CURRENT_ROLE", "CURRENT_USER", "FOUND_ROWS", "GET_LOCK", "ICU_VERSION",
    "IS_FREE_LOCK", "IS_USED_LOCK", "LAST_INSERT_ID", "LOAD_FILE", "MASTER_POS_WAIT", "PS_CURRENT_THREAD_ID",
    "PS_THREAD_ID", "RAND", "RANDOM_BYTES", "RELEASE_ALL_LOCKS", "RELEASE_LOCK", "ROLES_GRAPHML", "ROW_COUNT",
    "SESSION_USER", "SLEEP", "SOURCE_POS_WAIT", "SYSDATE", "SYSTEM_USER", "USER", "UUID", "UUID_SHORT",
    "VERSION", "WAIT_FOR_EXECUTED_GTID_SET",
});
static_assert(std::is_sorted(SESSION_FUNCTIONS.begin(), SESSION_FUNCTIONS.end()));

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Scanner {
 public:
  Scanner(std::string_view text, const Reading &reading) : text_(text), reading_(reading) {}

  Scan run() {
    while (at_ < text_.size() && scan_.reason.empty()) step();
    end_of_word();
    return std::move(scan_);
  }

 private:
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void keep(size_t bytes) {
    scan_.text.append(text_.substr(at_, bytes));
    at_ = std::min(at_ + bytes, text_.size());
  }

  void step() {
    const char c = text_[at_];
    if (is_blank(c)) return keep(1);
    if (c == '/' && peek(1) == '*') return comment();
    if (c == '#' || (c == '-' && peek(1) == '-' && (at_ + 2 == text_.size() || is_blank(peek(2)) || peek(2) < ' '))) {
      const size_t end = text_.find('\n', at_);
      return keep(end == std::string_view::npos ? text_.size() - at_ : end - at_);
    }
    if (is_word(c)) return word();
    if (c == '(' && !last_.empty()) call();
    // CURRENT_USER needs no parentheses; a name of a column or table has a dot beside it.
    if (c != '.') end_of_word();
    last_.clear();
    after_dot_ = c == '.';
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (c == '@') return refuse("it uses variables");
    if (c == '?') ++scan_.parameters;
    keep(1);
  }

  void comment() {
    const char kind = peek(2);
    if (kind == '!' || (kind == 'M' && peek(3) == '!')) return refuse("it has version comments");
    const size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) return refuse("it has a comment without an end");
    if (kind != '+') return keep(end + 2 - at_);
    scan_.text.push_back(' ');
    at_ = end + 2;
  }

  void word() {
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    end_of_word();
    before_ = last_;
    last_.assign(text_.substr(at_, end - at_));
    std::transform(last_.begin(), last_.end(), last_.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (!after_dot_) keyword();
    if (after_dot_) last_.clear();
    after_dot_ = false;
    keep(end - at_);
  }

  void keyword() {
    if (last_ == "INTO") refuse("it has INTO");
    if (last_ == "SQL_CALC_FOUND_ROWS") refuse("it has SQL_CALC_FOUND_ROWS");
    if ((before_ == "FOR" && (last_ == "UPDATE" || last_ == "SHARE")) || (before_ == "LOCK" && last_ == "IN"))
      refuse("it locks rows");
  }

  /// The word that has just been read turns out not to be called.
  void end_of_word() {
    if (last_ == "CURRENT_USER") refuse("it uses CURRENT_USER");
  }

  void call() {
    if (std::binary_search(SESSION_FUNCTIONS.begin(), SESSION_FUNCTIONS.end(), std::string_view(last_)))
      refuse("it uses " + last_ + "()");
  }

  void quoted(char quote) {
    const bool is_name = quote == '`' || (quote == '"' && reading_.ansi_quotes);
    size_t end = at_ + 1;
    for (;; ++end) {
      if (end >= text_.size()) return refuse("it has a quote without an end");
      if (text_[end] == '\\' && !is_name && !reading_.no_backslash_escapes) {
        ++end;
      } else if (text_[end] == quote) {
        if (end + 1 < text_.size() && text_[end + 1] == quote)
          ++end;
        else
          break;
      }
    }
    keep(end + 1 - at_);
  }

  void refuse(std::string reason) {
    if (scan_.reason.empty()) scan_.reason = std::move(reason);
    at_ = text_.size();
  }

  std::string_view text_;
  Reading reading_;
  size_t at_ = 0;
  Scan scan_;
  std::string last_;    ///< The word before, in capitals, if nothing but blanks and comments came since.
  std::string before_;  ///< The one before that.
  bool after_dot_ = false;
};

}  // namespace

Scan scan(std::string_view text, const Reading &reading) { return Scanner(text, reading).run(); }

}  // namespace avocet
