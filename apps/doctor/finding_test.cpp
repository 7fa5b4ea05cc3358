#include "apps/doctor/finding.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;

const std::vector<Finding> kMixed{
    {.subject = "cores", .text = "2 usable"},
    {.subject = "clock", .verdict = Verdict::kNote, .text = "slow", .advice = "chrony"},
    {.subject = "store", .verdict = Verdict::kBad, .text = "bytes \xff"}};

TEST(Findings, AreLinesForPeople) {
  EXPECT_EQ(render(kMixed),
            "      cores  2 usable\n"
            "note  clock  slow\n"
            "             → chrony\n"
            "bad   store  bytes \xff\n"
            "1 bad; 1 to note\n");
  EXPECT_EQ(render({kMixed[0]}),
            "      cores  2 usable\n"
            "Nothing bad found\n");
  EXPECT_EQ(render({{.subject = "training", .text = "done"}}),
            "      training  done\n"
            "Training works here\n");
}

TEST(Findings, AreJsonForPrograms) {
  const auto all = nlohmann::json::parse(to_json(kMixed));
  EXPECT_EQ(all["ok"], false);
  EXPECT_EQ(all["findings"][1]["verdict"], "note");
  EXPECT_EQ(all["findings"][1]["advice"], "chrony");
  EXPECT_EQ(nlohmann::json::parse(to_json({kMixed[0], kMixed[1]}))["ok"], true);
}

}  // namespace
}  // namespace argosy::doctor
