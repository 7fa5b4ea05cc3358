#pragma once

// What the lessons share: options that they all have, parts of data sets, what an epoch prints.
#include <argosy/argosy.h>
#include <argosy/program/command_line.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lesson {

using namespace argosy;

struct Options {
  std::string data{};
  int64_t epochs = 10;
  int64_t batch_size = 32;  // per process
  int64_t samples = 0;      // of each data set; 0: all
  int num_workers = 1;
  std::string device = "auto";
};

/// What every lesson can be told, and `more`. `data`: what its first argument is; `things`: what it
/// learns from.
inline program::Options with_options_of(Options& options,
                                        std::string_view data,
                                        std::string_view things,
                                        const program::Options& more) {
  program::Options rows{
      {"data", "", data, &options.data, {.required = true}},
      {"--epochs",
       "N",
       "Passes over the training set",
       &options.epochs,
       {.least = 1, .most = 10000}},
      {"--batch_size", "N", things, &options.batch_size, {.least = 1, .most = 60000}},
      {"--num_workers", "N", "Loader threads", &options.num_workers, {.least = 0, .most = 256}},
      {"--device", "WORD", "auto (a GPU where there is one), cpu, cuda, cuda:1", &options.device}};
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

inline program::Option samples_row(Options& options) {
  return {"--samples",
          "N",
          "The first of each set only; 0: all",
          &options.samples,
          {.least = 0, .most = 60000}};
}

/// `chain` with a result in double precision, in which trainings on one and two processes agree to
/// more digits than an epoch prints.
inline vision::Compose in_double(const vision::Compose& chain) {
  return {[chain](image::Image picture, data::Random& random) {
    return chain(std::move(picture), random).to(torch::kDouble);
  }};
}

inline program::Option double_row(bool& double_precision) {
  return {"--double", "", "Compute in double precision", &double_precision};
}

/// The first `samples` of a data set; 0: all of them.
template <data::Dataset Set>
data::Subset<Set> first(Set set, int64_t samples) {
  std::vector<int64_t> indices(samples == 0 ? set.size() : std::min(samples, set.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return {std::move(set), std::move(indices)};
}

/// "2 processes"
inline std::string processes() {
  const int number = fleet::worker_num();
  return fmt::format("{} process{}", number, number == 1 ? "" : "es");
}

/// A line after each epoch: what `text` makes of its figures, and how long training waited for
/// data.
class EpochLine final : public train::Callback {
 public:
  explicit EpochLine(std::function<std::string(const train::Logs& logs)> text)
      : text_(std::move(text)) {}

  void on_epoch_end(const train::Epoch& epoch) override {
    fleet::print("epoch {:2}: {}  (waited {:.0f} % of the time for data)\n",
                 epoch.epoch + 1,
                 text_(epoch.logs),
                 100 * epoch.loader.input_bound());
  }

 private:
  std::function<std::string(const train::Logs& logs)> text_;
};

/// "loss 0.0912, accuracy 97.21 %": of the training, and of the evaluation after it.
inline std::string loss_and_accuracy(const train::Logs& logs) {
  return fmt::format("loss {:.4f}, accuracy {:.2f} %", logs["loss"], 100 * logs["eval_acc"]);
}

}  // namespace lesson
