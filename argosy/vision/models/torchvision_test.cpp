// Holds the residual networks against what torchvision's are, draw and compute
// (tests/golden/models).

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/state_dict.h"
#include "argosy/engine/summary.h"
#include "argosy/vision/models/resnet.h"

namespace argosy::vision {
namespace {

using Build = ResNet (*)(const NamedResNetOptions&);
const std::map<std::string, Build> kModels{{"resnet18", resnet18},
                                           {"resnet34", resnet34},
                                           {"resnet50", resnet50},
                                           {"resnet101", resnet101},
                                           {"resnet152", resnet152},
                                           {"resnext50_32x4d", resnext50_32x4d},
                                           {"resnext101_32x8d", resnext101_32x8d},
                                           {"resnext101_64x4d", resnext101_64x4d},
                                           {"wide_resnet50_2", wide_resnet50_2},
                                           {"wide_resnet101_2", wide_resnet101_2}};

/// "resnet50 drawn fc.weight first=0.1 sum=2.5", "resnet50 computes image=0 largest=7 : 0.1 0.2"
struct Line {
  std::string parameter;
  std::map<std::string, double> values;
  std::vector<double> logits;
};

std::vector<Line> golden(const std::string& model, const std::string& what) {
  std::ifstream file(ARGOSY_GOLDEN_DIR "/models/torchvision.txt");
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    std::string name, kind;
    words >> name >> kind;
    if (name != model || kind != what) {
      continue;
    }
    Line line;
    for (std::string word; words >> word && word != ":";) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        line.parameter = word;
      } else {
        line.values[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
      }
    }
    for (double value = 0; words >> value;) {
      line.logits.push_back(value);
    }
    lines.push_back(line);
  }
  return lines;
}

/// Element i of entry k, as tests/golden/models/generate.py makes it.
double noise(uint32_t k, uint32_t i) {
  uint32_t x = i + 1000003 * k;
  x = (x ^ (x >> 16)) * 73244475;
  x = (x ^ (x >> 16)) * 73244475;
  return static_cast<double>(x ^ (x >> 16)) / 4294967296.0 - 0.5;
}

template <typename F>
void fill(at::Tensor tensor, uint32_t k, const F& value_of) {
  auto* values = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(value_of(noise(k, static_cast<uint32_t>(i))));
  }
}

void fill(ResNet& net) {
  uint32_t k = 0;
  for (const auto& [name, tensor] : engine::state_dict(net)) {
    if (name.ends_with("running_var")) {
      fill(tensor, k, [](double u) { return 1 + u / 2; });
    } else if (name.ends_with("bias") || name.ends_with("running_mean")) {
      fill(tensor, k, [](double u) { return u / 5; });
    } else if (tensor.dim() == 1) {
      fill(tensor, k, [](double u) { return 0.5 + u / 5; });
    } else if (tensor.dim() > 1) {
      const auto fan_in = static_cast<double>(tensor.numel() / tensor.size(0));
      fill(tensor, k, [&](double u) { return 2 * u * std::sqrt(6 / fan_in); });
    }
    ++k;
  }
}

class Torchvision : public testing::TestWithParam<std::string> {};

TEST_P(Torchvision, DrawsComputesAndCountsTheSame) {
  torch::manual_seed(1);
  ResNet net = kModels.at(GetParam())({});
  for (const Line& line : golden(GetParam(), "drawn")) {
    const at::Tensor p = net->named_parameters()[line.parameter].detach().flatten();
    EXPECT_NEAR(p[0].item<double>(), line.values.at("first"), 1e-7) << line.parameter;
    EXPECT_NEAR(p.to(torch::kDouble).sum().item<double>(), line.values.at("sum"), 1e-3)
        << line.parameter;
  }

  // Every layer but the last has a 49th of the pixels that it has for 224×224.
  const engine::Summary summary = engine::summary(net, {1, 3, 32, 32});
  const int64_t last = summary.rows.back().multiply_adds;
  const int64_t multiply_adds = 49 * (summary.multiply_adds - last) + last;
  const std::vector<Line> size = golden(GetParam(), "size");
  ASSERT_EQ(size.size(), 1U);
  EXPECT_EQ(summary.parameters, static_cast<int64_t>(size[0].values.at("parameters")));
  EXPECT_NEAR(static_cast<double>(multiply_adds) / 1e9, size[0].values.at("gmacs"), 6e-4);
  EXPECT_TRUE(summary.unused.empty());

  const std::vector<Line> computed = golden(GetParam(), "computes");
  if (computed.empty()) {
    return;
  }
  fill(net);
  net->eval();
  at::Tensor images = torch::empty({2, 3, 64, 64});
  fill(images, 1000, [](double u) { return 3 * u; });
  const torch::NoGradGuard no_grad;
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    const at::Tensor logits = net(images.contiguous(format));
    for (const Line& line : computed) {
      const at::Tensor row = logits[static_cast<int64_t>(line.values.at("image"))];
      EXPECT_EQ(row.argmax().item<int64_t>(), static_cast<int64_t>(line.values.at("largest")));
      for (size_t i = 0; i < line.logits.size(); ++i) {
        EXPECT_NEAR(row[static_cast<int64_t>(i)].item<double>(), line.logits[i], 1e-5) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Torchvision,
                         testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, build] : kModels) {
                             names.push_back(name);
                           }
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(ResNetSummary, OfDepth50IsWhatTorchinfoSays) {
  const engine::Summary summary = engine::summary(resnet50(), {1, 3, 224, 224});
  EXPECT_EQ(summary.parameters, 25'557'032);
  EXPECT_EQ(summary.multiply_adds, 4'089'184'256);
  // Of each of 53 convolutions and norms, 49 activations, 16 sums, two poolings and the classifier.
  EXPECT_EQ(summary.rows.size(), 53U + 53 + 49 + 16 + 2 + 1);
  EXPECT_EQ(summary.rows.front().layer, "conv1");
  EXPECT_EQ(summary.rows.front().multiply_adds, 118'013'952);
  EXPECT_EQ(summary.rows.back().layer, "fc");
}

}  // namespace
}  // namespace argosy::vision
