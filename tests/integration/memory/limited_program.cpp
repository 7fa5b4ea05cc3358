// Trains a Gpt for three steps in a cgroup of its own, and prints the losses and the memory used.
//
//     argosy launch --nproc_per_node 4
//         limited_program FOLDER BYTES MODEL sharded|whole [CHECKPOINTS]
//
// FOLDER is that of the memory controller (v1 or v2); BYTES 0: without a limit. What the process
// holds before it joins its cgroup (libraries) does not count there. With CHECKPOINTS the training
// saves there after the first step, or resumes from what is there.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/argosy.h"

namespace {

namespace checkpoint = argosy::checkpoint;
namespace fleet = argosy::fleet;
namespace fs = std::filesystem;
using argosy::text::Gpt;
using argosy::text::GptOptions;

struct LossModelImpl : torch::nn::Module {
  explicit LossModelImpl(const GptOptions& options) : gpt(register_module("gpt", Gpt(options))) {}
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    return gpt->loss(tokens, targets);
  }
  Gpt gpt;
};
TORCH_MODULE(LossModel);

void write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  if (!stream) {
    throw std::runtime_error(fmt::format("cannot write \"{}\" to {}", text, file.string()));
  }
}

/// A group of this process with a limit.
class Limit final {
 public:
  Limit(const fs::path& controller, int64_t bytes)
      : is_v1_(fs::exists(controller / "memory.limit_in_bytes")),
        folder_(controller / fmt::format("argosy-{}", ::getpid())) {
    fs::create_directory(folder_);
    write(folder_ / (is_v1_ ? "memory.limit_in_bytes" : "memory.max"), std::to_string(bytes));
    write(folder_ / "cgroup.procs", std::to_string(::getpid()));
  }
  [[nodiscard]] int64_t most() const {
    int64_t bytes = 0;
    std::ifstream(folder_ / (is_v1_ ? "memory.max_usage_in_bytes" : "memory.peak")) >> bytes;
    return bytes;
  }

 private:
  bool is_v1_;
  fs::path folder_;
};

constexpr int64_t kSteps = 3;
constexpr int64_t kSavedStep = 1;

/// What this rank learns from in a step: one more token than the context.
at::Tensor tokens_of(int64_t step, const GptOptions& options) {
  return (at::arange(options.context + 1, at::kLong) * (3 + fleet::worker_index()) + step)
      .remainder(options.vocab_size)
      .unsqueeze(0);
}

/// `folder` empty: nothing is saved.
void train(const GptOptions& options, const std::string& folder) {
  const auto net = argosy::engine::deferred<LossModel>(options);
  auto model = fleet::distributed_model(net);
  auto optimizer = fleet::distributed_optimizer(argosy::optim::AdamW(model, {.lr = 1e-3}));
  std::optional<checkpoint::TrainingSaver> saver;
  checkpoint::TrainingProgress at;
  if (!folder.empty()) {
    saver.emplace(folder, checkpoint::SaverOptions(), fleet::group());
    saver->add(model).add(optimizer);
    at = saver->resume();
  }
  while (at.step < kSteps) {
    const at::Tensor tokens = tokens_of(at.step, options);
    at::Tensor loss =
        model(tokens.narrow(1, 0, options.context), tokens.narrow(1, 1, options.context));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    const at::Tensor shown = loss.detach();
    fleet::all_reduce(shown);
    fleet::print("loss {} {:a}\n", ++at.step, shown.item<float>());
    if (saver && at.step == kSavedStep) {
      saver->save(at);
    }
  }
  if (saver) {
    saver->wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 4 && words.size() != 5) {
    fmt::print(stderr, "usage: limited_program FOLDER BYTES MODEL sharded|whole [CHECKPOINTS]\n");
    return 2;
  }
  fleet::init({.sharding = words[3] == "sharded"});
  argosy::seed_everything(7);
  (void)at::mm(at::ones({64, 64}), at::ones({64, 64}));  // what libraries allocate once
  fleet::barrier_worker();
  const int64_t bytes = std::stoll(words[1]);
  std::optional<Limit> limit;
  if (bytes > 0) {
    limit.emplace(words[0], bytes);
  }

  const GptOptions options = argosy::text::gpt_options(words[2]);
  train(options, words.size() == 5 ? words[4] : "");
  const at::Tensor most = at::full({1}, limit ? limit->most() : 0, at::kLong);
  fleet::all_reduce(most, {.op = argosy::comm::ReduceOp::kMax});
  constexpr int64_t kBytesOfAParameter = 16;  // f32 value and gradient, AdamW's two numbers
  fleet::print("model {} bytes, each process at most {} bytes\n",
               options.parameters() * kBytesOfAParameter,
               most.item<int64_t>());
  return 0;
}
