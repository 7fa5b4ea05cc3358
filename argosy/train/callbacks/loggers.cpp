#include "argosy/train/callbacks/loggers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/whole_file.h"
#include "argosy/train/callbacks/earlier_lines.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

std::string path_in(const std::string& given,
                    const Training& training,
                    const char* file,
                    const char* who) {
  ARGOSY_CHECK(!given.empty() || !training.run_dir.empty(),
               fmt::format("train.{}", who),
               "no path, and fit() has no run_dir either: give it one of them");
  return given.empty() ? training.run_dir + "/" + file : given;
}

constexpr const char* kFixedColumns = "epoch,step,seconds,lr,input_wait";

/// What keep_lines_until() compares with the step at which a training begins. The line of an
/// epoch's end that is still to come, once more, counts as later.
int64_t place_of(const Training& training, int64_t step, int64_t epoch, bool ends_epoch) {
  const bool again =
      training.resumed && ends_epoch && step == training.step && epoch > training.epoch;
  return again ? step + 1 : step;
}

std::optional<int64_t> place_of_record(const Training& training, const std::string& line) {
  const auto record = nlohmann::json::parse(line, nullptr, false);
  const auto whole = [&](const char* field) {
    return record.is_object() && record.contains(field) && record[field].is_number();
  };
  if (!whole("step")) {
    return std::nullopt;
  }
  return place_of(training,
                  record["step"].get<int64_t>(),
                  whole("epoch") ? record["epoch"].get<int64_t>() : 0,
                  record.value("split", nlohmann::json()) == "eval");
}

/// Of its first two fields.
std::optional<int64_t> place_of_row(const Training& training, const std::string& line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string::npos) {
    return std::nullopt;
  }
  const auto epoch = strings::parse_int(line.substr(0, comma));
  const auto step =
      strings::parse_int(line.substr(comma + 1, line.find(',', comma + 1) - comma - 1));
  return epoch && step ? std::optional(place_of(training, *step, *epoch, true)) : std::nullopt;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// Those that the file's first line names after the fixed ones; none where there is no file yet.
std::vector<std::string> columns_of(const std::string& path,
                                    const std::vector<std::string>& lines) {
  const std::string head = lines.empty() ? kFixedColumns : lines.front();
  const std::string fixed = kFixedColumns;
  if (head == fixed) {
    return {};
  }
  if (!head.starts_with(fixed + ",")) {
    throw DataError("train.CsvLogger",
                    fmt::format("expected columns that begin with {}, got {}. Choose another path, "
                                "or move the file away.",
                                fixed,
                                head),
                    {path});
  }
  return strings::split(head.substr(fixed.size() + 1), ',');
}

}  // namespace

JsonlLogger::JsonlLogger(JsonlLoggerOptions options) : options_(std::move(options)) {}

void JsonlLogger::on_train_begin(const Training& training) {
  ARGOSY_CHECK(options_.log_freq >= 0,
               "train.JsonlLogger",
               "log_freq must not be negative, got {}",
               options_.log_freq);
  window_ = detail::TrainWindow(options_.log_freq > 0 ? options_.log_freq : training.log_freq);
  const std::string path = path_in(options_.path, training, "metrics.jsonl", "JsonlLogger");
  if (options_.path.empty()) {
    ARGOSY_CHECK(options_.log_freq == 0,
                 "train.JsonlLogger",
                 "log_freq {} without a path: the run's metrics.jsonl is written every log_freq-th "
                 "batch of fit(). Give it a path of its own, or fit() the log_freq.",
                 options_.log_freq);
    return;
  }
  if (training.model.is_first_worker()) {
    detail::keep_lines_until(path, training.step, [&](const std::string& line) {
      return place_of_record(training, line);
    });
    writer_ = std::make_shared<events::JsonlWriter>(path);
  }
}

void JsonlLogger::on_epoch_begin(const Epoch& /*epoch*/) {
  window_.begin_epoch();
}

void JsonlLogger::on_phase(const Phase& phase) {
  window_.add(phase);
}

void JsonlLogger::on_train_batch_end(const Step& step) {
  if (writer_ == nullptr) {
    return;
  }
  if (const auto figures = window_.add(step)) {
    writer_->write(detail::train_record(*figures));
  }
}

void JsonlLogger::on_epoch_end(const Epoch& epoch) {
  const Logs evaluation = detail::evaluation_in(epoch.logs);
  if (writer_ != nullptr && !evaluation.empty()) {
    writer_->write(detail::eval_record(epoch.step, epoch.epoch + 1, evaluation));
  }
}

CsvLogger::CsvLogger(CsvLoggerOptions options) : options_(std::move(options)) {}

void CsvLogger::on_train_begin(const Training& training) {
  path_ = path_in(options_.path, training, "epochs.csv", "CsvLogger");
  lr_ = training.model.optimizer().lr();
  if (training.model.is_first_worker()) {
    detail::keep_lines_until(path_, training.step, [&](const std::string& line) {
      return place_of_row(training, line);
    });
  }
}

void CsvLogger::on_train_batch_end(const Step& step) {
  lr_ = step.lr;
}

void CsvLogger::on_epoch_end(const Epoch& epoch) {
  if (!epoch.model.is_first_worker()) {
    return;
  }
  const std::vector<std::string> lines = lines_of(path_);
  std::vector<std::string> columns = columns_of(path_, lines);
  const size_t known = columns.size();
  for (const auto& [name, value] : epoch.logs) {
    if (std::ranges::find(columns, name) == columns.end()) {
      columns.push_back(name);
    }
  }
  std::string table =
      fmt::format("{}{}{}\n", kFixedColumns, columns.empty() ? "" : ",", fmt::join(columns, ","));
  for (size_t i = 1; i < lines.size(); ++i) {
    table += lines[i] + std::string(columns.size() - known, ',') + "\n";
  }
  table += fmt::format("{},{},{:.3f},{},{:.4f}",
                       epoch.epoch + 1,
                       epoch.step,
                       epoch.seconds,
                       lr_,
                       epoch.loader.input_bound());
  for (const std::string& column : columns) {
    const double* const value = epoch.logs.find(column);
    table += value == nullptr ? "," : fmt::format(",{}", *value);
  }
  if (const auto folder = std::filesystem::path(path_).parent_path(); !folder.empty()) {
    std::error_code ignored;  // what cannot be made is seen below
    std::filesystem::create_directories(folder, ignored);
  }
  if (const Status written = os::write_whole(path_, table + "\n"); !written.ok()) {
    throw DataError("train.CsvLogger", "cannot write: " + written.failure().what, {path_});
  }
}

}  // namespace argosy::train
