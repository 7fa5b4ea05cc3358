#include "argosy/ps/row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/ps/copy_row.h"
#include "argosy/ps/first_row.h"

namespace argosy::ps {
namespace {

/// Ids whose slots, then rows, are on their way from memory at once.
constexpr size_t kWave = 32;
/// Slots of which a copy of all is made at once, and how many take the time of one read from disk.
constexpr size_t kSlotsOfAPiece = 65536;
constexpr size_t kSlotsOfARead = 16;

SparseOptions checked(SparseOptions options) {
  ARGOSY_CHECK(options.dim > 0, "ps.table", "table \"{}\": dim must be 1 or more", options.name);
  ARGOSY_CHECK(options.rule != nullptr, "ps.table", "table \"{}\" has no rule", options.name);
  ARGOSY_CHECK(options.initial_range >= 0,
               "ps.table",
               "table \"{}\": initial_range must be 0 or more, got {}",
               options.name,
               options.initial_range);
  return options;
}

}  // namespace

RowTable::RowTable(SparseOptions options, std::shared_ptr<SpillPart> spill)
    : options_(checked(std::move(options))),
      stride_(options_.dim + options_.rule->state_size(options_.dim) +
              (options_.statistics ? kStatistics : 0)),
      memory_(stride_),
      spilled_(spill == nullptr ? nullptr : std::make_unique<SpilledRows>(std::move(spill))) {}

void RowTable::pull(std::span<const uint64_t> ids, std::span<float> out) const {
  ARGOSY_CHECK(out.size() == ids.size() * options_.dim,
               "ps.table",
               "table \"{}\": expected {} floats for {} rows, got {}",
               options_.name,
               ids.size() * options_.dim,
               ids.size(),
               out.size());
  std::array<const RowIndex::Slot*, kWave> slots{};
  std::vector<uint64_t> on_disk;
  std::vector<float*> to_of;
  for (size_t begin = 0; begin < ids.size(); begin += kWave) {
    const size_t count = std::min(kWave, ids.size() - begin);
    for (size_t i = begin + count; i < std::min(begin + 2 * kWave, ids.size()); ++i) {
      index_.prefetch(ids[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      slots[i] = index_.find(ids[begin + i]);
      if (slots[i] != nullptr && slots[i]->is_in_memory()) {
        memory_.prefetch(slots[i]->row());
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const std::span<float> to = out.subspan((begin + i) * options_.dim, options_.dim);
      if (slots[i] != nullptr && slots[i]->is_in_memory()) {
        copy_row(to.data(), memory_.at(slots[i]->row()), options_.dim);
      } else if (slots[i] != nullptr && slots[i]->is_on_disk()) {
        on_disk.push_back(ids[begin + i]);
        to_of.push_back(to.data());
      } else if (options_.entry.waits()) {
        std::ranges::fill(to, 0.0F);
      } else {
        draw_first_row(options_.seed, ids[begin + i], options_.initial_range, to);
      }
    }
  }
  if (!on_disk.empty()) {
    spilled_->read(on_disk, [&](size_t i, std::span<float> row, uint32_t /*shrinks*/) {
      copy_row(to_of[i], row.data(), options_.dim);
    });
  }
}

void RowTable::push(const RowPush& push) {
  const size_t n = push.ids.size();
  ARGOSY_CHECK(push.gradients.size() == n * options_.dim &&
                   (push.shows.empty() || push.shows.size() == n) &&
                   (push.clicks.empty() || push.clicks.size() == n),
               "ps.table",
               "table \"{}\": expected gradients of [{}, {}], got {} floats with {} shows and {} "
               "clicks",
               options_.name,
               n,
               options_.dim,
               push.gradients.size(),
               push.shows.size(),
               push.clicks.size());
  std::array<std::pair<uint32_t, size_t>, kWave> rows{};
  std::array<RowUpdate, kWave> updates{};
  for (size_t begin = 0; begin < n; begin += kWave) {
    const size_t count = std::min(kWave, n - begin);
    for (size_t i = begin + count; i < std::min(begin + 2 * kWave, n); ++i) {
      index_.prefetch(push.ids[i]);
    }
    size_t found = 0;
    for (size_t i = begin; i < begin + count; ++i) {
      const float shows = push.shows.empty() ? 1.0F : push.shows[i];
      const float clicks = push.clicks.empty() ? 0.0F : push.clicks[i];
      if (const auto row = row_for({options_.seed, push.ids[i], shows, clicks})) {
        memory_.prefetch(*row);
        rows[found++] = {*row, i};
        if (options_.statistics) {
          note(*row, shows, clicks);
        }
      }
    }
    for (size_t i = 0; i < found; ++i) {  // the memory may have moved before
      const auto [row, place] = rows[i];
      updates[i] = {.weights = memory_.at(row),
                    .state = state_at(row),
                    .gradient = push.gradients.data() + place * options_.dim,
                    .shows = push.shows.empty() ? 1.0F : push.shows[place]};
    }
    options_.rule->update(std::span(updates).first(found), options_.dim, push.lr);
  }
  count_bytes();
}

void RowTable::set(std::span<const uint64_t> ids, std::span<const float> weights) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (const auto row = row_for({options_.seed, ids[i]})) {
      copy_row(memory_.at(*row), &weights[i * options_.dim], options_.dim);
    }
  }
}

void RowTable::add(std::span<const uint64_t> ids, std::span<const float> differences) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (const auto row = row_for({options_.seed, ids[i]})) {
      float* const weights = memory_.at(*row);
      for (size_t d = 0; d < options_.dim; ++d) {
        weights[d] += differences[i * options_.dim + d];
      }
      if (options_.statistics) {
        note(*row, 1, 0);
      }
    }
  }
  count_bytes();
}

void RowTable::bring_back(std::span<const uint64_t> ids) {
  if (spilled_ == nullptr) {
    return;
  }
  to_drop_.reset();  // a plan is of rows on disk, and of the push that comes next
  std::vector<uint64_t> on_disk;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kWave < ids.size()) {
      index_.prefetch(ids[i + kWave]);
    }
    const RowIndex::Slot* const slot = index_.find(ids[i]);
    if (slot != nullptr && slot->is_on_disk()) {
      on_disk.push_back(ids[i]);
    }
  }
  std::ranges::sort(on_disk);  // several workers may push to one id
  on_disk.erase(std::unique(on_disk.begin(), on_disk.end()), on_disk.end());
  read_spilled(on_disk, [&](size_t i, std::span<float> row) {
    const uint32_t here = take_row();
    std::ranges::copy(row, memory_.at(here));
    index_.find(on_disk[i])->set_row(here);
    spilled_->came_back();
  });
  count_bytes();
}

void RowTable::make_room(double share) {
  if (spilled_ == nullptr || share <= 0) {
    return;
  }
  to_drop_.reset();
  const auto wanted = std::ceil(share * static_cast<double>(memory_.taken()));
  spilled_->evict(static_cast<size_t>(wanted), index_, memory_, shrinks_);
  if (memory_.is_loose()) {
    memory_.close_up([this](const auto& visit) {
      index_.for_each([&](RowIndex::Slot& slot) {
        if (slot.is_in_memory()) {
          uint32_t row = slot.row();
          visit(row);
          slot.set_row(row);
        }
      });
    });
  }
  count_bytes();
}

void RowTable::read_spilled(
    std::span<const uint64_t> ids,
    const std::function<void(size_t i, std::span<float> row)>& visit) const {
  if (ids.empty()) {
    return;
  }
  spilled_->read(ids, [&](size_t i, std::span<float> row, uint32_t shrinks) {
    for (; options_.statistics && shrinks != shrinks_; ++shrinks) {
      decay(statistics_of(row.data()));
    }
    visit(i, row);
  });
}

size_t RowTable::count_on_disk(std::span<const uint64_t> ids) const {
  return static_cast<size_t>(std::ranges::count_if(ids, [&](uint64_t id) {
    const RowIndex::Slot* const slot = index_.find(id);
    return slot != nullptr && slot->is_on_disk();
  }));
}

void RowTable::count_bytes() {
  if (spilled_ != nullptr) {
    spilled_->count(index_, memory_);
  }
}

std::optional<uint32_t> RowTable::row_for(const Entry::Push& push) {
  RowIndex::Slot& slot = slot_for(push.id);
  if (slot.waits()) {
    uint32_t sights = slot.sights();
    if (!options_.entry.admits(push, sights)) {
      slot.set_sights(sights);
      return std::nullopt;
    }
    slot.set_row(make_row(push.id));
  }
  if (spilled_ != nullptr) {
    spilled_->use(slot.row());
  }
  return slot.row();
}

RowIndex::Slot& RowTable::slot_for(uint64_t id) {
  const size_t known = index_.size();
  RowIndex::Slot& slot = index_.add(id);
  if (slot.is_on_disk()) {
    bring_back({&id, 1});
  }
  for (const std::unique_ptr<RowSnapshot>& copy : copies_) {
    if (copy->has(id)) {
      continue;
    }
    if (index_.size() > known) {
      copy->keep_absent(id);
    } else if (slot.waits()) {
      copy->keep_waiting(id, slot.sights());
    } else {
      copy->keep_row(id, memory_.at(slot.row()));
    }
  }
  return slot;
}

uint32_t RowTable::take_row() {
  ARGOSY_CHECK(memory_.taken() < RowIndex::kMostRows,
               "ps.table",
               "table \"{}\" has {} rows in one shard: more than it can number",
               options_.name,
               memory_.taken());
  const Result<uint32_t> taken = memory_.take();
  if (!taken.ok()) {
    throw Error("ps.table",
                fmt::format("table \"{}\": no memory for row {}: {}",
                            options_.name,
                            memory_.taken() + 1,
                            taken.failure().what));
  }
  return *taken;
}

uint32_t RowTable::make_row(uint64_t id) {
  const uint32_t row = take_row();
  draw_first_row(options_.seed, id, options_.initial_range, {memory_.at(row), options_.dim});
  std::span<float> state(state_at(row), state_size());
  options_.rule->begin(state.first(options_.rule->state_size(options_.dim)));
  if (options_.statistics) {
    std::ranges::fill(state.last(kStatistics), 0.0F);
  }
  return row;
}

void RowTable::note(uint32_t row, float shows, float clicks) {
  float* const kept = statistics_of(memory_.at(row));
  kept[0] += shows;
  kept[1] += clicks;
  kept[2] = static_cast<float>(day_);
}

size_t RowTable::bytes() const {
  return memory_.bytes() + index_.bytes();
}

void RowTable::plan_shrink() {
  to_drop_.reset();
  copy_the_rest();
  std::vector<uint64_t> on_disk;
  index_.for_each([&](const RowIndex::Slot& slot) {
    if (slot.is_on_disk()) {
      on_disk.push_back(slot.id());
    }
  });
  std::vector<uint64_t> dropped;
  read_spilled(on_disk, [&](size_t i, std::span<float> row) {
    decay(statistics_of(row.data()));  // of a copy: see shrinks_
    if (is_over(statistics_of(row.data()))) {
      dropped.push_back(on_disk[i]);
    }
  });
  to_drop_ = std::move(dropped);
}

size_t RowTable::shrink() {
  ARGOSY_CHECK(options_.statistics,
               "ps.shrink",
               "table \"{}\" keeps no shows and clicks: set SparseOptions::statistics",
               options_.name);
  if (!to_drop_) {
    plan_shrink();
  }
  std::vector<uint64_t> dropped = *std::exchange(to_drop_, std::nullopt);
  if (!dropped.empty()) {
    spilled_->drop(dropped);
  }
  ++shrinks_;
  index_.for_each([&](const RowIndex::Slot& slot) {
    if (slot.is_in_memory()) {
      decay(statistics_of(memory_.at(slot.row())));
      if (is_over(statistics_of(memory_.at(slot.row())))) {
        dropped.push_back(slot.id());
      }
    }
  });
  std::ranges::sort(dropped);  // so that rows are used again in one order, however the index lies
  for (const uint64_t id : dropped) {
    if (const RowIndex::Slot* const slot = index_.find(id); slot->is_in_memory()) {
      memory_.give_back(slot->row());
    }
    index_.erase(id);
  }
  count_bytes();
  return dropped.size();
}

void RowTable::decay(float* statistics) const {
  statistics[0] *= options_.shrink.show_click_decay;
  statistics[1] *= options_.shrink.show_click_decay;
}

/// True for a row that shrink() drops.
bool RowTable::is_over(const float* statistics) const {
  const ShrinkOptions& shrink = options_.shrink;
  const float score =
      (statistics[0] - statistics[1]) * shrink.nonclick + statistics[1] * shrink.click;
  return score < shrink.delete_score || static_cast<float>(day_) - statistics[2] >
                                            static_cast<float>(shrink.delete_after_unseen_days);
}

RowSnapshot& RowTable::freeze() {
  return *copies_.emplace_back(std::make_unique<RowSnapshot>(options_.dim, state_size(), day_));
}

void RowTable::unfreeze(const RowSnapshot& copy) {
  std::erase_if(copies_, [&](const auto& one) { return one.get() == &copy; });
}

bool RowTable::copy_frozen(RowSnapshot& copy, size_t slots) const {
  if (!copy.next) {
    return true;
  }
  size_t end = index_.home_of(*copy.next);
  for (; slots > 0 && end < index_.places(); ++end) {
    const RowIndex::Slot* const slot = index_.at(end);
    slots -= std::min(slots, slot != nullptr && slot->is_on_disk() ? kSlotsOfARead : 1);
  }
  const RowIndex::Piece piece = index_.piece(*copy.next, end);
  std::vector<uint64_t> on_disk;
  for (const RowIndex::Slot* const slot : piece.slots) {
    if (slot->is_on_disk()) {
      on_disk.push_back(slot->id());
    }
  }
  std::vector<float> read;  // before anything is copied, so that it can be done again
  read_spilled(on_disk, [&](size_t /*i*/, std::span<float> row) {
    read.insert(read.end(), row.begin(), row.end());
  });
  const float* from_disk = read.data();
  for (size_t i = 0; i < piece.slots.size(); ++i) {
    if (i + kWave < piece.slots.size() && piece.slots[i + kWave]->is_in_memory()) {
      __builtin_prefetch(memory_.at(piece.slots[i + kWave]->row()));
    }
    const RowIndex::Slot& slot = *piece.slots[i];
    if (slot.waits()) {
      copy.copy_waiting(slot.id(), slot.sights());
    } else if (slot.is_on_disk()) {
      copy.copy_row(slot.id(), from_disk);
      from_disk += stride_;
    } else {
      copy.copy_row(slot.id(), memory_.at(slot.row()));
    }
  }
  copy.next = piece.end;
  return !copy.next;
}

void RowTable::copy_the_rest() {
  for (const std::unique_ptr<RowSnapshot>& copy : copies_) {
    while (!copy_frozen(*copy, kSlotsOfAPiece)) {
    }
  }
}

void RowTable::restore(const SavedRows& saved) {
  const size_t n = saved.ids.size();
  ARGOSY_CHECK(saved.weights.size() == n * options_.dim && saved.state.size() == n * state_size() &&
                   saved.sights.size() == saved.waiting.size(),
               "ps.table",
               "table \"{}\": expected rows of {} weights and {} numbers of state, got {} and {} "
               "for {} rows",
               options_.name,
               options_.dim,
               state_size(),
               saved.weights.size(),
               saved.state.size(),
               n);
  for (size_t i = 0; i < n; ++i) {
    RowIndex::Slot& slot = slot_for(saved.ids[i]);
    if (slot.waits()) {
      slot.set_row(make_row(saved.ids[i]));
    }
    const uint32_t row = slot.row();
    std::memcpy(memory_.at(row), &saved.weights[i * options_.dim], options_.dim * sizeof(float));
    std::copy_n(saved.state.begin() + static_cast<ptrdiff_t>(i * state_size()),
                state_size(),
                state_at(row));
  }
  for (size_t i = 0; i < saved.waiting.size(); ++i) {
    ARGOSY_CHECK(saved.sights[i] <= Entry::kMostSights,
                 "ps.table",
                 "table \"{}\": id {} waits with sights {}, more than there can be",
                 options_.name,
                 saved.waiting[i],
                 saved.sights[i]);
    slot_for(saved.waiting[i]).set_sights(saved.sights[i]);
  }
  day_ = saved.day.empty() ? 0 : saved.day.front();
  count_bytes();
}

}  // namespace argosy::ps
