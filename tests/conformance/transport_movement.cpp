#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/conformance/elements.h"
#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using transport::DType;
using transport::Transport;

/// A number that tells who sent which element to whom.
int32_t token(int from, int to, int64_t i) {
  return static_cast<int32_t>(from * 1'000'003 + to * 10'007 + i);
}

std::vector<int32_t> tokens(int from, int to, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = token(from, to, i);
  }
  return values;
}

void append(std::vector<int32_t>& all, const std::vector<int32_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

constexpr int64_t kCounts[] = {0, 1, 11, 70'001};

TEST_P(TransportConformance, BroadcastFromEveryRoot) {
  run([](Transport& t) {
    for (int root = 0; root < t.size(); ++root) {
      for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{11}, int64_t{700'001}}) {
        if (count > 1000 && root > 2) {
          continue;
        }
        auto data = tokens(t.rank(), 0, count);
        t.broadcast(data.data(), count, DType::kI32, root, kTimeout);
        ASSERT_EQ(data, tokens(root, 0, count)) << "root " << root << ", " << count;
      }
    }
  });
}

/// Every element type travels byte for byte, from odd addresses too.
TEST_P(TransportConformance, BroadcastKeepsEveryByte) {
  run([](Transport& t) {
    for (const DType dtype : kAllTypes) {
      std::string bytes(1 + 31 * transport::size_of(dtype), '\0');
      for (size_t i = 1; i < bytes.size() && t.rank() == 0; ++i) {
        bytes[i] = static_cast<char>(i * 37);
      }
      t.broadcast(bytes.data() + 1, 31, dtype, 0, kTimeout);
      for (size_t i = 1; i < bytes.size(); ++i) {
        ASSERT_EQ(bytes[i], static_cast<char>(i * 37)) << transport::to_string(dtype);
      }
    }
  });
}

TEST_P(TransportConformance, AllGatherInRankOrder) {
  run([](Transport& t) {
    for (const int64_t count : kCounts) {
      std::vector<int32_t> expected;
      for (int r = 0; r < t.size(); ++r) {
        append(expected, tokens(r, 0, count));
      }
      const auto input = tokens(t.rank(), 0, count);
      std::vector<int32_t> output(expected.size());
      t.all_gather(input.data(), output.data(), count, DType::kI32, kTimeout);
      ASSERT_EQ(output, expected);

      std::vector<int32_t> in_place(expected.size());
      std::copy(input.begin(), input.end(), in_place.begin() + t.rank() * count);
      t.all_gather(
          in_place.data() + t.rank() * count, in_place.data(), count, DType::kI32, kTimeout);
      ASSERT_EQ(in_place, expected);
    }
  });
}

TEST_P(TransportConformance, AllGatherOfUnevenParts) {
  run([](Transport& t) {
    // Some ranks have nothing; then all of them.
    for (const int64_t scale : {1, 0}) {
      std::vector<int64_t> counts;
      std::vector<int32_t> expected;
      for (int r = 0; r < t.size(); ++r) {
        counts.push_back(scale * (r % 3) * 9);
        append(expected, tokens(r, 1, counts.back()));
      }
      const auto input = tokens(t.rank(), 1, counts[static_cast<size_t>(t.rank())]);
      std::vector<int32_t> output(expected.size());
      t.all_gather_v(input.data(), output.data(), counts, DType::kI32, kTimeout);
      ASSERT_EQ(output, expected);
    }
  });
}

TEST_P(TransportConformance, GatherAndScatterAtEveryRoot) {
  run([](Transport& t) {
    for (int root = 0; root < t.size(); ++root) {
      for (const int64_t count : kCounts) {
        if (count > 1000 && root > 1) {
          continue;
        }
        const auto input = tokens(t.rank(), root, count);
        std::vector<int32_t> all(t.rank() == root ? static_cast<size_t>(count * t.size()) : 0);
        t.gather(input.data(), all.data(), count, DType::kI32, root, kTimeout);
        std::vector<int32_t> expected;
        for (int r = 0; r < t.size(); ++r) {
          append(expected, tokens(r, root, count));
        }
        if (t.rank() == root) {
          ASSERT_EQ(all, expected);
        }
        std::vector<int32_t> back(static_cast<size_t>(count));
        t.scatter(all.data(), back.data(), count, DType::kI32, root, kTimeout);
        ASSERT_EQ(back, input);
      }
    }
  });
}

TEST_P(TransportConformance, AllToAllCrossesEveryPart) {
  run([](Transport& t) {
    for (const int64_t count : kCounts) {
      std::vector<int32_t> input, expected;
      for (int r = 0; r < t.size(); ++r) {
        append(input, tokens(t.rank(), r, count));
        append(expected, tokens(r, t.rank(), count));
      }
      std::vector<int32_t> output(expected.size());
      t.all_to_all(input.data(), output.data(), count, DType::kI32, kTimeout);
      ASSERT_EQ(output, expected);
    }
  });
}

TEST_P(TransportConformance, AllToAllOfUnevenParts) {
  run([](Transport& t) {
    const auto count = [](int from, int to) { return int64_t{((from * 3 + to * 5) % 4) * 6}; };
    std::vector<int64_t> sends, receives;
    std::vector<int32_t> input, expected;
    for (int r = 0; r < t.size(); ++r) {
      sends.push_back(count(t.rank(), r));
      receives.push_back(count(r, t.rank()));
      append(input, tokens(t.rank(), r, sends.back()));
      append(expected, tokens(r, t.rank(), receives.back()));
    }
    std::vector<int32_t> output(expected.size());
    t.all_to_all_v(input.data(), sends, output.data(), receives, DType::kI32, kTimeout);
    ASSERT_EQ(output, expected);
  });
}

/// Each rank in turn comes late, so that a barrier which overlooks it lets somebody through.
TEST_P(TransportConformance, BarrierWaitsForEveryRank) {
  SharedCounter arrived;
  run([&](Transport& t) {
    for (int late = 0; late < t.size(); ++late) {
      if (t.rank() == late) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      arrived.add(1);
      t.barrier(kTimeout);
      ASSERT_GE(arrived.add(0), int64_t{late + 1} * t.size()) << "late: rank " << late;
      t.barrier(kTimeout);
    }
  });
}

TEST_P(TransportConformance, RefusesWrongArguments) {
  run([](Transport& t) {
    int32_t value = 0;
    EXPECT_THROW(t.broadcast(&value, 1, DType::kI32, t.size(), kTimeout), UsageError);
    EXPECT_THROW(t.broadcast(&value, -1, DType::kI32, 0, kTimeout), UsageError);
    EXPECT_THROW(t.all_reduce(&value, 1, DType::kBool, transport::ReduceOp::kAvg, kTimeout),
                 UsageError);
    EXPECT_THROW((void)t.send(&value, 4, t.rank(), 0), UsageError);
    const std::vector<int64_t> counts(static_cast<size_t>(t.size() + 1));
    EXPECT_THROW(t.all_gather_v(&value, &value, counts, DType::kI32, kTimeout), UsageError);
    t.barrier(kTimeout);  // and none of it broke anything
  });
}

}  // namespace
}  // namespace argosy::conformance
