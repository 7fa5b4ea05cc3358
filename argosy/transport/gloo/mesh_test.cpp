#include "argosy/transport/gloo/mesh.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace argosy::transport {
namespace {

TEST(MeshSlots, LengthsThatDifferHaveSlotsOfTheirOwn) {
  std::set<uint64_t> collective;
  std::set<uint64_t> messages;
  size_t lengths = 0;
  const auto add = [&](int64_t bytes) {
    ++lengths;
    collective.insert(collective_slot(7, 1, bytes));
    messages.insert(message_slot(7, static_cast<size_t>(bytes)));
  };
  for (int64_t bytes = 1; bytes <= 64; ++bytes) {
    add(bytes);
    add((int64_t{1} << 20) + bytes - 1);  // a fold of their bits would be those above
    add((int64_t{1} << 24) + bytes - 1);
  }
  for (int power = 25; power < 40; ++power) {
    add(int64_t{1} << power);
  }
  EXPECT_EQ(collective.size(), lengths);
  EXPECT_EQ(messages.size(), lengths);
}

TEST(MeshSlots, OperationsPhasesAndKindsHaveTheirOwn) {
  EXPECT_NE(collective_slot(7, 1, 64), collective_slot(8, 1, 64));
  EXPECT_NE(collective_slot(7, 1, 64), collective_slot(7, 2, 64));
  EXPECT_NE(collective_slot(7, 0, 64), message_slot(7, 64));
}

}  // namespace
}  // namespace argosy::transport
