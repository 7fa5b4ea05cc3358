#include "argosy/transport/shm/neighbours.h"

#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/memory.h"

namespace argosy::transport {

Neighbours::Neighbours(
    int rank, int size, SharedFiles files, const ShmOptions& options, const RankNames& names)
    : segment(os::SharedMemory::open(std::move(files.memory)).or_throw<Error>("transport.shm"),
              size),
      mailbox(segment, rank, size, std::move(files.mail)),
      blocks(std::move(files.blocks), size),
      waiter(segment, rank, size, options, std::move(files.processes), names, [this] { pump(); }),
      rounds(segment, waiter, rank, size, names) {}

void Neighbours::pump() {
  for (const int peer : mailbox.pump()) {
    waiter.ring(peer);
  }
}

void Neighbours::wait_for_message(Mailbox::Expected& expected, const Deadline& deadline) {
  const int from = mailbox.sender_of(expected);
  waiter.wait_until(
      from,
      [&] {
        if (mailbox.has_come(expected)) {
          return true;
        }
        pump();
        return mailbox.has_come(expected);
      },
      deadline);
}

void Neighbours::wait_until_sent(int peer, uint64_t place, const Deadline& deadline) {
  waiter.wait_until(
      peer,
      [&] {
        if (mailbox.posted(peer) >= place) {
          return true;
        }
        pump();
        return mailbox.posted(peer) >= place;
      },
      deadline);
}

}  // namespace argosy::transport
