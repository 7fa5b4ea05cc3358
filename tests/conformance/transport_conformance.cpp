#include "tests/conformance/transport_conformance.h"

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

}  // namespace argosy::conformance
