// SPDX-License-Identifier: GPL-2.0-only
// Tables of the engine AVOCET, as the optimizer sees them: InnoDB's statistics, and no access. Rows never pass through a handler.

#ifndef AVOCET_HA_AVOCET_H
#define AVOCET_HA_AVOCET_H

#include "my_config.h"

#include "my_base.h"
#include "sql/handler.h"
#include "sql/partitioning/partition_handler.h"

namespace dd {
class Table;
}

namespace avocet {

/// Partitions are InnoDB's; Avocet follows the table as a whole.
class Partitions : public Partition_handler {
 public:
  explicit Partitions(const handler *owner) : owner_(owner) {}
  void get_dynamic_partition_info(ha_statistics *stats, ha_checksum *checksum, uint part) override;
  void set_part_info(partition_info *, bool) override {}
  enum row_type get_partition_row_type(const dd::Table *, uint) override { return ROW_TYPE_NOT_USED; }

 private:
  const handler *owner_;
};

class ha_avocet : public handler {
 public:
  ha_avocet(handlerton *hton, TABLE_SHARE *share) : handler(hton, share), partitions_(this) {}

  const char *table_type() const override { return "AVOCET"; }
  Table_flags table_flags() const override { return HA_NO_INDEX_ACCESS; }
  Partition_handler *get_partition_handler() override { return &partitions_; }

  /// Fails unless the table was loaded: the data dictionary knows, also after a restart.
  int open(const char *name, int mode, uint test_if_locked, const dd::Table *definition) override;
  int close() override { return 0; }

  int info(uint flag) override;
  ha_rows records_in_range(uint index, key_range *from, key_range *to) override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;

  /// Nothing is locked here: a statement's metadata locks are all that it needs.
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *, THR_LOCK_DATA **to, thr_lock_type) override { return to; }
  int external_lock(THD *, int) override { return 0; }

  int create(const char *, TABLE *, HA_CREATE_INFO *, dd::Table *) override { return HA_ERR_WRONG_COMMAND; }
  int rnd_init(bool) override { return HA_ERR_WRONG_COMMAND; }
  int rnd_next(uchar *) override { return HA_ERR_WRONG_COMMAND; }
  int rnd_pos(uchar *, uchar *) override { return HA_ERR_WRONG_COMMAND; }
  void position(const uchar *) override {}

  /// SECONDARY_LOAD: Avocet copies by itself; this waits until it has the table.
  int load_table(const TABLE &table, bool *skip_metadata_update) override;
  /// SECONDARY_UNLOAD, and DDL: nothing is kept for a table here.
  int unload_table(const char *, const char *, bool) override { return 0; }

 private:
  Partitions partitions_;
};

}  // namespace avocet

#endif
