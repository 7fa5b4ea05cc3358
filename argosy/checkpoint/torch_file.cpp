#include "argosy/checkpoint/torch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/data_error.h"
#include "argosy/checkpoint/torch_storage.h"
#include "argosy/formats/archive.h"
#include "argosy/formats/file_reader.h"
#include "argosy/formats/pickle.h"

namespace argosy::checkpoint {
namespace {

using formats::ArchiveImage;
using formats::PickleKind;
using formats::PickleValue;

constexpr const char* kRead = "checkpoint.read_weights";

/// A run of elements in a member of the archive.
struct StoragePlace {
  at::ScalarType type = at::kFloat;
  std::string key;
  int64_t numel = 0;
};

/// A tensor as the pickle describes it; not believed before it is made.
struct TensorPlace {
  StoragePlace storage;
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  // What libtorch would do when the numbers are read: the storage has them without it.
  bool conjugated = false;
  bool negated = false;
};

[[noreturn]] void fail_torch_file(const std::string& path,
                                  const std::string& what,
                                  std::string key = {}) {
  throw CheckpointError(kRead, what, {path, std::move(key)});
}

std::vector<int64_t> ints(const PickleValue& value, std::string_view what) {
  std::vector<int64_t> result;
  for (const PickleValue& item : value.items(what)) {
    result.push_back(item.as_int(what));
  }
  return result;
}

/// Whether `metadata` has this word: {'conj': True}, or None.
bool flag(const PickleValue& metadata, std::string_view word) {
  const PickleValue* value = metadata.is_none() ? nullptr : metadata.find(word);
  return value != nullptr && value->as_bool(word);
}

// The functions and classes of torch's pickles, and what stands for them here.

std::optional<PickleValue> known_global(std::string_view module, std::string_view name) {
  const bool rebuilds = module == "torch._utils" &&
                        (name == "_rebuild_tensor_v2" || name == "_rebuild_tensor" ||
                         name == "_rebuild_parameter" || name == "_rebuild_parameter_with_state");
  const bool plain = module == "torch" && (name == "Size" || type_of_storage(name));
  const bool counter = module == "collections" && name == "Counter";  // of some schedulers
  if (!rebuilds && !plain && !counter) {
    return std::nullopt;
  }
  return PickleValue::global(std::string(module), std::string(name));
}

std::optional<PickleValue> known_call(const PickleValue& callable,
                                      std::span<const PickleValue> args) {
  const std::string& name = callable.as_global().name;
  if (name.starts_with("_rebuild_tensor") && args.size() >= 4) {
    const auto* storage = args[0].if_opaque<StoragePlace>();
    if (storage == nullptr) {
      return std::nullopt;
    }
    constexpr size_t kMetadata = 6;  // behind requires_grad and backward_hooks
    return PickleValue::opaque(
        TensorPlace{*storage,
                    args[1].as_int("offset of a tensor"),
                    ints(args[2], "size of a tensor"),
                    ints(args[3], "strides of a tensor"),
                    args.size() > kMetadata && flag(args[kMetadata], "conj"),
                    args.size() > kMetadata && flag(args[kMetadata], "neg")});
  }
  if (name.starts_with("_rebuild_parameter") && !args.empty() &&
      args[0].if_opaque<TensorPlace>() != nullptr) {
    return args[0];
  }
  if (name == "Size" && args.size() == 1) {
    return PickleValue::tuple({args[0].items().begin(), args[0].items().end()});
  }
  if (name == "Counter") {
    return PickleValue::opaque(name);  // nobody here counts
  }
  return std::nullopt;
}

/// ('storage', torch.FloatStorage, '0', 'cuda:0', 9408): the device is left out, all go to the CPU.
std::optional<PickleValue> known_storage(const PickleValue& id) {
  const auto parts = id.items("id of a storage");
  if (parts.size() < 5 || parts[0].as_text() != "storage") {
    return std::nullopt;
  }
  const std::optional<at::ScalarType> type = type_of_storage(parts[1].as_global().name);
  if (!type) {
    return std::nullopt;
  }
  return PickleValue::opaque(
      StoragePlace{*type, std::string(parts[2].as_text()), parts[4].as_int("size of a storage")});
}

/// The file as an archive, and the tensors that were taken out of it.
class TorchArchive final {
 public:
  explicit TorchArchive(const std::string& path)
      : image_(path, {}, {.member_bytes = int64_t{1} << 40}) {
    for (size_t i = 0; i < image_.size(); ++i) {
      const std::string& name = image_.name(i);
      const std::string_view wanted = "/data.pkl";
      if (name.ends_with(wanted) && name.find('/') == name.size() - wanted.size()) {
        root_ = name.substr(0, name.size() - wanted.size());
      }
    }
    if (root_.empty()) {
      fail_torch_file(
          path,
          fmt::format("expected a file by torch.save, got a zip archive of {} files without a "
                      "data.pkl",
                      image_.size()));
    }
    if (image_.find(root_ + "/constants.pkl")) {
      fail_torch_file(path, "expected a file by torch.save, got TorchScript (torch.jit.save)");
    }
    const auto order = image_.find(root_ + "/byteorder");
    if (order && text_of(image_.bytes(*order)) != "little") {
      fail_torch_file(
          path,
          fmt::format("expected little-endian numbers, got {}", text_of(image_.bytes(*order))));
    }
  }

  [[nodiscard]] PickleValue unpickle() const {
    const size_t index = image_.find(root_ + "/data.pkl").value();
    return formats::unpickle(image_.bytes(index),
                             {.path = image_.place(index),
                              .global = known_global,
                              .call = known_call,
                              .persistent = known_storage});
  }

  [[nodiscard]] at::Tensor tensor(const TensorPlace& place, const std::string& name) {
    check(place, name);
    const at::Tensor& flat = storage(place.storage, name);
    at::Tensor values = flat.as_strided(place.sizes, place.strides, place.offset);
    values = place.conjugated ? values.conj().resolve_conj() : values;
    return place.negated ? values.neg() : values;
  }

 private:
  static std::string_view text_of(std::span<const uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 20)};
  }

  /// All elements lie in the storage, and there are fewer than 2⁶³ of them.
  void check(const TensorPlace& place, const std::string& name) const {
    bool sound =
        place.sizes.size() == place.strides.size() && place.offset >= 0 && place.storage.numel >= 0;
    int64_t count = 1;
    int64_t last = place.offset;
    for (size_t i = 0; sound && i < place.sizes.size(); ++i) {
      const int64_t size = place.sizes[i];
      const int64_t stride = place.strides[i];
      int64_t step = 0;
      sound = size >= 0 && stride >= 0 && !__builtin_mul_overflow(count, size, &count) &&
              !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &step) &&
              !__builtin_add_overflow(last, step, &last);
    }
    if (!sound || (count > 0 ? last >= place.storage.numel : place.offset > place.storage.numel)) {
      fail_torch_file(
          image_.path(),
          fmt::format("sizes [{}], strides [{}] and offset {} do not fit into a storage of {} "
                      "elements. The file is damaged",
                      fmt::join(place.sizes, ", "),
                      fmt::join(place.strides, ", "),
                      place.offset,
                      place.storage.numel),
          name);
    }
  }

  /// All elements of one; made once.
  const at::Tensor& storage(const StoragePlace& place, const std::string& name) {
    const auto known = storages_.find(place.key);
    if (known != storages_.end()) {
      if (known->second.scalar_type() != place.type || known->second.numel() != place.numel) {
        fail_torch_file(
            image_.path(), fmt::format("storage {} has two types or sizes", place.key), name);
      }
      return known->second;
    }
    const std::string member = fmt::format("{}/data/{}", root_, place.key);
    const auto index = image_.find(member);
    const auto bytes = index ? image_.bytes(*index) : std::span<const uint8_t>();
    const auto element = static_cast<int64_t>(c10::elementSize(place.type));
    if (!index || static_cast<int64_t>(bytes.size()) / element != place.numel ||
        static_cast<int64_t>(bytes.size()) % element != 0) {
      fail_torch_file(
          image_.path(),
          fmt::format("expected {} elements of {} bytes in {}, got {}. The file is damaged or torn",
                      place.numel,
                      element,
                      member,
                      index ? fmt::format("{} bytes", bytes.size()) : "no such member"),
          name);
    }
    at::Tensor flat = at::empty({place.numel}, place.type);
    if (!bytes.empty()) {
      std::memcpy(flat.data_ptr(), bytes.data(), bytes.size());
    }
    if (place.type == at::kBool) {  // another byte than 0 and 1 is no bool to a compiler
      auto* values = static_cast<uint8_t*>(flat.data_ptr());
      std::transform(values, values + place.numel, values, [](uint8_t v) { return v != 0; });
    }
    return storages_.emplace(place.key, std::move(flat)).first->second;
  }

  ArchiveImage image_;
  std::string root_;
  std::unordered_map<std::string, at::Tensor> storages_;
};

bool is_dict(const PickleValue& value) {
  return value.is(PickleKind::kDict) || value.is(PickleKind::kOrderedDict);
}

size_t count_tensors(const PickleValue& dict) {
  const auto entries = dict.entries();
  return static_cast<size_t>(std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.value.template if_opaque<TensorPlace>() != nullptr;
  }));
}

/// "epoch, state_dict (62 tensors), optimizer"
std::string list_keys(const PickleValue& dict) {
  std::vector<std::string> keys;
  constexpr size_t kShown = 12;
  for (const auto& [key, value] : dict.entries()) {
    if (keys.size() == kShown) {
      keys.push_back(fmt::format("and {} more", dict.entries().size() - kShown));
      break;
    }
    keys.push_back(key.is(PickleKind::kString) || key.is(PickleKind::kBytes)
                       ? std::string(key.as_text().substr(0, 60))
                       : key.describe());
    if (is_dict(value) && count_tensors(value) > 0) {
      keys.back() += fmt::format(" ({} tensors)", count_tensors(value));
    }
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// The state_dict in what the file holds.
PickleValue select(const PickleValue& whole, const std::string& path, const std::string& key) {
  if (!is_dict(whole)) {
    fail_torch_file(
        path,
        fmt::format("expected a state_dict, got {}. Save model.state_dict()", whole.describe()));
  }
  const PickleValue* dict = key.empty() ? &whole : whole.find(key);
  if (dict == nullptr || !is_dict(*dict)) {
    fail_torch_file(
        path,
        fmt::format(
            "there is no state_dict under \"{}\". The keys found: {}", key, list_keys(whole)));
  }
  if (count_tensors(*dict) != dict->entries().size()) {
    fail_torch_file(
        path,
        fmt::format("expected names and tensors, got these keys: {}. Name the one that holds the "
                    "state_dict: .key = \"state_dict\"",
                    list_keys(*dict)));
  }
  return *dict;
}

engine::StateDict read(const std::string& path, const ReadTorchFileOptions& options) {
  TorchArchive archive(path);
  const PickleValue dict = select(archive.unpickle(), path, options.key);
  const std::string& prefix = options.strip_prefix;
  engine::StateDict result;
  for (const auto& [key, value] : dict.entries()) {
    std::string name(key.as_text("name of an entry"));
    const bool strip = !prefix.empty() && name.starts_with(prefix);
    at::Tensor tensor = archive.tensor(*value.if_opaque<TensorPlace>(), name);
    if (strip) {
      name.erase(0, prefix.size());
      if (result.contains(name)) {
        fail_torch_file(
            path, fmt::format("there are two of this name without \"{}\"", prefix), name);
      }
    }
    result.set(std::move(name), std::move(tensor));
  }
  return result;
}

void check_kind(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    fail_torch_file(path, errno_message(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    fail_torch_file(path, "expected a file, got something else");
  }
  if (formats::archive_kind(path) == formats::ArchiveKind::kZip) {
    return;
  }
  // protocol 2, then the long integer 0x1950a86a20f9469cfc6c
  constexpr std::array<uint8_t, 15> kLegacy{
      0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
  std::array<uint8_t, kLegacy.size()> head{};
  formats::FileReader(path).read(head);
  if (head == kLegacy || formats::archive_kind(path) == formats::ArchiveKind::kTar) {
    fail_torch_file(
        path,
        fmt::format("this is the format that PyTorch wrote before 1.6. Convert it: python3 -c "
                    "\"import torch; torch.save(torch.load('{}', map_location='cpu', "
                    "weights_only=True), 'new.pth')\"",
                    path));
  }
  fail_torch_file(
      path,
      fmt::format("expected a file by torch.save (a zip archive), got {} bytes of something else",
                  info.st_size));
}

}  // namespace

engine::StateDict read_torch_file(const std::string& path, const ReadTorchFileOptions& options) {
  try {
    check_kind(path);
    return read(path, options);
  } catch (const DataError& error) {
    throw_as_checkpoint(kRead, path, error);
  }
}

TorchObjects read_torch_objects(const std::string& path) {
  try {
    check_kind(path);
    const auto archive = std::make_shared<TorchArchive>(path);
    return {.value = archive->unpickle(),
            .tensor = [archive](const PickleValue& value, const std::string& name) {
              const auto* place = value.if_opaque<TensorPlace>();
              return place == nullptr ? at::Tensor() : archive->tensor(*place, name);
            }};
  } catch (const DataError& error) {
    throw_as_checkpoint(kRead, path, error);
  }
}

}  // namespace argosy::checkpoint
