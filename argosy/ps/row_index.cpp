#include "argosy/ps/row_index.h"

#include <algorithm>
#include <utility>

namespace argosy::ps {

/// Returns the slot of the id, or the free one where it would be.
size_t RowIndex::place_of(uint64_t id) const {
  size_t place = home(id);
  while (!slots_[place].is_free() && slots_[place].id() != id) {
    place = after(place);
  }
  return place;
}

const RowIndex::Slot* RowIndex::find(uint64_t id) const {
  const Slot& slot = slots_[place_of(id)];
  return slot.is_free() ? nullptr : &slot;
}

RowIndex::Slot& RowIndex::add(uint64_t id) {
  size_t place = place_of(id);
  if (slots_[place].is_free()) {
    if (is_full()) {
      grow();
      place = place_of(id);
    }
    slots_[place] = Slot(id);
    ++size_;
  }
  return slots_[place];
}

/// By a quarter, so that a table right after it has at most 19 bytes a row here.
void RowIndex::grow() {
  std::vector<Slot> before(std::max(kFewest, slots_.size() + slots_.size() / 4));
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (!slot.is_free()) {
      slots_[place_of(slot.id())] = slot;
    }
  }
}

/// The slots behind it move up, so that no search meets a hole.
void RowIndex::erase(uint64_t id) {
  size_t hole = place_of(id);
  if (slots_[hole].is_free()) {
    return;
  }
  const auto distance = [&](size_t from, size_t to) {
    return to >= from ? to - from : to + slots_.size() - from;
  };
  for (size_t place = after(hole); !slots_[place].is_free(); place = after(place)) {
    if (distance(home(slots_[place].id()), place) >= distance(hole, place)) {
      slots_[hole] = slots_[place];
      hole = place;
    }
  }
  slots_[hole] = {};
  --size_;
}

}  // namespace argosy::ps
