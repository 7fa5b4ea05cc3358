#include "argosy/formats/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <numeric>
#include <unordered_set>

#include "argosy/base/error.h"
#include "argosy/formats/safetensors_header.h"
#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "elements would need a swap");

constexpr int64_t kMostHeaderBytes = 100'000'000;

struct TypeRow {
  SafetensorType type;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<TypeRow, 10> kTypes{{{SafetensorType::kBool, "BOOL", 1},
                                          {SafetensorType::kU8, "U8", 1},
                                          {SafetensorType::kI8, "I8", 1},
                                          {SafetensorType::kI16, "I16", 2},
                                          {SafetensorType::kI32, "I32", 4},
                                          {SafetensorType::kI64, "I64", 8},
                                          {SafetensorType::kF16, "F16", 2},
                                          {SafetensorType::kBF16, "BF16", 2},
                                          {SafetensorType::kF32, "F32", 4},
                                          {SafetensorType::kF64, "F64", 8}}};

const TypeRow& row_of(SafetensorType type) {
  return kTypes[static_cast<size_t>(type)];
}

int64_t little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    value |= uint64_t{bytes[i]} << (8 * i);
  }
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

void read_at(int fd, std::span<std::byte> out, int64_t offset, const std::string& path) {
  const Result<size_t> got = os::read_at(fd, out, offset);
  if (!got.ok() || *got < out.size()) {
    throw DataError("formats.safetensors",
                    got.ok() ? "truncated: the file became shorter while it was read"
                             : "cannot read: " + errno_message(got.failure().error_number),
                    {path, offset});
  }
}

int64_t size_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    throw DataError("formats.safetensors", "cannot open: " + errno_message(errno), {path});
  }
  if (!S_ISREG(info.st_mode)) {
    throw DataError("formats.safetensors", "expected a regular file", {path});
  }
  return info.st_size;
}

/// Fills offset and bytes. Each offset is a multiple of the element's size, for all before it are
/// of larger or equal ones.
int64_t place(std::vector<SafetensorEntry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return element_bytes(entries[a].type) > element_bytes(entries[b].type);
  });
  int64_t end = 0;
  for (const size_t i : order) {
    SafetensorEntry& entry = entries[i];
    entry.offset = end;
    entry.bytes = std::accumulate(
        entry.shape.begin(), entry.shape.end(), element_bytes(entry.type), std::multiplies<>());
    end += entry.bytes;
  }
  return end;
}

std::string json_of(const std::vector<SafetensorEntry>& entries,
                    const SafetensorsHeader::Metadata& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  // ordered_json looks for each key from the front: thousands of them go in by themselves.
  auto& members = json.get_ref<nlohmann::ordered_json::object_t&>();
  if (!metadata.empty()) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (const auto& [key, value] : metadata) {
      values[key] = value;
    }
    members.emplace_back("__metadata__", std::move(values));
  }
  for (const SafetensorEntry& entry : entries) {
    members.emplace_back(
        entry.name,
        nlohmann::ordered_json{{"dtype", to_string(entry.type)},
                               {"shape", entry.shape},
                               {"data_offsets", {entry.offset, entry.offset + entry.bytes}}});
  }
  try {
    return json.dump();
  } catch (const nlohmann::json::type_error&) {
    throw DataError("formats.safetensors", "a name or the metadata are not UTF-8");
  }
}

void check_names(const std::vector<SafetensorEntry>& entries) {
  std::unordered_set<std::string_view> names{"__metadata__"};
  for (const SafetensorEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      throw DataError("formats.safetensors",
                      fmt::format("the name \"{}\" {}. Rename it",
                                  entry.name,
                                  entry.name == "__metadata__" ? "has a meaning of its own"
                                                               : "is there twice"));
    }
  }
}

}  // namespace

std::string_view to_string(SafetensorType type) {
  return row_of(type).name;
}

std::optional<SafetensorType> safetensor_type(std::string_view name) {
  const auto* row = std::ranges::find(kTypes, name, &TypeRow::name);
  return row == kTypes.end() ? std::nullopt : std::optional(row->type);
}

int64_t element_bytes(SafetensorType type) {
  return row_of(type).bytes;
}

SafetensorsHeader read_safetensors_header(int fd, const std::string& path) {
  const int64_t size = size_of(fd, path);
  std::array<uint8_t, kLengthBytes> length{};
  if (size < kLengthBytes) {
    throw DataError("formats.safetensors",
                    fmt::format("truncated: expected at least 8 bytes, got {}", size),
                    {path, 0});
  }
  read_at(fd, std::as_writable_bytes(std::span(length)), 0, path);
  const int64_t bytes = little_endian(length);
  if (bytes > std::min(kMostHeaderBytes, size - kLengthBytes)) {
    throw DataError("formats.safetensors",
                    fmt::format("expected a header of at most {} bytes, got the length {}. The "
                                "file is truncated, or no file of safetensors",
                                std::min(kMostHeaderBytes, size - kLengthBytes),
                                bytes),
                    {path, 0});
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  read_at(fd, std::as_writable_bytes(std::span(text)), kLengthBytes, path);
  return parse_safetensors_header(text, size - kLengthBytes - bytes, path);
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  // A pipe would hold open() up; what is no file is refused after.
  auto fd = os::open_file(path_, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    throw DataError(
        "formats.safetensors", "cannot open: " + errno_message(fd.failure().error_number), {path_});
  }
  fd_ = *std::move(fd);
  header_ = read_safetensors_header(fd_.get(), path_);
}

void SafetensorsFile::read(const SafetensorEntry& entry,
                           std::span<std::byte> out,
                           int64_t from) const {
  const auto size = static_cast<int64_t>(out.size());
  if (from < 0 || from > entry.bytes || size > entry.bytes - from) {
    throw UsageError(
        "formats.safetensors",
        fmt::format(
            "\"{}\" has {} bytes, asked for {} from {} on", entry.name, entry.bytes, size, from));
  }
  read_at(fd_.get(), out, entry.offset + from, path_);
}

bool looks_like_safetensors(std::span<const uint8_t> head, int64_t file_bytes) {
  return head.size() > kLengthBytes && head[kLengthBytes] == '{' &&
         little_endian(head) <= std::min(kMostHeaderBytes, file_bytes - kLengthBytes);
}

SafetensorsLayout lay_out_safetensors(std::vector<SafetensorEntry> entries,
                                      const SafetensorsHeader::Metadata& metadata) {
  check_names(entries);
  const int64_t data_bytes = place(entries);
  std::string json = json_of(entries, metadata);
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  SafetensorsLayout layout;
  for (int64_t i = 0; i < kLengthBytes; ++i) {
    layout.head.push_back(static_cast<char>(json.size() >> (8 * i)));
  }
  layout.head += json;
  const auto data_offset = static_cast<int64_t>(layout.head.size());
  for (SafetensorEntry& entry : entries) {
    entry.offset += data_offset;
  }
  layout.header = {std::move(entries), metadata, data_offset, data_offset + data_bytes};
  return layout;
}

}  // namespace argosy::formats
