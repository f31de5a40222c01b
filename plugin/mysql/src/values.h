// SPDX-License-Identifier: GPL-2.0-only
// Values between the two servers: rows of Avocet to MySQL's client, as MySQL has announced them, and parameters the other way.

#ifndef AVOCET_VALUES_H
#define AVOCET_VALUES_H

#include <string>
#include <string_view>
#include <vector>

#include "wire.h"

class THD;
struct LEX;

namespace avocet {

/// A column that MySQL has announced to its client, and that Avocet fills.
struct Target {
  int type;  ///< enum_field_types
  bool is_unsigned;
  unsigned decimals;
  unsigned zerofill;    ///< Digits to fill up to, or 0.
  const void *charset;  ///< CHARSET_INFO
  Column source;
};

/// Pairs MySQL's columns with Avocet's; says why if that cannot be done without a loss.
std::string pair_columns(LEX *lex, const std::vector<Column> &columns, std::vector<Target> *targets);

enum class Sent { yes, client_gone, unlike };

/// Sends one row. `unlike`: a value is none of its column's type (`column` says which one); nothing of the row was sent.
Sent send_row(THD *thd, const std::vector<Target> &targets, std::string_view row, size_t *column);

/// The parameters of a prepared statement; says why if one cannot be had there.
std::string bind_parameters(THD *thd, LEX *lex, std::vector<Parameter> *parameters);

}  // namespace avocet

#endif
