/// The rank that hosts the store of its group dies. As processes.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/abi/comm.h"
#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::abi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int set_in_folder(void* store, const char* key, const char* value, ArgosyText* /*why*/) {
  static_cast<rendezvous::Store*>(store)->set(
      key, value, Deadline::after(std::chrono::seconds(10)));
  return ARGOSY_OK;
}
int get_from_folder(
    void* store, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why) {
  try {
    const std::string found = static_cast<rendezvous::Store*>(store)->get(
        key, Deadline::after(std::chrono::milliseconds(timeout_ms)));
    argosy_text_set(value, found.data(), found.size());
    return ARGOSY_OK;
  } catch (const TimeoutError& e) {
    const std::string text = e.what();
    argosy_text_set(why, text.data(), text.size());
    return ARGOSY_TIMED_OUT;
  }
}

struct BarrierEnd {
  int code = -1;
  std::string message{};
  std::vector<int> peers{};
};
BarrierEnd barrier(ArgosyGroup* group) {
  BarrierEnd ended;
  const ArgosyOperation operation{.name = "barrier",
                                  .type = "",
                                  .elements = 0,
                                  .bytes = 0,
                                  .timeout_ms = 0,
                                  .waits = 1,
                                  .body =
                                      [](void*, ArgosyHere* here) {
                                        ArgosyStep step{};
                                        step.kind = ARGOSY_BARRIER;
                                        return argosy_step(here, &step);
                                      },
                                  .then =
                                      [](void* to, const ArgosyEnd* end) {
                                        *static_cast<BarrierEnd*>(to) = {
                                            .code = end->code,
                                            .message = end->message == nullptr ? "" : end->message,
                                            .peers = {end->peers, end->peers + end->peer_count}};
                                      },
                                  .context = &ended};
  ArgosyText* const why = argosy_text_new();
  EXPECT_EQ(argosy_submit(group, &operation, why), ARGOSY_OK) << argosy_text_get(why);
  argosy_text_free(why);
  return ended;
}

class HostDeath : public ::testing::TestWithParam<const char*> {};

TEST_P(HostDeath, TheOthersNameTheRankWhoseStoreWentWithIt) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      3,
      [&](int number) {
        setenv("ARGOSY_BACKEND", GetParam(), 1);  // NOLINT(concurrency-mt-unsafe)
        constexpr int kWorld[] = {2, 4, 5};
        const auto store = rendezvous::file_store((folder.path() / "theirs").string());
        const ArgosyMeeting meeting{.name = "theirs",
                                    .rank = number,
                                    .size = 3,
                                    .timeout_ms = 20'000,
                                    .towards = "127.0.0.1",
                                    .store = store.get(),
                                    .set = set_in_folder,
                                    .get = get_from_folder,
                                    .world_ranks = kWorld};
        ArgosyCode code = ARGOSY_OK;
        ArgosyText* const why = argosy_text_new();
        ArgosyGroup* const group = argosy_group_make(&meeting, &code, why);
        ASSERT_NE(group, nullptr) << argosy_text_get(why);
        EXPECT_EQ(barrier(group).code, ARGOSY_OK);
        if (number == 0) {
          raise(SIGKILL);
        }
        const BarrierEnd ended = barrier(group);
        EXPECT_EQ(ended.code, ARGOSY_FAILED);
        EXPECT_THAT(ended.peers, ElementsAre(0)) << ended.message;
        EXPECT_THAT(ended.message, HasSubstr("rank 0 (world rank 2)"));
        argosy_group_free(group);
        argosy_text_free(why);
      },
      {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(50)});
  EXPECT_EQ(outcomes[0].signal, SIGKILL);
  for (const int number : {1, 2}) {
    EXPECT_TRUE(outcomes[static_cast<size_t>(number)].ok())
        << describe(outcomes[static_cast<size_t>(number)]);
  }
}
INSTANTIATE_TEST_SUITE_P(, HostDeath, ::testing::Values("shm", "gloo"));

}  // namespace
}  // namespace argosy::abi
