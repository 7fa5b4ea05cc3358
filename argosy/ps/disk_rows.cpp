#include "argosy/ps/disk_rows.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdarg>
#include <cstring>
#include <vector>

#include "argosy/ps/spill_folder.h"

namespace argosy::ps {
namespace {

/// Rows that are read at once: the blocks in which they lie stay in memory as long.
constexpr size_t kReadAtOnce = 128;
constexpr size_t kLeastMemtable = size_t{64} << 10;
constexpr size_t kMostMemtable = size_t{64} << 20;

/// Table and id with the high bytes first, so that a table's rows lie together.
class RowKey final {
 public:
  RowKey() = default;
  RowKey(uint32_t table, uint64_t id) {
    static_assert(std::endian::native == std::endian::little);
    const uint32_t high = __builtin_bswap32(table);
    const uint64_t low = __builtin_bswap64(id);
    std::memcpy(bytes_.data(), &high, sizeof(high));
    std::memcpy(bytes_.data() + sizeof(high), &low, sizeof(low));
  }
  [[nodiscard]] rocksdb::Slice slice() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, sizeof(uint32_t) + sizeof(uint64_t)> bytes_{};
};

/// In place of RocksDB's file, which a full disk does not take: Debian's build aborts then.
class DiskLog final : public rocksdb::Logger {
 public:
  DiskLog() : rocksdb::Logger(rocksdb::ERROR_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}  // errors come by Status
};

rocksdb::Options options_with(size_t cache_bytes) {
  rocksdb::Options options;
  options.info_log = std::make_shared<DiskLog>();
  options.manifest_preallocation_size = size_t{64} << 10;
  options.allow_fallocate = false;
  options.create_if_missing = true;
  options.error_if_exists = true;
  // What waits to be written is counted in the cache.
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(cache_bytes);
  options.write_buffer_size = std::clamp(cache_bytes / 6, kLeastMemtable, kMostMemtable);
  options.max_write_buffer_number = 3;
  options.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(cache_bytes / 2, cache);
  // Weights look like noise: nothing compresses them.
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  // Only what is there is asked for, so the last level, with most rows, needs no filter.
  options.optimize_filters_for_hits = true;
  options.max_open_files = 256;
  options.avoid_flush_during_shutdown = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::WriteOptions without_log() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

}  // namespace

struct DiskRows::Impl {
  explicit Impl(const std::string& directory) : folder(directory) {}

  /// After an error for want of space it fails until RocksDB sees, every five seconds, that there
  /// is some again. What was written before stays readable.
  [[nodiscard]] rocksdb::Status write(rocksdb::WriteBatch& batch) const {
    return db->Write(without_log(), &batch);
  }

  SpillFolder folder;
  std::unique_ptr<rocksdb::DB> db{};
  std::atomic<uint32_t> tables = 0;
};

DiskRows::DiskRows(const std::string& directory, size_t cache_bytes)
    : impl_(std::make_unique<Impl>(directory)) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options_with(cache_bytes), folder(), &db);
  if (!status.ok()) {
    throw DiskError(folder(), "begin to keep rows", status.ToString());
  }
  impl_->db.reset(db);
}

DiskRows::~DiskRows() {
  if (impl_->db != nullptr) {
    rocksdb::CancelAllBackgroundWork(impl_->db.get(), /*wait=*/true);
  }
}

const std::string& DiskRows::folder() const {
  return impl_->folder.path();
}

uint32_t DiskRows::add_table() {
  return impl_->tables++;
}

void DiskRows::remove_table(uint32_t table) {
  rocksdb::WriteBatch batch;
  batch.DeleteRange(RowKey(table, 0).slice(), RowKey(table + 1, 0).slice());
  (void)impl_->write(batch);  // what stays takes space until this process ends
}

void DiskRows::put(uint32_t table,
                   std::span<const uint64_t> ids,
                   const std::function<std::span<const float>(size_t i)>& row,
                   uint32_t stamp) {
  rocksdb::WriteBatch batch;
  for (size_t i = 0; i < ids.size(); ++i) {
    const RowKey key(table, ids[i]);
    const rocksdb::Slice id = key.slice();
    const std::span<const float> floats = row(i);
    const std::array<rocksdb::Slice, 2> value{
        rocksdb::Slice(reinterpret_cast<const char*>(floats.data()), floats.size_bytes()),
        rocksdb::Slice(reinterpret_cast<const char*>(&stamp), sizeof(stamp))};
    batch.Put(rocksdb::SliceParts(&id, 1), rocksdb::SliceParts(value.data(), value.size()));
  }
  if (const rocksdb::Status status = impl_->write(batch); !status.ok()) {
    throw DiskError(
        folder(),
        fmt::format("write {} rows of {} bytes together", ids.size(), batch.GetDataSize()),
        status.ToString());
  }
}

void DiskRows::get(uint32_t table, std::span<const uint64_t> ids, const Visit& visit) const {
  const size_t most = std::min(ids.size(), kReadAtOnce);
  std::vector<RowKey> keys(most);
  std::vector<rocksdb::Slice> slices(most);
  std::vector<rocksdb::PinnableSlice> values(most);
  std::vector<rocksdb::Status> statuses(most);
  std::vector<float> row;
  for (size_t begin = 0; begin < ids.size(); begin += most) {
    const size_t count = std::min(most, ids.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      keys[i] = RowKey(table, ids[begin + i]);
      slices[i] = keys[i].slice();
      values[i].Reset();
    }
    impl_->db->MultiGet(rocksdb::ReadOptions(),
                        impl_->db->DefaultColumnFamily(),
                        count,
                        slices.data(),
                        values.data(),
                        statuses.data());
    for (size_t i = 0; i < count; ++i) {
      if (!statuses[i].ok() || values[i].size() < sizeof(uint32_t)) {
        throw DiskError(folder(),
                        fmt::format("read the row of id {}", ids[begin + i]),
                        statuses[i].ToString(),
                        DiskError::kResume);
      }
      const size_t bytes = values[i].size() - sizeof(uint32_t);
      row.resize(bytes / sizeof(float));  // where it lies its floats are not aligned
      uint32_t stamp = 0;
      std::memcpy(row.data(), values[i].data(), bytes);
      std::memcpy(&stamp, values[i].data() + bytes, sizeof(stamp));
      visit(begin + i, row, stamp);
    }
  }
}

void DiskRows::erase(uint32_t table, std::span<const uint64_t> ids) {
  rocksdb::WriteBatch batch;
  for (const uint64_t id : ids) {
    batch.Delete(RowKey(table, id).slice());
  }
  (void)impl_->write(batch);
}

}  // namespace argosy::ps
