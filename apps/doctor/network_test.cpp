#include "apps/doctor/network.h"

#include <gtest/gtest.h>

namespace argosy::doctor {
namespace {

TEST(NetworkFindings, OfThisMachineAreWell) {
  const std::vector<Finding> findings = network_findings();
  EXPECT_TRUE(all_well(findings)) << render(findings);
  const std::string text = render(findings);
  EXPECT_NE(text.find("reaches itself at"), std::string::npos) << text;
  EXPECT_NE(text.find("answers in"), std::string::npos) << text;
  EXPECT_NE(text.find("free ones are chosen from "), std::string::npos) << text;
  EXPECT_NE(text.find("Gloo over TCP"), std::string::npos) << text;
}

}  // namespace
}  // namespace argosy::doctor
