/// The sums of NCCL's exact mode, which a device makes by libtorch's operators, against
/// transport::reduce() on the host: the same bits, whatever the type, the reduction and the tree.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/device_queues.h"
#include "argosy/comm/sum_program.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/transport/leaf_deal.h"
#include "argosy/transport/nccl/nccl.h"
#include "argosy/transport/reduce.h"
#include "argosy/transport/transport.h"

#include "tests/conformance/elements.h"
#include "tests/support/on_devices.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;
using conformance::kAllOps;
using conformance::kAllTypes;
using Bytes = std::vector<uint8_t>;

/// Enough for the paths of a kernel that are for many elements, and no multiple of a vector.
constexpr int64_t kCount = 20003;

/// Where the fields of a float lie. All zero: it is none.
struct FloatFields {
  uint64_t exponent = 0;
  uint64_t mantissa = 0;
  uint64_t one = 0;  ///< the exponent of 1.0

  static FloatFields of(DType dtype) {
    switch (dtype) {
      case DType::kF32:
        return {0x7f800000, 0x007fffff, 0x3f800000};
      case DType::kF64:
        return {0x7ff0000000000000, 0x000fffffffffffff, 0x3ff0000000000000};
      case DType::kF16:
        return {0x7c00, 0x03ff, 0x3c00};
      case DType::kBf16:
        return {0x7f80, 0x007f, 0x3f80};
      default:
        return {};
    }
  }
  [[nodiscard]] bool is_nan(uint64_t bits) const {
    return mantissa != 0 && (bits & exponent) == exponent && (bits & mantissa) != 0;
  }
};

/// Any bits: of floats every fourth number, NaN, infinity and denormals among them. Some are zeros
/// of both signs, and the others of much the same size, so that each sum has something to round.
Bytes some_elements(DType dtype, int64_t count, std::mt19937_64& draw) {
  const FloatFields fields = FloatFields::of(dtype);
  const size_t size = size_of(dtype);
  Bytes bytes(static_cast<size_t>(count) * size);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    uint64_t bits = draw();
    if (i % 16 == 1) {
      bits &= ~(fields.exponent | fields.mantissa);
    } else if (fields.mantissa != 0 && i % 4 != 0) {
      const uint64_t step = uint64_t{1} << static_cast<unsigned>(std::popcount(fields.mantissa));
      bits = (bits & ~fields.exponent) + fields.one + draw() % 4 * step;
    }
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

/// Where the bits differ first. Which of its bits a NaN has nobody promises. -1: nowhere.
int64_t first_difference(DType dtype, const Bytes& a, const Bytes& b) {
  const FloatFields fields = FloatFields::of(dtype);
  const size_t size = size_of(dtype);
  for (size_t i = 0; i * size < a.size(); ++i) {
    uint64_t one = 0, other = 0;
    std::memcpy(&one, a.data() + i * size, size);
    std::memcpy(&other, b.data() + i * size, size);
    if (one != other && !(fields.is_nan(one) && fields.is_nan(other))) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

class Exact : public test::OnDevices {
 protected:
  void SetUp() override {
    OnDevices::SetUp();
    if (!IsSkipped() && !is_cuda()) {
      comm::set_stream_handle(test::second_device().type(), &test::handle_of);
    }
  }

  /// Memory of the device that begins `skew` bytes behind an aligned address.
  [[nodiscard]] at::Tensor there(const Bytes& bytes, size_t skew) const {
    const auto size = static_cast<int64_t>(bytes.size());
    const auto begin = static_cast<int64_t>(skew);
    const at::Tensor memory = at::empty({begin + size}, at::kByte);
    std::copy(bytes.begin(), bytes.end(), memory.data_ptr<uint8_t>() + skew);
    return memory.to(device()).narrow(0, begin, size);
  }
  [[nodiscard]] static Bytes here(const at::Tensor& tensor) {
    const at::Tensor copy = tensor.cpu().contiguous();
    const auto* const data = copy.data_ptr<uint8_t>();
    return {data, data + copy.numel()};
  }

  /// A sum of these terms, on the host and on the device; the result goes where term `into` lies,
  /// or where none does.
  void compare(const LeafDeal::Sum& order,
               int64_t leaves,
               const std::vector<Bytes>& elements,
               DType dtype,
               ReduceOp op,
               int into = -1) const {
    for (const bool skewed : {false, true}) {
      compare_at(order, leaves, elements, dtype, op, into, skewed);
    }
  }

 private:
  /// `skewed`: every other term begins behind an aligned address.
  void compare_at(const LeafDeal::Sum& order,
                  int64_t leaves,
                  const std::vector<Bytes>& elements,
                  DType dtype,
                  ReduceOp op,
                  int into,
                  bool skewed) const {
    const int count = static_cast<int>(order.terms.size());
    const auto terms = [&](const std::vector<const void*>& data) {
      return Terms{data.data(), order.merges.data(), count, leaves};
    };
    std::vector<const void*> on_host;
    std::vector<const void*> on_device;
    std::vector<at::Tensor> memory;
    for (size_t i = 0; i < order.terms.size(); ++i) {
      on_host.push_back(elements[i].data());
      memory.push_back(there(elements[i], skewed ? i % 2 * size_of(dtype) : 0));
      on_device.push_back(memory.back().data_ptr());
    }
    Bytes wanted(elements[0].size());
    reduce(terms(on_host), wanted.data(), kCount, dtype, op);

    const at::Tensor result =
        into < 0 ? there(Bytes(wanted.size(), 0x5a), 0) : memory[static_cast<size_t>(into)];
    const std::unique_ptr<DeviceQueue> queue = comm::queues_of(device())->make();
    const auto inside = queue->enter();
    queue->follow(*queue->mark_of_caller());
    const bool by_kernel = is_cuda() && (op == ReduceOp::kSum || op == ReduceOp::kAvg) &&
                           FloatFields::of(dtype).mantissa != 0;
    EXPECT_EQ(comm::prepare_sum(device(), terms(on_device), dtype, op), by_kernel);
    queue->reduce(terms(on_device), result.data_ptr(), kCount, dtype, op);
    queue->mark()->hold_caller();
    EXPECT_EQ(first_difference(dtype, here(result), wanted), -1)
        << to_string(op) << " of " << count << " terms of " << to_string(dtype)
        << (skewed ? ", skewed" : "");
  }
};

TEST_P(Exact, SumsHaveTheHostsBits) {
  std::mt19937_64 draw(39);
  for (const DType dtype : kAllTypes) {
    std::vector<Bytes> elements;
    for (int i = 0; i < 8; ++i) {
      elements.push_back(some_elements(dtype, kCount, draw));
    }
    for (const ReduceOp op : kAllOps) {
      for (const int ranks : {1, 2, 3, 5, 8}) {
        if (is_defined(op, dtype)) {
          const LeafDeal deal = LeafDeal::one_each(ranks);
          compare(deal.sums().front(), deal.leaves(), elements, dtype, op);
        }
      }
    }
  }
}

TEST_P(Exact, ASumMayLieWhereATermDoes) {
  std::mt19937_64 draw(40);
  const LeafDeal deal = LeafDeal::one_each(3);
  for (const DType dtype : kAllTypes) {
    std::vector<Bytes> elements;
    for (int i = 0; i < 3; ++i) {
      elements.push_back(some_elements(dtype, kCount, draw));
    }
    for (const int into : {0, 1, 2}) {
      compare(deal.sums().front(), deal.leaves(), elements, dtype, ReduceOp::kSum, into);
    }
  }
}

/// What one process adds of its virtual ranks: several sums, which are not the whole tree.
TEST_P(Exact, OneRankAddsItsVirtualRanksAsOnTheHost) {
  std::mt19937_64 draw(41);
  const std::unique_ptr<Transport> alone =
      make_nccl(rendezvous::in_process_store(), 0, 1, {.queues = comm::queues_of(device())});
  const LeafDeal whole = LeafDeal::in_ranges(13, 3);
  for (const int of : {0, 1, 2}) {
    const LeafDeal deal = whole.leaves_of(of);
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kI32}) {
      std::vector<Bytes> elements;
      std::vector<at::Tensor> memory;
      std::vector<const void*> on_host, on_device;
      for (size_t i = 0; i < deal.nodes(0).size(); ++i) {
        elements.push_back(some_elements(dtype, kCount, draw));
        memory.push_back(there(elements.back(), 0));
      }
      for (size_t i = 0; i < elements.size(); ++i) {
        on_host.push_back(elements[i].data());
        on_device.push_back(memory[i].data_ptr());
      }
      std::vector<Bytes> wanted(deal.sums().size(), Bytes(elements[0].size()));
      std::vector<at::Tensor> sums;
      std::vector<void*> to_host, to_device;
      for (Bytes& sum : wanted) {
        sums.push_back(there(Bytes(sum.size(), 0x5a), 0));
        to_host.push_back(sum.data());
        to_device.push_back(sums.back().data_ptr());
      }
      reduce_alone({deal, on_host, to_host}, kCount, dtype, ReduceOp::kSum);
      alone->all_reduce({deal, on_device, to_device}, kCount, dtype, ReduceOp::kSum, 20s);
      alone->queue()->mark()->hold_caller();
      for (size_t i = 0; i < sums.size(); ++i) {
        EXPECT_EQ(first_difference(dtype, here(sums[i]), wanted[i]), -1)
            << "sum " << i << " of rank " << of << " in " << to_string(dtype);
      }
    }
  }
}

ARGOSY_ON_DEVICES(Exact);

}  // namespace
}  // namespace argosy::transport
