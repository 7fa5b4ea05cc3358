#include "argosy/runs/metrics_log.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "argosy/runs/files.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;

constexpr size_t kPiece = size_t{4} << 20;
constexpr size_t kMostOfALine = size_t{1} << 20;
constexpr size_t kMostOfAName = 200;
constexpr double kOdd = std::numeric_limits<double>::quiet_NaN();

/// "test_accuracy" is the accuracy in the split "test".
void part_name(std::string& name, std::string& split) {
  for (const std::string_view word : {"train", "eval", "val", "test"}) {
    if (name.size() > word.size() + 1 && name.starts_with(word) && name[word.size()] == '_') {
      split = word;
      name.erase(0, word.size() + 1);
      return;
    }
  }
}

bool is_place(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPlaces{"step", "epoch", "split", "time", "rank"};
  return std::ranges::find(kPlaces, name) != kPlaces.end();
}

double number_or(const ordered_json& record, const char* key, double otherwise) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace

void MetricsLog::forget() {
  *this = MetricsLog(std::move(path_));
}

bool MetricsLog::read() {
  const int64_t size = file_size(path_);
  if (size < offset_) {
    forget();
  }
  const int64_t records_before = records_;
  while (offset_ < size) {
    const std::string piece = read_piece(path_, offset_, kPiece);
    if (piece.empty()) {
      break;
    }
    offset_ += static_cast<int64_t>(piece.size());
    size_t begin = 0;
    for (size_t end = piece.find('\n'); end != std::string::npos; end = piece.find('\n', begin)) {
      if (!std::exchange(skipping_, false)) {
        rest_.append(piece, begin, end - begin);
        take_line(rest_);
      }
      rest_.clear();
      begin = end + 1;
    }
    if (!skipping_) {
      rest_.append(piece, begin);
    }
    if (rest_.size() > kMostOfALine) {
      rest_.clear();
      skipping_ = true;
      ++bad_lines_;
    }
  }
  return records_ != records_before;
}

void MetricsLog::take_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
    return;
  }
  const ordered_json record = ordered_json::parse(line, nullptr, false);
  if (!record.is_object()) {
    ++bad_lines_;
    return;
  }
  ++records_;
  epoch_ = number_or(record, "epoch", epoch_);
  if (record.contains("step")) {
    step_ = number_or(record, "step", step_);
    by_step_ = true;
  }
  const double x = by_step_ ? step_ : epoch_ >= 0 ? epoch_ : static_cast<double>(records_);
  const auto said = record.find("split");
  const std::string split =
      said != record.end() && said->is_string() ? said->get<std::string>() : "train";
  const auto take = [&](const ordered_json& object) {
    for (const auto& [key, value] : object.items()) {
      if ((value.is_number() || value.is_null()) && !is_place(key)) {
        add(key, split, x, value.is_null() ? kOdd : value.get<double>());
      }
    }
  };
  take(record);
  if (const auto metrics = record.find("metrics");
      metrics != record.end() && metrics->is_object()) {
    take(*metrics);
  }
}

void MetricsLog::add(std::string name, std::string split, double x, double y) {
  part_name(name, split);
  const auto known = std::ranges::find_if(
      curves_, [&](const NamedCurve& c) { return c.name == name && c.split == split; });
  if (known != curves_.end()) {
    known->curve.add(x, y);
  } else if (curves_.size() < kMostCurves && name.size() <= kMostOfAName &&
             split.size() <= kMostOfAName) {
    curves_.push_back({.name = std::move(name), .split = std::move(split), .curve = {}});
    curves_.back().curve.add(x, y);
  }
}

const NamedCurve* MetricsLog::find(std::string_view name, std::string_view split) const {
  const auto found = std::ranges::find_if(
      curves_, [&](const NamedCurve& c) { return c.name == name && c.split == split; });
  return found == curves_.end() ? nullptr : &*found;
}

}  // namespace argosy::runs
