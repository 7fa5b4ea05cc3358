#pragma once

#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace argosy::ps {

/// A push, a pull or upkeep of a partition, as it is recorded: 16 bytes.
struct OrderEntry {
  enum class Kind : uint32_t { kPush = 1, kPull = 2, kEnd = 3, kUpkeep = 4 };
  Kind kind = Kind::kEnd;
  uint32_t worker = 0;
  uint64_t number = 0;  ///< of the worker's pushes, or of its pulls; upkeep has that of the push
                        ///< that follows
  [[nodiscard]] bool is_change() const { return kind == Kind::kPush || kind == Kind::kUpkeep; }
  friend bool operator==(const OrderEntry&, const OrderEntry&) = default;
};

/// Of what run a record is.
struct OrderOf {
  int partition = 0;
  int partitions = 1;
  int workers = 1;
  uint64_t tables = 0;  ///< TableSet::fingerprint()
};

/// Writes in which order a partition took pushes and answered pulls. Thread-safe: pushes are noted
/// alone, pulls between the same two pushes in any order.
class OrderRecord final {
 public:
  /// Begins a file in `folder`, which is made. Errors: ConfigError naming the file.
  OrderRecord(const std::string& folder, const OrderOf& of);
  ~OrderRecord();  ///< says that the record is whole
  OrderRecord(const OrderRecord&) = delete;
  OrderRecord& operator=(const OrderRecord&) = delete;
  OrderRecord(OrderRecord&&) = delete;
  OrderRecord& operator=(OrderRecord&&) = delete;

  void note(const OrderEntry& entry);

 private:
  const std::string path_;
  std::mutex mutex_;
  std::ofstream file_;
};

/// Says what comes next in a run that repeats a recorded one. Not thread-safe.
class OrderReplay final {
 public:
  /// Errors: ConfigError when there is no record, or one of another run.
  OrderReplay(const std::string& folder, const OrderOf& of);

  /// Errors: UsageError for what this worker did not do here in the recorded run.
  void check(const OrderEntry& entry);
  /// True if it is its turn. The pulls between two pushes may come in any order.
  [[nodiscard]] bool is_next(const OrderEntry& entry) const;
  /// Takes one that is next.
  void take(const OrderEntry& entry);
  [[nodiscard]] bool is_over() const { return next_ == all_.size(); }

 private:
  [[nodiscard]] size_t place_of(const OrderEntry& entry) const;

  const std::string path_;
  std::vector<OrderEntry> all_{};
  std::vector<std::vector<OrderEntry>> of_worker_{};
  std::vector<size_t> checked_{};  ///< of each worker
  size_t next_ = 0;
};

}  // namespace argosy::ps
