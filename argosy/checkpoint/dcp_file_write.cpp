#include "argosy/checkpoint/dcp_file_write.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/checkpoint/torch_file_write.h"
#include "argosy/formats/pickler.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

using formats::PickleEntry;
using formats::PickleValue;

constexpr const char* kWriteDcp = "checkpoint.write_dcp";
constexpr const char* kDataFile = "__0_0.distcp";

std::string_view python_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return "";
  }
}

/// The objects of `.metadata`; a class is pickled once.
class DcpMetadata final {
 public:
  void add(const std::string& name, const at::Tensor& tensor, int64_t offset, int64_t length) {
    const PickleValue sizes = size(tensor.sizes());
    const PickleValue zeros = size(std::vector<int64_t>(tensor.sizes().size(), 0));
    const PickleValue chunk = PickleValue::call(chunk_, {zeros, sizes});
    tensors_.push_back(
        {name,
         PickleValue::call(
             tensor_,
             {PickleValue::call(properties_, {type(tensor)}), sizes, PickleValue::list({chunk})})});
    paths_.push_back({name, PickleValue::tuple({name})});
    places_.push_back({PickleValue::call(index_, {name, zeros, 0}),
                       PickleValue::call(place_, {kDataFile, offset, length})});
  }
  [[nodiscard]] std::string bytes() const {
    return formats::pickle(PickleValue::call(
        metadata("Metadata"),
        {PickleValue::dict(tensors_), PickleValue::dict(paths_), PickleValue::dict(places_)}));
  }

 private:
  static PickleValue metadata(const char* name) {
    return PickleValue::global("torch.distributed.checkpoint.metadata", name);
  }
  [[nodiscard]] PickleValue size(at::IntArrayRef dims) const {
    return PickleValue::call(size_, {PickleValue::tuple({dims.begin(), dims.end()})});
  }
  [[nodiscard]] const PickleValue& type(const at::Tensor& tensor) {
    const auto [known, added] = types_.try_emplace(tensor.scalar_type());
    if (added) {
      known->second = PickleValue::global("torch", std::string(python_type(tensor.scalar_type())));
    }
    return known->second;
  }

  const PickleValue size_ = PickleValue::global("torch", "Size");
  const PickleValue chunk_ = metadata("ChunkStorageMetadata");
  const PickleValue tensor_ = metadata("TensorStorageMetadata");
  const PickleValue properties_ = metadata("TensorProperties");
  const PickleValue index_ = metadata("MetadataIndex");
  const PickleValue place_ =
      PickleValue::global("torch.distributed.checkpoint.filesystem", "_StorageInfo");
  std::map<at::ScalarType, PickleValue> types_{};
  std::vector<PickleEntry> tensors_{}, paths_{}, places_{};
};

os::WholeFile create_in(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  return os::WholeFile::create(path).or_throw<CheckpointError>(kWriteDcp, CheckpointPlace{path});
}

void write_files(const std::string& folder, const engine::StateDict& dict) {
  os::WholeFile data = create_in(folder, kDataFile);
  DcpMetadata metadata;
  for (const auto& [name, tensor] : dict) {
    if (!tensor.defined() || python_type(tensor.scalar_type()).empty()) {
      throw CheckpointError(
          kWriteDcp, "expected a tensor of real numbers. Convert it first", {folder, name});
    }
    const int64_t begin = data.position();
    write_torch_tensor(name, tensor, data);
    metadata.add(name, tensor, begin, data.position() - begin);
  }
  data.commit().or_throw<CheckpointError>(kWriteDcp, CheckpointPlace{folder});
  os::WholeFile about = create_in(folder, ".metadata");
  about.write(metadata.bytes());
  about.commit().or_throw<CheckpointError>(kWriteDcp, CheckpointPlace{folder});
}

}  // namespace

void write_dcp(const std::string& path, const engine::StateDict& dict) {
  namespace fs = std::filesystem;
  const fs::path place =
      fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  std::error_code error;
  if (fs::exists(place, error)) {
    throw CheckpointError(
        kWriteDcp, "it exists already. Remove it, or choose another name", {path});
  }
  const std::string parent = place.parent_path().string();
  PendingFolder folder(parent.empty() ? "." : parent, place.filename().string());
  write_files(folder.path(), dict);
  folder.commit();
}

}  // namespace argosy::checkpoint
