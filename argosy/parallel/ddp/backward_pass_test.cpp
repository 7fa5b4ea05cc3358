#include "argosy/parallel/ddp/backward_pass.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::parallel::ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BackwardPass, BucketsAreTakenInOrderWhicheverIsCompleteFirst) {
  BackwardPass pass({1, 2});  // parameter 0 in bucket 0, parameters 1 and 2 in bucket 1
  pass.mark_ready(2, 1);
  pass.mark_ready(1, 1);
  EXPECT_EQ(pass.take_complete(), std::nullopt);
  EXPECT_THAT(pass.not_ready(), ElementsAre(0));
  pass.mark_ready(0, 0);
  EXPECT_EQ(pass.take_complete(), 0);
  EXPECT_TRUE(pass.is_taken(0));
  EXPECT_FALSE(pass.is_taken(1));
  EXPECT_EQ(pass.take_complete(), 1);
  EXPECT_EQ(pass.take_complete(), std::nullopt);
  EXPECT_EQ(pass.ready_count(), 3);
  EXPECT_THAT(pass.not_ready(), IsEmpty());
}

TEST(BackwardPass, AfterARestartNothingIsReady) {
  BackwardPass pass({1, 1});
  pass.mark_ready(0, 0);
  EXPECT_EQ(pass.take_complete(), 0);
  pass.restart();
  EXPECT_FALSE(pass.is_ready(0));
  EXPECT_FALSE(pass.is_taken(0));
  EXPECT_EQ(pass.ready_count(), 0);
  EXPECT_THAT(pass.not_ready(), ElementsAre(0, 1));
  pass.mark_ready(0, 0);
  EXPECT_EQ(pass.take_complete(), 0);
  EXPECT_EQ(pass.take_complete(), std::nullopt);
}

}  // namespace
}  // namespace argosy::parallel::ddp
