#include "argosy/checkpoint/paddle_file_write.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include "argosy/base/error.h"
#include "argosy/formats/pickler.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

using formats::PickleArray;
using formats::PickleType;
using formats::PickleValue;

constexpr const char* kWritePaddle = "checkpoint.save_weights";

PickleType pickle_type(at::ScalarType type, const std::string& path, const std::string& name) {
  switch (type) {
    case at::kBool:
      return PickleType::kBool;
    case at::kByte:
      return PickleType::kU8;
    case at::kChar:
      return PickleType::kI8;
    case at::kShort:
      return PickleType::kI16;
    case at::kBFloat16:  // as Paddle writes it: numpy has no bf16
      return PickleType::kU16;
    case at::kInt:
      return PickleType::kI32;
    case at::kLong:
      return PickleType::kI64;
    case at::kFloat:
      return PickleType::kF32;
    case at::kDouble:
      return PickleType::kF64;
    default:
      throw CheckpointError(
          kWritePaddle,
          fmt::format("expected a type that Paddle's files have, got {}. Convert it first",
                      c10::toString(type)),
          {path, name});
  }
}

}  // namespace

void write_paddle_file(const std::string& path, const engine::StateDict& dict) {
  const c10::NoGradGuard no_grad;
  std::vector<formats::PickleEntry> entries;
  for (const auto& [name, tensor] : dict) {
    const at::Tensor own = tensor.detach().cpu().contiguous();
    PickleArray array{.type = pickle_type(own.scalar_type(), path, name),
                      .shape = own.sizes().vec(),
                      .bytes = {static_cast<const uint8_t*>(own.data_ptr()), own.nbytes()},
                      .owner = std::make_shared<at::Tensor>(own)};
    entries.push_back({name, PickleValue::array(std::move(array))});
  }
  auto file =
      os::WholeFile::create(path).or_throw<CheckpointError>(kWritePaddle, CheckpointPlace{path});
  const std::string bytes = formats::pickle(PickleValue::dict(std::move(entries)));
  file.write({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  file.commit().or_throw<CheckpointError>(kWritePaddle, CheckpointPlace{path});
}

}  // namespace argosy::checkpoint
