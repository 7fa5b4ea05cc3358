#include "argosy/formats/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/text.h"

#include <nlohmann/json.hpp>

namespace argosy::formats {
namespace {

constexpr size_t kMostDims = 64;

/// Takes the events of a parser: nothing of other forms than the header's is ever built.
class HeaderReader final {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  HeaderReader(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  // The parser's interface; each returns whether to go on, and throws instead.
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a bool"); }
  bool number_integer(number_integer_t) { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) { return unexpected("a fraction"); }
  bool binary(binary_t&) { return unexpected("bytes"); }

  bool number_unsigned(number_unsigned_t value) {
    if (!in_array_ || value > static_cast<uint64_t>(INT64_MAX)) {
      return unexpected(fmt::format("{}", value));
    }
    std::vector<int64_t>& list = key_ == "shape" ? entry_.shape : offsets_;
    if (list.size() == (key_ == "shape" ? kMostDims : 2)) {
      fail(fmt::format("\"{}\" has more than {} numbers", key_, list.size()));
    }
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata.emplace_back(key_, std::move(value));
      return true;
    }
    if (depth_ != 2 || key_ != "dtype" || in_array_) {
      return unexpected("a string");
    }
    const auto type = safetensor_type(value);
    if (!type) {
      fail(
          fmt::format("type {} is not read: expected one of BOOL U8 I8 I16 I32 I64 F16 BF16 F32 "
                      "F64. Convert it where the file is written",
                      value.substr(0, 20)));
    }
    entry_.type = *type;
    return true;
  }

  bool start_object(size_t) {
    if (in_array_ || depth_ == 2) {
      return unexpected("an object");
    }
    ++depth_;
    return true;
  }

  bool key(string_t& value) {
    if (depth_ == 1) {
      in_metadata_ = value == "__metadata__";
      entry_ = {};
      entry_.name = value;
      offsets_.clear();
      fields_ = 0;
      if (!names_.insert(std::move(value)).second) {
        fail("the name is there twice");
      }
    } else {
      key_ = std::move(value);
      if (!in_metadata_) {
        take_field();
      }
    }
    return true;
  }

  bool end_object() {
    if (depth_-- == 2 && !in_metadata_) {
      finish_entry();
    }
    return true;
  }

  bool start_array(size_t) {
    if (depth_ != 2 || in_array_ || in_metadata_ || key_ == "dtype") {
      return unexpected("a list");
    }
    return in_array_ = true;
  }
  bool end_array() {
    in_array_ = false;
    return true;
  }

  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) {
    throw DataError("formats.safetensors",
                    "the header is no JSON. The file is damaged, or no file of safetensors",
                    {path_, kLengthBytes + static_cast<int64_t>(at)});
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError("formats.safetensors",
                    fmt::format("\"{}\": {}", entry_.name.substr(0, 200), what),
                    {path_});
  }

  bool unexpected(const std::string& got) const {
    fail(fmt::format("expected {{\"dtype\", \"shape\", \"data_offsets\"}}, got {}{}",
                     got,
                     depth_ == 2 ? fmt::format(" for \"{}\"", key_.substr(0, 200)) : ""));
  }

  /// Each of the three once, and no other.
  void take_field() {
    constexpr std::array<std::string_view, 3> kFields{"dtype", "shape", "data_offsets"};
    const auto* field = std::ranges::find(kFields, key_);
    const unsigned bit = 1U << static_cast<unsigned>(field - kFields.begin());
    if (field == kFields.end() || (fields_ & bit) != 0) {
      unexpected(field == kFields.end() ? "another field" : "a second one");
    }
    fields_ |= bit;
  }

  void finish_entry() {
    if (fields_ != 7U || offsets_.size() != 2 || offsets_[0] > offsets_[1]) {
      unexpected("fewer fields, or offsets that are no pair");
    }
    int64_t bytes = element_bytes(entry_.type);
    bool overflow = false;
    const bool empty = std::ranges::find(entry_.shape, 0) != entry_.shape.end();
    for (const int64_t dim : entry_.shape) {
      overflow = overflow || (!empty && __builtin_mul_overflow(bytes, dim, &bytes));
    }
    bytes = empty ? 0 : bytes;
    if (overflow || bytes != offsets_[1] - offsets_[0]) {
      fail(fmt::format("{} {} does not fit its {} bytes. The file is damaged",
                       to_string(entry_.type),
                       text::shape(entry_.shape),
                       offsets_[1] - offsets_[0]));
    }
    entry_.offset = offsets_[0];
    entry_.bytes = bytes;
    header_.entries.push_back(std::move(entry_));
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  std::unordered_set<std::string> names_;
  SafetensorEntry entry_{};
  std::vector<int64_t> offsets_;
  std::string key_;
  unsigned fields_ = 0;
  int depth_ = 0;
  bool in_array_ = false;
  bool in_metadata_ = false;
};

/// All bytes belong to exactly one tensor.
void check_offsets(const SafetensorsHeader& header, int64_t data_bytes, const std::string& path) {
  std::vector<const SafetensorEntry*> order;
  for (const SafetensorEntry& entry : header.entries) {
    order.push_back(&entry);
  }
  std::ranges::sort(
      order, {}, [](const SafetensorEntry* e) { return std::pair(e->offset, e->bytes); });
  int64_t end = 0;
  for (const SafetensorEntry* entry : order) {
    if (entry->offset != end) {
      throw DataError("formats.safetensors",
                      fmt::format("\"{}\" begins at byte {} of the data, expected {}. The file is "
                                  "damaged",
                                  entry->name.substr(0, 200),
                                  entry->offset,
                                  end),
                      {path});
    }
    end += entry->bytes;
  }
  if (end != data_bytes) {
    throw DataError("formats.safetensors",
                    fmt::format("expected {} bytes of data, got {}. The file is truncated, or "
                                "something follows it",
                                end,
                                data_bytes),
                    {path});
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text,
                                           int64_t data_bytes,
                                           const std::string& path) {
  SafetensorsHeader header;
  if (text.empty() || text.front() != '{') {
    throw DataError("formats.safetensors",
                    "expected the header to begin with {. This is no file of safetensors",
                    {path, kLengthBytes});
  }
  HeaderReader reader(header, path);
  nlohmann::json::sax_parse(text, &reader);
  check_offsets(header, data_bytes, path);
  header.data_offset = kLengthBytes + static_cast<int64_t>(text.size());
  header.file_bytes = header.data_offset + data_bytes;
  for (SafetensorEntry& entry : header.entries) {
    entry.offset += header.data_offset;
  }
  return header;
}

}  // namespace argosy::formats
