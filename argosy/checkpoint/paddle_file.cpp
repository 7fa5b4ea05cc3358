#include "argosy/checkpoint/paddle_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/data_error.h"
#include "argosy/formats/pickle.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

using formats::PickleArray;
using formats::PickleEntry;
using formats::PickleKind;
using formats::PickleType;
using formats::PickleValue;

constexpr std::string_view kNameTable = "StructuredToParameterName@@";
constexpr std::string_view kSlices = "UnpackBigParamInfor@@";

[[noreturn]] void fail_paddle(const std::string& path,
                              const std::string& what,
                              std::string key = {}) {
  throw CheckpointError("checkpoint.read_weights", what, {path, std::move(key)});
}

std::vector<uint8_t> read_bytes(const std::string& path) {
  auto fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) {
    fail_paddle(path, errno_message(fd.ok() ? errno : fd.failure().error_number));
  }
  if (!S_ISREG(info.st_mode)) {
    fail_paddle(path, "expected a file, got something else");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  const auto count = os::read_all(fd->get(), std::as_writable_bytes(std::span(bytes)));
  if (!count.ok() || *count < bytes.size()) {
    fail_paddle(path,
                count.ok() ? "the file became shorter while it was read" : count.failure().what);
  }
  return bytes;
}

at::ScalarType scalar_type(const PickleArray& array,
                           const std::string& path,
                           const std::string& name) {
  switch (array.type) {
    case PickleType::kBool:
      return at::kBool;
    case PickleType::kU8:
      return at::kByte;
    case PickleType::kI8:
      return at::kChar;
    case PickleType::kI16:
      return at::kShort;
    case PickleType::kU16:  // Paddle has no such tensors; numpy has no bf16
      return at::kBFloat16;
    case PickleType::kI32:
      return at::kInt;
    case PickleType::kI64:
      return at::kLong;
    case PickleType::kF32:
      return at::kFloat;
    case PickleType::kF64:
      return at::kDouble;
    default:
      fail_paddle(path,
                  fmt::format("an array of the type {} is not read. Convert it in Python",
                              formats::type_code(array.type)),
                  name);
  }
}

}  // namespace

at::Tensor to_tensor(const PickleArray& array, const std::string& path, const std::string& name) {
  at::Tensor tensor = at::empty(array.shape, scalar_type(array, path, name));
  if (!array.bytes.empty()) {
    std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  }
  if (array.type == PickleType::kBool) {  // another byte than 0 and 1 is no bool to a compiler
    auto* values = static_cast<uint8_t*>(tensor.data_ptr());
    std::transform(values, values + tensor.numel(), values, [](uint8_t v) { return v != 0; });
  }
  return tensor;
}

namespace {

/// A state_dict whose large arrays were cut, for protocols 2 and 3 end at 4 GiB.
class PaddleDict final {
 public:
  PaddleDict(const PickleValue& dict, std::string path, size_t file_bytes)
      : path_(std::move(path)), bytes_left_(file_bytes) {
    for (const PickleEntry& entry : dict.entries()) {
      const std::string name(entry.key.as_text("name of an entry"));
      if (name == kSlices) {
        slices_ = entry.value;
      } else if (name != kNameTable) {
        if (values_.insert_or_assign(name, entry.value).second) {
          names_.push_back(name);
        }
      }
    }
  }

  [[nodiscard]] engine::StateDict tensors() {
    engine::StateDict dict;
    std::unordered_set<std::string> used;
    if (!slices_.is_none()) {
      for (const PickleEntry& entry : slices_.entries(kSlices)) {
        const std::string name(entry.key.as_text("name of an entry"));
        dict.set(name, join(name, entry.value, used));
      }
    }
    for (const std::string& name : names_) {
      if (!used.contains(name)) {
        dict.set(name, tensor(name));
      }
    }
    return dict;
  }

 private:
  [[nodiscard]] at::Tensor tensor(const std::string& name) {
    const auto value = values_.find(name);
    if (value == values_.end() || !value->second.is(PickleKind::kArray)) {
      fail_paddle(
          path_,
          fmt::format("expected an array, got {}. Save layer.state_dict(), as .pdparams are",
                      value == values_.end() ? "nothing" : value->second.describe()),
          name);
    }
    const PickleArray& array = value->second.as_array();
    // A pickle may name one array a million times; Paddle names each once.
    if (array.bytes.size() > bytes_left_) {
      fail_paddle(path_, "the arrays are more bytes than the file has. The file is damaged", name);
    }
    bytes_left_ -= array.bytes.size();
    return to_tensor(array, path_, name);
  }

  at::Tensor join(const std::string& name,
                  const PickleValue& plan,
                  std::unordered_set<std::string>& used) {
    std::vector<at::Tensor> parts;
    for (const PickleValue& part : plan.at("slices").items("slices")) {
      const std::string part_name(part.as_text("name of a slice"));
      used.insert(part_name);
      parts.push_back(tensor(part_name));
      if (parts.back().dim() != 1 || parts.back().scalar_type() != parts[0].scalar_type()) {
        fail_paddle(path_, "slices of several shapes or types. The file is damaged", name);
      }
    }
    std::vector<int64_t> shape;
    int64_t numel = 1;
    bool sound = !parts.empty();
    for (const PickleValue& dim : plan.at("OriginShape").items("OriginShape")) {
      shape.push_back(dim.as_int("OriginShape"));
      sound = sound && shape.back() >= 0 && !__builtin_mul_overflow(numel, shape.back(), &numel);
    }
    const at::Tensor whole = sound ? at::cat(parts) : at::Tensor();
    if (!sound || whole.numel() != numel) {
      fail_paddle(path_, "slices do not fit their shape. The file is damaged", name);
    }
    return whole.view(shape);
  }

  std::string path_;
  size_t bytes_left_;
  PickleValue slices_;
  std::unordered_map<std::string, PickleValue> values_;
  std::vector<std::string> names_;  // in order
};

}  // namespace

PickleValue read_paddle_objects(const std::string& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  try {
    PickleValue value = formats::unpickle(bytes, {.path = path, .memory_bytes = int64_t{1} << 42});
    if (!value.is(PickleKind::kDict) && !value.is(PickleKind::kOrderedDict)) {
      fail_paddle(path,
                  fmt::format("expected a state_dict by paddle.save, got {}", value.describe()));
    }
    return value;
  } catch (const DataError& error) {
    throw_as_checkpoint("checkpoint.read_weights", path, error);
  }
}

engine::StateDict read_paddle_file(const std::string& path) {
  const PickleValue value = read_paddle_objects(path);
  try {
    return PaddleDict(value, path, static_cast<size_t>(std::filesystem::file_size(path))).tensors();
  } catch (const DataError& error) {
    throw_as_checkpoint("checkpoint.read_weights", path, error);
  }
}

}  // namespace argosy::checkpoint
