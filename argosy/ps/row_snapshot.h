#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "argosy/base/mix.h"

namespace argosy::ps {

/// The rows of a table as they are saved.
struct SavedRows {
  std::vector<uint64_t> ids{};      ///< ascending
  std::vector<float> weights{};     ///< [n, dim]
  std::vector<float> state{};       ///< [n, state_size]: the rule's, then shows, clicks and day
  std::vector<uint64_t> waiting{};  ///< ids without a row yet, ascending: see Entry
  std::vector<uint32_t> sights{};   ///< of each of them
  std::vector<int32_t> day{};       ///< [1], see RowTable::set_day(); empty: 0
  auto fields() { return std::tie(ids, weights, state, waiting, sights, day); }
};

/// Calls `visit` with parts of them of at most so many bytes, or of one row and one waiting id.
/// Without any rows it is called once, with the day.
void for_each_part(const SavedRows& all,
                   size_t bytes,
                   const std::function<void(const SavedRows&)>& visit);

/// Copies the rows of a table as they are at one moment, a few at a time, while others change them.
/// Whoever changes an id that has not been copied says first what it was. Not thread-safe.
class RowSnapshot final {
 public:
  RowSnapshot(size_t dim, size_t state_size, int32_t day) : dim_(dim), state_size_(state_size) {
    copy_.day = {day};
  }

  // Before a change; only the first counts. `row`: [dim + state_size].
  void keep_absent(uint64_t id) { (void)kept_.try_emplace(id); }
  void keep_waiting(uint64_t id, uint32_t sights);
  void keep_row(uint64_t id, const float* row);

  // What the table has for an id now.
  void copy_waiting(uint64_t id, uint32_t sights);
  void copy_row(uint64_t id, const float* row);

  /// True when the id has been copied.
  [[nodiscard]] bool has(uint64_t id) const { return !next || mixed(id) < *next; }
  /// From which mixed() of an id on nothing has been copied; nullopt: all is.
  std::optional<uint64_t> next = 0;
  /// Returns all, by id.
  [[nodiscard]] SavedRows take();

 private:
  struct Before {
    enum class Kind : uint8_t { kAbsent, kWaiting, kRow } kind = Kind::kAbsent;
    uint32_t sights = 0;
    std::vector<float> row{};
  };
  /// Adds what the id was, if somebody has said it.
  bool copy_kept(uint64_t id);
  void add_waiting(uint64_t id, uint32_t sights);
  void add_row(uint64_t id, std::span<const float> row);

  const size_t dim_;
  const size_t state_size_;
  std::unordered_map<uint64_t, Before> kept_{};
  SavedRows copy_{};
};

}  // namespace argosy::ps
