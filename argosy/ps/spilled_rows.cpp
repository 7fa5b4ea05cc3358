#include "argosy/ps/spilled_rows.h"

#include <algorithm>
#include <utility>

namespace argosy::ps {
namespace {

/// Rows that are written at once, and whose copy waits for it in memory.
constexpr size_t kWrittenAtOnce = 4096;

}  // namespace

SpilledRows::SpilledRows(std::shared_ptr<SpillPart> part)
    : part_(std::move(part)), table_(part_->disk().add_table()) {}

SpilledRows::~SpilledRows() {
  part_->count(-counted_rows_, -counted_others_);
  if (size_ > 0) {
    part_->disk().remove_table(table_);
  }
}

std::vector<RowIndex::Slot*> SpilledRows::choose(size_t most, RowIndex& index) {
  std::vector<RowIndex::Slot*> chosen;
  for (size_t looked = 0; looked < index.places() && chosen.size() < most; ++looked) {
    hand_ = hand_ + 1 < index.places() ? hand_ + 1 : 0;
    RowIndex::Slot* const slot = index.at(hand_);
    if (slot == nullptr || !slot->is_in_memory()) {
      continue;
    }
    if (slot->row() < used_.size() && used_[slot->row()]) {
      used_[slot->row()] = false;
    } else {
      chosen.push_back(slot);
    }
  }
  return chosen;
}

void SpilledRows::evict(size_t wanted, RowIndex& index, RowMemory& memory, uint32_t stamp) {
  // The first round takes the marks away, so the second finds a row where there is one.
  for (int fruitless = 0; wanted > 0 && fruitless < 2;) {
    const std::vector<RowIndex::Slot*> slots = choose(std::min(wanted, kWrittenAtOnce), index);
    if (slots.empty()) {
      ++fruitless;
      continue;
    }
    std::vector<uint64_t> ids;
    for (const RowIndex::Slot* const slot : slots) {
      ids.push_back(slot->id());
    }
    part_->disk().put(
        table_,
        ids,
        [&](size_t i) {
          return std::span<const float>(memory.at(slots[i]->row()), memory.stride());
        },
        stamp);
    for (RowIndex::Slot* const slot : slots) {
      memory.give_back(slot->row());
      slot->set_on_disk();
    }
    size_ += slots.size();
    wanted -= slots.size();
  }
}

void SpilledRows::read(std::span<const uint64_t> ids, const DiskRows::Visit& visit) const {
  part_->disk().get(table_, ids, visit);
}

void SpilledRows::drop(std::span<const uint64_t> ids) {
  part_->disk().erase(table_, ids);
  size_ -= ids.size();
}

void SpilledRows::count(const RowIndex& index, const RowMemory& memory) {
  const auto rows = static_cast<ptrdiff_t>(memory.taken() * memory.row_bytes());
  const auto others = static_cast<ptrdiff_t>(index.bytes());
  part_->count(rows - std::exchange(counted_rows_, rows),
               others - std::exchange(counted_others_, others));
}

}  // namespace argosy::ps
