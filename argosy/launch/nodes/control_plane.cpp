#include "argosy/launch/nodes/control_plane.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJournal = "nodes/journal";
constexpr std::string_view kMember = "node/";
/// How long the thread waits for the journal before it looks whether it is to end, and on node 0
/// whether a launcher is gone, which costs it a look into its own memory.
constexpr auto kSlice = 500ms;
constexpr auto kSliceOfNodeZero = 50ms;
/// One call to node 0; repeated until kPatience is used up.
constexpr auto kSoon = 5s;

}  // namespace

ControlPlane::ControlPlane(std::shared_ptr<rendezvous::Store> store,
                           int node,
                           std::vector<int> node_of_arrival)
    : store_(std::move(store)),
      node_(node),
      node_of_arrival_(std::move(node_of_arrival)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) {
    throw ConfigError("launch.nodes", "no event descriptor: " + errno_message(errno));
  }
  reader_ = std::thread([this] { read(); });
  writer_ = std::thread([this] { write(); });
}

ControlPlane::~ControlPlane() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  writer_.join();
  reader_.join();
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
  put({.kind = JobEvent::Kind::kLost, .node = 0});
  for (JobEvent& event : unsaid) {
    put(std::move(event));
  }
}

/// Errors: RendezvousError, TimeoutError: node 0's store is gone, or silent for too long.
void ControlPlane::append(const JobEvent& event) {
  Journal journal(store_, kJournal);
  const std::string text = event.to_json();
  const Deadline patience = Deadline::after(kPatience);
  while (true) {
    journal.skip(entries_);
    try {
      journal.append(text, patience.sooner(Deadline::after(kSoon)));
      return;
    } catch (const TimeoutError&) {
      if (patience.expired()) {
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
    if (!known || !told_lost_.insert(gone.member).second) {
      continue;
    }
    // One that took its leave is gone as well: it will not start its ranks again.
    const int node = node_of_arrival_[static_cast<size_t>(*arrival)];
    if (node >= 0) {
      append({.kind = JobEvent::Kind::kLost, .node = node});
    }
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
      }
    }
  } catch (const Error& error) {
    lose_node_zero(error.what());
    changed_.notify_all();
  }
}

}  // namespace argosy::launch
