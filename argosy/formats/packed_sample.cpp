#include "argosy/formats/packed_sample.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "argosy/base/check.h"
#include "argosy/formats/record_layout.h"
#include "argosy/formats/shown_name.h"

#include <nlohmann/json.hpp>

namespace argosy::formats {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr const char* kFormat = "argosy.samples";
constexpr int kMetadataVersion = 2;

template <typename Number>
void append(std::vector<std::byte>& bytes, Number number) {
  const auto raw = layout::to_little(number);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

template <typename Number>
std::vector<Number> numbers_of(std::span<const std::byte> bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = layout::from_little<Number>(bytes.data() + i * sizeof(Number));
  }
  return numbers;
}

bool has_shape(const PackedSample& sample) {
  constexpr int64_t kMostSide = std::numeric_limits<int32_t>::max();
  const bool sides = sample.height >= 1 && sample.height <= kMostSide && sample.width >= 1 &&
                     sample.width <= kMostSide;
  const bool channels = sample.channels == 1 || sample.channels == 3 || sample.channels == 4;
  int64_t bytes = 0;  // two sides of 31 bits fit, four times that may not
  return sides && channels &&
         !__builtin_mul_overflow(sample.height * sample.width, sample.channels, &bytes) &&
         static_cast<uint64_t>(bytes) == sample.picture.size();
}

bool is_sound(const PackedSample& sample) {
  return sample.kind == PictureKind::kPixels
             ? has_shape(sample)
             : sample.height == 0 && sample.width == 0 && sample.channels == 0;
}

/// What no reader could make sense of; empty: nothing.
std::string wrong_splits(const std::vector<PackedSplit>& splits) {
  constexpr size_t kMostSplits = 1000;
  constexpr int64_t kMost = int64_t{1} << 53;  // exact in every JSON reader; all together fit
  if (splits.size() > kMostSplits) {
    return fmt::format("{} splits: at most {} are expected", splits.size(), kMostSplits);
  }
  for (size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].samples < 0 || splits[i].samples > kMost) {
      return fmt::format("the split \"{}\" has {} samples: expected a number from 0 to {}",
                         splits[i].name,
                         splits[i].samples,
                         kMost);
    }
    for (size_t other = 0; other < i; ++other) {
      if (splits[other].name == splits[i].name) {
        return fmt::format("two splits \"{}\"", splits[i].name);
      }
    }
  }
  return {};
}

std::vector<PackedSplit> splits_of(const nlohmann::json& list) {
  std::vector<PackedSplit> splits;
  for (const nlohmann::json& each : list.get_ref<const nlohmann::json::array_t&>()) {
    PackedSplit& split = splits.emplace_back();
    each.at("name").get_to(split.name);
    const nlohmann::json& samples = each.at("samples");
    const bool whole = samples.is_number_integer() &&
                       !(samples.is_number_unsigned() && samples.get<uint64_t>() >> 63 != 0);
    split.samples = whole ? samples.get<int64_t>() : -1;
  }
  return splits;
}

/// A field for a message. Only what has no levels is written out: dump() goes down by recursion.
std::string shown(const nlohmann::json& field) {
  return shown_name(field.is_primitive() ? field.dump() : field.type_name());
}

}  // namespace

std::vector<std::byte> pack_sample(const PackedSample& sample) {
  ARGOSY_CHECK(is_sound(sample),
               "formats.packed_sample",
               "{} bytes of picture and the shape {} x {} x {} (height, width, channels) disagree: "
               "pixels need it, encoded pictures have zeros",
               sample.picture.size(),
               sample.height,
               sample.width,
               sample.channels);
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  ARGOSY_CHECK(
      sample.labels.size() <= kMost && sample.points.size() <= kMost && sample.name.size() <= kMost,
      "formats.packed_sample",
      "more than 2^32 labels, points or bytes of name");
  std::vector<std::byte> record;
  record.reserve(kHeaderBytes + 8 * sample.labels.size() + 4 * sample.points.size() +
                 sample.name.size() + sample.picture.size());
  append(record, kVersion);
  append(record, static_cast<uint8_t>(sample.kind));
  append(record, static_cast<uint8_t>(sample.channels));
  append(record, uint8_t{0});
  append(record, static_cast<uint32_t>(sample.height));
  append(record, static_cast<uint32_t>(sample.width));
  append(record, static_cast<uint32_t>(sample.labels.size()));
  append(record, static_cast<uint32_t>(sample.points.size()));
  append(record, static_cast<uint32_t>(sample.name.size()));
  append(record, static_cast<uint64_t>(sample.picture.size()));
  for (const int64_t label : sample.labels) {
    append(record, label);
  }
  for (const float point : sample.points) {
    append(record, point);
  }
  const auto name = std::as_bytes(std::span(sample.name));
  record.insert(record.end(), name.begin(), name.end());
  record.insert(record.end(), sample.picture.begin(), sample.picture.end());
  return record;
}

PackedSample unpack_sample(std::span<const std::byte> record,
                           const std::string& path,
                           int64_t index) {
  const auto fail = [&](const std::string& what) {
    throw DataError("formats.packed_sample", what, {path, -1, index});
  };
  if (record.size() < kHeaderBytes) {
    fail(
        fmt::format("expected a sample's header of {} bytes, got {}", kHeaderBytes, record.size()));
  }
  if (record[0] != std::byte{kVersion} || record[3] != std::byte{0}) {
    fail(fmt::format("a sample of version {}: this program reads version {}",
                     static_cast<int>(record[0]),
                     kVersion));
  }
  const auto u32 = [&](size_t at) { return layout::from_little<uint32_t>(record.data() + at); };
  const uint64_t labels = uint64_t{u32(12)} * 8;  // 35 bits at most, so the sum fits
  const uint64_t points = uint64_t{u32(16)} * 4;
  const uint64_t name = u32(20);
  const auto picture = layout::from_little<uint64_t>(record.data() + 24);
  const uint64_t before = kHeaderBytes + labels + points + name;
  if (before > record.size() || picture != record.size() - before) {
    fail(fmt::format("a sample of {} bytes before its picture of {} in a record of {}",
                     before,
                     picture,
                     record.size()));
  }
  PackedSample sample{.kind = static_cast<PictureKind>(record[1]),
                      .height = u32(4),
                      .width = u32(8),
                      .channels = static_cast<int64_t>(record[2]),
                      .labels = numbers_of<int64_t>(record.subspan(kHeaderBytes, labels)),
                      .points = numbers_of<float>(record.subspan(kHeaderBytes + labels, points)),
                      .picture = record.subspan(before)};
  const auto text = record.subspan(before - name, name);
  sample.name = {reinterpret_cast<const char*>(text.data()), text.size()};
  if ((sample.kind != PictureKind::kEncoded && sample.kind != PictureKind::kPixels) ||
      !is_sound(sample)) {
    fail(fmt::format("a picture of kind {} with {} bytes and the shape {} x {} x {}",
                     static_cast<int>(record[1]),
                     picture,
                     sample.height,
                     sample.width,
                     sample.channels));
  }
  return sample;
}

std::string pack_metadata(const PackedSet& set) {
  const std::string wrong = wrong_splits(set.splits);
  ARGOSY_CHECK(wrong.empty(), "formats.packed_sample", "{}", wrong);
  auto splits = nlohmann::ordered_json::array();
  for (const PackedSplit& split : set.splits) {
    splits.push_back({{"name", split.name}, {"samples", split.samples}});
  }
  return nlohmann::ordered_json{{"format", kFormat},
                                {"version", kMetadataVersion},
                                {"kind", set.kind},
                                {"classes", set.classes},
                                {"groups", set.groups},
                                {"point_names", set.point_names},
                                {"shape", set.shape},
                                {"full", set.full},
                                {"splits", splits}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

PackedSet unpack_metadata(std::string_view json, const std::string& path) {
  try {
    const auto fields = nlohmann::json::parse(json);
    const auto& version = fields.at("version");
    if (fields.at("format") != kFormat || (version != 1 && version != kMetadataVersion)) {
      throw DataError("formats.packed_sample",
                      fmt::format("metadata of {}, version {}: this program reads \"{}\", versions "
                                  "1 and {}",
                                  shown(fields.at("format")),
                                  shown(version),
                                  kFormat,
                                  kMetadataVersion),
                      {path});
    }
    PackedSet set;
    fields.at("kind").get_to(set.kind);
    fields.at("classes").get_to(set.classes);
    fields.at("point_names").get_to(set.point_names);
    fields.at("shape").get_to(set.shape);
    set.full = fields.value("full", set.full);
    if (!std::isfinite(set.full) || set.full < 1) {
      throw DataError("formats.packed_sample",
                      fmt::format("metadata with white at {}: expected 1 or more", set.full),
                      {path});
    }
    if (version != 1) {
      fields.at("groups").get_to(set.groups);
      set.splits = splits_of(fields.at("splits"));
    }
    if (const std::string wrong = wrong_splits(set.splits); !wrong.empty()) {
      throw DataError("formats.packed_sample", wrong, {path});
    }
    return set;
  } catch (const nlohmann::json::exception& error) {
    throw DataError("formats.packed_sample",
                    fmt::format("metadata that does not describe samples: {}", error.what()),
                    {path});
  }
}

}  // namespace argosy::formats
