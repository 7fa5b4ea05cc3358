#include "apps/doctor/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

NodeFindings node(int rank, const std::string& host, const std::string& version) {
  return {.rank = rank,
          .host = host,
          .findings = {{.subject = "argosy", .text = version},
                       {.subject = "cores", .text = "16 usable"},
                       {.subject = "memory", .text = std::to_string(rank) + " GiB"}}};
}

TEST(CompareNodes, SaysInWhatTheyDifferAndWhatIsBadWhere) {
  NodeFindings other = node(2, "gpu02", "0.2.0");
  other.findings.push_back({.subject = "open files",
                            .verdict = Finding::Verdict::kBad,
                            .text = "64",
                            .advice = "raise it"});
  const std::string text =
      render(compare_nodes({node(0, "gpu01", "0.1.0"), node(1, "gpu01", "0.1.0"), other}));
  EXPECT_THAT(text, HasSubstr("differs: gpu01: 0.1.0; gpu02: 0.2.0"));
  EXPECT_THAT(text, HasSubstr("open files on gpu02"));
  EXPECT_THAT(text, HasSubstr("2 looked at, 3 ranks"));
  EXPECT_THAT(text, Not(HasSubstr("cores")));
  EXPECT_THAT(text, Not(HasSubstr("GiB")));  // of every moment another
}

TEST(CompareNodes, TravelAsText) {
  const NodeFindings there = node(3, "h", "v");
  const NodeFindings here = NodeFindings::from_json(there.to_json());
  EXPECT_EQ(here.rank, 3);
  EXPECT_EQ(here.findings.size(), 3U);
  EXPECT_EQ(here.findings[1].text, "16 usable");
  EXPECT_THAT(test::error_text<RendezvousError>([] { (void)NodeFindings::from_json("{}"); }),
              HasSubstr("same version on all nodes"));
}

}  // namespace
}  // namespace argosy::doctor
