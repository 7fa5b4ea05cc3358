#include "argosy/transport/shm/mailbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {
namespace {

constexpr uint64_t kMailboxPage = 4096;
/// Each rank writes to a part of its own of the mail file, which has holes where nothing lies.
constexpr uint64_t kPart = uint64_t{1} << 55U;  ///< a year of messages at 1 GB/s

/// pread() or pwrite() of everything.
template <typename Call, typename Byte>
void move_all(Call call, int fd, Byte* data, size_t bytes, uint64_t offset, int peer) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t moved = call(fd, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (moved > 0) {
      done += static_cast<size_t>(moved);
    } else if (moved == 0 || errno != EINTR) {
      throw LinkBroken{peer,
                       fmt::format("{} of {} bytes of a message moved through shared memory: {}",
                                   done,
                                   bytes,
                                   errno_message(moved == 0 ? EIO : errno))};
    }
  }
}

}  // namespace

Mailbox::Mailbox(const Segment& segment, int rank, int size, os::UniqueFd mail)
    : segment_(segment),
      rank_(rank),
      size_(size),
      mail_(std::move(mail)),
      next_offset_(kPart * static_cast<uint64_t>(rank)),
      peers_(static_cast<size_t>(size)) {}

uint64_t Mailbox::send(const void* data, size_t bytes, int peer, uint32_t tag) {
  Envelope envelope{.tag = tag, .bytes = bytes};
  {
    const std::lock_guard lock(mutex_);
    envelope.offset = next_offset_;
    next_offset_ += (bytes + kMailboxPage - 1) / kMailboxPage * kMailboxPage;
  }
  move_all(::pwrite, mail_.get(), static_cast<const char*>(data), bytes, envelope.offset, peer);
  const std::lock_guard lock(mutex_);
  Peer& to = peers_[static_cast<size_t>(peer)];
  to.waiting.push_back(envelope);
  flush(peer);
  return ++to.sent;
}

uint64_t Mailbox::posted(int peer) const {
  return segment_.postbox(rank_, peer).posted.load();
}

bool Mailbox::flush(int peer) {
  Postbox& box = segment_.postbox(rank_, peer);
  std::deque<Envelope>& waiting = peers_[static_cast<size_t>(peer)].waiting;
  bool any = false;
  uint64_t posted = box.posted.load(std::memory_order_relaxed);
  while (!waiting.empty() && posted - box.taken.load() < kEnvelopes) {
    box.envelopes[posted % kEnvelopes] = waiting.front();
    waiting.pop_front();
    box.posted.store(++posted);
    any = true;
  }
  return any;
}

/// Takes a message that came before anybody expected it.
bool Mailbox::claim(Expected& expected, int from) {
  std::deque<Envelope>& unclaimed = peers_[static_cast<size_t>(from)].unclaimed;
  const auto found = std::ranges::find(unclaimed, expected.tag, &Envelope::tag);
  if (found == unclaimed.end()) {
    return false;
  }
  expected.envelope = *found;
  expected.from = from;
  unclaimed.erase(found);
  return true;
}

std::shared_ptr<Mailbox::Expected> Mailbox::expect(int from, uint32_t tag) {
  auto expected = std::make_shared<Expected>(Expected{.from = from, .tag = tag});
  const std::lock_guard lock(mutex_);
  expected->number = next_number_++;
  if (from != kAnyRank) {
    if (!claim(*expected, from)) {
      peers_[static_cast<size_t>(from)].expected.push_back(expected);
    }
    return expected;
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (claim(*expected, peer)) {
      return expected;
    }
  }
  from_any_.push_back(expected);
  return expected;
}

/// The receive that was started first gets it, whether that names the sender or not.
bool Mailbox::deliver(const Envelope& envelope, int from) {
  Queue* first = nullptr;
  Queue::iterator wanted;
  for (Queue* const queue : {&peers_[static_cast<size_t>(from)].expected, &from_any_}) {
    const auto found =
        std::ranges::find(*queue, envelope.tag, [](const auto& e) { return e->tag; });
    if (found != queue->end() && (first == nullptr || (*found)->number < (*wanted)->number)) {
      first = queue;
      wanted = found;
    }
  }
  if (first == nullptr) {
    return false;
  }
  (*wanted)->envelope = envelope;
  (*wanted)->from = from;
  first->erase(wanted);
  return true;
}

bool Mailbox::drain(int from) {
  Postbox& box = segment_.postbox(from, rank_);
  Peer& peer = peers_[static_cast<size_t>(from)];
  uint64_t taken = box.taken.load(std::memory_order_relaxed);
  const uint64_t posted = box.posted.load();
  const bool any = taken < posted;
  while (taken < posted) {
    const Envelope envelope = box.envelopes[taken % kEnvelopes];
    box.taken.store(++taken);
    if (!deliver(envelope, from)) {
      peer.unclaimed.push_back(envelope);
    }
  }
  return any;
}

int Mailbox::sender_of(const Expected& expected) {
  const std::lock_guard lock(mutex_);
  return expected.from;
}

bool Mailbox::has_come(const Expected& expected) {
  const std::lock_guard lock(mutex_);
  return expected.envelope.has_value();
}

void Mailbox::read(const Expected& expected, void* data, size_t bytes) {
  const Envelope& envelope = *expected.envelope;
  if (envelope.bytes != bytes) {
    throw Mismatch{fmt::format("rank {} sends {} B, but rank {} expects {} B",
                               expected.from,
                               envelope.bytes,
                               rank_,
                               bytes)};
  }
  move_all(::pread, mail_.get(), static_cast<char*>(data), bytes, envelope.offset, expected.from);
  free(envelope);
}

void Mailbox::forget(const std::shared_ptr<Expected>& expected) {
  const std::lock_guard lock(mutex_);
  std::erase(
      expected->from == kAnyRank ? from_any_ : peers_[static_cast<size_t>(expected->from)].expected,
      expected);
  if (expected->envelope) {
    free(*expected->envelope);
  }
}

/// Its pages are the system's again. Each message has pages of its own.
void Mailbox::free(const Envelope& envelope) const {
  if (envelope.bytes > 0) {
    const auto pages = (envelope.bytes + kMailboxPage - 1) / kMailboxPage * kMailboxPage;
    (void)::fallocate(mail_.get(),
                      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(envelope.offset),
                      static_cast<off_t>(pages));
  }
}

std::vector<int> Mailbox::pump() {
  std::vector<int> touched;
  const std::lock_guard lock(mutex_);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      const bool taken = drain(peer);
      if (flush(peer) || taken) {
        touched.push_back(peer);
      }
    }
  }
  return touched;
}

}  // namespace argosy::transport
