#include "argosy/os/random.h"

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

TEST(RandomHex, HasTwoDigitsForEachByteAndDiffersEachTime) {
  const std::string one = random_hex(16);
  EXPECT_EQ(one.size(), 32);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, random_hex(16));
  EXPECT_EQ(random_hex(0), "");
}

}  // namespace
}  // namespace argosy::os
