#include <algorithm>
#include <cstring>
#include <span>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/conformance/elements.h"
#include "tests/conformance/transport_conformance.h"

// Transports whose ranks share memory. The others say so, on every rank, and all cases pass.
namespace argosy::conformance {
namespace {

using transport::DType;
using transport::ReduceOp;
using transport::SharedBlock;
using transport::Transport;

std::shared_ptr<SharedBlock> share(Transport& t, size_t bytes) {
  std::shared_ptr<SharedBlock> block = t.share(bytes, kTimeout);
  int64_t with = block != nullptr ? 1 : 0;
  t.all_reduce(&with, 1, DType::kI64, ReduceOp::kSum, kTimeout);
  EXPECT_TRUE(with == 0 || with == t.size()) << with << " of " << t.size() << " ranks have a block";
  EXPECT_TRUE(block == nullptr || block->bytes().size() == bytes);
  return block;
}

/// Bytes that differ from rank to rank and are small numbers in every type but for the widest.
void fill(std::span<std::byte> part, DType dtype, ReduceOp op, int rank) {
  const auto element = static_cast<int64_t>(transport::size_of(dtype));
  for (int64_t i = 0; i < static_cast<int64_t>(part.size()) / element; ++i) {
    const std::string bytes = encode(dtype, static_cast<double>(input_value(dtype, op, rank, i)));
    std::memcpy(part.data() + i * element, bytes.data(), bytes.size());
  }
}

TEST_P(TransportConformance, ASharedBlockIsOneMemory) {
  run([](Transport& t) {
    constexpr size_t kPart = 10000;
    const auto block = share(t, kPart * static_cast<size_t>(t.size()));
    if (block == nullptr) {
      return;
    }
    const auto part = [&](int rank) {
      return block->bytes().subspan(kPart * static_cast<size_t>(rank), kPart);
    };
    for (const std::byte each : part(t.rank())) {
      ASSERT_EQ(each, std::byte{0});
    }
    std::memset(part(t.rank()).data(), 1 + t.rank(), kPart);
    t.barrier(kTimeout);
    for (int rank = 0; rank < t.size(); ++rank) {
      for (const std::byte each : part(rank)) {
        ASSERT_EQ(each, std::byte(1 + rank)) << "of rank " << rank;
      }
    }
    t.barrier(kTimeout);
    block->discard(kPart * static_cast<size_t>(t.rank()), kPart);
    t.barrier(kTimeout);
    int64_t left = 0;  // only whole pages are given back
    for (const std::byte each : block->bytes()) {
      left += each != std::byte{0} ? 1 : 0;
    }
    EXPECT_LE(left, int64_t{4096} * 2 * t.size());
    EXPECT_LT(left, static_cast<int64_t>(block->bytes().size()));
  });
}

TEST_P(TransportConformance, AllReduceWhereTheDataLiesGivesTheSameBits) {
  run([](Transport& t) {
    constexpr size_t kMost = 400012;
    const auto block = share(t, kMost * static_cast<size_t>(t.size()));
    if (block == nullptr) {
      return;
    }
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kI8, DType::kF64}) {
      for (const int64_t count : {17, 40001}) {
        const size_t bytes = static_cast<size_t>(count) * transport::size_of(dtype);
        // Each rank elsewhere, the last one first, at odd elements.
        const size_t begin = kMost * static_cast<size_t>(t.size() - 1 - t.rank()) + 24;
        std::ranges::fill(block->bytes().subspan(begin - 24, kMost), std::byte{0x5a});
        const std::span<std::byte> data = block->bytes().subspan(begin, bytes);
        fill(data, dtype, ReduceOp::kAvg, t.rank());
        std::vector<std::byte> copy(data.begin(), data.end());
        t.all_reduce(copy.data(), count, dtype, ReduceOp::kAvg, kTimeout);
        t.all_reduce(data.data(), count, dtype, ReduceOp::kAvg, kTimeout);
        ASSERT_EQ(std::memcmp(copy.data(), data.data(), bytes), 0)
            << transport::to_string(dtype) << ", " << count;
        for (size_t i = 0; i < 24; ++i) {
          ASSERT_EQ(block->bytes()[begin - 1 - i], std::byte{0x5a}) << "wrote before the data";
          ASSERT_EQ(block->bytes()[begin + bytes + i], std::byte{0x5a}) << "wrote behind the data";
        }
        t.barrier(kTimeout);  // the parts are filled anew
      }
    }
  });
}

TEST_P(TransportConformance, AllReduceOfDataThatOnlySomeRanksShare) {
  run([](Transport& t) {
    constexpr int64_t kCount = 200001;  // some rounds
    const auto block = share(t, kCount * 4 * static_cast<size_t>(t.size()));
    if (block == nullptr) {
      return;
    }
    for (int without = 0; without < t.size(); ++without) {
      std::vector<float> own(kCount);
      auto* const shared = reinterpret_cast<float*>(block->bytes().data()) + t.rank() * kCount;
      const std::span<float> data =
          t.rank() == without ? std::span<float>(own) : std::span<float>(shared, kCount);
      std::ranges::fill(data, static_cast<float>(t.rank() + without));
      t.all_reduce(data.data(), kCount, DType::kF32, ReduceOp::kSum, kTimeout);
      const int total = t.size() * (t.size() - 1) / 2 + without * t.size();
      const auto sum = static_cast<float>(total);
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(data[static_cast<size_t>(i)], sum) << "element " << i << ", not " << without;
      }
    }
  });
}

TEST_P(TransportConformance, AllReduceOfOneMemoryForAll) {
  run([](Transport& t) {
    constexpr int64_t kCount = 200001;
    const auto block = share(t, kCount * 4);
    if (block == nullptr) {
      return;
    }
    auto* const data = reinterpret_cast<float*>(block->bytes().data());
    if (t.rank() == 0) {
      std::fill_n(data, kCount, 3.0F);
    }
    t.barrier(kTimeout);
    t.all_reduce(data, kCount, DType::kF32, ReduceOp::kSum, kTimeout);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(data[i], 3.0F * static_cast<float>(t.size())) << "element " << i;
    }
  });
}

TEST_P(TransportConformance, ABlockOutlivesItsGroup) {
  run([](Transport& t) {
    const auto block = share(t, 100);
    if (block == nullptr) {
      return;
    }
    if (t.rank() == 0) {
      block->bytes()[0] = std::byte{7};
    }
    t.barrier(kTimeout);
    t.close();
    EXPECT_EQ(block->bytes()[0], std::byte{7});
    EXPECT_THROW((void)t.share(100, kTimeout), CommError);
  });
}

}  // namespace
}  // namespace argosy::conformance
