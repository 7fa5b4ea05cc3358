#include "argosy/checkpoint/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/data_error.h"
#include "argosy/checkpoint/safetensors_type.h"
#include "argosy/engine/parts.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

using formats::SafetensorEntry;
using formats::SafetensorsFile;

[[noreturn]] void fail_safetensors(const std::string& name, const std::string& what) {
  throw CheckpointError("checkpoint.save_weights", what, {{}, name});
}

at::Tensor read_tensor(const SafetensorsFile& file, const SafetensorEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, scalar_type_of(entry.type));
  auto* bytes = static_cast<std::byte*>(tensor.data_ptr());
  const auto size = static_cast<size_t>(entry.bytes);
  file.read(entry, {bytes, size});
  if (entry.type == formats::SafetensorType::kBool) {  // another byte is no bool to a compiler
    std::transform(bytes, bytes + size, bytes, [](std::byte b) {
      return b == std::byte{0} ? b : std::byte{1};
    });
  }
  return tensor;
}

}  // namespace

engine::StateDict read_safetensors(const std::string& path, SafetensorsMetadata* metadata) {
  try {
    const SafetensorsFile file(path);
    engine::StateDict dict;
    for (const SafetensorEntry& entry : file.header().entries) {
      dict.set(entry.name, read_tensor(file, entry));
    }
    if (metadata != nullptr) {
      *metadata = file.header().metadata;
    }
    return dict;
  } catch (const DataError& error) {
    throw_as_checkpoint("checkpoint.read_weights", path, error);
  }
}

void check_is_here(const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.layout() == at::kStrided && tensor.numel() > 0 &&
      tensor.storage().data() == nullptr && !engine::is_in_file(tensor)) {
    fail_safetensors(name,
                     "ranks divide its values, and they are not all here. Save by fleet::save(), "
                     "or hold model.whole_parameters() meanwhile");
  }
}

SafetensorEntry describe_safetensor(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    fail_safetensors(name, "expected a tensor, got nothing");
  }
  check_is_here(name, tensor);
  if (tensor.layout() != at::kStrided) {
    fail_safetensors(name, "expected a dense tensor, got a sparse one. Convert it by to_dense()");
  }
  const auto type = safetensor_type_of(tensor.scalar_type());
  if (!type) {
    fail_safetensors(
        name,
        fmt::format("safetensors have no type for {}. {}",
                    c10::toString(tensor.scalar_type()),
                    tensor.is_complex() ? "Save at::view_as_real() of it" : "Convert it first"));
  }
  return {.name = name,
          .type = *type,
          .shape = tensor.sizes().vec(),
          .offset = 0,
          .bytes = static_cast<int64_t>(tensor.nbytes())};
}

void write_safetensors(const std::string& path,
                       const engine::StateDict& dict,
                       const SafetensorsMetadata& metadata) {
  const c10::NoGradGuard no_grad;
  std::vector<SafetensorEntry> entries;
  for (const auto& [name, tensor] : dict) {
    entries.push_back(describe_safetensor(name, tensor));
  }
  try {
    const formats::SafetensorsLayout layout =
        formats::lay_out_safetensors(std::move(entries), metadata);
    std::vector<size_t> order(dict.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) {
      const SafetensorEntry& entry = layout.header.entries[i];
      return std::pair(entry.offset, entry.bytes);
    });
    auto file = os::WholeFile::create(path).or_throw<CheckpointError>("checkpoint.save_weights",
                                                                      CheckpointPlace{path});
    file.write(layout.head);
    for (const size_t i : order) {
      const at::Tensor& tensor = (dict.begin() + static_cast<ptrdiff_t>(i))->second;
      const at::Tensor own = engine::values_of(tensor).detach().cpu().resolve_neg().contiguous();
      file.write({static_cast<const std::byte*>(own.data_ptr()), own.nbytes()});
    }
    file.commit().or_throw<CheckpointError>("checkpoint.save_weights", CheckpointPlace{path});
  } catch (const DataError& error) {
    throw_as_checkpoint("checkpoint.save_weights", path, error);
  }
}

}  // namespace argosy::checkpoint
