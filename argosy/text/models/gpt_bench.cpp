// A training step (forward, loss, backward) of text::Gpt beside the same model in libtorch's plain
// operators, with the same weights and tokens, one after the other in turn. Each line: medians in
// milliseconds of processor time, the least and the largest, and the ratio of the medians.
//
//     OMP_NUM_THREADS=1 gpt_bench [repetitions [model [batch …]]]
//     OMP_NUM_THREADS=1 gpt_bench 9 gpt:vocab_size=1000,layers=8,width=512,heads=8,context=256 1 8
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/version.h"
#include "argosy/text/models/gpt.h"
#include "argosy/text/models/gpt_options.h"

namespace {

using argosy::engine::Autocast;
using argosy::text::ActivationKind;
using argosy::text::Gpt;
using argosy::text::GptOptions;
using argosy::text::NormKind;
using argosy::text::PositionKind;

/// The model as tutorials write it: one operator of libtorch after the other.
class PlainGpt {
 public:
  explicit PlainGpt(const Gpt& weights) : options_(weights->options()), owner_(weights) {
    for (const auto& item : weights->named_parameters()) {
      weights_.emplace(item.key(), item.value());
    }
    mask_ = at::ones({options_.context, options_.context}, at::kBool).triu(1);
    const int64_t half = options_.head_width() / 2;
    const at::Tensor angles =
        at::outer(at::arange(options_.context, at::kDouble),
                  at::pow(options_.rope_theta, at::arange(half, at::kDouble) / half).reciprocal());
    cosine_ = at::cat({angles, angles}, -1).cos().to(at::kFloat);
    sine_ = at::cat({angles, angles}, -1).sin().to(at::kFloat);
  }

  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets) {
    at::Tensor x = at::embedding(weight("embed"), tokens);
    if (options_.positions == PositionKind::kLearned) {
      x = x + weight("positions").narrow(0, 0, tokens.size(1));
    }
    for (int64_t i = 0; i < options_.layers; ++i) {
      const std::string block = fmt::format("blocks.{}.", i);
      x = x + attention(norm(x, block + "norm1"), block + "attention.");
      x = x + mlp(norm(x, block + "norm2"), block + "mlp.");
    }
    const at::Tensor logits = at::linear(norm(x, "norm"), weight(options_.tied ? "embed" : "head"));
    return at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), targets.flatten());
  }

 private:
  at::Tensor weight(const std::string& layer) { return weights_.at(layer + ".weight"); }
  at::Tensor bias(const std::string& layer) {
    const auto found = weights_.find(layer + ".bias");
    return found == weights_.end() ? at::Tensor() : found->second;
  }
  at::Tensor linear(const at::Tensor& x, const std::string& layer) {
    return at::linear(x, weight(layer), bias(layer));
  }
  at::Tensor norm(const at::Tensor& x, const std::string& layer) {
    if (options_.norm == NormKind::kLayerNorm) {
      return at::layer_norm(x, {options_.width}, weight(layer), bias(layer), options_.norm_epsilon);
    }
    return x * (x.square().mean({-1}, true) + options_.norm_epsilon).rsqrt() * weight(layer);
  }
  at::Tensor rotated(const at::Tensor& x) {  // [N, H, T, D]
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    const auto rows = [&](const at::Tensor& all) {
      return all.narrow(0, 0, x.size(2)).to(x.scalar_type());
    };
    return x * rows(cosine_) + at::cat({-halves[1], halves[0]}, -1) * rows(sine_);
  }
  at::Tensor attention(const at::Tensor& x, const std::string& layer) {
    const int64_t n = x.size(0), t = x.size(1), d = options_.head_width();
    const int64_t kv = options_.kv_heads_or_default();
    const auto parts =
        linear(x, layer + "qkv").split_with_sizes({options_.width, kv * d, kv * d}, -1);
    at::Tensor q = parts[0].view({n, t, options_.heads, d}).transpose(1, 2);
    at::Tensor k = parts[1].view({n, t, kv, d}).transpose(1, 2);
    at::Tensor v = parts[2].view({n, t, kv, d}).transpose(1, 2);
    if (options_.positions == PositionKind::kRotary) {
      q = rotated(q);
      k = rotated(k);
    }
    if (kv != options_.heads) {
      k = k.repeat_interleave(options_.heads / kv, 1);
      v = v.repeat_interleave(options_.heads / kv, 1);
    }
    at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(d));
    scores = scores.masked_fill(mask_.slice(0, 0, t).slice(1, 0, t),
                                -std::numeric_limits<double>::infinity());
    const at::Tensor y = at::matmul(at::softmax(scores, -1), v);
    return linear(y.transpose(1, 2).contiguous().view({n, t, options_.width}), layer + "out");
  }
  at::Tensor mlp(const at::Tensor& x, const std::string& layer) {
    const at::Tensor inner = linear(x, layer + "up");
    if (options_.activation == ActivationKind::kGeluTanh) {
      return linear(at::gelu(inner, "tanh"), layer + "down");
    }
    const std::vector<at::Tensor> halves = inner.chunk(2, -1);
    return linear(at::silu(halves[0]) * halves[1], layer + "down");
  }

  GptOptions options_;
  Gpt owner_;
  std::map<std::string, at::Tensor> weights_;
  at::Tensor mask_, cosine_, sine_;
};

struct Step {
  double loss = 0;
  double milliseconds = 0;
};

/// Of all threads, in milliseconds: other programs on the machine disturb it less than the clock on
/// the wall, which it is for one thread on a core of its own.
double processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

using Loss = std::function<at::Tensor()>;

Step step(const Gpt& model, const Loss& loss, bool mixed) {
  for (at::Tensor& parameter : model->parameters()) {
    parameter.mutable_grad().reset();
  }
  const double begin = processor_time();
  at::Tensor value;
  {
    std::optional<Autocast> autocast;
    if (mixed) {
      autocast.emplace();
    }
    value = loss();
  }
  value.backward();
  return {value.item<double>(), (processor_time() - begin) / at::get_num_threads()};
}

std::string shown(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return fmt::format(
      "{:8.1f} ({:.1f} to {:.1f})", times[times.size() / 2], times.front(), times.back());
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The largest difference of a gradient, against its largest value.
double difference(const Gpt& one, const Gpt& other) {
  double most = 0;
  const auto others = other->named_parameters();
  for (const auto& item : one->named_parameters()) {
    const at::Tensor expected = others[item.key()].grad();
    const double scale = expected.abs().max().item<double>() + 1e-12;
    most = std::max(most, (item.value().grad() - expected).abs().max().item<double>() / scale);
  }
  return most;
}

void compare(const GptOptions& options, int64_t batch, bool mixed, int repetitions) {
  const Gpt model(options), twin(options);
  model.ptr()->initialize(1);
  twin.ptr()->initialize(1);
  PlainGpt plain(twin);
  const at::Tensor tokens = at::randint(options.vocab_size, {batch, options.context}, at::kLong);
  const at::Tensor targets = at::randint(options.vocab_size, {batch, options.context}, at::kLong);
  const char* const only = std::getenv("GPT_BENCH_ONLY");  // for profiles: "ours" or "eager"
  std::vector<double> ours, eager, ratios;
  Step one, two;
  for (int i = -1; i < repetitions; ++i) {
    const auto first = [&] {
      one = step(
          model, [&] { return model.ptr()->loss(tokens, targets); }, mixed);
    };
    const auto second = [&] {
      two = step(
          twin, [&] { return plain.loss(tokens, targets); }, mixed);
    };
    if (only == nullptr || std::string(only) == "ours") {
      first();
    }
    if (only == nullptr || std::string(only) == "eager") {
      second();
    }
    if (i >= 0) {
      ours.push_back(one.milliseconds);
      eager.push_back(two.milliseconds);
      ratios.push_back(one.milliseconds / std::max(two.milliseconds, 1e-9));
    }
  }
  if (only == nullptr) {
    std::sort(ratios.begin(), ratios.end());
    fmt::print(
        "{} batch {:2}  ours {}  eager {}  ratio {:.3f} ({:.3f} to {:.3f})  loss {:+.1e}  "
        "gradients {:.1e}\n",
        mixed ? "bf16" : "f32 ",
        batch,
        shown(ours),
        shown(eager),
        median(ours) / median(eager),
        ratios.front(),
        ratios.back(),
        one.loss - two.loss,
        difference(model, twin));
  } else {
    fmt::print("{} batch {:2}  ours {}  eager {}\n",
               mixed ? "bf16" : "f32 ",
               batch,
               shown(ours),
               shown(eager));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 7;
  const GptOptions options = argosy::text::gpt_options(
      argc > 2 ? argv[2] : "gpt:vocab_size=1000,layers=8,width=512,heads=8,context=256");
  std::vector<int64_t> batches;
  for (int i = 3; i < argc; ++i) {
    batches.push_back(std::atoll(argv[i]));
  }
  if (batches.empty()) {
    batches = {1, 8};
  }
  const argosy::engine::CpuSetup& cpu = argosy::engine::setup_cpu();
  fmt::print("libtorch {}, {}, {} threads, {}\n{}: {} parameters, {} tokens\n",
             argosy::engine::torch_version(),
             argosy::engine::to_string(cpu.blas),
             at::get_num_threads(),
             argosy::engine::kernels_in_use(),
             argosy::text::to_string(options),
             options.parameters(),
             options.context);
  const char* const precision = std::getenv("GPT_BENCH_PRECISION");
  for (const bool mixed : {false, true}) {
    if (precision != nullptr && (std::string(precision) == "bf16") != mixed) {
      continue;
    }
    for (const int64_t batch : batches) {
      compare(options, batch, mixed, repetitions);
    }
  }
}
