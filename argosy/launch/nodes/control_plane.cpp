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
constexpr auto kSoon = 5s;

}  // namespace

ControlPlane::ControlPlane(std::shared_ptr<rendezvous::Store> store,
                           int node,
                           std::vector<int> node_of_arrival)
    : store_(std::move(store)),
      node_(node),
      node_of_arrival_(std::move(node_of_arrival)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      to_write_(store_, kJournal) {
  if (!wake_) {
    throw ConfigError("launch.nodes", "no event descriptor: " + errno_message(errno));
  }
  reader_ = std::thread([this] { read(); });
}

ControlPlane::~ControlPlane() {
  over_ = true;
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

void ControlPlane::tell(const JobEvent& event) {
  try {
    to_write_.append(event.to_json(), Deadline::after(kSoon));
  } catch (const Error& error) {
    log::debug("[launch.nodes] node 0 cannot be told: {}", error.what());
    put({.kind = JobEvent::Kind::kLost, .node = 0});
    put(event);  // at least this launcher goes by it
  }
}

void ControlPlane::watch_members() {
  for (const rendezvous::Departure& gone :
       store_->departures(std::string(kMember), Deadline::after(kSoon))) {
    const auto arrival = strings::parse_int(std::string_view(gone.member).substr(kMember.size()));
    const bool known =
        arrival && *arrival >= 0 && *arrival < static_cast<int64_t>(node_of_arrival_.size());
    if (!gone.lost || !known || !told_lost_.insert(gone.member).second) {
      continue;
    }
    const int node = node_of_arrival_[static_cast<size_t>(*arrival)];
    Journal(store_, kJournal)
        .append(JobEvent{.kind = JobEvent::Kind::kLost, .node = node}.to_json(),
                Deadline::after(kSoon));
  }
}

void ControlPlane::read() {
  Journal journal(store_, kJournal);
  try {
    while (!over_) {
      const auto slice = node_ == 0 ? kSliceOfNodeZero : kSlice;
      if (const std::optional<std::string> text = journal.next(Deadline::after(slice))) {
        put(JobEvent::from_json(*text));
      }
      if (node_ == 0) {
        watch_members();
      }
    }
  } catch (const Error& error) {
    log::debug("[launch.nodes] node 0 is not heard any more: {}", error.what());
    put({.kind = JobEvent::Kind::kLost, .node = 0});
  }
}

}  // namespace argosy::launch
