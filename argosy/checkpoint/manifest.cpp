#include "argosy/checkpoint/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/formats/safetensors.h"
#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::checkpoint {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "argosy-checkpoint";
constexpr size_t kMostBytes = size_t{256} << 20;
constexpr std::string_view kSealBegin = ",\n  \"checksum\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr size_t kChecksumBytes = 21;  // xxh3: and 16 digits
constexpr size_t kSealBytes = kSealBegin.size() + kChecksumBytes + kSealEnd.size();

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw CheckpointError("checkpoint.manifest", what, {path, {}});
}

ordered_json to_json(const std::vector<ManifestPiece>& pieces) {
  ordered_json all = ordered_json::array();
  for (const ManifestPiece& piece : pieces) {
    all.push_back({piece.file, piece.range.begin, piece.range.end});
  }
  return all;
}

ordered_json to_json(const Manifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
    if (!file.blocks.empty()) {
      files.back()["blocks"] = file.blocks;
    }
  }
  ordered_json tensors = ordered_json::array();
  for (const ManifestTensor& tensor : manifest.tensors) {
    tensors.push_back({{"part", tensor.part},
                       {"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", tensor.shape}});
    if (tensor.pieces.empty()) {
      tensors.back()["file"] = tensor.file;
    } else {
      tensors.back()["pieces"] = to_json(tensor.pieces);
    }
    if (!tensor.order.empty()) {
      tensors.back()["order"] = tensor.order;
    }
  }
  return {{"format", kFormat},
          {"version", manifest.version()},
          {"step", manifest.step},
          {"epoch", manifest.epoch},
          {"score", manifest.score ? ordered_json(*manifest.score) : ordered_json()},
          {"time", manifest.time},
          {"world_size", manifest.world_size},
          {"library", manifest.library},
          {"parts", manifest.parts},
          {"files", std::move(files)},
          {"tensors", std::move(tensors)}};
}

/// One line for each file and tensor: a person may look at it, and diff two.
std::string indented(const ordered_json& json) {
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}\n  \"{}\": ", text.size() > 1 ? "," : "", key);
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      text += value.dump();
      continue;
    }
    std::string_view separator = "[\n    ";
    for (const ordered_json& item : value) {
      text += separator;
      text += item.dump();
      separator = ",\n    ";
    }
    text += "\n  ]";
  }
  return text;
}

/// Is the text as it was written, to the last byte?
bool is_sealed(std::string_view text) {
  if (text.size() < kSealBytes) {
    return false;
  }
  const std::string_view seal = text.substr(text.size() - kSealBytes);
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  return seal.starts_with(kSealBegin) && seal.ends_with(kSealEnd) &&
         seal.substr(kSealBegin.size(), kChecksumBytes) == checksum_of(body);
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && name != kManifestName;
}

/// Dims whose product is a number of bytes; an order that has each dim once.
void check_shape(const ManifestTensor& tensor, const std::string& path) {
  int64_t bytes = 8;  // of the largest element
  for (const int64_t dim : tensor.shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
      fail(path, fmt::format("\"{}\" of {}: no tensor has this shape", tensor.name, tensor.part));
    }
  }
  std::vector<int64_t> dims = tensor.order;
  std::ranges::sort(dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims.size() != tensor.shape.size() || dims[i] != static_cast<int64_t>(i) ||
        tensor.pieces.empty()) {
      fail(path, fmt::format("\"{}\" of {}: its order names other dims", tensor.name, tensor.part));
    }
  }
}

/// Each of a tensor's elements is in one piece.
void check_pieces(const ManifestTensor& tensor, const std::string& path) {
  int64_t next = 0;
  for (const ManifestPiece& piece : tensor.pieces) {
    if (piece.range.begin != next || piece.range.end < piece.range.begin) {
      fail(path,
           fmt::format("\"{}\" of {}: elements {} to {} are in no file, or in two",
                       tensor.name,
                       tensor.part,
                       std::min(next, piece.range.begin),
                       std::max(next, piece.range.begin) - 1));
    }
    next = piece.range.end;
  }
  if (next != numel(tensor)) {
    fail(path,
         fmt::format("\"{}\" of {} has {} elements, and the files have {} of them",
                     tensor.name,
                     tensor.part,
                     numel(tensor),
                     next));
  }
}

void check_tensor(const ManifestTensor& tensor,
                  const std::set<std::string_view>& files,
                  const std::string& path) {
  const auto lies_in = [&](const std::string& file) {
    if (!files.contains(file) || !formats::safetensor_type(tensor.dtype)) {
      fail(path,
           fmt::format("\"{}\" of {} lies in \"{}\", which is no file here, or has the unknown "
                       "type {}",
                       tensor.name,
                       tensor.part,
                       file,
                       tensor.dtype));
    }
  };
  check_shape(tensor, path);
  if (tensor.pieces.empty()) {
    lies_in(tensor.file);
    return;
  }
  for (const ManifestPiece& piece : tensor.pieces) {
    lies_in(piece.file);
  }
  check_pieces(tensor, path);
}

void check(const Manifest& manifest, const std::string& path) {
  std::set<std::string_view> names;
  for (const ManifestFile& file : manifest.files) {
    if (!is_plain_name(file.name) || file.bytes < 0 || !names.insert(file.name).second) {
      fail(path, fmt::format("expected files of the folder, each once, got \"{}\"", file.name));
    }
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    check_tensor(tensor, names, path);
  }
  if (manifest.world_size < 1 || manifest.step < 0) {
    fail(path, "expected a world size of 1 or more and no negative step");
  }
}

std::vector<ManifestPiece> pieces_of(const ordered_json& tensor) {
  std::vector<ManifestPiece> pieces;
  for (const ordered_json& piece : tensor.value("pieces", ordered_json::array())) {
    pieces.push_back(
        {piece.at(0).get<std::string>(), {piece.at(1).get<int64_t>(), piece.at(2).get<int64_t>()}});
  }
  return pieces;
}

Manifest from_json(const ordered_json& json) {
  Manifest manifest;
  json.at("step").get_to(manifest.step);
  json.at("epoch").get_to(manifest.epoch);
  if (!json.at("score").is_null()) {
    manifest.score = json.at("score").get<double>();
  }
  json.at("time").get_to(manifest.time);
  json.at("world_size").get_to(manifest.world_size);
  json.at("library").get_to(manifest.library);
  json.at("parts").get_to(manifest.parts);
  for (const ordered_json& file : json.at("files")) {
    manifest.files.push_back({file.at("name").get<std::string>(),
                              file.at("bytes").get<int64_t>(),
                              file.at("checksum").get<std::string>(),
                              file.value("blocks", std::string())});
  }
  for (const ordered_json& tensor : json.at("tensors")) {
    manifest.tensors.push_back({tensor.at("part").get<std::string>(),
                                tensor.at("name").get<std::string>(),
                                tensor.at("dtype").get<std::string>(),
                                tensor.at("shape").get<std::vector<int64_t>>(),
                                tensor.value("file", std::string()),
                                pieces_of(tensor),
                                tensor.value("order", std::vector<int64_t>())});
  }
  return manifest;
}

}  // namespace

const ManifestFile* Manifest::find_file(std::string_view name) const {
  const auto file = std::ranges::find(files, name, &ManifestFile::name);
  return file == files.end() ? nullptr : &*file;
}

int64_t Manifest::bytes() const {
  int64_t sum = 0;
  for (const ManifestFile& file : files) {
    sum += file.bytes;
  }
  return sum;
}

int64_t Manifest::version() const {
  const auto in_pieces = [](const ManifestTensor& tensor) { return !tensor.pieces.empty(); };
  return std::ranges::any_of(tensors, in_pieces) ? 2 : 1;
}

int64_t numel(const ManifestTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
}

std::string step_name(int64_t step) {
  return fmt::format("step-{:09}", step);
}

std::string library_version() {
  return "argosy " ARGOSY_VERSION;
}

std::string to_text(const Manifest& manifest) {
  try {
    std::string text = indented(to_json(manifest));
    const std::string checksum = checksum_of(text);
    return text.append(kSealBegin).append(checksum).append(kSealEnd);
  } catch (const nlohmann::json::type_error&) {
    throw CheckpointError("checkpoint.manifest", "the name of a tensor is not UTF-8. Rename it");
  }
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  if (!is_sealed(text)) {
    fail(path,
         fmt::format("damaged: expected a manifest that ends with its checksum, got {} bytes that "
                     "do not. Take another checkpoint",
                     text.size()));
  }
  try {
    const ordered_json json = ordered_json::parse(text);
    if (json.at("format") != kFormat) {
      fail(path, "expected the manifest of a checkpoint, got another's");
    }
    const auto version = json.at("version").get<int64_t>();
    if (version < 1 || version > kFormatVersion) {
      fail(path,
           fmt::format("a checkpoint of format version {}, written by {}: this library ({}) reads "
                       "up to {}. Update Argosy",
                       version,
                       json.value("library", "another version"),
                       library_version(),
                       kFormatVersion));
    }
    Manifest manifest = from_json(json);
    check(manifest, path);
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    fail(path, fmt::format("a field is missing or of another kind ({})", error.what()));
  }
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kManifestName).string();
  const auto text = os::read_file(path, kMostBytes);
  if (!text.ok()) {
    const int code = text.failure().error_number;
    std::error_code error;
    if (code == ENOENT && std::filesystem::is_directory(folder, error)) {
      fail(folder,
           "there is no manifest.json: a save that was cut short, or no checkpoint. Name the "
           "folder that holds one");
    }
    if (std::filesystem::is_regular_file(folder, error)) {
      fail(folder,
           "is a file, and a checkpoint is a folder. If it holds weights: load_weights() or argosy "
           "train --pretrained begins from them, argosy checkpoint hash and convert read them");
    }
    if (code == ENOENT) {
      fail(folder, errno_message(code));
    }
    fail(path, "cannot read: " + errno_message(code));
  }
  return parse_manifest(*text, path);
}

}  // namespace argosy::checkpoint
