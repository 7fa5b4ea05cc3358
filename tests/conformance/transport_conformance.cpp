#include "tests/conformance/transport_conformance.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

#include "argosy/rendezvous/file_store.h"

namespace argosy::conformance {

Meeting::Meeting(test::RankMode mode)
    : mode_(mode),
      in_process_(mode == test::RankMode::kThreads ? rendezvous::in_process_store() : nullptr) {}

std::shared_ptr<rendezvous::Store> Meeting::store() const {
  return mode_ == test::RankMode::kThreads
             ? in_process_
             : rendezvous::file_store((folder_.path() / "store").string());
}

void TransportTest::run(const Body& body) {
  const Case& c = GetParam();
  const Meeting meeting(c.mode);
  test::run_ranks(c.size,
                  [&](int rank) {
                    const auto transport = c.make(rank, c.size, meeting.store());
                    ASSERT_EQ(transport->rank(), rank);
                    ASSERT_EQ(transport->size(), c.size);
                    body(*transport);
                    transport->close();
                    transport->close();  // idempotent
                  },
                  {.mode = c.mode, .deadline = std::chrono::seconds(60)});
}

std::vector<test::RankOutcome> TransportTest::try_run(
    const std::function<void(std::unique_ptr<transport::Transport>)>& body) {
  const Case& c = GetParam();
  const Meeting meeting(c.mode);
  return test::try_run_ranks(c.size,
                             [&](int rank) { body(c.make(rank, c.size, meeting.store())); },
                             {.mode = c.mode, .deadline = std::chrono::seconds(60)});
}

SharedCounter::SharedCounter() {
  void* page =
      ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    throw std::bad_alloc();
  }
  value_ = static_cast<int64_t*>(page);
}

SharedCounter::~SharedCounter() {
  ::munmap(value_, sizeof(int64_t));
}

int64_t SharedCounter::add(int64_t amount) {
  return std::atomic_ref<int64_t>(*value_).fetch_add(amount) + amount;
}

}  // namespace argosy::conformance
