#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/transport/leaf_deal.h"

#include "tests/conformance/elements.h"
#include "tests/conformance/transport_conformance.h"
#include "tests/conformance/tree.h"

namespace argosy::conformance {
namespace {

using transport::DType;
using transport::LeafDeal;
using transport::ReduceOp;
using transport::Transport;

Buffer input_of(int rank, DType dtype, ReduceOp op, int64_t count, size_t skew = 0) {
  Buffer buffer(dtype, count, skew);
  for (int64_t i = 0; i < count; ++i) {
    buffer.set(i, encode(dtype, static_cast<double>(input_value(dtype, op, rank, i))));
  }
  return buffer;
}

/// The first element that differs, or nothing.
template <typename Expected>
void check(Buffer& buffer, int64_t count, const std::string& what, Expected expected_at) {
  ASSERT_TRUE(buffer.guard_holds()) << what << ": wrote behind the buffer";
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(buffer.get(i), expected_at(i)) << what << ", element " << i;
  }
}

template <typename Function>
void for_each_reduction(Function function) {
  for (const DType dtype : kAllTypes) {
    for (const ReduceOp op : kAllOps) {
      if (transport::is_defined(op, dtype)) {
        function(dtype,
                 op,
                 std::string(transport::to_string(op)) + " of " +
                     std::string(transport::to_string(dtype)));
      }
    }
  }
}

TEST_P(TransportConformance, AllReduceGivesTheClosedForm) {
  run([](Transport& t) {
    for_each_reduction([&](DType dtype, ReduceOp op, const std::string& what) {
      for (const int64_t count : {0, 1, 13, 1021}) {
        if (count > 1000 && t.size() > 3) {
          continue;  // more ranks than cores: AllReduceOfLargeUnalignedBuffers has them
        }
        Buffer data = input_of(t.rank(), dtype, op, count);
        t.all_reduce(data.data(), count, dtype, op, kTimeout);
        check(data, count, what, [&](int64_t i) { return expected(dtype, op, t.size(), i); });
      }
    });
  });
}

/// Sizes around the places where an implementation changes its way, at odd addresses.
TEST_P(TransportConformance, AllReduceOfLargeUnalignedBuffers) {
  run([](Transport& t) {
    for (const int64_t count : {8193, 100003, 1000003}) {
      const DType dtype = count == 100003 ? DType::kBf16 : DType::kF32;
      Buffer data = input_of(t.rank(), dtype, ReduceOp::kSum, count, 1);
      t.all_reduce(data.data(), count, dtype, ReduceOp::kSum, kTimeout);
      check(data, count, "large sum", [&](int64_t i) {
        return expected(dtype, ReduceOp::kSum, t.size(), i);
      });
    }
  });
}

TEST_P(TransportConformance, ReduceChangesTheRootOnly) {
  run([](Transport& t) {
    int root = 0;
    for_each_reduction([&](DType dtype, ReduceOp op, const std::string& what) {
      root = (root + 1) % t.size();
      for (const int64_t count : {0, 1, 17, 20011}) {
        if (count > 1000 && dtype != DType::kF32) {
          continue;
        }
        Buffer data = input_of(t.rank(), dtype, op, count, 1);
        t.reduce(data.data(), count, dtype, op, root, kTimeout);
        check(data, count, "reduce " + what, [&](int64_t i) {
          return t.rank() == root
                     ? expected(dtype, op, t.size(), i)
                     : encode(dtype, static_cast<double>(input_value(dtype, op, t.rank(), i)));
        });
      }
    });
  });
}

TEST_P(TransportConformance, ReduceScatterGivesEachRankItsPart) {
  run([](Transport& t) {
    for_each_reduction([&](DType dtype, ReduceOp op, const std::string& what) {
      for (const int64_t count : {0, 1, 19, 30011}) {
        if (count > 1000 && dtype != DType::kF16) {
          continue;
        }
        Buffer input = input_of(t.rank(), dtype, op, count * t.size(), 1);
        Buffer output(dtype, count);
        t.reduce_scatter(input.data(), output.data(), count, dtype, op, kTimeout);
        check(output, count, "reduce_scatter " + what, [&](int64_t i) {
          return expected(dtype, op, t.size(), t.rank() * count + i);
        });
        check(input, count * t.size(), "input of reduce_scatter", [&](int64_t i) {
          return encode(dtype, static_cast<double>(input_value(dtype, op, t.rank(), i)));
        });
      }
    });
  });
}

/// Equal bits, or both NaN: whose NaN it is depends on the order in which a processor takes the
/// two.
template <typename T>
int64_t first_difference(const T* got, const std::vector<T>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are what is compared
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0 &&
        !(std::isnan(static_cast<double>(got[i])) && std::isnan(static_cast<double>(want[i])))) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

/// How leaves become one value.
struct Rule {
  ReduceOp op;
  double (*combine)(double, double);  ///< of two numbers of the type, before it is rounded to it
};
constexpr Rule kRules[] = {
    {ReduceOp::kSum, [](double a, double b) { return a + b; }},
    {ReduceOp::kAvg, [](double a, double b) { return a + b; }},
    {ReduceOp::kProduct, [](double a, double b) { return a * b; }},
};

/// What elements `begin` … of a node are, by the definition. A sum or a product of two f32 in f64
/// is exact or rounds to f32 as one operation in f32 does, for f64 has more than twice the digits.
template <typename T>
std::vector<T> node_values(const transport::TreeNode& node,
                           const Rule& rule,
                           int64_t begin,
                           int64_t count) {
  std::vector<T> values;
  for (int64_t i = begin; i < begin + count; ++i) {
    values.push_back(tree_of<T>(
        static_cast<size_t>(node.first),
        static_cast<size_t>(node.leaves),
        [&](size_t leaf) { return static_cast<T>(leaf_value(leaf, i)); },
        [&](T a, T b) { return static_cast<T>(rule.combine(a, b)); }));
  }
  return values;
}

template <typename T>
std::vector<T> tree_values(int64_t leaves, const Rule& rule, int64_t begin, int64_t count) {
  std::vector<T> values = node_values<T>({0, leaves}, rule, begin, count);
  for (T& value : values) {
    value = rule.op == ReduceOp::kAvg ? value / static_cast<T>(leaves) : value;
  }
  return values;
}

/// The nodes of one rank, and the room for a result.
template <typename T>
class Brought final {
 public:
  Brought(const LeafDeal& deal, int rank, const Rule& rule, int64_t count, bool in_place)
      : deal_(deal), sum_(static_cast<size_t>(count)) {
    for (const transport::TreeNode& node : deal.nodes(rank)) {
      values_.push_back(node_values<T>(node, rule, 0, count));
    }
    for (const auto& values : values_) {
      nodes_.push_back(values.data());
    }
    place_ = in_place && !values_.empty() ? values_.back().data() : sum_.data();
  }
  [[nodiscard]] transport::TreeBuffers buffers() {
    return {.deal = deal_, .nodes = nodes_, .sums = {&place_, 1}};
  }
  [[nodiscard]] const T* sum() const { return static_cast<const T*>(place_); }

 private:
  const LeafDeal& deal_;
  std::vector<std::vector<T>> values_{};
  std::vector<const void*> nodes_{};
  std::vector<T> sum_;
  void* place_ = nullptr;
};

template <typename T>
constexpr DType kTypeOf = sizeof(T) == 4 ? DType::kF32 : DType::kF64;

template <typename T>
void check_tree(Transport& t, const LeafDeal& deal, const Rule& rule, int64_t count) {
  const bool in_place = deal.leaves() % 2 == 0;
  Brought<T> all(deal, t.rank(), rule, count, in_place);
  t.all_reduce(all.buffers(), count, kTypeOf<T>, rule.op, kTimeout);
  const std::vector<T> whole = tree_values<T>(deal.leaves(), rule, 0, count);
  ASSERT_EQ(first_difference(all.sum(), whole), -1) << "all_reduce";

  const int root = static_cast<int>(deal.leaves()) % t.size();
  Brought<T> one(deal, t.rank(), rule, count, in_place);
  t.reduce(one.buffers(), count, kTypeOf<T>, rule.op, root, kTimeout);
  if (t.rank() == root) {
    ASSERT_EQ(first_difference(one.sum(), whole), -1) << "reduce";
  }

  Brought<T> parts(deal, t.rank(), rule, count * t.size(), false);
  t.reduce_scatter(parts.buffers(), count, kTypeOf<T>, rule.op, kTimeout);
  ASSERT_EQ(
      first_difference(parts.sum(), tree_values<T>(deal.leaves(), rule, t.rank() * count, count)),
      -1)
      << "reduce_scatter";
}

/// In ranges; every size()-th leaf; the last rank first; all on one rank, and the others have none.
std::vector<LeafDeal> deals(int64_t leaves, int ranks) {
  std::vector<std::vector<int64_t>> in_turn(static_cast<size_t>(ranks)), backwards = in_turn,
                                                                         one = in_turn;
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    in_turn[static_cast<size_t>(leaf % ranks)].push_back(leaf);
    backwards[static_cast<size_t>(ranks - 1 - leaf * ranks / leaves)].push_back(leaf);
    one[static_cast<size_t>(ranks / 2)].push_back(leaf);
  }
  return {LeafDeal::in_ranges(leaves, ranks),
          LeafDeal::of_leaves(leaves, in_turn),
          LeafDeal::of_leaves(leaves, backwards),
          LeafDeal::of_leaves(leaves, one)};
}

TEST_P(TransportConformance, LeavesDealtInAnyWayGiveTheBitsOfTheTree) {
  run([](Transport& t) {
    for (int64_t leaves = 1; leaves <= 17; ++leaves) {
      for (const LeafDeal& deal : deals(leaves, t.size())) {
        for (const Rule& rule : kRules) {
          if (rule.op != ReduceOp::kSum && leaves % 4 != 1) {
            continue;  // the order is the same for all
          }
          SCOPED_TRACE(::testing::Message()
                       << leaves << " leaves, " << transport::to_string(rule.op));
          check_tree<float>(t, deal, rule, 89);
          if (leaves % 4 == 1) {
            check_tree<double>(t, deal, rule, 47);
          }
        }
      }
    }
  });
}

/// Around the borders of the blocks in which the transports and their kernels work.
TEST_P(TransportConformance, BlocksOfAnySizeGiveTheBitsOfTheTree) {
  run([](Transport& t) {
    const int64_t leaves = t.size() * 2 + 1;
    const auto in_ranges = LeafDeal::in_ranges(leaves, t.size());
    const auto one_each = LeafDeal::one_each(t.size());
    for (const int64_t border : {1024, 8192, 16384, 65536, 262144}) {
      for (const int64_t count : {border - 1, border, border + 1}) {
        if (count > 60000 && t.size() > 3 && count != border + 1) {
          continue;  // more ranks than cores
        }
        SCOPED_TRACE(::testing::Message() << count << " elements");
        check_tree<float>(t, one_each, kRules[0], count);
        if (count < 60000) {
          check_tree<float>(t, in_ranges, kRules[1], count);
        }
      }
    }
  });
}

/// The leaves are 16-bit floats; their sum is one of f32, and is rounded once.
TEST_P(TransportConformance, SumsOf16BitLeavesAreRoundedOnce) {
  run([](Transport& t) {
    constexpr int64_t kCount = 9001;
    const auto size = static_cast<size_t>(t.size());
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      std::vector<uint16_t> values;
      std::vector<uint16_t> want;
      for (int64_t i = 0; i < kCount; ++i) {
        const auto leaf = [&](size_t r) { return transport::f32_to_bf16(leaf_value(r, i)); };
        values.push_back(leaf(static_cast<size_t>(t.rank())));
        const auto sum = tree_of<float>(
            0,
            size,
            [&](size_t r) { return transport::bf16_to_f32(leaf(r)); },
            [](float a, float b) { return a + b; });
        want.push_back(
            transport::f32_to_bf16(op == ReduceOp::kAvg ? sum / static_cast<float>(size) : sum));
      }
      t.all_reduce(values.data(), kCount, DType::kBf16, op, kTimeout);
      for (size_t i = 0; i < values.size() && size > 1; ++i) {
        const float got = transport::bf16_to_f32(values[i]);
        ASSERT_TRUE(values[i] == want[i] ||
                    (std::isnan(got) && std::isnan(transport::bf16_to_f32(want[i]))))
            << i;
      }
    }
  });
}

TEST_P(TransportConformance, ADealThatDoesNotFitIsRefused) {
  run([](Transport& t) {
    const auto deal = LeafDeal::in_ranges(4, t.size() + 1);
    float value = 0;
    const void* const node = &value;
    void* const sum = &value;
    EXPECT_THROW(t.all_reduce({.deal = deal, .nodes = {&node, 1}, .sums = {&sum, 1}},
                              1,
                              DType::kF32,
                              ReduceOp::kSum,
                              kTimeout),
                 UsageError);
    const auto mine = LeafDeal::one_each(t.size());
    EXPECT_THROW(t.all_reduce({.deal = mine, .nodes = {}, .sums = {&sum, 1}},
                              1,
                              DType::kF32,
                              ReduceOp::kSum,
                              kTimeout),
                 UsageError);
    EXPECT_THROW(t.all_reduce({.deal = mine, .nodes = {&node, 1}, .sums = {}},
                              1,
                              DType::kF32,
                              ReduceOp::kSum,
                              kTimeout),
                 UsageError);
  });
}

TEST_P(TransportConformance, SpecialFloats) {
  run([](Transport& t) {
    if (t.size() == 1) {
      return;
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
      float value = t.rank() == 1 ? nan : 1.0F;
      t.all_reduce(&value, 1, DType::kF32, op, kTimeout);
      EXPECT_TRUE(std::isnan(value)) << transport::to_string(op);
    }
    float zero = -0.0F;
    t.all_reduce(&zero, 1, DType::kF32, ReduceOp::kSum, kTimeout);
    EXPECT_TRUE(std::signbit(zero)) << "the sum of -0.0 alone is -0.0";
    float infinite = t.rank() == 0 ? -HUGE_VALF : 5.0F;
    t.all_reduce(&infinite, 1, DType::kF32, ReduceOp::kMin, kTimeout);
    EXPECT_EQ(infinite, -HUGE_VALF);

    uint16_t sum = transport::f32_to_f16(60000);
    uint16_t average = sum;
    t.all_reduce(&sum, 1, DType::kF16, ReduceOp::kSum, kTimeout);
    t.all_reduce(&average, 1, DType::kF16, ReduceOp::kAvg, kTimeout);
    EXPECT_EQ(transport::f16_to_f32(sum), HUGE_VALF);
    EXPECT_EQ(transport::f16_to_f32(average), transport::f16_to_f32(transport::f32_to_f16(60000)));
    // 2048, then ones that each alone would be rounded away.
    uint16_t once = transport::f32_to_f16(t.rank() == 0 ? 2048 : 1);
    t.all_reduce(&once, 1, DType::kF16, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(once, transport::f32_to_f16(2048.0F + static_cast<float>(t.size() - 1)));
  });
}

}  // namespace
}  // namespace argosy::conformance
