#include "argosy/rpc/parcel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/text.h"

#include "rpc.pb.h"

namespace argosy::rpc {
namespace {

/// A list within lists deeper than this is no value of ours.
constexpr size_t kDeepest = 32;
constexpr uint64_t kLargestExact = uint64_t{1} << 53;

std::string shown(std::string_view text) {
  constexpr size_t kMost = 24;
  return fmt::format(
      "\"{}\"{}", text::printable(text.substr(0, kMost)), text.size() > kMost ? "…" : "");
}

std::string described(const wire::Value& value) {
  switch (value.kind_case()) {
    case wire::Value::kTruth:
      return value.truth() ? "true" : "false";
    case wire::Value::kWhole:
      return fmt::format("the number {}", value.whole());
    case wire::Value::kNatural:
      return fmt::format("the number {}", value.natural());
    case wire::Value::kReal:
      return fmt::format("the number {}", value.real());
    case wire::Value::kText:
      return "the text " + shown(value.text());
    case wire::Value::kList:
      return fmt::format("a list of {}", value.list().values_size());
    case wire::Value::kNumbers:
      return fmt::format("a vector of {}", text::printable(value.numbers().type().substr(0, 8)));
    case wire::Value::kMemory:
      return "memory";
    case wire::Value::KIND_NOT_SET:
      break;
  }
  return "a value of an unknown kind";
}

[[noreturn]] void wrong(std::string_view expected, const std::string& got) {
  throw UsageError("rpc.value", fmt::format("expected {}, got {}", expected, got));
}

}  // namespace

Parcel::Parcel() : values_(std::make_unique<wire::List>()) {}
Parcel::~Parcel() = default;
Parcel::Parcel(Parcel&&) noexcept = default;
Parcel& Parcel::operator=(Parcel&&) noexcept = default;

void Parcel::check_size(size_t most) const {
  most = std::min(most, kMostBytes);
  const size_t bytes = values_->ByteSizeLong();
  if (bytes > most) {
    throw UsageError("rpc.value",
                     fmt::format("the values of one call or answer take {}, of {} at most{}. Send "
                                 "them as Memory or tensors, which travel beside the values",
                                 text::bytes(static_cast<double>(bytes)),
                                 text::bytes(static_cast<double>(most)),
                                 most < kMostBytes ? " (largest_call_bytes)" : ""));
  }
}

Writer::Writer(Parcel& parcel) : parcel_(parcel), lists_{&parcel.values()} {}

wire::Value& Writer::next() {
  return *lists_.back()->add_values();
}

void Writer::truth(bool value) {
  next().set_truth(value);
}
void Writer::whole(int64_t value) {
  next().set_whole(value);
}
void Writer::natural(uint64_t value) {
  next().set_natural(value);
}
void Writer::real(double value) {
  next().set_real(value);
}
void Writer::text(std::string_view value) {
  next().set_text(value.data(), value.size());
}
void Writer::numbers(std::string_view type, std::span<const std::byte> data) {
  wire::Numbers& numbers = *next().mutable_numbers();
  numbers.set_type(type.data(), type.size());
  numbers.set_data(data.data(), data.size());
}
void Writer::memory(Memory value) {
  next().set_memory(static_cast<uint32_t>(parcel_.memories().size()));
  parcel_.memories().push_back(std::move(value));
}
void Writer::begin_list() {
  lists_.push_back(next().mutable_list());
}
void Writer::end_list() {
  lists_.pop_back();
}

Reader::Reader(const Parcel& parcel) : parcel_(parcel), places_{{&parcel.values(), 0}} {}

size_t Reader::left() const {
  return static_cast<size_t>(places_.back().list->values_size() - places_.back().next);
}

const wire::Value& Reader::next(std::string_view expected) {
  Place& place = places_.back();
  if (place.next == place.list->values_size()) {
    wrong(expected, "nothing more");
  }
  return place.list->values(place.next++);
}

bool Reader::truth() {
  const wire::Value& value = next("a bool");
  if (value.kind_case() != wire::Value::kTruth) {
    wrong("a bool", described(value));
  }
  return value.truth();
}

int64_t Reader::whole() {
  constexpr std::string_view kExpected = "a whole number";
  const wire::Value& value = next(kExpected);
  if (value.kind_case() == wire::Value::kNatural &&
      value.natural() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return static_cast<int64_t>(value.natural());
  }
  if (value.kind_case() != wire::Value::kWhole) {
    wrong(kExpected, described(value));
  }
  return value.whole();
}

uint64_t Reader::natural() {
  constexpr std::string_view kExpected = "a whole number of 0 or more";
  const wire::Value& value = next(kExpected);
  if (value.kind_case() == wire::Value::kWhole && value.whole() >= 0) {
    return static_cast<uint64_t>(value.whole());
  }
  if (value.kind_case() != wire::Value::kNatural) {
    wrong(kExpected, described(value));
  }
  return value.natural();
}

double Reader::real() {
  constexpr std::string_view kExpected = "a number";
  const wire::Value& value = next(kExpected);
  if (value.kind_case() == wire::Value::kReal) {
    return value.real();
  }
  const bool natural = value.kind_case() == wire::Value::kNatural;
  if (!natural && value.kind_case() != wire::Value::kWhole) {
    wrong(kExpected, described(value));
  }
  const uint64_t size = natural             ? value.natural()
                        : value.whole() < 0 ? -static_cast<uint64_t>(value.whole())
                                            : static_cast<uint64_t>(value.whole());
  if (size > kLargestExact) {
    wrong("a number that a double holds exactly", described(value));
  }
  const auto number = static_cast<double>(size);
  return !natural && value.whole() < 0 ? -number : number;
}

std::string_view Reader::text() {
  const wire::Value& value = next("text");
  if (value.kind_case() != wire::Value::kText) {
    wrong("text", described(value));
  }
  return value.text();
}

std::string_view Reader::numbers(std::string_view type, size_t element) {
  const std::string expected = fmt::format("a vector of {}", type);
  const wire::Value& value = next(expected);
  if (value.kind_case() != wire::Value::kNumbers || value.numbers().type() != type) {
    wrong(expected, described(value));
  }
  const std::string& data = value.numbers().data();
  if (data.size() % element != 0) {
    wrong(expected, fmt::format("{} bytes, which are no whole number of them", data.size()));
  }
  return data;
}

Memory Reader::memory() {
  const wire::Value& value = next("memory");
  if (value.kind_case() != wire::Value::kMemory) {
    wrong("memory", described(value));
  }
  if (value.memory() >= parcel_.memories().size()) {
    wrong("memory", fmt::format("the number {} of {}", value.memory(), parcel_.memories().size()));
  }
  return parcel_.memories()[value.memory()];
}

size_t Reader::begin_list() {
  const wire::Value& value = next("a list");
  if (value.kind_case() != wire::Value::kList) {
    wrong("a list", described(value));
  }
  if (places_.size() > kDeepest) {
    wrong(fmt::format("lists at most {} deep", kDeepest), "deeper ones");
  }
  places_.push_back({&value.list(), 0});
  return left();
}

void Reader::end_list() {
  if (left() > 0) {
    wrong(fmt::format("a list of {}", places_.back().next),
          fmt::format("one of {}", places_.back().list->values_size()));
  }
  places_.pop_back();
}

void Reader::out_of_range(const std::string& value, const std::string& type) {
  wrong("a number that fits " + type, value);
}

}  // namespace argosy::rpc
