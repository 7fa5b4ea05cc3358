#include "argosy/checkpoint/read_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <regex>
#include <span>

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "argosy/base/check.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/paddle_file.h"
#include "argosy/checkpoint/paddle_names.h"
#include "argosy/checkpoint/renamer.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/checkpoint/safetensors_index.h"
#include "argosy/checkpoint/torch_file.h"
#include "argosy/checkpoint/torch_script.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/engine/parts.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using engine::StateDict;

[[noreturn]] void fail_weights(const std::string& path,
                               const std::string& what,
                               std::string key = {}) {
  throw CheckpointError("checkpoint.read_weights", what, {path, std::move(key)});
}

std::optional<at::Device> device_of(const std::string& text) {
  try {
    return at::Device(text);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

/// A zip archive's kind, by the names in its directory; that of TorchScript has constants.pkl.
bool is_torch_script(const std::string& path) {
  // The directory stands at the end; names are not packed.
  constexpr size_t kTail = size_t{1} << 20;
  auto fd = os::open_file(path, O_RDONLY);
  const auto size = static_cast<int64_t>(fs::file_size(path));
  std::string tail(std::min<size_t>(kTail, static_cast<size_t>(size)), '\0');
  return fd.ok() &&
         os::read_at(fd->get(),
                     std::as_writable_bytes(std::span(tail)),
                     size - static_cast<int64_t>(tail.size()))
             .ok() &&
         tail.find("/constants.pkl") != std::string::npos;
}

std::array<uint8_t, 16> head_of(const std::string& path, int64_t& size) {
  auto fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) {
    fail_weights(path, errno_message(fd.ok() ? errno : fd.failure().error_number));
  }
  if (!S_ISREG(info.st_mode)) {
    fail_weights(path, "expected a file or the folder of a checkpoint, got something else");
  }
  size = info.st_size;
  std::array<uint8_t, 16> head{};
  (void)os::read_all(fd->get(), std::as_writable_bytes(std::span(head)));
  return head;
}

StateDict read(const std::string& path, const ReadWeightsOptions& options, WeightsKind kind) {
  ARGOSY_CHECK(options.key.empty() || kind == WeightsKind::kTorch,
               "checkpoint.read_weights",
               "key \"{}\": {} was not written by torch.save, whose files alone have keys above "
               "the names. Leave "
               "it out",
               options.key,
               path);
  ARGOSY_CHECK(options.part == ReadWeightsOptions().part || kind == WeightsKind::kFolder,
               "checkpoint.read_weights",
               "part \"{}\": {} is not a checkpoint's folder, which alone has parts. Leave it out",
               options.part,
               path);
  switch (kind) {
    case WeightsKind::kTorch:
      return read_torch_file(path, {.key = options.key});
    case WeightsKind::kTorchScript:
      return read_torch_script(path);
    case WeightsKind::kSafetensors:
      return read_safetensors(path);
    case WeightsKind::kSafetensorsIndex:
      return read_safetensors_index(path);
    case WeightsKind::kPaddle:
      return read_paddle_file(path);
    case WeightsKind::kFolder:
      return Checkpoint(path).part(options.part, options.reading);
  }
  return {};
}

/// Names as the options want them, on their device.
StateDict renamed(const StateDict& dict,
                  const std::string& path,
                  const ReadWeightsOptions& options) {
  const Renamer by_rules(options.renames);
  const at::Device device = device_of(options.map_location).value();
  StateDict result;
  for (const auto& [old_name, tensor] : dict) {
    std::string name = old_name;
    if (!options.strip_prefix.empty() && name.starts_with(options.strip_prefix)) {
      name.erase(0, options.strip_prefix.size());
    }
    name = by_rules(std::move(name));
    if (options.rename) {
      name = options.rename(name);
    }
    if (name.empty()) {
      continue;
    }
    if (result.contains(name)) {
      fail_weights(
          path, fmt::format("two entries get this name; the second was \"{}\"", old_name), name);
    }
    // What is damaged in a file is an error here, and NaN for an operator.
    result.set(name, device.is_cpu() ? tensor : engine::values_of(tensor).to(device));
  }
  return result;
}

}  // namespace

std::string_view to_string(WeightsKind kind) {
  switch (kind) {
    case WeightsKind::kTorch:
      return "torch";
    case WeightsKind::kTorchScript:
      return "torchscript";
    case WeightsKind::kSafetensors:
      return "safetensors";
    case WeightsKind::kSafetensorsIndex:
      return "safetensors index";
    case WeightsKind::kPaddle:
      return "paddle";
    case WeightsKind::kFolder:
      return "checkpoint";
  }
  return "";
}

Renamer::Renamer(const std::vector<Rename>& rules) {
  for (const Rename& rule : rules) {
    try {
      rules_.emplace_back(std::regex(rule.pattern), rule.replacement);
    } catch (const std::regex_error& error) {
      throw UsageError("checkpoint.read_weights",
                       fmt::format("renames: expected a regular expression, got \"{}\" ({})",
                                   rule.pattern,
                                   error.what()));
    }
  }
}

std::string Renamer::operator()(std::string name) const {
  for (const auto& [pattern, replacement] : rules_) {
    name = std::regex_replace(name, pattern, replacement);
  }
  return name;
}

void ReadWeightsOptions::validate() const {
  (void)Renamer(renames);
  const auto device = device_of(map_location);
  // Backends of libtorch that a program brings along count too.
  const bool usable = device && !device->is_meta() && c10::impl::hasDeviceGuardImpl(device->type());
  ARGOSY_CHECK(usable || (device && device->is_cuda()),
               "checkpoint.read_weights",
               "map_location: expected cpu, cuda or cuda:<number>, got \"{}\"",
               map_location);
  const int64_t devices = usable ? c10::impl::getDeviceGuardImpl(device->type())->deviceCount() : 0;
  ARGOSY_CHECK(device->is_cpu() || std::max<int64_t>(device->index(), 0) < devices,
               "checkpoint.read_weights",
               "map_location: \"{}\" is not here: this machine and this libtorch have {} {} "
               "devices. Say \"cpu\"",
               map_location,
               devices,
               c10::DeviceTypeName(device->type()));
}

WeightsKind weights_kind(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    (void)read_manifest(path);  // says what is wrong with a folder that is none
    return WeightsKind::kFolder;
  }
  int64_t size = 0;
  const std::array<uint8_t, 16> head = head_of(path, size);
  if (std::memcmp(head.data(), "PK\x03\x04", 4) == 0) {
    return is_torch_script(path) ? WeightsKind::kTorchScript : WeightsKind::kTorch;
  }
  if (formats::looks_like_safetensors(head, size)) {
    return WeightsKind::kSafetensors;
  }
  if (head[0] == '{') {  // no other kind begins so
    return WeightsKind::kSafetensorsIndex;
  }
  // Protocols 2 to 5. PyTorch's format from before 1.6 begins with a pickle of a long number;
  // read_torch_file says what to do with one.
  if (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) {
    return head[2] == 0x8a ? WeightsKind::kTorch : WeightsKind::kPaddle;
  }
  fail_weights(
      path,
      fmt::format("expected weights by PyTorch, Paddle, safetensors or the folder of a checkpoint, "
                  "got {} bytes of something else, or of a file that is torn",
                  size));
}

StateDict read_weights(const std::string& path, const ReadWeightsOptions& options) {
  options.validate();
  return renamed(read(path, options, weights_kind(path)), path, options);
}

engine::LoadResult load_weights(const torch::nn::Module& module,
                                const std::string& path,
                                const ReadWeightsOptions& read_options,
                                const engine::LoadOptions& load) {
  read_options.validate();
  const WeightsKind kind = weights_kind(path);
  ReadWeightsOptions by_parts = read_options;
  by_parts.reading =
      device_of(read_options.map_location)->is_cpu() ? Reading::kWhenUsed : Reading::kNow;
  StateDict dict = renamed(read(path, by_parts, kind), path, by_parts);
  engine::LoadOptions named = load;
  if (named.source.empty()) {
    named.source = path;
  }
  return engine::load_state_dict(
      module, kind == WeightsKind::kPaddle ? from_paddle(dict, module) : dict, named);
}

namespace {

/// Of a tensor in a file only what is asked for is read.
WeightsDigest::Read read_bytes(const at::Tensor& tensor) {
  if (engine::is_in_file(tensor)) {
    return [tensor](std::span<std::byte> out, int64_t from) {
      const auto size = static_cast<int64_t>(tensor.element_size());
      const IndexRange range{from / size, (from + std::ssize(out)) / size};
      const at::Tensor elements = engine::elements_like(tensor, tensor, range);
      std::memcpy(out.data(), elements.data_ptr(), out.size());
    };
  }
  return [own = tensor.detach().cpu().resolve_neg().contiguous()](std::span<std::byte> out,
                                                                  int64_t from) {
    std::memcpy(out.data(), static_cast<const std::byte*>(own.data_ptr()) + from, out.size());
  };
}

}  // namespace

std::string weights_hash(const StateDict& dict) {
  WeightsDigest digest;
  for (const auto& [name, tensor] : dict) {
    digest.add(describe_safetensor(name, tensor), read_bytes(tensor));
  }
  return digest.hex();
}

}  // namespace argosy::checkpoint
