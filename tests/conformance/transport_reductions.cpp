#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/conformance/elements.h"
#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using transport::DType;
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

void add(const std::vector<float>& more, std::vector<float>& sum) {
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] += more[i];
  }
}

/// Random numbers of very different size, for which every other order of the sum, and any
/// rounding on the way, gives other bits. The loop below is the contract: rank order, on each host
/// and then over the hosts where the transport tells them apart (two_hosts()).
TEST_P(TransportConformance, SumsInRankOrderToTheBit) {
  run([](Transport& t) {
    for (const size_t count : {size_t{100}, size_t{50021}, size_t{400009}}) {
      const auto values_of = [&](int rank) {
        std::mt19937 random(static_cast<uint32_t>(rank) * 7919U + 1U);
        std::vector<float> values(count);
        for (float& value : values) {
          value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40U) - 50);
          value = random() % 2U == 0 ? value : -value;
        }
        return values;
      };
      const auto sum_of = [&](int begin, int end) {
        std::vector<float> sum = values_of(begin);
        for (int r = begin + 1; r < end; ++r) {
          add(values_of(r), sum);
        }
        return sum;
      };
      const int first_host = t.name() == "hierarchical" ? (t.size() + 1) / 2 : t.size();
      std::vector<float> sum = sum_of(0, first_host);
      if (first_host < t.size()) {
        add(sum_of(first_host, t.size()), sum);
      }
      auto all = values_of(t.rank());
      t.all_reduce(all.data(), static_cast<int64_t>(count), DType::kF32, ReduceOp::kSum, kTimeout);
      ASSERT_EQ(0, std::memcmp(all.data(), sum.data(), count * sizeof(float)));

      auto one = values_of(t.rank());
      const int root = t.size() - 1;
      t.reduce(
          one.data(), static_cast<int64_t>(count), DType::kF32, ReduceOp::kSum, root, kTimeout);
      if (t.rank() == root) {
        ASSERT_EQ(0, std::memcmp(one.data(), sum.data(), count * sizeof(float)));
      }
    }
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
