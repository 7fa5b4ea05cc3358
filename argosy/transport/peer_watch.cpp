#include "argosy/transport/peer_watch.h"

#include <utility>

#include "argosy/base/error.h"
#include "argosy/transport/inquest.h"
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
      options_(std::move(options)),
      inquest_(std::make_unique<const Inquest>(store_, rank, size, options_)),
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
    throw inquest_->own_error({.op = op}, "the transport was closed. No operation may follow.");
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

/// Publishes where this rank stands when an operation fails. A message has no number: the others
/// judge this rank by its place among the collectives, which stays what it was.
void PeerWatch::publish_failure(const Attempt& what) {
  const Progress now = progress();
  publish(what.seq < 0 || what.seq == now.seq
              ? now
              : Progress{.inside = true, .seq = what.seq, .op = what.op});
}

bool PeerWatch::someone_is_gone() const {
  return inquest_->someone_is_gone();
}

std::optional<int> PeerWatch::who_left(int64_t seq, int peer) const {
  return inquest_->who_left(seq, peer);
}

/// Returns the cause that was found first. Declares this rank a victim when `search` finds it. When
/// this rank left before anything failed, a broken link or a wait needs no other cause, and nobody
/// is searched for.
template <typename Search>
std::exception_ptr PeerWatch::settle(const Attempt& what, ByLeaving leaving, Search search) {
  const std::lock_guard lock(explain_mutex_);
  if (cause_ != nullptr) {
    return cause_;
  }
  if (left_ && leaving == ByLeaving::kExplained) {
    return std::make_exception_ptr(inquest_->own_error(
        what,
        std::string("the transport was closed while ") + what.op + number(what.seq) + " waited."));
  }
  const Verdict verdict = search();
  cause_ = verdict.error;
  failed_.store(true, std::memory_order_release);
  const std::lock_guard presence_lock(presence_mutex_);
  if (presence_ != nullptr) {
    try {
      presence_->leave(verdict.blame.note());
    } catch (const Error&) {
      // The others then find the culprit themselves.
    }
  }
  return cause_;
}

std::exception_ptr PeerWatch::link_broken(const Attempt& what, const LinkBroken& broken) {
  return settle(what, ByLeaving::kExplained, [&] {
    publish_failure(what);
    return inquest_->link_broken(what, broken);
  });
}

std::exception_ptr PeerWatch::failed_here(const Attempt& what, const OwnFault& fault) {
  return settle(what, ByLeaving::kExplained, [&] { return inquest_->failed_here(what, fault); });
}

std::exception_ptr PeerWatch::timed_out(const Attempt& what, const LinkTimeout& late) {
  return settle(what, ByLeaving::kExplained, [&] {
    publish_failure(what);
    return inquest_->timed_out(what, late, progress());
  });
}

std::exception_ptr PeerWatch::mismatched(const Attempt& what, const Mismatch& mismatch) {
  return settle(what, ByLeaving::kNotExplained, [&] {
    if (mismatch.scope == Mismatch::Scope::kPart) {
      publish_failure(what);
    }
    return inquest_->mismatched(what, mismatch, progress());
  });
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

}  // namespace argosy::transport
