// SPDX-License-Identifier: GPL-2.0-only

#include "values.h"

#include <charconv>
#include <cstring>

#include "my_config.h"

#include "my_temporal.h"
#include "sql/current_thd.h"
#include "sql/field.h"
#include "sql/item.h"
#include "sql-common/my_decimal.h"
#include "sql/protocol.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/visible_fields.h"
#include "sql_string.h"

namespace avocet {

namespace {

constexpr uint16_t BINARY_CHARSET = 63;
constexpr uint16_t UNSIGNED = 32;

enum class Class { null, integer, decimal, real, date, time, datetime, text };

/// What a type is to MySQL's protocol.
Class class_of(int type) {
  switch (type) {
    case MYSQL_TYPE_NULL:
      return Class::null;
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      return Class::integer;
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
      return Class::decimal;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
      return Class::real;
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:
      return Class::date;
    case MYSQL_TYPE_TIME:
      return Class::time;
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
      return Class::datetime;
    default:
      return Class::text;
  }
}

const char *name_of(Class kind) {
  switch (kind) {
    case Class::null:
      return "NULL";
    case Class::integer:
      return "an integer";
    case Class::decimal:
      return "a decimal";
    case Class::real:
      return "a double";
    case Class::date:
      return "a date";
    case Class::time:
      return "a time";
    case Class::datetime:
      return "a datetime";
    case Class::text:
      return "a string";
  }
  return "";
}

/// Whether each value of one kind that stands for MySQL's value of another is that value exactly.
bool agrees(const Target &target) {
  const Class to = class_of(target.type);
  const Class from = class_of(target.source.type);
  if (from == to || from == Class::null || to == Class::null) return true;
  switch (to) {
    case Class::integer:
      return from == Class::decimal && target.source.decimals == 0;
    case Class::decimal:
      return from == Class::integer && target.decimals == 0;
    case Class::real:
      return from == Class::integer || from == Class::decimal;
    case Class::datetime:
      return from == Class::text || from == Class::date;
    case Class::date:
    case Class::time:
      return from == Class::text;
    case Class::text:
      return from != Class::real;
    default:
      return false;
  }
}

struct Value {
  bool is_null = false;
  bool is_unsigned = false;
  int64_t integer = 0;
  double real = 0;
  MYSQL_TIME time{};
  std::string_view bytes;
};

MYSQL_TIME moment(std::string_view bytes, bool is_time) {
  MYSQL_TIME time{};
  Reader reader(bytes);
  if (is_time) {
    time.time_type = MYSQL_TIMESTAMP_TIME;
    if (bytes.empty()) return time;
    time.neg = reader.integer(1) != 0;
    const auto days = static_cast<unsigned>(reader.integer(4));
    time.hour = static_cast<unsigned>(reader.integer(1)) + 24 * days;
  } else {
    time.time_type = MYSQL_TIMESTAMP_DATETIME;
    if (bytes.empty()) return time;
    time.year = static_cast<unsigned>(reader.integer(2));
    time.month = static_cast<unsigned>(reader.integer(1));
    time.day = static_cast<unsigned>(reader.integer(1));
    if (reader.left() == 0) return time;
    time.hour = static_cast<unsigned>(reader.integer(1));
  }
  time.minute = static_cast<unsigned>(reader.integer(1));
  time.second = static_cast<unsigned>(reader.integer(1));
  if (reader.left() > 0) time.second_part = reader.integer(4);
  return time;
}

Value read(Reader *reader, const Column &column) {
  Value value;
  value.is_unsigned = (column.flags & UNSIGNED) != 0;
  const auto whole = [&](size_t bytes) {
    const uint64_t raw = reader->integer(bytes);
    const unsigned shift = 64 - 8 * static_cast<unsigned>(bytes);
    value.integer = value.is_unsigned ? static_cast<int64_t>(raw) : static_cast<int64_t>(raw << shift) >> shift;
  };
  switch (column.type) {
    case MYSQL_TYPE_NULL:
      value.is_null = true;
      break;
    case MYSQL_TYPE_TINY:
      whole(1);
      break;
    case MYSQL_TYPE_YEAR:
      value.is_unsigned = true;
      [[fallthrough]];
    case MYSQL_TYPE_SHORT:
      whole(2);
      break;
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
      whole(4);
      break;
    case MYSQL_TYPE_LONGLONG:
      whole(8);
      break;
    case MYSQL_TYPE_FLOAT: {
      const auto bits = static_cast<uint32_t>(reader->integer(4));
      float real;
      std::memcpy(&real, &bits, sizeof real);
      value.real = real;
      break;
    }
    case MYSQL_TYPE_DOUBLE: {
      const uint64_t bits = reader->integer(8);
      std::memcpy(&value.real, &bits, sizeof value.real);
      break;
    }
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
      value.time = moment(reader->counted(), false);
      break;
    case MYSQL_TYPE_TIME:
      value.time = moment(reader->counted(), true);
      break;
    default:
      value.bytes = reader->counted();
  }
  return value;
}

template <typename T>
bool number(std::string_view text, T *out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

/// A moment from MySQL's own text for it.
bool parse_moment(std::string_view text, Class kind, MYSQL_TIME *time) {
  *time = MYSQL_TIME{};
  const auto digits = [&](unsigned *out, char end) {
    size_t length = 0;
    while (length < text.size() && text[length] >= '0' && text[length] <= '9') ++length;
    if (length == 0 || !number(text.substr(0, length), out)) return false;
    text.remove_prefix(length);
    if (end == '\0') return true;
    if (text.empty() || text.front() != end) return false;
    text.remove_prefix(1);
    return true;
  };
  if (kind == Class::time) {
    if (text.starts_with('-')) {
      time->neg = true;
      text.remove_prefix(1);
    }
  } else if (!digits(&time->year, '-') || !digits(&time->month, '-') || !digits(&time->day, '\0')) {
    return false;
  }
  time->time_type = kind == Class::time ? MYSQL_TIMESTAMP_TIME : MYSQL_TIMESTAMP_DATETIME;
  if (kind != Class::time && text.empty()) return true;
  if (kind == Class::date) return false;
  if (kind == Class::datetime) {
    if (text.front() != ' ') return false;
    text.remove_prefix(1);
  }
  if (!digits(&time->hour, ':') || !digits(&time->minute, ':') || !digits(&time->second, '\0')) return false;
  if (text.empty()) return true;
  if (text.front() != '.' || text.size() > 7) return false;
  std::string micros(text.substr(1));
  micros.resize(6, '0');
  unsigned parts = 0;
  if (!number(micros, &parts)) return false;
  time->second_part = parts;
  return true;
}

std::string moment_text(const MYSQL_TIME &time, Class kind, unsigned decimals) {
  char out[48];
  const auto n = [](unsigned long value) { return static_cast<unsigned>(value); };
  int length;
  if (kind == Class::time)
    length = snprintf(out, sizeof out, "%s%02u:%02u:%02u", time.neg ? "-" : "", time.hour, time.minute, time.second);
  else if (kind == Class::date)
    length = snprintf(out, sizeof out, "%04u-%02u-%02u", time.year, time.month, time.day);
  else
    length = snprintf(out, sizeof out, "%04u-%02u-%02u %02u:%02u:%02u", time.year, time.month, time.day, time.hour,
                      time.minute, time.second);
  std::string text(out, static_cast<size_t>(length));
  if (kind != Class::date && decimals > 0 && decimals <= 6) {
    snprintf(out, sizeof out, "%06u", n(time.second_part));
    text.append(".").append(out, decimals);
  }
  return text;
}

std::string digits(const Value &value) {
  return value.is_unsigned ? std::to_string(static_cast<uint64_t>(value.integer)) : std::to_string(value.integer);
}

/// Turns a value into the kind of its target.
bool convert(const Target &target, Value *value, std::string *text) {
  const Class to = class_of(target.type);
  const Class from = class_of(target.source.type);
  switch (to) {
    case Class::integer:
      if (from == Class::decimal) {
        if (!value->bytes.starts_with('-')) {
          uint64_t whole = 0;
          value->is_unsigned = true;
          if (!number(value->bytes, &whole)) return false;
          value->integer = static_cast<int64_t>(whole);
        } else if (value->is_unsigned = false; !number(value->bytes, &value->integer)) {
          return false;
        }
      }
      // What is below 2^63 is the same either way.
      return value->is_unsigned == target.is_unsigned || value->integer >= 0;
    case Class::real:
      if (from == Class::integer)
        value->real = value->is_unsigned ? static_cast<double>(static_cast<uint64_t>(value->integer))
                                         : static_cast<double>(value->integer);
      else if (from == Class::decimal)
        return number(value->bytes, &value->real);
      return true;
    case Class::date:
    case Class::time:
    case Class::datetime:
      return from != Class::text || parse_moment(value->bytes, to, &value->time);
    case Class::decimal:
    case Class::text:
      if (from == Class::integer)
        *text = digits(*value);
      else if (from == Class::date || from == Class::time || from == Class::datetime)
        *text = moment_text(value->time, from, target.source.decimals);
      else
        return true;
      value->bytes = *text;
      return true;
    case Class::null:
      return value->is_null;
  }
  return false;
}

bool store_text(THD *thd, Protocol *protocol, const Target &target, std::string_view bytes) {
  const auto *charset = static_cast<const CHARSET_INFO *>(target.charset);
  const bool is_binary = target.source.charset == BINARY_CHARSET && class_of(target.source.type) == Class::text &&
                         target.source.type != MYSQL_TYPE_JSON;
  if (is_binary || charset == &my_charset_bin)
    return protocol->store_string(bytes.data(), bytes.size(), &my_charset_bin);
  const CHARSET_INFO *sent = &my_charset_utf8mb4_bin;
  if (thd->variables.character_set_results == nullptr && !my_charset_same(charset, sent)) {
    // The client wants the column's own bytes.
    String converted;
    uint errors = 0;
    if (converted.copy(bytes.data(), bytes.size(), sent, charset, &errors)) return true;
    return protocol->store_string(converted.ptr(), converted.length(), charset);
  }
  return protocol->store_string(bytes.data(), bytes.size(), sent);
}

/// True if the client is gone.
bool store(THD *thd, Protocol *protocol, const Target &target, const Value &value) {
  if (value.is_null) return protocol->store_null();
  switch (target.type) {
    case MYSQL_TYPE_TINY:
      return protocol->store_tiny(value.integer, target.zerofill);
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_YEAR:
      return protocol->store_short(value.integer, target.zerofill);
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
      return protocol->store_long(value.integer, target.zerofill);
    case MYSQL_TYPE_LONGLONG:
      return protocol->store_longlong(value.integer, target.is_unsigned, target.zerofill);
    case MYSQL_TYPE_FLOAT:
      return protocol->store_float(static_cast<float>(value.real), target.decimals, target.zerofill);
    case MYSQL_TYPE_DOUBLE:
      return protocol->store_double(value.real, target.decimals, target.zerofill);
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:
      return protocol->store_date(Date_val(value.time.year, value.time.month, value.time.day));
    case MYSQL_TYPE_TIME:
      return protocol->store_time(Time_val(value.time), target.decimals);
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
      return protocol->store_datetime(value.time, target.decimals);
    default:
      return store_text(thd, protocol, target, value.bytes);
  }
}

}  // namespace

std::string pair_columns(LEX *lex, const std::vector<Column> &columns, std::vector<Target> *targets) {
  targets->clear();
  for (Item *item : VisibleFields(*lex->unit->get_field_list())) {
    const size_t at = targets->size();
    if (at == columns.size()) break;
    Target target{};
    target.type = item->data_type();
    target.is_unsigned = item->unsigned_flag;
    target.decimals = item->decimals;
    target.charset = item->collation.collation;
    target.source = columns[at];
    const Item *real = item->real_item();
    if (real->type() == Item::FIELD_ITEM) {
      const Field *field = down_cast<const Item_field *>(real)->field;
      if (field != nullptr && field->is_flag_set(ZEROFILL_FLAG)) target.zerofill = field->field_length;
    }
    const std::string name = "column " + std::to_string(at + 1);
    if (target.zerofill != 0 && class_of(target.type) == Class::decimal) return name + " is a DECIMAL ZEROFILL";
    if (!agrees(target))
      return name + " is " + name_of(class_of(target.source.type)) + " at Avocet, and " +
             name_of(class_of(target.type)) + " here";
    targets->push_back(target);
  }
  const size_t count = CountVisibleFields(*lex->unit->get_field_list());
  if (count != columns.size())
    return "Avocet answers with " + std::to_string(columns.size()) + " columns instead of " + std::to_string(count);
  return {};
}

Sent send_row(THD *thd, const std::vector<Target> &targets, std::string_view row, size_t *column) {
  Protocol *protocol = thd->get_protocol();
  Reader reader(row);
  reader.integer(1);
  const std::string_view nulls = reader.string((targets.size() + 9) / 8);
  protocol->start_row();
  std::string text;
  for (size_t i = 0; i < targets.size(); ++i) {
    const size_t bit = i + 2;
    Value value;
    if (reader.is_good() && (static_cast<unsigned char>(nulls[bit / 8]) >> (bit % 8) & 1) != 0)
      value.is_null = true;
    else
      value = read(&reader, targets[i].source);
    if (!reader.is_good() || (!value.is_null && !convert(targets[i], &value, &text))) {
      protocol->abort_row();
      *column = i + 1;
      return Sent::unlike;
    }
    if (store(thd, protocol, targets[i], value)) {
      protocol->abort_row();
      return Sent::client_gone;
    }
  }
  thd->inc_sent_row_count(1);
  return protocol->end_row() ? Sent::client_gone : Sent::yes;
}

namespace {

void put_moment(std::string *out, const MYSQL_TIME &time, bool is_time) {
  std::string bytes;
  if (is_time) {
    put_integer(bytes, time.neg ? 1 : 0, 1);
    put_integer(bytes, time.hour / 24, 4);
    put_integer(bytes, time.hour % 24, 1);
  } else {
    put_integer(bytes, time.year, 2);
    put_integer(bytes, time.month, 1);
    put_integer(bytes, time.day, 1);
    put_integer(bytes, time.hour, 1);
  }
  put_integer(bytes, time.minute, 1);
  put_integer(bytes, time.second, 1);
  put_integer(bytes, time.second_part, 4);
  put_counted(*out, bytes);
}

/// A string in the character set in which the statement's text is sent.
bool put_string(const CHARSET_INFO *client, const String &text, Parameter *parameter) {
  const CHARSET_INFO *own = text.charset();
  if (own == &my_charset_bin) {
    parameter->type = MYSQL_TYPE_BLOB;
    put_counted(parameter->bytes, {text.ptr(), text.length()});
    return true;
  }
  parameter->type = MYSQL_TYPE_VAR_STRING;
  if (my_charset_same(own, client)) {
    put_counted(parameter->bytes, {text.ptr(), text.length()});
    return true;
  }
  String converted;
  uint errors = 0;
  if (converted.copy(text.ptr(), text.length(), own, client, &errors) || errors != 0) return false;
  put_counted(parameter->bytes, {converted.ptr(), converted.length()});
  return true;
}

}  // namespace

std::string bind_parameters(THD *thd, LEX *lex, std::vector<Parameter> *parameters) {
  List_iterator<Item_param> items(lex->param_list);
  for (Item_param *item = items++; item != nullptr; item = items++) {
    Parameter parameter;
    switch (item->param_state()) {
      case Item_param::NULL_VALUE:
        parameter.type = MYSQL_TYPE_NULL;
        break;
      case Item_param::INT_VALUE:
        parameter.type = MYSQL_TYPE_LONGLONG;
        parameter.is_unsigned = item->unsigned_flag;
        put_integer(parameter.bytes, static_cast<uint64_t>(item->value.integer), 8);
        break;
      case Item_param::REAL_VALUE: {
        parameter.type = MYSQL_TYPE_DOUBLE;
        uint64_t bits;
        std::memcpy(&bits, &item->value.real, sizeof bits);
        put_integer(parameter.bytes, bits, 8);
        break;
      }
      case Item_param::DECIMAL_VALUE: {
        parameter.type = MYSQL_TYPE_NEWDECIMAL;
        String text;
        my_decimal2string(E_DEC_FATAL_ERROR, &item->decimal_value, &text);
        put_counted(parameter.bytes, {text.ptr(), text.length()});
        break;
      }
      case Item_param::DATE_VALUE: {
        parameter.type = MYSQL_TYPE_DATE;
        const auto time = static_cast<MYSQL_TIME>(item->m_date);
        put_moment(&parameter.bytes, time, false);
        break;
      }
      case Item_param::TIME_VALUE: {
        parameter.type = MYSQL_TYPE_TIME;
        const auto time = static_cast<MYSQL_TIME>(item->m_time);
        put_moment(&parameter.bytes, time, true);
        break;
      }
      case Item_param::DATETIME_VALUE:
        parameter.type = MYSQL_TYPE_DATETIME;
        put_moment(&parameter.bytes, item->m_datetime, false);
        break;
      case Item_param::STRING_VALUE:
      case Item_param::LONG_DATA_VALUE: {
        String buffer;
        const String *text = item->val_str(&buffer);
        if (text == nullptr || !put_string(thd->variables.character_set_client, *text, &parameter))
          return "a parameter is not in the character set of the client";
        break;
      }
      default:
        return "a parameter has no value";
    }
    parameters->push_back(std::move(parameter));
  }
  return {};
}

}  // namespace avocet
