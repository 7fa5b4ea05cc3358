/// The _object operations, as threads.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/json.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using nlohmann::json;
using test::error_text;
using ::testing::HasSubstr;
using testing::with_threads;

/// Rank 0's is empty, rank 1's 1 MiB, the others' short; NUL bytes included.
std::string text(int rank) {
  const size_t size = rank == 0 ? 0 : rank == 1 ? size_t{1} << 20 : static_cast<size_t>(rank) * 3;
  std::string bytes(size, static_cast<char>('a' + rank));
  if (!bytes.empty()) {
    bytes[bytes.size() / 2] = '\0';
  }
  return bytes;
}

class ObjectTest : public ::testing::TestWithParam<int> {};

TEST_P(ObjectTest, BytesOfAnyLength) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    std::vector<std::string> all;
    for (int rank = 0; rank < n; ++rank) {
      all.push_back(text(rank));
    }
    EXPECT_TRUE(all_gather_object(text(world.rank()), world) == all);
    for (int root = 0; root < n; ++root) {
      const bool is_root = world.rank() == root;
      EXPECT_TRUE(broadcast_object(is_root ? text(root) : "ignored", world, {.root = root}) ==
                  text(root));
      EXPECT_TRUE(gather_object(text(world.rank()), world, {.root = root}) ==
                  (is_root ? all : std::vector<std::string>()));
      EXPECT_TRUE(scatter_object(is_root ? all : std::vector<std::string>(),
                                 world,
                                 {.root = root}) == text(world.rank()));
    }
  });
}

TEST_P(ObjectTest, JsonArrivesAsItWas) {
  with_threads(GetParam(), [](Group& world) {
    const auto value = [](int rank) {
      return json{{"rank", rank}, {"big", INT64_MAX - rank}, {"list", {1, "two", nullptr}}};
    };
    const std::vector<json> all = all_gather_object(value(world.rank()), world);
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_EQ(all[static_cast<size_t>(rank)], value(rank));
    }
    const json nan = broadcast_object(json(std::nan("")), world);
    EXPECT_TRUE(std::isnan(nan.get<double>()));
    EXPECT_EQ(gather_object(value(world.rank()), world).size(),
              world.rank() == 0 ? all.size() : 0U);
    EXPECT_EQ(scatter_object(world.rank() == 0 ? all : std::vector<json>(), world),
              value(world.rank()));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ObjectTest, ::testing::Values(1, 2, 3, 5));

TEST(Object, ScatterWantsOneValuePerRank) {
  with_threads(1, [](Group& world) {
    EXPECT_THAT(error_text<UsageError>([&] {
                  (void)scatter_object({"a", "b"}, world);
                }),
                HasSubstr("expected 1 values, one for each rank, got 2"));
  });
}

}  // namespace
}  // namespace argosy::comm
