#include "argosy/checkpoint/torch_file_write.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/torch_storage.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/parts.h"
#include "argosy/formats/pickler.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

using formats::PickleEntry;
using formats::PickleValue;

constexpr const char* kWrite = "checkpoint.save_weights";

/// The members of the archive, and the pickle that refers to them.
class TorchPickle final {
 public:
  explicit TorchPickle(std::string path) : path_(std::move(path)) {}

  /// What is in a file is read.
  void add(const std::string& name, const at::Tensor& tensor) {
    const bool in_file = tensor.defined() && engine::is_in_file(tensor);
    entries_.push_back({name, value_of(name, in_file ? engine::values_of(tensor) : tensor)});
  }

  [[nodiscard]] PickleValue entries() const { return PickleValue::ordered_dict(entries_); }
  /// Of the tensor that was added last, alone.
  [[nodiscard]] PickleValue last() const { return entries_.back().value; }
  /// Dense, on the CPU; member i is that of storage i.
  [[nodiscard]] const std::vector<at::Tensor>& storages() const { return storages_; }

 private:
  using Identity = std::
      tuple<const void*, at::ScalarType, std::vector<int64_t>, std::vector<int64_t>, bool, bool>;

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw CheckpointError(kWrite, what, {path_, name});
  }

  PickleValue value_of(const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) {
      fail(name, "expected a tensor, got nothing");
    }
    if (tensor.layout() != at::kStrided || storage_of_type(tensor.scalar_type()).empty()) {
      fail(name,
           fmt::format("expected a dense tensor of numbers, got one of type {}. Convert it first",
                       c10::toString(tensor.scalar_type())));
    }
    const Identity identity{tensor.data_ptr(),
                            tensor.scalar_type(),
                            tensor.sizes().vec(),
                            tensor.strides().vec(),
                            tensor.is_conj(),
                            tensor.is_neg()};
    const auto known = known_.find(identity);
    if (known != known_.end() && tensor.numel() > 0) {
      return known->second;
    }
    at::Tensor own = tensor.detach().cpu().resolve_conj().resolve_neg();
    own = engine::is_dense(own) ? own : own.contiguous();
    PickleValue value = describe(own);
    storages_.push_back(std::move(own));
    known_.insert_or_assign(identity, value);
    return value;
  }

  /// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
  [[nodiscard]] PickleValue describe(const at::Tensor& tensor) {
    const auto tuple = [](at::IntArrayRef values) {
      return PickleValue::tuple({values.begin(), values.end()});
    };
    const PickleValue storage =
        PickleValue::persistent(PickleValue::tuple({storage_word_,
                                                    storage_type(tensor.scalar_type()),
                                                    std::to_string(storages_.size()),
                                                    cpu_,
                                                    tensor.numel()}));
    return PickleValue::call(rebuild_,
                             {storage,
                              0,
                              tuple(tensor.sizes()),
                              tuple(tensor.strides()),
                              false,
                              PickleValue::ordered_dict({})});
  }

  /// One handle for each, so that it is written once.
  const PickleValue& storage_type(at::ScalarType type) {
    const auto known = types_.find(type);
    return known != types_.end()
               ? known->second
               : types_
                     .emplace(type,
                              PickleValue::global("torch", std::string(storage_of_type(type))))
                     .first->second;
  }

  std::string path_;
  std::vector<PickleEntry> entries_;
  std::vector<at::Tensor> storages_;
  std::map<Identity, PickleValue> known_;
  std::map<at::ScalarType, PickleValue> types_;
  const PickleValue storage_word_ = "storage";
  const PickleValue cpu_ = "cpu";
  const PickleValue rebuild_ = PickleValue::global("torch._utils", "_rebuild_tensor_v2");
};

void write_archive(const std::string& pickled,
                   const std::vector<at::Tensor>& storages,
                   os::WholeFile& file) {
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
    file.write({static_cast<const std::byte*>(data), size});
    return size;
  });
  const std::string byte_order = "little";
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  writer.writeRecord("byteorder", byte_order.data(), byte_order.size());
  for (std::size_t i = 0; i < storages.size(); ++i) {
    writer.writeRecord("data/" + std::to_string(i), storages[i].data_ptr(), storages[i].nbytes());
  }
  writer.writeEndOfFile();
}

}  // namespace

void write_torch_tensor(const std::string& name, const at::Tensor& tensor, os::WholeFile& file) {
  const c10::NoGradGuard no_grad;
  TorchPickle pickle(name);
  pickle.add(name, tensor);
  write_archive(formats::pickle(pickle.last()), pickle.storages(), file);
}

void write_torch_file(const std::string& path, const engine::StateDict& dict) {
  const c10::NoGradGuard no_grad;
  TorchPickle pickle(path);
  for (const auto& [name, tensor] : dict) {
    pickle.add(name, tensor);
  }
  auto file = os::WholeFile::create(path).or_throw<CheckpointError>(kWrite, CheckpointPlace{path});
  write_archive(formats::pickle(pickle.entries()), pickle.storages(), file);
  file.commit().or_throw<CheckpointError>(kWrite, CheckpointPlace{path});
}

}  // namespace argosy::checkpoint
