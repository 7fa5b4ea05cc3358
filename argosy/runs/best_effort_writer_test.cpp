#include "argosy/runs/best_effort_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BestEffortWriter, AFullDiskIsSaidOnceAndEndsNothing) {
  BestEffortWriter writer;
  const auto fail = [] { throw DataError("runs.write", "no space left"); };
  testing::internal::CaptureStderr();
  writer.write(fail);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no space left"));
  testing::internal::CaptureStderr();
  writer.write(fail);
  writer.write_paced(fail);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("no space left")));
}

TEST(BestEffortWriter, AnotherErrorIsTheCallers) {
  BestEffortWriter writer;
  EXPECT_THROW(writer.write([] { throw UsageError("runs.write", "no such name"); }), UsageError);
}

TEST(BestEffortWriter, PacedWritesComeFiveSecondsApartAlsoWhereTheyFail) {
  BestEffortWriter writer;
  EXPECT_TRUE(writer.is_due());
  writer.write([] {});
  EXPECT_TRUE(writer.is_due());  // only paced ones count
  writer.write_paced([] { throw DataError("runs.write", "no space left"); });
  EXPECT_FALSE(writer.is_due());
}

}  // namespace
}  // namespace argosy::runs
