#include "argosy/transport/shm/shm_transport.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/transport/shm/shm_meeting.h"

namespace argosy::transport {

class Shm::SendLink final : public Link {
 public:
  SendLink(std::shared_ptr<Neighbours> neighbours, int peer, uint64_t place)
      : neighbours_(std::move(neighbours)), peer_(peer), place_(place) {}
  void wait(const Deadline& deadline) override {
    neighbours_->wait_until_sent(peer_, place_, deadline);
  }

 private:
  const std::shared_ptr<Neighbours> neighbours_;
  const int peer_;
  const uint64_t place_;
};

class Shm::RecvLink final : public Link {
 public:
  RecvLink(std::shared_ptr<Neighbours> neighbours,
           std::shared_ptr<Mailbox::Expected> expected,
           void* data,
           size_t bytes)
      : neighbours_(std::move(neighbours)),
        expected_(std::move(expected)),
        data_(data),
        bytes_(bytes) {}
  ~RecvLink() override {
    if (expected_ != nullptr) {
      neighbours_->mailbox.forget(expected_);
    }
  }
  RecvLink(const RecvLink&) = delete;
  RecvLink& operator=(const RecvLink&) = delete;
  void wait(const Deadline& deadline) override {
    neighbours_->wait_for_message(*expected_, deadline);
    source_ = expected_->from;
    neighbours_->mailbox.read(*std::exchange(expected_, nullptr), data_, bytes_);
  }
  [[nodiscard]] int source() const override { return source_; }

 private:
  const std::shared_ptr<Neighbours> neighbours_;
  std::shared_ptr<Mailbox::Expected> expected_;
  void* const data_;
  const size_t bytes_;
  int source_ = -1;
};

Shm::Shm(std::shared_ptr<rendezvous::Store> store, int rank, int size, const ShmOptions& options)
    : ForwardingTransport(std::move(store),
                          rank,
                          size,
                          {.transport = "shm",
                           .group = options.group,
                           .world_ranks = options.world_ranks,
                           .job = options.job,
                           .job_ranks = options.job_ranks,
                           .patience = options.patience,
                           .has_ended =
                               [this](int other) {
                                 const auto neighbours = neighbours_.look();
                                 return neighbours != nullptr &&
                                        neighbours->waiter.has_ended(other);
                               }},
                          Deadline::after(options.timeout)),
      options_(options) {}

void Shm::connect_all() {
  ARGOSY_CHECK(size() <= kMostShmRanks,
               "transport.shm",
               "expected {} ranks or fewer, got {}. Use the backend gloo.",
               kMostShmRanks,
               size());
  connect(options_.timeout, [&](const Deadline& deadline) {
    if (size() == 1) {
      return;
    }
    SharedFiles files = ShmMeeting(lobby(), rank(), size()).meet(deadline);
    if (!neighbours_.open(
            std::make_shared<Neighbours>(rank(), size(), std::move(files), options_, names()))) {
      neighbours_->waiter.leave();
    }
    do_barrier(deadline);
  });
}

std::shared_ptr<SharedBlock> Shm::do_share(size_t bytes, const Deadline& deadline) {
  return movement(deadline).share(bytes, neighbours_->blocks);
}

std::unique_ptr<WatchedTransport::Link> Shm::do_send(const void* data,
                                                     size_t bytes,
                                                     int peer,
                                                     uint32_t tag) {
  const uint64_t place = neighbours_->mailbox.send(data, bytes, peer, tag);
  neighbours_->waiter.ring(peer);
  return std::make_unique<SendLink>(neighbours_.get(), peer, place);
}

std::unique_ptr<WatchedTransport::Link> Shm::do_recv(void* data,
                                                     size_t bytes,
                                                     int peer,
                                                     uint32_t tag) {
  return std::make_unique<RecvLink>(
      neighbours_.get(), neighbours_->mailbox.expect(peer, tag), data, bytes);
}

void Shm::interrupt() {
  if (const auto neighbours = neighbours_.interrupt()) {
    neighbours->waiter.leave();
  }
}

}  // namespace argosy::transport
