#include "argosy/rpc/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include "argosy/base/error.h"

namespace argosy::rpc {
namespace {

constexpr std::array kTypes{at::kFloat,
                            at::kDouble,
                            at::kHalf,
                            at::kBFloat16,
                            at::kLong,
                            at::kInt,
                            at::kShort,
                            at::kChar,
                            at::kByte,
                            at::kBool,
                            at::kComplexFloat,
                            at::kComplexDouble};

[[noreturn]] void wrong_tensor(const std::string& expected, const std::string& got) {
  throw UsageError("rpc.value", fmt::format("expected {}, got {}", expected, got));
}

at::ScalarType type_of(const std::string& name) {
  const auto found =
      std::ranges::find_if(kTypes, [&](at::ScalarType type) { return name == at::toString(type); });
  if (found == kTypes.end()) {
    wrong_tensor("a tensor of a type that travels", "one of " + name);
  }
  return *found;
}

/// Returns the bytes that a tensor of these sizes has.
uint64_t bytes_of(const std::vector<int64_t>& sizes, at::ScalarType type) {
  uint64_t bytes = c10::elementSize(type);
  for (const int64_t size : sizes) {
    if (size < 0 ||
        (size > 0 && bytes > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(size))) {
      wrong_tensor("sizes of a tensor", fmt::format("[{}]", fmt::join(sizes, ", ")));
    }
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

}  // namespace

void Codec<at::Tensor>::put(Writer& writer, const at::Tensor& tensor) {
  writer.begin_list();
  if (tensor.defined()) {
    const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
    (void)type_of(at::toString(plain.scalar_type()));
    writer.text(at::toString(plain.scalar_type()));
    Codec<std::vector<int64_t>>::put(writer, plain.sizes().vec());
    const auto kept = std::make_shared<const at::Tensor>(plain);
    writer.memory(
        Memory::of({static_cast<const std::byte*>(plain.data_ptr()), plain.nbytes()}, kept));
  }
  writer.end_list();
}

at::Tensor Codec<at::Tensor>::take(Reader& reader) {
  if (reader.begin_list() == 0) {
    reader.end_list();
    return {};
  }
  const at::ScalarType type = type_of(std::string(reader.text()));
  const auto sizes = Codec<std::vector<int64_t>>::take(reader);
  Memory memory = reader.memory();
  reader.end_list();
  if (const uint64_t bytes = bytes_of(sizes, type); bytes != memory.size()) {
    wrong_tensor(fmt::format("{} bytes of a tensor [{}]", bytes, fmt::join(sizes, ", ")),
                 fmt::format("{} bytes", memory.size()));
  }
  if (memory.size() == 0) {
    return at::empty(sizes, type);
  }
  void* const data = const_cast<std::byte*>(memory.bytes().data());
  return at::from_blob(
      data, sizes, [memory = std::move(memory)](void*) {}, at::TensorOptions(type));
}

}  // namespace argosy::rpc
