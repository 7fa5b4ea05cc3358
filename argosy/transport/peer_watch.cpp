#include "argosy/transport/peer_watch.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"
#include "argosy/transport/peer_notes.h"

namespace argosy::transport {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{100};           ///< a state that lasts this long is published
constexpr milliseconds kPublishEvery{1000};  ///< and a state that changes all the time, this often
constexpr milliseconds kSuspicion{1000};     ///< an operation this old asks the store who is gone

}  // namespace

PeerWatch::PeerWatch(std::shared_ptr<rendezvous::Store> store,
                     int rank,
                     int size,
                     PeerWatchOptions options,
                     const Deadline& deadline)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      options_(std::move(options)),
      names_(options_.world_ranks),
      presence_(store_->announce(member_name(rank), deadline)),
      since_(Deadline::Clock::now()) {
  thread_ = std::thread([this] { run(); });
}

PeerWatch::~PeerWatch() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

int64_t PeerWatch::begin(Call& call) {
  bool wake = false;
  int64_t seq = 0;
  {
    const std::lock_guard lock(mutex_);
    seq = next_seq_++;
    if (call.seq < 0) {
      call.seq = seq;
    }
    progress_.inside = true;
    progress_.seq = seq;
    progress_.op = name_of(call.op);
    progress_.before = std::exchange(progress_.call, call);
    since_ = Deadline::Clock::now();
    wake = std::exchange(asleep_, false);
  }
  if (wake) {
    changed_.notify_all();
  }
  return seq;
}

void PeerWatch::end() {
  const std::lock_guard lock(mutex_);
  progress_.inside = false;
  since_ = Deadline::Clock::now();
}

PeerWatch::Message PeerWatch::begin_message() {
  bool wake = false;
  Message message;
  {
    const std::lock_guard lock(mutex_);
    message = messages_.insert(Deadline::Clock::now());
    wake = std::exchange(asleep_, false);
  }
  if (wake) {
    changed_.notify_all();
  }
  return message;
}

void PeerWatch::end_message(Message message) {
  const std::lock_guard lock(mutex_);
  messages_.erase(message);
}

void PeerWatch::check(const char* op) {
  if (failed_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(explain_mutex_);
    std::rethrow_exception(cause_);
  }
  if (left_.load(std::memory_order_acquire)) {
    throw CommError(where(op),
                    fmt::format("{}: the transport was closed. No operation may follow.", myself()),
                    {.op = op, .group = options_.group, .rank = rank_});
  }
}

/// Publishes what this rank does when that lasts, and looks for the dead when it lasts long.
void PeerWatch::run() {
  std::string published;
  auto published_at = Deadline::Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto age = Deadline::Clock::now() - since_;
    const std::string text = progress_.encode();
    const auto now = Deadline::Clock::now();
    if (text != published && (age >= kTick || now - published_at >= kPublishEvery)) {
      const Progress progress = progress_;
      published = text;
      published_at = now;
      lock.unlock();
      publish(progress);
      lock.lock();
      continue;
    }
    if (text == published && !progress_.inside && messages_.empty()) {
      asleep_ = true;
      changed_.wait(lock, [&] { return stop_ || !asleep_; });
      continue;
    }
    const bool old_message = !messages_.empty() && now - *messages_.begin() >= kSuspicion;
    if ((progress_.inside && age >= kSuspicion) || old_message) {
      const auto since = since_;
      const auto oldest = old_message ? *messages_.begin() : since;
      lock.unlock();
      const bool gone = someone_is_gone();
      lock.lock();
      const bool still_waits =
          old_message ? messages_.contains(oldest) : progress_.inside && since_ == since;
      if (gone && still_waits && options_.interrupt && !stop_) {
        lock.unlock();
        options_.interrupt();
        lock.lock();
      }
      changed_.wait_for(lock, kSuspicion / 2, [&] { return stop_; });
      continue;
    }
    changed_.wait_for(lock, kTick, [&] { return stop_; });
  }
}

void PeerWatch::publish(const Progress& progress) {
  const std::lock_guard lock(presence_mutex_);
  if (presence_ != nullptr && !left_) {
    try {
      presence_->note(progress.encode());
    } catch (const Error&) {
      // A store that is gone matters only when an operation fails, which then says so.
    }
  }
}

/// Where this rank stands when `op` fails. A message has no number: the others judge this rank by
/// its place among the collectives, which stays what it was.
void PeerWatch::publish_failure(const std::string& op, int64_t seq) {
  const Progress now = progress();
  publish(seq < 0 || seq == now.seq ? now : Progress{.inside = true, .seq = seq, .op = op});
}

Progress PeerWatch::progress() {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void PeerWatch::leave() {
  if (left_.exchange(true)) {
    return;
  }
  const Progress last = progress();
  const std::lock_guard lock(presence_mutex_);
  if (presence_ != nullptr && !failed_) {
    try {
      presence_->leave(last.encode());
    } catch (const Error&) {
      // Leaving is a courtesy; a store that is gone needs none.
    }
  }
}

std::unique_ptr<rendezvous::Presence> PeerWatch::take_presence() {
  const std::lock_guard lock(presence_mutex_);
  return std::move(presence_);
}

std::string PeerWatch::where(const std::string& op) const {
  return "transport." + op;
}

std::string PeerWatch::myself() const {
  std::string text = fmt::format("rank {}/{}{}", rank_, size_, names_.suffix(rank_));
  if (!options_.group.empty()) {
    text += fmt::format(" group \"{}\"", options_.group);
  }
  return text + fmt::format(" ({})", options_.transport);
}

}  // namespace argosy::transport
