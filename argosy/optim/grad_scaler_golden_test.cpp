// The scaler against PyTorch's own over 3,000 updates, to the bit: grad_scaler_golden.py writes the
// file and tells what is in it.
#include <bit>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/optim.h"

namespace argosy::optim {
namespace {

constexpr double kRate = 1.0 / 128;
constexpr double kMomentum = 0.5;
constexpr double kLimit = 0.25;

/// A line that begins with "run".
struct Case {
  std::string precision{};
  int optimizers = 1;
  int64_t per_mille = 0;  // of the updates have a gradient that is not finite
  double factor = 1;
  int clip = 0;
  GradScalerOptions scaler{};

  explicit Case(const std::string& line) {
    std::istringstream words(line);
    std::string run;
    words >> run >> precision >> optimizers >> per_mille >> factor >> clip >> scaler.init_scale >>
        scaler.growth_factor >> scaler.backoff_factor >> scaler.growth_interval;
  }
};

class Hash {
 public:
  void add(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      value_ = (value_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3U;
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  uint64_t value_ = 0xCBF29CE484222325U;
};

torch::Tensor weight(int64_t k, int64_t size, torch::ScalarType type) {
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<double>((i * 37 + k * 11) % 64 - 31) / 32);
  }
  return torch::tensor(values, torch::kDouble).to(type).requires_grad_();
}

torch::Tensor gradient(const Case& run, int64_t k, const torch::Tensor& like, int64_t step) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kOdd[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> values;
  for (int64_t i = 0; i < like.numel(); ++i) {
    values.push_back(static_cast<double>((i * 7919 + k * 104729 + step * 1299709) % 1009 - 504) /
                     1024 * run.factor);
  }
  if ((step * 7919 + k * 6007 + step * step % 997 * 31) % 1000 < run.per_mille) {
    values[static_cast<std::size_t>(step % like.numel())] = kOdd[(step + k) % 3];
  }
  return torch::tensor(values, torch::kDouble).to(like.scalar_type());
}

/// The training of a run; each call of next() is an update.
class Training {
 public:
  explicit Training(const Case& run) : run_(run), scaler_(run.scaler) {
    const auto type = run.precision == "float32" ? torch::kFloat : torch::kDouble;
    parameters_ = {{"a", weight(0, 7, type)}, {"b", weight(1, 3, type)}};
    std::vector<engine::NamedTensors> groups{parameters_};
    if (run.optimizers == 2) {
      groups = {{parameters_[0]}, {parameters_[1]}};
    }
    for (const engine::NamedTensors& group : groups) {
      optimizers_.push_back(SGD(group, {.lr = kRate, .momentum = kMomentum}));
    }
  }

  void next() {
    torch::Tensor loss = torch::zeros({}, parameters_[0].second.scalar_type());
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      const torch::Tensor& own = parameters_[k].second;
      loss = loss + (own * gradient(run_, static_cast<int64_t>(k), own, step_)).sum();
    }
    scaler_.scale(loss).backward();
    for (Optimizer& optimizer : optimizers_) {
      if (run_.clip != 0) {
        scaler_.unscale_(optimizer);
        clip_grad_value_(optimizer.parameters(), kLimit);
      }
      const uint8_t was_skipped = scaler_.step(optimizer) ? 0 : 1;
      skipped_ += was_skipped;
      hash_.add(&was_skipped, 1);
    }
    scaler_.update();
    for (Optimizer& optimizer : optimizers_) {
      optimizer.zero_grad();
    }
    add_to_hash();
    ++step_;
  }

  /// As a line of the file.
  [[nodiscard]] std::string line() const {
    const GradScalerState state = scaler_.state_dict();
    return fmt::format(
        "{} {} {:.9g} {} {}", step_, hash_.text(), state.scale, state.growth_tracker, skipped_);
  }

 private:
  void add_to_hash() {
    const GradScalerState state = scaler_.state_dict();
    const auto scale = static_cast<float>(state.scale);
    const auto tracker = static_cast<int32_t>(state.growth_tracker);
    hash_.add(&scale, sizeof scale);
    hash_.add(&tracker, sizeof tracker);
    for (const auto& [name, tensor] : parameters_) {
      hash_.add(tensor.data_ptr(), tensor.nbytes());
    }
  }

  Case run_;
  GradScaler scaler_;
  engine::NamedTensors parameters_;
  std::vector<Optimizer> optimizers_{};
  int64_t step_ = 0;
  int64_t skipped_ = 0;
  Hash hash_{};
};

TEST(GradScalerGolden, TheBitsOfPyTorchOverThreeThousandUpdates) {
  torch::set_num_threads(1);
  std::ifstream file(ARGOSY_OPTIM_GOLDEN "/grad_scaler.txt");
  ASSERT_TRUE(file.good());
  std::optional<Training> training;
  std::string run;
  bool same = true;
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    if (line.starts_with("run")) {
      run = line;
      training.emplace(Case(line));
      same = true;
      continue;
    }
    for (int i = 0; same && i < 100; ++i) {
      training->next();
    }
    if (same) {  // what follows a difference differs too
      EXPECT_EQ(training->line(), line) << run;
      same = training->line() == line;
    }
    ++lines;
  }
  EXPECT_EQ(lines, 8 * 30);
}

}  // namespace
}  // namespace argosy::optim
