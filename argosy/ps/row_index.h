#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "argosy/ps/first_row.h"

namespace argosy::ps {

/// Where the row of each id lies: a hash table with open addressing, 12 bytes a slot. Not
/// thread-safe, but that several threads may call find() at once.
class RowIndex final {
 public:
  static constexpr uint32_t kMostRows = uint32_t{1} << 31;

  /// An id, and where its row is: in memory, on disk, or nowhere yet.
  class Slot {
   public:
    Slot() = default;
    /// One that waits for its row.
    explicit Slot(uint64_t id)
        : low_(static_cast<uint32_t>(id)),
          high_(static_cast<uint32_t>(id >> 32U)),
          where_(kWaits) {}

    [[nodiscard]] uint64_t id() const { return uint64_t{high_} << 32U | low_; }
    [[nodiscard]] bool is_free() const { return where_ == kFree; }
    [[nodiscard]] bool is_in_memory() const { return where_ < kWaits; }
    [[nodiscard]] bool is_on_disk() const { return where_ == kOnDisk; }
    [[nodiscard]] bool waits() const { return where_ >= kWaits && where_ < kOnDisk; }
    /// Of one in memory.
    [[nodiscard]] uint32_t row() const { return where_; }
    /// Of one that waits: see Entry.
    [[nodiscard]] uint32_t sights() const { return where_ - kWaits; }

    void set_row(uint32_t row) { where_ = row; }
    /// At most Entry::kMostSights.
    void set_sights(uint32_t sights) { where_ = kWaits + sights; }
    void set_on_disk() { where_ = kOnDisk; }

   private:
    static constexpr uint32_t kWaits = kMostRows;  ///< and those above it
    static constexpr uint32_t kOnDisk = 0xfffffffe;
    static constexpr uint32_t kFree = 0xffffffff;
    uint32_t low_ = 0;
    uint32_t high_ = 0;
    uint32_t where_ = kFree;
  };

  RowIndex() : slots_(kFewest) {}

  /// Returns nullptr when the id is not known.
  [[nodiscard]] const Slot* find(uint64_t id) const;
  [[nodiscard]] Slot* find(uint64_t id) {
    return const_cast<Slot*>(std::as_const(*this).find(id));  // NOLINT: of this object
  }
  /// Returns the id's slot; one that is new waits, with no sights. Valid until the next add() or
  /// erase().
  [[nodiscard]] Slot& add(uint64_t id);
  void erase(uint64_t id);
  /// Brings the id's slot into the cache.
  void prefetch(uint64_t id) const { __builtin_prefetch(&slots_[home(id)]); }

  /// True when a new id moves the slots: at most 0.8 of them are taken.
  [[nodiscard]] bool is_full() const { return 5 * (size_ + 1) > 4 * slots_.size(); }
  /// Slots by their places; nullptr for a free one.
  [[nodiscard]] size_t places() const { return slots_.size(); }
  [[nodiscard]] const Slot* at(size_t place) const {
    return slots_[place].is_free() ? nullptr : &slots_[place];
  }
  [[nodiscard]] Slot* at(size_t place) {
    return slots_[place].is_free() ? nullptr : &slots_[place];
  }

  /// The slots of the ids whose mixed() is from some number on and below another: an order that
  /// stays when slots move.
  struct Piece {
    std::vector<const Slot*> slots{};  ///< valid until the next add() or erase()
    std::optional<uint64_t> end{};     ///< nullopt: there are none above
  };
  /// Returns those from `begin` on, up to what has its place at `place` or later.
  [[nodiscard]] Piece piece(uint64_t begin, size_t place) const;
  /// Returns the place where one with that mixed() would lie, were it free.
  [[nodiscard]] size_t home_of(uint64_t mix) const {
    return static_cast<size_t>((static_cast<unsigned __int128>(mix) * slots_.size()) >> 64U);
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t bytes() const { return slots_.capacity() * sizeof(Slot); }
  template <typename Visit>
  void for_each(Visit visit) {
    for (Slot& slot : slots_) {
      if (!slot.is_free()) {
        visit(slot);
      }
    }
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (!slot.is_free()) {
        visit(slot);
      }
    }
  }

 private:
  static constexpr size_t kFewest = 16;

  [[nodiscard]] size_t home(uint64_t id) const { return home_of(mixed(id)); }
  [[nodiscard]] size_t after(size_t place) const {
    return place + 1 == slots_.size() ? 0 : place + 1;
  }
  [[nodiscard]] size_t place_of(uint64_t id) const;
  void grow();

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace argosy::ps
