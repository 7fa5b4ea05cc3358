// RMSProp, Adagrad, Lamb and Lars against Paddle's own, averages against PyTorch's:
// optimizer_golden.py writes the numbers.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/optim.h"

namespace argosy::optim {
namespace {

using engine::NamedTensors;
using Values = std::vector<double>;

std::map<std::string, Values> golden_values() {
  std::ifstream file(ARGOSY_OPTIM_GOLDEN "/optimizers.txt");
  std::map<std::string, Values> result;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') {
      continue;
    }
    std::istringstream words(line.substr(line.find('|') + 1));
    Values& values = result[line.substr(0, line.find(" |"))];
    for (std::string word; words >> word;) {
      values.push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  return result;
}

// Weights and gradients as in the generator: exact in f32.
torch::Tensor tensor_of(int64_t size, const std::function<int64_t(int64_t)>& numerator, double by) {
  torch::Tensor values = torch::empty({size}, torch::kDouble);
  for (int64_t i = 0; i < size; ++i) {
    values[i] = static_cast<double>(numerator(i)) / by;
  }
  return values;
}

torch::Tensor weight(int64_t k, int64_t size) {
  return tensor_of(
      size, [&](int64_t i) { return (i * 37 + k * 11) % 64 - 31; }, 32);
}

torch::Tensor gradient(int64_t k, int64_t size, int64_t step) {
  return tensor_of(
      size, [&](int64_t i) { return (i * 7919 + k * 104729 + step * 1299709) % 1009 - 504; }, 1024);
}

Values flat(const std::vector<torch::Tensor>& tensors) {
  Values values;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor wide = tensor.detach().to(torch::kDouble).contiguous();
    values.insert(values.end(), wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel());
  }
  return values;
}

void expect_near(const Values& mine, const Values& golden, double bound, const std::string& what) {
  ASSERT_EQ(mine.size(), golden.size()) << what;
  double top = 0, worst = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    top = std::max(top, std::abs(golden[i]));
    worst = std::max(worst, std::abs(mine[i] - golden[i]));
  }
  EXPECT_LT(worst / top, bound) << what;
}

struct Precision {
  const char* name;
  torch::ScalarType type;
  double bound;
};
constexpr Precision kPrecisions[] = {{"float32", torch::kFloat, 1e-6},
                                     {"float64", torch::kDouble, 1e-13}};

void expect_paddles(const std::string& name,
                    const std::function<Optimizer(const NamedTensors&)>& make) {
  for (const Precision& precision : kPrecisions) {
    NamedTensors list;
    const std::vector<std::pair<std::string, std::vector<int64_t>>> shapes{
        {"fc.weight", {5, 4}}, {"fc.bias", {4}}, {"scale", {1}}};
    for (int64_t k = 0; k < 3; ++k) {
      const auto& [own, shape] = shapes[k];
      const int64_t size = shape.size() == 2 ? 20 : shape[0];
      list.emplace_back(own,
                        weight(k, size).reshape(shape).to(precision.type).requires_grad_(true));
    }
    Optimizer optimizer = make(list);
    for (int step = 0; step < 100; ++step) {
      if (step == 50) {
        optimizer.set_lr(optimizer.lr() / 2);
      }
      for (int64_t k = 0; k < 3; ++k) {
        const torch::Tensor& w = list[k].second;
        w.mutable_grad() = gradient(k, w.numel(), step).reshape(w.sizes()).to(precision.type);
      }
      optimizer.step();
    }
    const std::string key = name + " " + precision.name;
    expect_near(flat({list[0].second, list[1].second, list[2].second}),
                golden_values().at(key),
                precision.bound,
                key);
  }
}

constexpr double kTiny = 1.0 / 1048576;

TEST(OptimizerGolden, LambIsPaddles) {
  const LambOptions plain{
      .lr = 1.0 / 64, .betas = {0.875, 0.984375}, .eps = kTiny, .weight_decay = 1.0 / 64};
  const auto expect = [](const std::string& name, const LambOptions& options) {
    expect_paddles(name, [&](const NamedTensors& list) { return Lamb(list, options); });
  };
  expect("Lamb", plain);
  LambOptions exclude = plain, adapt = plain, clip = plain;
  exclude.weight_decay = 0.125;
  exclude.exclude_from_weight_decay_fn = [](const std::string& name) {
    return name.ends_with("bias");
  };
  expect("Lamb.exclude", exclude);
  adapt.weight_decay = 0;
  adapt.always_adapt = true;
  expect("Lamb.always_adapt", adapt);
  clip.grad_clip = ClipGradByValue(0.25);
  expect("Lamb.clip", clip);
}

TEST(OptimizerGolden, LarsIsPaddles) {
  expect_paddles("Lars", [](const NamedTensors& list) {
    return Lars(list, {.lr = 0.5, .momentum = 0.75, .lars_coeff = 0.125, .weight_decay = 1.0 / 64});
  });
  expect_paddles("Lars.exclude", [](const NamedTensors& list) {
    return Lars(list,
                {.lr = 1.0 / 64,
                 .momentum = 0.875,
                 .lars_coeff = 0.25,
                 .weight_decay = 0.125,
                 .eps = 0.0625,
                 .exclude_from_weight_decay = {"bias"}});
  });
}

TEST(OptimizerGolden, RMSPropInPaddlesFormIsPaddles) {
  RMSPropOptions options{
      .lr = 1.0 / 64, .alpha = 0.9375, .eps = kTiny, .form = RMSPropForm::kPaddle};
  const auto make = [&](const NamedTensors& list) { return RMSProp(list, options); };
  expect_paddles("RMSProp", make);
  options.eps = 1.0 / 256;
  options.momentum = 0.5;
  options.centered = true;
  expect_paddles("RMSProp.centered", make);
  options.centered = false;
  options.momentum = 0.75;
  options.weight_decay = 0.125;
  expect_paddles("RMSProp.momentum", make);
}

TEST(OptimizerGolden, AdagradIsPaddles) {
  expect_paddles("Adagrad", [](const NamedTensors& list) {
    return Adagrad(list, {.lr = 0.125, .initial_accumulator_value = 0.25, .eps = kTiny});
  });
}

TEST(OptimizerGolden, AveragesArePyTorchs) {
  for (const auto& [name, decay] :
       std::map<std::string, double>{{"EMA", 0.9}, {"EMA.slow", 0.999}, {"EMA.fast", 0.25}}) {
    for (const Precision& precision : kPrecisions) {
      torch::Tensor w = torch::zeros({40}, precision.type).requires_grad_(true);
      ExponentialMovingAverage ema(NamedTensors{{"w", w}}, {.decay = decay});
      for (int step = 0; step < 50; ++step) {
        const torch::NoGradGuard no_grad;
        w.copy_(gradient(0, 40, step));
        ema.update();
      }
      const std::string key = name + " " + precision.name;
      expect_near(
          flat({ema.state_dict().averages.at("w")}), golden_values().at(key), precision.bound, key);
    }
  }
}

}  // namespace
}  // namespace argosy::optim
