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

void add(nlohmann::ordered_json& record, const Logs& logs) {
  for (const auto& [name, value] : logs) {
    record[name] = value;
  }
}

constexpr const char* kFixedColumns = "epoch,step,seconds";

}  // namespace

JsonlLogger::JsonlLogger(JsonlLoggerOptions options) : options_(std::move(options)) {}

void JsonlLogger::on_train_begin(const Training& training) {
  log_freq_ = options_.log_freq > 0 ? options_.log_freq : training.log_freq;
  const std::string path = path_in(options_.path, training, "metrics.jsonl", "JsonlLogger");
  if (training.model.is_first_worker()) {
    writer_ = std::make_shared<events::JsonlWriter>(path);
  }
}

void JsonlLogger::on_train_batch_end(const Step& step) {
  if (writer_ == nullptr || (step.batch + 1) % log_freq_ != 0) {
    return;
  }
  nlohmann::ordered_json record{{"split", "train"},
                                {"epoch", step.epoch},
                                {"batch", step.batch},
                                {"step", step.step},
                                {"loss", step.loss},
                                {"lr", step.lr}};
  add(record, step.logs);
  writer_->write(record);
}

void JsonlLogger::on_epoch_end(const Epoch& epoch) {
  if (writer_ == nullptr) {
    return;
  }
  nlohmann::ordered_json record{{"split", "epoch"},
                                {"epoch", epoch.epoch},
                                {"step", epoch.step},
                                {"seconds", epoch.seconds},
                                {"input_wait", epoch.loader.input_bound()}};
  add(record, epoch.logs);
  writer_->write(record);
}

CsvLogger::CsvLogger(CsvLoggerOptions options) : options_(std::move(options)) {}

void CsvLogger::on_train_begin(const Training& training) {
  path_ = path_in(options_.path, training, "epochs.csv", "CsvLogger");
  columns_.clear();
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
  std::string row = fmt::format("{},{},{:.3f}", epoch.epoch + 1, epoch.step, epoch.seconds);
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
