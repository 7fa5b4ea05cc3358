#include "argosy/transport/shm/waiter.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <utility>

#include "argosy/os/futex.h"
#include "argosy/os/pidfd.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Waiter::Waiter(const Segment& segment,
               int rank,
               int size,
               const ShmOptions& options,
               std::vector<os::UniqueFd> processes,
               RankNames names,
               std::function<void()> meanwhile)
    : segment_(segment),
      rank_(rank),
      size_(size),
      spin_(options.spin),
      look_(options.look),
      processes_(std::move(processes)),
      names_(std::move(names)),
      meanwhile_(std::move(meanwhile)) {}

void Waiter::wait(int rank, Counter counter, uint64_t value, const Deadline& deadline) {
  const std::atomic<uint64_t>& other = segment_.page(rank).*counter;
  if (other.load(std::memory_order_acquire) >= value) {
    return;
  }
  try {
    wait_until(
        rank, [&] { return other.load() >= value; }, deadline);
  } catch (LinkTimeout& late) {
    late.awaited.clear();
    for (int r = 0; r < size_; ++r) {
      if (r != rank_ && (segment_.page(r).*counter).load() < value) {
        late.awaited.push_back(r);
      }
    }
    throw;
  }
}

void Waiter::wait_all(Counter counter, uint64_t value, const Deadline& deadline) {
  for (int i = 1; i < size_; ++i) {
    wait((rank_ + i) % size_, counter, value, deadline);
  }
}

void Waiter::wait_until(int rank, const std::function<bool()>& ready, const Deadline& deadline) {
  constexpr int kLooksPerClock = 16;
  if (spin_.count() > 0) {
    const auto until = Deadline::Clock::now() + spin_;
    do {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (ready()) {
          return;
        }
        relax();
      }
      ::sched_yield();  // the rank that is waited for may be on this very core
    } while (Deadline::Clock::now() < until);
  }
  auto next_look = Deadline::Clock::now() + look_;
  while (!ready()) {
    sleep(rank, ready, deadline, next_look);
  }
}

/// One sleep at most. Whoever makes it ready after this rank has looked sees the sleeper, or
/// changed the bell before that was read: all four accesses are in one order.
void Waiter::sleep(int rank,
                   const std::function<bool()>& ready,
                   const Deadline& deadline,
                   Deadline::Clock::time_point& next_look) {
  RankPage& mine = segment_.page(rank_);
  mine.sleepers.fetch_add(1);
  const uint32_t bell = mine.bell.load();
  const bool now = ready();
  if (!now && mine.left.load() == 0) {
    meanwhile_();  // between the two, or a ring for it could be missed
    const auto left = std::min<std::chrono::milliseconds>(look_, deadline.remaining());
    os::futex_wait(mine.bell, bell, std::max<std::chrono::milliseconds>(left, 1ms));
  }
  mine.sleepers.fetch_sub(1);
  if (now || ready()) {
    return;
  }
  const std::vector<int> of = awaited(rank);
  const bool gone =
      std::ranges::all_of(of, [this](int other) { return segment_.page(other).left.load() != 0; });
  if (ready()) {
    return;  // what a rank did before it left counts
  }
  if (mine.left.load() != 0) {
    throw LinkBroken{-1, "this rank takes no part any more"};
  }
  if (gone) {
    throw LinkBroken{rank, names_.one(of.front()) + " takes no part any more"};
  }
  if (Deadline::Clock::now() >= next_look) {
    check_others(of.front(), ready);
    next_look = Deadline::Clock::now() + look_;
  }
  if (deadline.expired()) {
    throw LinkTimeout{of};
  }
}

/// The ranks that may end a wait for `rank`.
std::vector<int> Waiter::awaited(int rank) const {
  if (rank != kAnyRank) {
    return {rank};
  }
  std::vector<int> others;
  for (int i = 1; i < size_; ++i) {
    others.push_back((rank_ + i) % size_);
  }
  return others;
}

/// Whoever died may be another than who is waited for, and who waits for the dead in turn. Who left
/// before its process ended has done its part.
void Waiter::check_others(int awaited, const std::function<bool()>& ready) const {
  for (int i = 0; i < size_; ++i) {
    const int rank = (awaited + i) % size_;
    if (rank != rank_ && has_ended(rank) && segment_.page(rank).left.load() == 0 && !ready()) {
      throw LinkBroken{rank, "the process of " + names_.one(rank) + " has ended"};
    }
  }
}

bool Waiter::has_ended(int rank) const {
  return os::has_ended(processes_[static_cast<size_t>(rank)].get());
}

void Waiter::ring(int rank) {
  RankPage& page = segment_.page(rank);
  if (page.sleepers.load() > 0) {
    page.bell.fetch_add(1);
    os::futex_wake_all(page.bell);
  }
}

void Waiter::ring_all() {
  for (int i = 1; i < size_; ++i) {
    ring((rank_ + i) % size_);
  }
}

void Waiter::leave() {
  segment_.page(rank_).left.store(1);
  for (int rank = 0; rank < size_; ++rank) {
    segment_.page(rank).bell.fetch_add(1);
    os::futex_wake_all(segment_.page(rank).bell);
  }
}

}  // namespace argosy::transport
