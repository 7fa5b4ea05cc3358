#include "argosy/comm/sum_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "argosy/engine/device_program.h"

namespace argosy::comm {
namespace {

using engine::DeviceProgram;
using transport::DType;
using transport::ReduceOp;
using transport::Terms;

constexpr const char* kKernel = "sum";
constexpr int kMostTerms = 64;  // their addresses are a kernel's arguments
constexpr size_t kMostPrograms = 64;
constexpr uintptr_t kVectorBytes = 16;
constexpr int64_t kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 20;

/// How elements are stored and added.
struct Kind {
  const char* stored;
  const char* wide;
  const char* widen;  ///< a function or cast
  const char* narrow;
};

Kind kind_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {"double", "double", "", ""};
    case DType::kF16:
      return {"unsigned short", "float", "f16_value", "f16_bits"};
    case DType::kBf16:
      return {"unsigned short", "float", "bf16_value", "bf16_bits"};
    default:
      return {"float", "float", "", ""};
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBf16;
}

/// "((t0 + t1) + t2)": `term(i)` in the tree's order.
template <typename Term>
std::string expression(const Terms& tree, Term term) {
  std::vector<std::string> stack;
  for (int i = 0; i < tree.count; ++i) {
    stack.push_back(term(i));
    for (int merge = 0; merge < tree.merges[i]; ++merge) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = fmt::format("({} + {})", stack.back(), right);
    }
  }
  return stack.front();
}

bool is_aligned(const void* address) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its number is what is asked
  return reinterpret_cast<uintptr_t>(address) % kVectorBytes == 0;
}

/// Programs by what they add; never taken out, for their kernels may be queued.
class Programs final {
 public:
  static Programs& all() {
    static auto* const programs = new Programs;  // NOLINT: outlives the transports' threads
    return *programs;
  }

  /// nullptr: there are too many already.
  DeviceProgram* find(const Terms& tree, DType dtype, bool average) {
    const std::string key = fmt::format("{} {} ", transport::to_string(dtype), average) +
                            std::string(tree.merges, tree.merges + tree.count);
    const std::lock_guard lock(mutex_);
    if (const auto known = programs_.find(key); known != programs_.end()) {
      return known->second.get();
    }
    if (programs_.size() >= kMostPrograms) {
      return nullptr;
    }
    auto made = std::make_unique<DeviceProgram>(
        fmt::format("sum of {} {}", tree.count, transport::to_string(dtype)),
        source_of_sum(tree, dtype, average));
    return programs_.emplace(key, std::move(made)).first->second.get();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<DeviceProgram>> programs_;
};

/// nullptr: there is no kernel for it.
DeviceProgram* program_for(c10::Device device, const Terms& terms, DType dtype, ReduceOp op) {
  const bool average = op == ReduceOp::kAvg;
  if (!device.is_cuda() || !is_float(dtype) || !(average || op == ReduceOp::kSum) ||
      terms.count > kMostTerms) {
    return nullptr;
  }
  DeviceProgram* const program = Programs::all().find(terms, dtype, average);
  return program != nullptr && program->runs_on(device) ? program : nullptr;
}

}  // namespace

std::string source_of_sum(const Terms& tree, DType dtype, bool average) {
  const Kind kind = kind_of(dtype);
  const std::string loads = [&] {
    std::string text;
    for (int i = 0; i < tree.count; ++i) {
      text += fmt::format("    const Vector v{0} = ((const Vector*)terms.data[{0}])[i];\n", i);
    }
    return text;
  }();
  const auto sum = [&](const char* term) {
    const std::string total =
        expression(tree, [&](int i) { return kind.widen + fmt::format(fmt::runtime(term), i); });
    return fmt::format("{}({}{})", kind.narrow, total, average ? " / divisor" : "");
  };
  return fmt::format(R"(
typedef {stored} T;
typedef {wide} Wide;
struct Terms {{ const T* data[{count}]; }};
enum {{ kWidth = {vector_bytes} / sizeof(T) }};
struct __align__({vector_bytes}) Vector {{ T e[kWidth]; }};
extern "C" __global__ void sum(Terms terms, T* to, long long vectors, long long count, Wide divisor) {{
  const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long step = gridDim.x * (long long)blockDim.x;
  for (long long i = first; i < vectors; i += step) {{
{loads}    Vector out;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {{
      out.e[e] = {sum_of_vectors};
    }}
    ((Vector*)to)[i] = out;
  }}
  for (long long i = vectors * kWidth + first; i < count; i += step) {{
    to[i] = {sum_of_elements};
  }}
}}
)",
                     fmt::arg("stored", kind.stored),
                     fmt::arg("wide", kind.wide),
                     fmt::arg("count", tree.count),
                     fmt::arg("vector_bytes", kVectorBytes),
                     fmt::arg("loads", loads),
                     fmt::arg("sum_of_vectors", sum("(v{}.e[e])")),
                     fmt::arg("sum_of_elements", sum("(terms.data[{}][i])")));
}

bool prepare_sum(c10::Device device, const Terms& terms, DType dtype, ReduceOp op) {
  DeviceProgram* const program = program_for(device, terms, dtype, op);
  if (program != nullptr) {
    program->prepare(device, kKernel);
  }
  return program != nullptr;
}

bool sum_by_kernel(c10::Device device,
                   const Terms& terms,
                   void* destination,
                   int64_t count,
                   DType dtype,
                   ReduceOp op) {
  DeviceProgram* const program = program_for(device, terms, dtype, op);
  if (program == nullptr) {
    return false;
  }
  if (count == 0) {
    return true;
  }
  std::array<const void*, kMostTerms> data{};
  std::copy_n(terms.data, terms.count, data.begin());
  const auto width = static_cast<int64_t>(kVectorBytes / transport::size_of(dtype));
  const bool aligned =
      is_aligned(destination) && std::all_of(terms.data, terms.data + terms.count, is_aligned);
  const int64_t vectors = aligned ? count / width : 0;
  const int64_t items = std::max(vectors, count - vectors * width);
  const int64_t blocks = std::clamp((items + kThreads - 1) / kThreads, int64_t{1}, kMostBlocks);
  const DeviceProgram::Grid grid{.blocks = static_cast<unsigned>(blocks), .threads = kThreads};
  const auto launch = [&](auto divisor) {
    program->launch(device,
                    kKernel,
                    grid,
                    data,
                    destination,
                    static_cast<long long>(vectors),  // NOLINT(google-runtime-int): the kernel's
                    static_cast<long long>(count),    // NOLINT(google-runtime-int)
                    divisor);
  };
  if (dtype == DType::kF64) {
    launch(static_cast<double>(terms.divisor));
  } else {
    launch(static_cast<float>(terms.divisor));
  }
  return true;
}

}  // namespace argosy::comm
