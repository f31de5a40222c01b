// SPDX-License-Identifier: GPL-2.0-only

#include "ha_avocet.h"

#include "my_sys.h"
#include "mysqld_error.h"
#include "sql/current_thd.h"
#include "sql/dd/properties.h"
#include "sql/dd/types/table.h"
#include "sql/sql_class.h"
#include "sql/table.h"

#include "offload.h"

namespace avocet {

void Partitions::get_dynamic_partition_info(ha_statistics *stats, ha_checksum *checksum, uint part) {
  owner_->ha_get_primary_handler()->get_partition_handler()->get_dynamic_partition_info(stats, checksum, part);
}

int ha_avocet::open(const char *, int, uint, const dd::Table *definition) {
  bool is_loaded = false;
  if (definition == nullptr || !definition->options().exists("secondary_load") ||
      definition->options().get("secondary_load", &is_loaded) || !is_loaded) {
    const std::string text = "table " + std::string(table_share->db.str) + "." + table_share->table_name.str +
                             " is not loaded: ALTER TABLE … SECONDARY_LOAD";
    my_error(ER_SECONDARY_ENGINE_PLUGIN, MYF(0), text.c_str());
    return HA_ERR_GENERIC;
  }
  return 0;
}

int ha_avocet::info(uint flag) {
  handler *primary = ha_get_primary_handler();
  if (primary == nullptr) return 0;
  const int error = primary->info(flag);
  if (error == 0) stats.records = primary->stats.records;
  return error;
}

ha_rows ha_avocet::records_in_range(uint index, key_range *from, key_range *to) {
  return ha_get_primary_handler()->records_in_range(index, from, to);
}

ulong ha_avocet::index_flags(uint index, uint part, bool all_parts) const {
  // Enough for estimates of ranges.
  const handler *primary = ha_get_primary_handler();
  if (primary == nullptr) return 0;
  return primary->index_flags(index, part, all_parts) & (HA_READ_RANGE | HA_KEY_SCAN_NOT_ROR);
}

int ha_avocet::load_table(const TABLE &table, bool *) {
  THD *thd = current_thd;
  const std::string reason = await_table(thd, table.s->db.str, table.s->table_name.str);
  if (thd->is_killed() != 0) {
    thd->send_kill_message();
    return HA_ERR_QUERY_INTERRUPTED;
  }
  if (reason.empty()) return 0;
  my_error(ER_SECONDARY_ENGINE_PLUGIN, MYF(0), reason.c_str());
  return HA_ERR_GENERIC;
}

}  // namespace avocet
