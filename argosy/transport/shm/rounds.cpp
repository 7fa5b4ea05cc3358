/// The rounds in which the ranks of a host lay data open to each other; see segment.h.
#include <fmt/format.h>

#include <array>

#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {
namespace {

std::string in_words(const RoundHeader& header) {
  constexpr std::array<const char*, 10> kNames{"all_reduce",
                                               "reduce",
                                               "reduce_scatter",
                                               "broadcast",
                                               "all_gather",
                                               "gather",
                                               "scatter",
                                               "all_to_all",
                                               "barrier",
                                               "share"};
  const std::string what = header.op < kNames.size() ? kNames[header.op] : "?";
  const std::string size = fmt::format("{} of {} B", what, header.bytes);
  return header.root < 0 ? size : fmt::format("{} with root {}", size, header.root);
}

}  // namespace

/// The slot of `round` is free when all have read what lay in it before.
void Shm::begin(uint64_t round, const Deadline& deadline) {
  if (round >= kDepth) {
    waiter().wait_all(&RankPage::read, round + 1 - kDepth, deadline);
  }
}

void Shm::publish(uint64_t round, const RoundHeader& header) {
  RankPage& mine = segment().page(rank());
  mine.headers[round % kDepth] = header;
  mine.written.store(round + 1);
  waiter().ring_all();
}

void Shm::await(int from, uint64_t round, const Deadline& deadline) {
  waiter().wait(from, &RankPage::written, round + 1, deadline);
}

void Shm::check(int from, uint64_t round, const RoundHeader& header) const {
  const RoundHeader& theirs = segment().page(from).headers[round % kDepth];
  if (theirs.op != header.op || theirs.root != header.root || theirs.kind != header.kind ||
      theirs.bytes != header.bytes) {
    throw Mismatch{fmt::format("{} called {} where {} called {}{}",
                               names().one(rank()),
                               in_words(header),
                               names().one(from),
                               in_words(theirs),
                               theirs.op == header.op && theirs.kind != header.kind
                                   ? ", with another type, reduction or other parts"
                                   : "")};
  }
}

void Shm::await_all(uint64_t round,
                    bool first,
                    const RoundHeader& header,
                    const Deadline& deadline) {
  waiter().wait_all(&RankPage::written, round + 1, deadline);
  for (int peer = 0; first && peer < size(); ++peer) {
    if (peer != rank()) {
      check(peer, round, header);
    }
  }
}

void Shm::end(uint64_t round) {
  segment().page(rank()).read.store(round + 1);
  waiter().ring_all();
}

void Shm::exchange(const RoundHeader& header,
                   int64_t rounds,
                   int from,
                   const std::function<void(int64_t, std::byte*)>& put,
                   const std::function<void(int, int64_t, const std::byte*)>& take,
                   const Deadline& deadline) {
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
          check(peer, round, header);
        }
        take(peer, i, segment().slot(peer, round));
      }
    }
    end(round);
  }
}

}  // namespace argosy::transport
