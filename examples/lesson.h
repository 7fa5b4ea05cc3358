#pragma once

// What the lessons share: options that they all have, parts of data sets, what an epoch prints.
#include <argosy/argosy.h>
#include <argosy/program/command_line.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace lesson {

using namespace argosy;

struct Options {
  std::string data{};
  int64_t epochs = 10;
  int64_t batch_size = 32;  // per process
  int64_t samples = 0;      // of each data set; 0: all
  int workers = 1;
};

/// A number within bounds, its default shown in the help.
template <typename T>
CLI::Option* number(
    CLI::App& app, const std::string& name, T& value, const std::string& what, T least, T most) {
  return app.add_option(name, value, what)->check(CLI::Range(least, most))->capture_default_str();
}

/// What every lesson can be told. `data`: what its first argument is; `things`: what it learns
/// from.
inline void add_options(CLI::App& app,
                        Options& options,
                        const std::string& data,
                        const std::string& things) {
  app.add_option("data", options.data, data)->required();
  number<int64_t>(app, "--epochs", options.epochs, "Passes over the training set", 1, 10000);
  number<int64_t>(
      app, "--batch_size", options.batch_size, things + " per step and process", 1, 60000);
  number(app, "--workers", options.workers, "Loader threads", 0, 256);
}

inline void add_samples(CLI::App& app, Options& options) {
  number<int64_t>(
      app, "--samples", options.samples, "The first of each set only; 0: all", 0, 60000);
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
