#include "argosy/train/callbacks/loggers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
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
  columns_.clear();
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
  std::string head = kFixedColumns;
  if (columns_.empty()) {
    for (const auto& [name, value] : epoch.logs) {
      columns_.push_back(name);
    }
  }
  head += fmt::format("{}{}", columns_.empty() ? "" : ",", fmt::join(columns_, ","));
  std::string row = fmt::format("{},{},{:.3f},{},{:.4f}",
                                epoch.epoch + 1,
                                epoch.step,
                                epoch.seconds,
                                lr_,
                                epoch.loader.input_bound());
  for (const std::string& column : columns_) {
    const double* const value = epoch.logs.find(column);
    row += value == nullptr ? "," : fmt::format(",{}", *value);
  }
  std::string first;
  if (std::ifstream old(path_); old.good()) {
    std::getline(old, first);
  }
  if (!first.empty() && first != head) {
    throw DataError("train.CsvLogger",
                    fmt::format("expected the columns {}, got {}. Choose another path, or move the "
                                "file away.",
                                head,
                                first),
                    {path_});
  }
  if (const auto folder = std::filesystem::path(path_).parent_path(); !folder.empty()) {
    std::error_code ignored;  // what cannot be made is seen below
    std::filesystem::create_directories(folder, ignored);
  }
  std::ofstream file(path_, std::ios::app);
  file << (first.empty() ? head + "\n" : "") << row << "\n";
  file.flush();
  if (!file.good()) {
    throw DataError("train.CsvLogger", "cannot write: " + errno_message(errno), {path_});
  }
}

}  // namespace argosy::train
