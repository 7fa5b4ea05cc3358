#include "apps/doctor/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::doctor {
namespace {

using testing::HasSubstr;
using Verdict = Finding::Verdict;

constexpr const char* kSaid =
    "[launch] table\n[rank 0] doctor {\"ranks\": 2, \"steps\": 30, \"seconds\": 1.5, "
    "\"first_loss\": "
    "2.3, \"last_loss\": 0.1, \"agree\": true, \"libtorch\": \"1.13.1\", \"blas\": \"OpenBLAS\", "
    "\"blas_advice\": \"\", \"threads\": 1}\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Training, IsReadFromWhatRankZeroSays) {
  const Finding finding = read_training(kSaid, 0);
  EXPECT_EQ(finding.verdict, Verdict::kFine);
  EXPECT_EQ(finding.text,
            "2 processes, 30 steps in 1.50 s: loss 2.300 to 0.100, equal weights; libtorch 1.13.1, "
            "OpenBLAS, 1 thread each");
}

TEST(Training, ThatIsSlowIsNoted) {
  const Finding finding =
      read_training(with(kSaid, "\"blas_advice\": \"\"", "\"blas_advice\": \"install it\""), 0);
  EXPECT_EQ(finding.verdict, Verdict::kNote);
  EXPECT_EQ(finding.advice, "install it");
}

TEST(Training, ThatDoesNotLearnOrEndsIllIsBad) {
  EXPECT_EQ(read_training(with(kSaid, "true", "false"), 0).verdict, Verdict::kBad);
  EXPECT_EQ(read_training(with(kSaid, "0.1", "2.4"), 0).verdict, Verdict::kBad);
  EXPECT_EQ(read_training(with(kSaid, "\"ranks\"", "ranks"), 0).verdict, Verdict::kBad);
  EXPECT_EQ(read_training("", 0).verdict, Verdict::kBad);
  const Finding failed = read_training("a\n[launch] exit code 5. See …\n\n", 5);
  EXPECT_EQ(failed.verdict, Verdict::kBad);
  EXPECT_THAT(failed.text, HasSubstr("ended with code 5: [launch] exit code 5"));
}

}  // namespace
}  // namespace argosy::doctor
