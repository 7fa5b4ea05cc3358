#include "argosy/comm/sum_program.h"

#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/engine/device_program.h"
#include "argosy/transport/leaf_deal.h"

#include "tests/support/emulated_program.h"

namespace argosy::comm {
namespace {

using transport::DType;
using transport::LeafDeal;
using transport::ReduceOp;
using transport::Terms;

constexpr int64_t kCount = 1003;  // no multiple of a vector

/// Any bits, of NaN, infinities and denormals too; every other number near 1.
std::vector<uint8_t> some_elements(DType dtype, std::mt19937_64& draw) {
  std::vector<uint8_t> bytes(kCount * transport::size_of(dtype) + 16);
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(draw());
  }
  for (int64_t i = 0; i < kCount; i += 2) {
    const double value = 1 + static_cast<double>(draw() % 10000) / 10000;
    const auto put = [&](auto number) {
      std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof number), &number, sizeof number);
    };
    switch (dtype) {
      case DType::kF64:
        put(value);
        break;
      case DType::kF32:
        put(static_cast<float>(value));
        break;
      case DType::kF16:
        put(transport::f32_to_f16(static_cast<float>(value)));
        break;
      default:
        put(transport::f32_to_bf16(static_cast<float>(value)));
    }
  }
  return bytes;
}

double value_at(DType dtype, const uint8_t* bytes, int64_t i) {
  const auto get = [&](auto number) {
    std::memcpy(&number, bytes + i * static_cast<int64_t>(sizeof number), sizeof number);
    return number;
  };
  switch (dtype) {
    case DType::kF64:
      return get(0.0);
    case DType::kF32:
      return get(0.0F);
    case DType::kF16:
      return transport::f16_to_f32(get(uint16_t{}));
    default:
      return transport::bf16_to_f32(get(uint16_t{}));
  }
}

struct Tree {
  LeafDeal deal;
  size_t sum = 0;
};

std::vector<Tree> trees() {
  std::vector<Tree> all;
  for (const int ranks : {1, 3, 8}) {
    all.push_back({LeafDeal::one_each(ranks)});
  }
  const LeafDeal uneven = LeafDeal::in_ranges(13, 3);
  for (size_t sum = 0; sum < uneven.sums().size(); ++sum) {
    all.push_back({uneven, sum});
  }
  return all;
}

void expect_same_bits(DType dtype, const Tree& tree, bool average, std::mt19937_64& draw) {
  const LeafDeal::Sum& order = tree.deal.sums()[tree.sum];
  std::vector<std::vector<uint8_t>> elements;
  std::array<const void*, 64> data{};
  for (size_t i = 0; i < order.terms.size(); ++i) {
    elements.push_back(some_elements(dtype, draw));
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    data.at(i) = elements[i].data();
  }
  const Terms terms{data.data(), order.merges.data(), static_cast<int>(elements.size()), 6};
  std::vector<uint8_t> wanted(elements[0].size()), got(elements[0].size());
  transport::reduce(terms, wanted.data(), kCount, dtype, average ? ReduceOp::kAvg : ReduceOp::kSum);

  const test::EmulatedProgram program(source_of_sum(terms, dtype, average), {"sum"});
  const auto launch = [&](int64_t vectors, auto divisor) {
    std::fill(got.begin(), got.end(), uint8_t{0xee});
    void* const to = got.data();
    // NOLINTNEXTLINE(google-runtime-int): the kernel's type
    program.launch("sum", {3, 32}, data, to, (long long)vectors, (long long)kCount, divisor);
  };
  const auto width = static_cast<int64_t>(16 / transport::size_of(dtype));
  for (const int64_t vectors : {int64_t{0}, kCount / width}) {
    dtype == DType::kF64 ? launch(vectors, 6.0) : launch(vectors, 6.0F);
    for (int64_t i = 0; i < kCount; ++i) {
      const double a = value_at(dtype, got.data(), i), b = value_at(dtype, wanted.data(), i);
      ASSERT_TRUE(std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b))
          << transport::to_string(dtype) << " element " << i << " of " << elements.size()
          << " terms, " << vectors << " vectors: " << a << " instead of " << b;
    }
  }
}

TEST(SumProgram, AddsInTheTreesOrderToTheBit) {
  std::mt19937_64 draw(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBf16}) {
    for (const Tree& tree : trees()) {
      expect_same_bits(dtype, tree, /*average=*/tree.deal.ranks() == 3, draw);
    }
  }
}

/// By the compiler of GPUs, where it is: it has its own idea of the language.
TEST(SumProgram, IsCompiledForGpus) {
  const LeafDeal deal = LeafDeal::one_each(8);
  const Terms tree{nullptr, deal.sums()[0].merges.data(), 8, 8};
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBf16}) {
    const engine::CompiledProgram made =
        engine::compile_program("sum", source_of_sum(tree, dtype, true), "sm_90");
    if (!made.has_compiler) {
      GTEST_SKIP() << made.error;
    }
    EXPECT_FALSE(made.code.empty()) << made.error;
  }
}

TEST(SumProgram, IsForDevicesOfCudaAndFloatsOnly) {
  float a = 1, b = 2, sum = 0;
  const std::array<const void*, 2> data{&a, &b};
  const std::array<uint8_t, 2> merges{0, 1};
  const Terms terms{data.data(), merges.data(), 2, 2};
  EXPECT_FALSE(sum_by_kernel(c10::kCPU, terms, &sum, 1, DType::kF32, ReduceOp::kSum));
  const c10::Device card(c10::kCUDA, 0);
  EXPECT_FALSE(sum_by_kernel(card, terms, &sum, 1, DType::kI32, ReduceOp::kSum));
  EXPECT_FALSE(sum_by_kernel(card, terms, &sum, 1, DType::kF32, ReduceOp::kMax));
}

}  // namespace
}  // namespace argosy::comm
