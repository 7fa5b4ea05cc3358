#include "argosy/transport/shm/rounds.h"

#include <algorithm>
#include <utility>

#include "argosy/transport/link_errors.h"

namespace argosy::transport {

Rounds::Rounds(const Segment& segment, Waiter& waiter, int rank, int size, RankNames names)
    : segment_(segment), waiter_(waiter), rank_(rank), size_(size), names_(std::move(names)) {}

Rounds::Operation Rounds::start(const Call& call, uint64_t history, const Deadline& deadline) {
  segment_.page(rank_).calls[calls_ % kKeptCalls] = call;
  history_ = history;
  return {*this, {.history = history, .calls = calls_++}, deadline};
}

/// Compares what all ranks had called when they ended `round`. A rank that reads from nobody finds
/// a mismatch here.
void Rounds::compare_ended(uint64_t round) const {
  const uint32_t mine = segment_.page(rank_).ended[round % kKeptRounds];
  for (int peer = 0; peer < size_; ++peer) {
    const RankPage& theirs = segment_.page(peer);
    if (theirs.ended[round % kKeptRounds] != mine) {
      throw Mismatch{difference(peer, theirs.headers[round % kKeptRounds].calls)};
    }
  }
}

void Rounds::compare_published(int peer, uint64_t round) const {
  const RoundHeader& theirs = segment_.page(peer).headers[round % kKeptRounds];
  if (theirs.history != history_) {
    throw Mismatch{difference(peer, theirs.calls)};
  }
}

/// Says which call differed first. `their_calls` is a call that `peer` is known to have started.
std::string Rounds::difference(int peer, uint64_t their_calls) const {
  const auto& mine = segment_.page(rank_).calls;
  const auto& theirs = segment_.page(peer).calls;
  const uint64_t last = std::min(calls_ - 1, their_calls);
  uint64_t first = last - std::min(last, kKeptCalls / 2);
  while (first < last && mine[first % kKeptCalls] == theirs[first % kKeptCalls]) {
    ++first;
  }
  return disagreement(
      names_.one(rank_), mine[first % kKeptCalls], names_.one(peer), theirs[first % kKeptCalls]);
}

std::byte* Rounds::Operation::begin(int64_t round) {
  const uint64_t number = this->number(round);
  all_.begun_ = std::max(all_.begun_, number + 1);
  if (number >= kDepth) {
    const uint64_t before = number - kDepth;
    all_.waiter_.wait_all(&RankPage::read, before + 1, deadline_);
    all_.compare_ended(before);
  }
  return all_.segment_.slot(rank(), number);
}

void Rounds::Operation::set_place(uint32_t block, uint64_t offset) {
  header_.block = block;
  header_.offset = offset;
}

void Rounds::Operation::publish(int64_t round) {
  RankPage& mine = all_.segment_.page(rank());
  mine.headers[number(round) % kKeptRounds] = header_;
  mine.written.store(number(round) + 1);
  all_.waiter_.ring_all();
}

/// Ranks that agree in the first round of an operation are in the same operation to its end.
void Rounds::Operation::await(int peer, int64_t round) {
  all_.waiter_.wait(peer, &RankPage::written, number(round) + 1, deadline_);
  if (round == 0) {
    all_.compare_published(peer, number(round));
  }
}

void Rounds::Operation::await_all(int64_t round) {
  all_.waiter_.wait_all(&RankPage::written, number(round) + 1, deadline_);
  for (int i = 1; round == 0 && i < size(); ++i) {
    all_.compare_published((rank() + i) % size(), number(round));
  }
}

const RoundHeader& Rounds::Operation::header(int rank, int64_t round) const {
  return all_.segment_.page(rank).headers[number(round) % kKeptRounds];
}

const std::byte* Rounds::Operation::slot(int rank, int64_t round) const {
  return all_.segment_.slot(rank, number(round));
}

std::byte* Rounds::Operation::own_result(int64_t round) const {
  return all_.segment_.result(rank(), number(round));
}

void Rounds::Operation::publish_result(int64_t round) {
  all_.segment_.page(rank()).reduced.store(number(round) + 1);
  all_.waiter_.ring_all();
}

const std::byte* Rounds::Operation::await_result(int peer, int64_t round) {
  all_.waiter_.wait(peer, &RankPage::reduced, number(round) + 1, deadline_);
  return all_.segment_.result(peer, number(round));
}

void Rounds::Operation::await_all_results(int64_t round) {
  all_.waiter_.wait_all(&RankPage::reduced, number(round) + 1, deadline_);
}

void Rounds::Operation::end(int64_t round) {
  RankPage& mine = all_.segment_.page(rank());
  mine.ended[number(round) % kKeptRounds] = static_cast<uint32_t>(all_.history_ >> 32U);
  mine.read.store(number(round) + 1);
  all_.waiter_.ring_all();
}

}  // namespace argosy::transport
