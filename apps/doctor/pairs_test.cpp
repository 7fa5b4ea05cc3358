#include "apps/doctor/pairs.h"

#include <chrono>
#include <future>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/store.h"

namespace argosy::doctor {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Pairs, AllRanksCallEachOther) {
  const auto store = rendezvous::in_process_store();
  std::vector<std::future<std::vector<Calls>>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      return call_all(*store, rank, 3, "127.0.0.1", Deadline::after(20s));
    }));
  }
  for (auto& rank : ranks) {
    const std::vector<Calls> calls = rank.get();
    ASSERT_EQ(calls.size(), 3U);
    const Finding finding = judge_calls(calls);
    EXPECT_EQ(finding.verdict, Finding::Verdict::kFine) << finding.text;
    EXPECT_THAT(finding.text, HasSubstr("all 3 ranks reach each other"));
  }
}

TEST(Pairs, ThoseThatCannotTalkAreNamed) {
  const Finding finding = judge_calls(
      {{.host = "gpu01", .address = "10.0.0.1", .failed = {"", "timed out"}, .took_ms = {1, 5}},
       {.host = "gpu02", .address = "10.0.0.2", .failed = {"", ""}, .took_ms = {1, 1}}});
  EXPECT_EQ(finding.verdict, Finding::Verdict::kBad);
  EXPECT_EQ(finding.text,
            "gpu01 (10.0.0.1, rank 0) cannot reach gpu02 (10.0.0.2, rank 1): timed out");
}

TEST(Pairs, AWordThatIsNoPlaceIsRefused) {
  const auto store = rendezvous::in_process_store();
  store->set("doctor/place/1", "nowhere", Deadline::after(1s));
  EXPECT_THROW((void)call_all(*store, 0, 2, "127.0.0.1", Deadline::after(5s)), RendezvousError);
}

}  // namespace
}  // namespace argosy::doctor
