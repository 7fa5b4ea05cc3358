#include "argosy/launch/nodes/control_plane.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/launch/nodes/clock.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJournal = "nodes/journal";
constexpr std::string_view kMember = "node/";
/// How long the thread waits for the journal before it looks whether it is to end, and on node 0
/// whether a launcher is gone, which costs it a look into its own memory.
constexpr auto kSlice = 500ms;
constexpr auto kSliceOfNodeZero = 50ms;
/// One call.
constexpr auto kSoon = 5s;
/// By which a thread of ours must be late to have been stopped, with its machine or by itself.
constexpr auto kStandstill = 500ms;

std::string beat_key(int node) {
  return "nodes/beat/" + std::to_string(node);
}

}  // namespace

ControlPlane::ControlPlane(std::shared_ptr<rendezvous::Store> store,
                           int node,
                           std::vector<int> node_of_arrival,
                           const KeepAlive& keep_alive)
    : store_(std::move(store)),
      node_(node),
      node_of_arrival_(std::move(node_of_arrival)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      keep_alive_(keep_alive),
      pulses_(node_of_arrival_.size(), Pulses::Clock::now()),
      looked_(Pulses::Clock::now()) {
  if (!wake_) {
    throw Error("launch.nodes", "no event descriptor: " + errno_message(errno));
  }
  try {
    reader_ = std::thread([this] { read(); });
    writer_ = std::thread([this] { write(); });
    if (node_ != 0) {
      heart_ = std::thread([this] { beat(); });
    }
  } catch (const std::system_error& error) {
    end_threads();
    throw Error("launch.nodes",
                std::string("no thread can be made: ") + error.what() +
                    ". See ulimit -u and the cgroup's pids.max");
  }
}

ControlPlane::~ControlPlane() {
  end_threads();
}

void ControlPlane::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread* thread : {&writer_, &reader_, &heart_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

void ControlPlane::put(JobEvent event) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(event));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
}

std::vector<JobEvent> ControlPlane::events() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = ::read(wake_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  std::vector<JobEvent> all(std::make_move_iterator(waiting_.begin()),
                            std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return all;
}

void ControlPlane::tell(JobEvent event) {
  std::unique_lock lock(mutex_);
  if (cut_off_) {
    lock.unlock();
    put(std::move(event));  // at least this launcher goes by it
    return;
  }
  outgoing_.push_back(std::move(event));
  lock.unlock();
  changed_.notify_all();
}

void ControlPlane::lose_node_zero(const char* what) {
  log::debug("[launch.nodes] node 0 is lost: {}", what);
  std::deque<JobEvent> unsaid;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(cut_off_, true)) {
      return;
    }
    unsaid.swap(outgoing_);
  }
  changed_.notify_all();
  put({.kind = JobEvent::Kind::kLost, .node = 0});
  for (JobEvent& event : unsaid) {
    put(std::move(event));
  }
}

/// Errors: RendezvousError, TimeoutError: node 0's store is gone, or silent for too long.
void ControlPlane::append(const JobEvent& event) {
  Journal journal(store_, kJournal);
  const std::string text = event.to_json();
  while (true) {
    journal.skip(entries_);
    try {
      journal.append(text, Deadline::after(kSoon));
      return;
    } catch (const TimeoutError&) {  // whether node 0 is lost is the heart's to say
      const std::lock_guard lock(mutex_);
      if (cut_off_ || closing_ || node_ == 0) {
        throw;
      }
    }
  }
}

void ControlPlane::write() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || cut_off_ || !outgoing_.empty(); });
    if (cut_off_ || outgoing_.empty()) {
      return;
    }
    const JobEvent event = outgoing_.front();  // stays there: should it fail, it was not said
    lock.unlock();
    try {
      append(event);
    } catch (const Error& error) {
      lose_node_zero(error.what());
    }
    lock.lock();
    if (!cut_off_) {
      outgoing_.pop_front();
    }
  }
}

void ControlPlane::watch_members() {
  for (const rendezvous::Departure& gone :
       store_->departures(std::string(kMember), Deadline::after(kSoon))) {
    const auto arrival = strings::parse_int(std::string_view(gone.member).substr(kMember.size()));
    const bool known =
        arrival && *arrival >= 0 && *arrival < static_cast<int64_t>(node_of_arrival_.size());
    if (known && told_gone_.insert(gone.member).second) {
      // One that took its leave is gone as well: it will not start its ranks again.
      lose(node_of_arrival_[static_cast<size_t>(*arrival)], 0ms);
    }
  }
}

void ControlPlane::lose(int node, std::chrono::milliseconds silent) {
  if (node >= 0 && told_lost_.insert(node).second) {
    const int64_t silent_us = std::chrono::microseconds(silent).count();
    append({.kind = JobEvent::Kind::kLost, .node = node, .at_us = now_us(0) - silent_us});
  }
}

void ControlPlane::watch_silence() {
  const auto now = Pulses::Clock::now();
  // A machine that was suspended, or a launcher that was stopped, has heard nobody.
  if (now - looked_ > std::max<Pulses::Clock::duration>(keep_alive_.limit() / 2, kStandstill)) {
    pulses_.forgive(now - looked_);
  }
  looked_ = now;
  for (int node = 1; node < nodes(); ++node) {
    const std::string key = beat_key(node);
    const Deadline soon = Deadline::after(kSoon);
    const std::string count = store_->check({key}, soon) ? store_->get(key, soon) : "";
    const auto silent = pulses_.look(static_cast<size_t>(node), count, now);
    if (silent > keep_alive_.limit() && !told_lost_.contains(node)) {
      log::debug("[launch.nodes] node {} was silent for {} ms", node, silent.count());
      lose(node, silent + keep_alive_.interval);
    }
  }
}

void ControlPlane::beat() {
  std::unique_lock lock(mutex_);
  while (!closing_ && !cut_off_) {
    lock.unlock();
    const auto start = Pulses::Clock::now();
    try {
      store_->add(beat_key(node_), 1, Deadline::after(keep_alive_.limit()));
    } catch (const TimeoutError& error) {
      // Later than its deadline: this launcher itself was stopped meanwhile, and asks again.
      if (Pulses::Clock::now() - start < keep_alive_.limit() + kStandstill) {
        lose_node_zero(error.what());
      }
    } catch (const Error& error) {
      lose_node_zero(error.what());
    }
    lock.lock();
    changed_.wait_for(lock, keep_alive_.interval, [&] { return closing_ || cut_off_; });
  }
}

void ControlPlane::read() {
  Journal journal(store_, kJournal);
  const auto closing = [&] {
    const std::lock_guard lock(mutex_);
    return closing_;
  };
  try {
    while (!closing()) {
      const auto slice = node_ == 0 ? kSliceOfNodeZero : kSlice;
      if (const std::optional<std::string> text = journal.next(Deadline::after(slice))) {
        entries_ = journal.read();
        put(JobEvent::from_json(*text));
      }
      if (node_ == 0) {
        watch_members();
        watch_silence();
      }
    }
  } catch (const Error& error) {
    lose_node_zero(error.what());
    changed_.notify_all();
  }
}

}  // namespace argosy::launch
