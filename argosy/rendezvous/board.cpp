#include "argosy/rendezvous/board.h"

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

template <typename Map, typename Visit>
void for_prefix(const Map& map, const std::string& prefix, Visit visit) {
  for (auto it = map.lower_bound(prefix); it != map.end() && it->first.starts_with(prefix); ++it) {
    visit(it->first, it->second);
  }
}

}  // namespace

void Board::check_open() const {
  if (closed_) {
    throw RendezvousError("rendezvous.store", "the store is closing: the job ends.");
  }
}

// Moves a waiter to its next missing key; a Due when none is left. Looking at one key at a time
// makes a wait for n keys cost 2n look-ups, however the keys arrive.
std::optional<Board::Due> Board::advance(uint64_t id) {
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) {
    return std::nullopt;  // forgotten
  }
  Waiter& waiter = found->second;
  for (int pass = 0; pass < 2; ++pass) {  // the second pass sees keys removed since the first
    for (; waiter.next < waiter.keys.size(); ++waiter.next) {
      const std::string& key = waiter.keys[waiter.next];
      if (!values_.contains(key)) {
        waiting_for_[key].push_back(id);
        return std::nullopt;
      }
    }
    waiter.next = 0;
  }
  Due due{std::move(waiter.wake), {.value = values_.at(waiter.keys.back())}};
  waiters_.erase(found);
  return due;
}

std::vector<Board::Due> Board::write(const std::string& key, const std::string& value) {
  values_[key] = value;
  std::vector<Due> due;
  if (auto waiting = waiting_for_.extract(key)) {
    for (const uint64_t id : waiting.mapped()) {
      if (auto one = advance(id)) {
        due.push_back(std::move(*one));
      }
    }
  }
  return due;
}

void Board::set(const std::string& key, const std::string& value) {
  std::unique_lock lock(mutex_);
  check_open();
  std::vector<Due> due = write(key, value);
  lock.unlock();
  for (Due& one : due) {
    one.wake(std::move(one.wakeup));
  }
}

int64_t Board::add(const std::string& key, int64_t amount) {
  std::unique_lock lock(mutex_);
  check_open();
  const auto found = values_.find(key);
  const int64_t sum = add_decimal(key, found == values_.end() ? "" : found->second, amount);
  std::vector<Due> due = write(key, std::to_string(sum));
  lock.unlock();
  for (Due& one : due) {
    one.wake(std::move(one.wakeup));
  }
  return sum;
}

std::string Board::compare_set(const std::string& key,
                               const std::string& expected,
                               const std::string& desired) {
  std::unique_lock lock(mutex_);
  check_open();
  const auto found = values_.find(key);
  std::string current = found == values_.end() ? "" : found->second;
  if (current != expected) {
    return current;
  }
  std::vector<Due> due = write(key, desired);
  lock.unlock();
  for (Due& one : due) {
    one.wake(std::move(one.wakeup));
  }
  return desired;
}

bool Board::remove(const std::string& key) {
  const std::lock_guard lock(mutex_);
  check_open();
  std::erase_if(departures_, [&](const Departure& gone) { return gone.member == key; });
  return values_.erase(key) > 0;
}

std::vector<std::string> Board::missing(const std::vector<std::string>& keys) const {
  const std::lock_guard lock(mutex_);
  check_open();
  std::vector<std::string> absent;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(absent), [&](const std::string& key) {
    return !values_.contains(key);
  });
  return absent;
}

std::vector<std::string> Board::keys(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  check_open();
  std::vector<std::string> found;
  for_prefix(values_, prefix, [&](const std::string& key, auto&) { found.push_back(key); });
  return found;
}

uint64_t Board::when_all(std::vector<std::string> keys, Wake wake) {
  ARGOSY_INVARIANT(!keys.empty(), "rendezvous.wait");
  std::unique_lock lock(mutex_);
  check_open();
  const uint64_t id = ++last_id_;
  waiters_[id] = {.keys = std::move(keys), .wake = std::move(wake)};
  std::optional<Due> due = advance(id);
  lock.unlock();
  if (due) {
    due->wake(std::move(due->wakeup));
  }
  return id;
}

bool Board::forget(uint64_t waiter) {
  const std::lock_guard lock(mutex_);
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) {
    return closers_.erase(waiter) > 0;
  }
  const auto waiting = waiting_for_.find(found->second.keys[found->second.next]);
  if (waiting != waiting_for_.end()) {
    std::erase(waiting->second, waiter);
    if (waiting->second.empty()) {
      waiting_for_.erase(waiting);
    }
  }
  waiters_.erase(found);
  return true;
}

size_t Board::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}

uint64_t Board::arrive(const std::string& member) {
  const std::lock_guard lock(mutex_);
  check_open();
  if (present_.contains(member)) {
    throw RendezvousError(
        "rendezvous.announce",
        fmt::format("member \"{}\" is present already: expected it once. Two processes have the "
                    "same rank, or one announced itself twice.",
                    member));
  }
  const uint64_t id = ++last_id_;
  present_[member] = id;
  members_[id] = {.name = member};
  return id;
}

void Board::note(uint64_t presence, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(presence);
  if (found != members_.end()) {
    found->second.note = text;
  }
}

void Board::depart(uint64_t presence, Parting parting, const std::optional<std::string>& note) {
  const std::lock_guard lock(mutex_);
  auto gone = members_.extract(presence);
  if (gone.empty()) {
    return;
  }
  Member& member = gone.mapped();
  present_.erase(member.name);
  departures_.push_back({.member = member.name,
                         .lost = parting == Parting::kLost,
                         .note = note.value_or(std::move(member.note))});
}

std::vector<Departure> Board::departures(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  check_open();
  std::vector<Departure> found;
  std::copy_if(
      departures_.begin(), departures_.end(), std::back_inserter(found), [&](const Departure& one) {
        return one.member.starts_with(prefix);
      });
  return found;
}

std::vector<Member> Board::members(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  check_open();
  std::vector<Member> found;
  for_prefix(
      present_, prefix, [&](const std::string&, uint64_t id) { found.push_back(members_.at(id)); });
  return found;
}

uint64_t Board::when_closed(std::function<void()> closing) {
  const std::lock_guard lock(mutex_);
  check_open();
  closers_[++last_id_] = std::move(closing);
  return last_id_;
}

void Board::close() {
  std::unordered_map<uint64_t, Waiter> waiters;
  std::unordered_map<uint64_t, std::function<void()>> closers;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiters.swap(waiters_);
    closers.swap(closers_);
    waiting_for_.clear();
  }
  for (auto& [id, waiter] : waiters) {
    waiter.wake({.closed = true});
  }
  for (auto& [id, closing] : closers) {
    closing();
  }
}

}  // namespace argosy::rendezvous
