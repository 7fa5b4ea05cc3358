#include "tests/support/stream_order.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace argosy::test {
namespace {

void merge(Clock& into, const Clock& other) {
  for (const auto& [queue, ticket] : other) {
    LateQueue::Ticket& known = into[queue];
    known = std::max(known, ticket);
  }
}

bool comes_before(const LateQueue* queue, LateQueue::Ticket ticket, const Clock& clock) {
  const auto found = clock.find(queue);
  return found != clock.end() && found->second >= ticket;
}

}  // namespace

StreamOrder& StreamOrder::of_process() {
  static StreamOrder* order = nullptr;
  static pid_t owner = 0;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (owner != getpid()) {
    order = new StreamOrder();  // never destroyed: what runs at exit uses it
    owner = getpid();
  }
  return *order;
}

void StreamOrder::add(const LateQueue& queue, std::string name) {
  const std::lock_guard lock(mutex_);
  names_[&queue] = std::move(name);
}

void StreamOrder::submit(LateQueue& queue,
                         std::function<void()> work,
                         const std::vector<Access>& touched) {
  const std::lock_guard lock(mutex_);
  Clock& clock = newest_[&queue];
  merge(clock, host());
  const LateQueue::Ticket ticket = queue.submit(std::move(work));
  clock[&queue] = ticket;
  for (const Access& each : touched) {
    check(each, clock, name(&queue));
  }
  for (const Access& each : touched) {  // then: a work may read what it writes
    if (each.memory != nullptr && each.writes) {
      *each.memory = {.written = Moment{&queue, ticket, {}}};
    }
  }
  for (const Access& each : touched) {
    if (each.memory != nullptr && !each.writes) {
      each.memory->read[&queue] = ticket;
    }
  }
}

void StreamOrder::block(LateQueue& queue, const Moment& moment) {
  if (moment.queue == nullptr) {
    return;
  }
  const std::lock_guard lock(mutex_);
  Clock& clock = newest_[&queue];
  merge(clock, host());
  merge(clock, moment.before);
  clock[&queue] =
      queue.submit([awaited = moment.queue, ticket = moment.ticket] { awaited->wait(ticket); });
}

Moment StreamOrder::now(LateQueue& queue) {
  const std::lock_guard lock(mutex_);
  Clock& clock = newest_[&queue];
  const LateQueue::Ticket ticket = queue.newest();
  clock[&queue] = ticket;
  return {&queue, ticket, clock};
}

void StreamOrder::wait(const Moment& moment) {
  if (moment.queue != nullptr) {
    moment.queue->wait(moment.ticket);
    const std::lock_guard lock(mutex_);
    merge(host_, moment.before);
  }
}

bool StreamOrder::has_come(const Moment& moment) {
  const bool has = moment.queue == nullptr || moment.queue->is_done(moment.ticket);
  if (has) {
    const std::lock_guard lock(mutex_);
    merge(by_thread_[std::this_thread::get_id()], moment.before);
  }
  return has;
}

bool StreamOrder::forget_before(const Moment& moment, Uses& memory) {
  if (moment.queue != nullptr && !moment.queue->is_done(moment.ticket)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (memory.written &&
      comes_before(memory.written->queue, memory.written->ticket, moment.before)) {
    memory.written.reset();
  }
  std::erase_if(memory.read, [&](const auto& read) {
    return comes_before(read.first, read.second, moment.before);
  });
  return true;
}

/// What this thread has seen. Under the lock.
Clock StreamOrder::host() const {
  Clock all = host_;
  if (const auto mine = by_thread_.find(std::this_thread::get_id()); mine != by_thread_.end()) {
    merge(all, mine->second);
  }
  return all;
}

void StreamOrder::read(const std::vector<Access>& touched) {
  const std::lock_guard lock(mutex_);
  for (const Access& each : touched) {
    check({each.memory, false}, host(), "the host");
  }
}

void StreamOrder::check(const Access& access, const Clock& before, const std::string& who) {
  if (access.memory == nullptr || !race_.empty() || allowed_ > 0) {
    return;
  }
  const auto& [written, read] = *access.memory;
  const std::string does = access.writes ? " writes" : " reads";
  if (written && !comes_before(written->queue, written->ticket, before)) {
    race_ = who + does + " what " + name(written->queue) + " writes, and does not wait for it";
    return;
  }
  for (const auto& [queue, ticket] : read) {
    if (access.writes && !comes_before(queue, ticket, before)) {
      race_ = who + does + " what " + name(queue) + " reads, and does not wait for it";
    }
  }
}

std::string StreamOrder::name(const LateQueue* queue) const {
  const auto found = names_.find(queue);
  return found == names_.end() ? "a stream" : found->second;
}

std::string StreamOrder::take_race() {
  const std::lock_guard lock(mutex_);
  return std::exchange(race_, {});
}

}  // namespace argosy::test
