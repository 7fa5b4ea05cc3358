#include "argosy/text/models/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/engine/named_draw.h"

namespace argosy::text {
namespace {

constexpr const char* kGenerate = "text.generate";

/// Evaluation mode while it lives.
class EvaluationMode final {
 public:
  explicit EvaluationMode(torch::nn::Module& module)
      : module_(module), training_(module.is_training()) {
    module_.eval();
  }
  ~EvaluationMode() { module_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  EvaluationMode(EvaluationMode&&) = delete;
  EvaluationMode& operator=(EvaluationMode&&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
};

/// Tokens that may be chosen, the most likely first; of equals the smallest token.
std::vector<int64_t> ranked(std::span<const float> logits, int64_t top_k) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto count =
      top_k == 0 ? tokens.size() : std::min(tokens.size(), static_cast<std::size_t>(top_k));
  const auto before = [&](int64_t a, int64_t b) {
    const float one = logits[static_cast<std::size_t>(a)];
    const float other = logits[static_cast<std::size_t>(b)];
    return one > other || (one == other && a < b);
  };
  std::partial_sort(
      tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(), before);
  tokens.resize(count);
  return tokens;
}

/// `uniform` in [0, 1) decides.
int64_t sampled(std::span<const float> logits, const GenerateOptions& options, double uniform) {
  const std::vector<int64_t> tokens = ranked(logits, options.top_k);
  std::vector<double> weights;
  double total = 0;
  const double most = static_cast<double>(logits[static_cast<std::size_t>(tokens.front())]);
  for (const int64_t token : tokens) {
    const double logit = static_cast<double>(logits[static_cast<std::size_t>(token)]);
    weights.push_back(std::exp((logit - most) / options.temperature));
    total += weights.back();
  }
  if (options.top_p < 1) {
    double sum = 0;
    std::size_t kept = 0;
    while (kept < weights.size() && sum < options.top_p * total) {
      sum += weights[kept++];
    }
    weights.resize(std::max<std::size_t>(kept, 1));
    total = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  double left = uniform * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) {
      return tokens[i];
    }
  }
  return tokens[weights.size() - 1];
}

}  // namespace

void GenerateOptions::validate() const {
  ARGOSY_CHECK(max_new_tokens >= 0,
               kGenerate,
               "max_new_tokens must not be negative, got {}",
               max_new_tokens);
  ARGOSY_CHECK(temperature >= 0 && std::isfinite(temperature),
               kGenerate,
               "temperature must be 0 or more, got {}",
               temperature);
  ARGOSY_CHECK(top_k >= 0, kGenerate, "top_k must not be negative, got {}", top_k);
  ARGOSY_CHECK(top_p > 0 && top_p <= 1, kGenerate, "top_p must be in (0, 1], got {}", top_p);
}

at::Tensor generate(const Gpt& model, const at::Tensor& prompts, const GenerateOptions& options) {
  options.validate();
  GptImpl& impl = *model.ptr();
  ARGOSY_CHECK(prompts.defined() && prompts.dim() == 2 && prompts.numel() > 0,
               kGenerate,
               "expected prompts [N, T] with a token or more each");
  const int64_t rows = prompts.size(0);
  const int64_t length = prompts.size(1) + options.max_new_tokens;
  ARGOSY_CHECK(length <= impl.options().context,
               kGenerate,
               "{} tokens of the prompt and {} new ones are more than the model's context of {}",
               prompts.size(1),
               options.max_new_tokens,
               impl.options().context);
  const at::NoGradGuard no_grad;
  const EvaluationMode evaluation(impl);
  KeyValueCache cache(impl.options(), length);
  std::vector<at::Tensor> all{prompts};
  std::vector<bool> ended(static_cast<std::size_t>(rows));
  at::Tensor next = prompts;
  for (int64_t step = 0; step < options.max_new_tokens; ++step) {
    const at::Tensor logits = impl.next_logits(next, cache).to(at::kCPU, at::kFloat).contiguous();
    const auto classes = static_cast<std::size_t>(logits.size(1));
    at::Tensor chosen = at::empty({rows, 1}, at::kLong);
    for (int64_t row = 0; row < rows; ++row) {
      const auto place = static_cast<std::size_t>(row);
      const std::span<const float> of_row(logits.data_ptr<float>() + place * classes, classes);
      ARGOSY_CHECK(
          std::none_of(of_row.begin(), of_row.end(), [](float x) { return std::isnan(x); }),
          kGenerate,
          "the logits of row {} are not numbers (NaN): the model's weights are damaged",
          row);
      int64_t& token = chosen.data_ptr<int64_t>()[row];
      if (ended[place]) {
        token = *options.stop_token;
      } else if (options.temperature == 0) {
        token = ranked(of_row, 1).front();
      } else {
        const std::string stream = fmt::format("text.generate.{}", row);
        token = sampled(of_row, options, engine::draw_uniform(options.seed, stream, step));
      }
      ended[place] = options.stop_token == token;
    }
    if (options.on_tokens) {
      options.on_tokens(chosen);
    }
    next = chosen.to(prompts.device());
    all.push_back(next);
    if (std::all_of(ended.begin(), ended.end(), [](bool each) { return each; })) {
      break;
    }
  }
  return at::cat(all, 1);
}

}  // namespace argosy::text
