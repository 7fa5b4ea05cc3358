/// The rounds in which the ranks of a host lay data open to each other; see segment.h.
#include <fmt/format.h>

#include <algorithm>

#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {

/// Ranks whose histories agree have called the same so far, by which all that they then read of
/// each other is what they take it for. A rank that reads from nobody compares, too, what the
/// others left behind when it has gone once around the slots.
RoundHeader Shm::enter() {
  segment().page(rank()).calls[calls_ % kKeptCalls] = call();
  history_ = mixed(history_, digest(call()));
  return {.history = history_, .calls = calls_++};
}

/// The slot of `round` is free when all have read what lay in it before.
void Shm::begin(uint64_t round, const Deadline& deadline) {
  if (round < kDepth) {
    return;
  }
  const uint64_t before = round - kDepth;
  waiter().wait_all(&RankPage::read, before + 1, deadline);
  const uint32_t mine = segment().page(rank()).ended[before % kKeptRounds];
  for (int peer = 0; peer < size(); ++peer) {
    const RankPage& theirs = segment().page(peer);
    if (theirs.ended[before % kKeptRounds] != mine) {
      throw Mismatch{difference(peer, theirs.headers[before % kKeptRounds].calls)};
    }
  }
}

void Shm::publish(uint64_t round, const RoundHeader& header) {
  RankPage& mine = segment().page(rank());
  mine.headers[round % kKeptRounds] = header;
  mine.written.store(round + 1);
  waiter().ring_all();
}

void Shm::await(int from, uint64_t round, const Deadline& deadline) {
  waiter().wait(from, &RankPage::written, round + 1, deadline);
}

void Shm::check(int from, uint64_t round) const {
  const RoundHeader& theirs = segment().page(from).headers[round % kKeptRounds];
  if (theirs.history != history_) {
    throw Mismatch{difference(from, theirs.calls)};
  }
}

/// Which of the calls differed first, in words. `their_calls`: which of theirs is known to be
/// there.
std::string Shm::difference(int from, uint64_t their_calls) const {
  const auto& mine = segment().page(rank()).calls;
  const auto& theirs = segment().page(from).calls;
  const uint64_t last = std::min(calls_ - 1, their_calls);
  for (uint64_t i = last - std::min(last, kKeptCalls / 2); i < last; ++i) {
    if (mine[i % kKeptCalls] != theirs[i % kKeptCalls]) {
      return disagreement(
          names().one(rank()), mine[i % kKeptCalls], names().one(from), theirs[i % kKeptCalls]);
    }
  }
  return disagreement(
      names().one(rank()), mine[last % kKeptCalls], names().one(from), theirs[last % kKeptCalls]);
}

void Shm::await_all(uint64_t round, bool first, const Deadline& deadline) {
  waiter().wait_all(&RankPage::written, round + 1, deadline);
  for (int peer = 0; first && peer < size(); ++peer) {
    if (peer != rank()) {
      check(peer, round);
    }
  }
}

void Shm::end(uint64_t round) {
  RankPage& mine = segment().page(rank());
  mine.ended[round % kKeptRounds] = static_cast<uint32_t>(history_ >> 32U);
  mine.read.store(round + 1);
  waiter().ring_all();
}

void Shm::exchange(int64_t rounds,
                   int from,
                   const std::function<void(int64_t, std::byte*)>& put,
                   const std::function<void(int, int64_t, const std::byte*)>& take,
                   const Deadline& deadline) {
  const RoundHeader header = enter();
  const uint64_t base = rounds_;
  rounds_ += static_cast<uint64_t>(rounds);
  const auto lay_open = [&](int64_t i) {
    const uint64_t round = base + static_cast<uint64_t>(i);
    begin(round, deadline);
    put(i, segment().slot(rank(), round));
    publish(round, header);
  };
  lay_open(0);
  for (int64_t i = 0; i < rounds; ++i) {
    if (i + 1 < rounds) {
      lay_open(i + 1);  // the others copy it while this rank copies theirs
    }
    const uint64_t round = base + static_cast<uint64_t>(i);
    for (int k = 1; k < size(); ++k) {
      const int peer = (rank() + k) % size();
      if (from == kAll || from == peer) {
        await(peer, round, deadline);
        if (i == 0) {
          check(peer, round);
        }
        take(peer, i, segment().slot(peer, round));
      }
    }
    end(round);
  }
}

}  // namespace argosy::transport
