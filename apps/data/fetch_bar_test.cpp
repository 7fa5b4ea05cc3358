#include "apps/data/fetch_bar.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::datatool {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FetchBar, EndsAtAHundredPercentAlsoOfWhatWasLeft) {
  for (const int64_t there : {0, 30'000}) {
    FetchBar bar(events::ProgressStyle::kLines);
    testing::internal::CaptureStderr();
    for (const int64_t bytes : {there, int64_t{35'000}, int64_t{40'500}}) {
      bar.show({.file = "data.bin", .bytes = bytes, .total = 40'500});
    }
    bar.show({.file = "data.bin", .bytes = 40'500, .total = 40'500, .ended = true});
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("data.bin 100%")) << there;
  }
}

TEST(FetchBar, ATransferThatBrokeIsNeverShownAsWhole) {
  FetchBar bar(events::ProgressStyle::kLines);
  testing::internal::CaptureStderr();
  bar.show({.file = "data.bin", .bytes = 0, .total = 40'000});
  bar.show({.file = "data.bin", .bytes = 20'000, .total = 40'000});
  bar.show({.file = "data.bin", .bytes = 20'000, .total = 40'000, .ended = true});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("100%")));
}

}  // namespace
}  // namespace argosy::datatool
