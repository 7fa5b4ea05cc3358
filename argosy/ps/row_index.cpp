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

RowIndex::Piece RowIndex::piece(uint64_t begin, size_t place) const {
  Piece found;
  if (place < slots_.size()) {  // the least number that belongs there
    const unsigned __int128 scaled = static_cast<unsigned __int128>(place) << 64U;
    const auto end = static_cast<uint64_t>((scaled + slots_.size() - 1) / slots_.size());
    found.end = std::max(begin, end);
  }
  // What belongs below `place` may lie above, but before the next free slot.
  const size_t first = home_of(begin);
  size_t at = first;
  for (size_t behind = 0; behind < slots_.size(); ++behind, at = after(at)) {
    if (slots_[at].is_free()) {
      if (first + behind >= place) {
        break;
      }
    } else {
      const uint64_t mix = mixed(slots_[at].id());
      if (mix >= begin && (!found.end || mix < *found.end)) {
        found.slots.push_back(&slots_[at]);
      }
    }
  }
  return found;
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
