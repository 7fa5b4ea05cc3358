#include "benchmarks/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/version.h"

#include <nlohmann/json.hpp>

namespace argosy::bench {

at::Tensor pattern(at::IntArrayRef sizes, int64_t seed, at::Device device) {
  const auto longs = at::TensorOptions(device).dtype(torch::kLong);
  const at::Tensor i = torch::arange(c10::multiply_integers(sizes), longs).remainder(2003);
  const at::Tensor mixed = (i * i * 7919 + i * 104729 + seed * 1299709).remainder(2003);
  return (mixed.to(torch::kFloat) / 1001.0F - 1.0F).reshape(sizes);
}

void fill_weights(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  int64_t seed = 1;
  for (auto& item : module.named_parameters()) {
    at::Tensor& p = item.value();
    if (p.dim() > 1) {
      const int64_t fan_in = p.numel() / p.size(0);
      p.copy_(pattern(p.sizes(), seed) / std::sqrt(static_cast<double>(fan_in)));
    } else if (item.key().ends_with("bias")) {
      p.zero_();
    }
    ++seed;
  }
}

Batch image_batch_of(int64_t n, int64_t channels, int64_t side, int64_t seed, at::Device device) {
  Batch batch;
  const auto longs = at::TensorOptions(device).dtype(torch::kLong);
  batch.labels = (torch::arange(n, longs) * 7 + seed).remainder(10);
  const at::Tensor classes = pattern({10, channels, side, side}, 5000, device);
  batch.images = pattern({n, channels, side, side}, seed, device) * 0.5 +
                 classes.index_select(0, batch.labels) * 0.5;
  return batch;
}

Batch image_batch(int64_t n, int64_t seed) {
  return image_batch_of(n, 1, 28, seed);
}

Batch color_batch(int64_t n, int64_t side, int64_t seed, at::Device device) {
  return image_batch_of(n, 3, side, seed, device);
}

namespace {

std::vector<std::vector<int64_t>> resnet18_shapes() {
  std::vector<std::vector<int64_t>> shapes;
  auto conv_bn = [&](int64_t out, int64_t in, int64_t side) {
    shapes.push_back({out, in, side, side});
    shapes.push_back({out});
    shapes.push_back({out});
  };
  conv_bn(64, 3, 7);
  int64_t in = 64;
  for (const int64_t out : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      conv_bn(out, in, 3);
      conv_bn(out, out, 3);
      if (in != out) {
        conv_bn(out, in, 1);
      }
      in = out;
    }
  }
  shapes.push_back({1000, 512});
  shapes.push_back({1000});
  return shapes;
}

}  // namespace

ResNet18SizedImpl::ResNet18SizedImpl(int rank) {
  int64_t index = 0;
  for (const auto& shape : resnet18_shapes()) {
    const int64_t n = c10::multiply_integers(shape);
    weights_.push_back(
        register_parameter(fmt::format("weight{}", index), pattern(shape, index) * 0.01));
    coefficients_.push_back(pattern({n}, 1000 + 100 * rank + index) /
                            std::sqrt(static_cast<double>(n)));
    ++index;
  }
}

at::Tensor ResNet18SizedImpl::forward() {
  constexpr double kTarget = 3000;  // far enough that a hundred steps of Adam do not reach it
  at::Tensor sum = torch::zeros({});
  for (size_t i = 0; i < weights_.size(); ++i) {
    sum = sum + torch::dot(weights_[i].view(-1), coefficients_[i]);
  }
  return (sum / kTarget - 1).square();
}

Report::Report(const std::string& bench) {
  text("bench", bench);
}

void Report::field(const std::string& key, const std::string& json) {
  json_ += fmt::format("{}\"{}\": {}", json_.empty() ? "" : ", ", key, json);
}
void Report::number(const std::string& key, double value) {
  field(key, std::isfinite(value) ? fmt::format("{}", value) : "null");  // JSON knows no NaN
}
void Report::text(const std::string& key, const std::string& value) {
  field(key, nlohmann::json(value).dump());
}
void Report::numbers(const std::string& key, const std::vector<double>& values) {
  field(key, nlohmann::json(values).dump());
}
void Report::print() const {
  fmt::print("{{{}}}\n", json_);
  std::fflush(stdout);
}

void add_versions(Report& report) {
  const engine::CpuSetup& cpu = engine::setup_cpu();
  report.text("libtorch", engine::torch_version());
  report.text("blas", fmt::format("{} ({})", to_string(cpu.blas), cpu.blas_library));
  report.number("threads", at::get_num_threads());
  report.text("memory_kept", cpu.memory_kept ? "yes" : "no");
}

namespace {

/// The sum of these lines of smaps_rollup.
double mb_of(std::initializer_list<const char*> names) {
  double kib = 0;
  size_t found = 0;
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    for (const std::string name : names) {
      if (line.starts_with(name)) {
        kib += std::stod(line.substr(name.size()));
        ++found;
      }
    }
  }
  if (found != names.size()) {
    throw argosy::Error("bench.memory", "/proc/self/smaps_rollup lacks a line");
  }
  return kib * 1024 / 1e6;
}

}  // namespace

double pss_mb() {
  return mb_of({"Pss:"});
}

double sent_mb() {
  double bytes = 0;
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).ends_with("lo")) {
      continue;
    }
    std::istringstream fields(line.substr(colon + 1));
    std::vector<double> numbers(9);  // eight of what came, then the bytes that went
    for (double& number : numbers) {
      fields >> number;
    }
    bytes += numbers.back();
  }
  return bytes / 1e6;
}

double pss_of_data_mb() {
  return mb_of({"Pss_Anon:", "Pss_Shmem:"});
}

}  // namespace argosy::bench
