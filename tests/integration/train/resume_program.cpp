// A training with everything that has a state: for check_resume.sh, which kills it.
//
//     PICTURES=… argosy launch --nproc_per_node 2 resume_program FOLDER [--forget COMPONENT | --num_iters N]
//
// Real images with random augmentation by three threads, dropout, batch norm, accumulation, mixed
// precision whose scaler skips updates now and then, a schedule by updates, an average of the
// weights, callbacks that count. Writes the figures of each
// epoch with all their bits to FOLDER/epochs, and at its end one line that starts with "result:".
// --forget: first puts into the newest checkpoint, in the place of one component, what the oldest
// one has: a training that resumes from it must come to another end. --num_iters: ends after so
// many updates and keeps all checkpoints.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/argosy.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/lr_plateau.h"
#include "argosy/train/train.h"

using namespace argosy;

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).stride(2)));
    norm = register_module("norm", torch::nn::BatchNorm2d(6));
    drop = register_module("drop", torch::nn::Dropout(0.3));
    out = register_module("out", torch::nn::Linear(6 * 12 * 12, 10));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::relu(norm->forward(conv->forward(x))).flatten(1);
    return out->forward(drop->forward(h));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Net);

/// Keeps a count that changes the training: callbacks' states matter.
struct Nudge : train::Callback {
  double sum = 0;
  void on_train_batch_end(const train::Step& step) override {
    if (step.updates) {
      sum += step.loss;
    }
  }
  void on_before_update(const train::Step& step) override {
    const torch::NoGradGuard no_grad;
    for (auto& [name, parameter] : step.model.parameters()) {
      parameter.mutable_grad().mul_(1 + 1e-3 * std::sin(sum));
    }
  }
  [[nodiscard]] std::string name() const override { return "nudge"; }
  [[nodiscard]] nlohmann::ordered_json state() const override { return {{"sum", sum}}; }
  void load_state(const nlohmann::ordered_json& state) override { sum = state.at("sum"); }
};

/// Each epoch's figures, to the bit. An epoch that is trained twice must be the same twice.
struct Figures : train::Callback {
  std::string path;
  explicit Figures(std::string to) : path(std::move(to)) {}
  void on_epoch_end(const train::Epoch& epoch) override {
    if (epoch.model.is_first_worker()) {
      std::ofstream file(path, std::ios::app);
      file << "epoch " << epoch.epoch;
      for (const auto& [name, value] : epoch.logs) {
        file << fmt::format(" {}={:016x}", name, std::bit_cast<uint64_t>(value));
      }
      file << "\n";
    }
  }
};

using Change = std::function<void(checkpoint::Snapshot& now, const checkpoint::Snapshot& then)>;

engine::StateDict& part(checkpoint::Snapshot& snapshot, const std::string& name) {
  return std::find_if(snapshot.parts.begin(),
                      snapshot.parts.end(),
                      [&](const auto& one) { return one.first == name; })
      ->second;
}

/// What a checkpoint is made of, and how to lose it.
const std::map<std::string, Change>& components() {
  const auto whole_part = [](const std::string& name) -> Change {
    return [name](auto& now, const auto& then) { part(now, name) = *then.find(name); };
  };
  const auto entries = [](const std::string& of, const std::string& pattern) -> Change {
    return [of, pattern](auto& now, const auto& then) {
      for (const auto& [name, tensor] : *then.find(of)) {
        if (name.find(pattern) != std::string::npos) {
          part(now, of).set(name, tensor);
        }
      }
    };
  };
  const auto value = [](const std::string& name) -> Change {
    return [name](auto& now, const auto& then) { now.values[name] = then.values.at(name); };
  };
  const auto rank_value = [](const std::string& name) -> Change {
    return
        [name](auto& now, const auto& then) { now.rank_values[name] = then.rank_values.at(name); };
  };
  static const std::map<std::string, Change> all{
      {"weights", entries("model", ".weight")},
      {"buffers", entries("model", "running_")},
      {"exp_avg", entries("optimizer", "/exp_avg")},
      {"optimizer_step", entries("optimizer", "/step")},
      {"ema", whole_part("ema")},
      {"ema_updates", value("ema_updates")},
      {"schedule", value("schedule")},
      {"scaler", value("scaler")},
      {"callbacks", value("callbacks")},
      {"seed", [](auto& now, const auto&) { now.values["place"]["seed"] = 7; }},
      {"loader", rank_value("loader")},
      {"loss", rank_value("loss")},
      {"metrics", rank_value("metrics")},
      {"place", value("place")},
      {"nothing", [](auto&, const auto&) {}}};
  return all;
}

void forget(const std::string& component, const std::string& folder) {
  const auto all = checkpoint::list(folder, checkpoint::Check::kSizes);
  const auto newest = checkpoint::find_newest(folder);
  checkpoint::Snapshot now =
      checkpoint::Checkpoint(newest.path.value()).snapshot(fleet::worker_index());
  const checkpoint::Snapshot then =
      checkpoint::Checkpoint(all.back().path).snapshot(fleet::worker_index());
  components().at(component)(now, then);
  fleet::barrier_worker();
  checkpoint::Saver(folder, {.async = false}, fleet::group()).save(now);
}

void run(const std::string& folder,
         const std::string& component,
         std::optional<int64_t> num_iters) {
  fleet::init();
  torch::set_num_threads(1);
  seed_everything(1);
  const std::string checkpoints = folder + "/checkpoints";
  if (!component.empty()) {
    forget(component, checkpoints);
  }
  std::ofstream(folder + "/pid" + std::to_string(fleet::worker_index())) << ::getpid() << "\n";
  const vision::FashionMnist images(
      std::getenv("PICTURES"),
      vision::Split::kTrain,
      {.transform = vision::Compose{vision::RandomCrop(28, {.padding = 3}),
                                    vision::RandomHorizontalFlip(),
                                    vision::ToTensor()}});
  std::vector<int64_t> first(100);
  std::iota(first.begin(), first.end(), 0);
  const data::Subset valid(images, first);

  const Net net;
  seed_everything(1, fleet::worker_index());  // dropout differs between the ranks
  optim::Adam optimizer(net, {.lr = 2e-3});
  train::Model model(net);
  model.prepare(
      optimizer,
      loss::CrossEntropy({.label_smoothing = 0.1}),
      {metrics::Accuracy()},
      {.schedule = optim::per_step(optim::CosineAnnealingLR(optimizer, {.t_max = 300})),
       .ema = optim::ExponentialMovingAverageOptions{.decay = 0.99,
                                                     .warmup = optim::EmaWarmup::kNumUpdates},
       // So high that gradients overflow when it has grown: what is skipped depends on it.
       .amp = train::AmpOptions{
           .scaler = optim::GradScalerOptions{.init_scale = 0x1p122, .growth_interval = 9}}});
  const train::History history =
      model.fit(images,
                valid,
                {.batch_size = 10,
                 .epochs = 12,
                 .num_workers = 3,
                 .virtual_ranks = 2,  // whatever number of processes goes on
                 .resume = train::Resume::kAuto,
                 .callbacks = {Nudge(),
                               Figures(folder + "/epochs"),
                               train::EarlyStopping({.monitor = "loss", .patience = 100})},
                 .num_iters = num_iters,
                 .accumulate_grad_batches = 2,
                 .data = {.seed = 3},
                 .checkpoint = {.dir = checkpoints,
                                .every_steps = 4,
                                .keep_last = num_iters.has_value() ? 0 : 3},
                 .log = {.verbose = 0}});
  model.save(folder + "/average.pt");
  if (fleet::is_first_worker()) {
    const std::string whole = checkpoint::find_newest(checkpoints).path.value();
    engine::StateDict optimizer_state;
    fmt::print("result: {} updates, weights {}, average {}, optimizer {}\n",
               history.steps,
               checkpoint::weights_hash(engine::state_dict(net)),
               checkpoint::weights_hash(checkpoint::read_weights(folder + "/average.pt")),
               checkpoint::weights_hash(checkpoint::read_weights(whole, {.part = "optimizer"})));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool forgets = words.size() == 3 && words[1] == "--forget";
  const bool ends = words.size() == 3 && words[1] == "--num_iters";
  if (words == std::vector<std::string>{"--list"}) {
    for (const auto& [name, change] : components()) {
      fmt::print("{}\n", name);
    }
    return 0;
  }
  if ((words.size() != 1 && !forgets && !ends) || std::getenv("PICTURES") == nullptr) {
    fmt::print(stderr,
               "usage: PICTURES=DATA resume_program FOLDER [--forget COMPONENT | --num_iters N]\n");
    return 2;
  }
  try {
    run(words[0],
        forgets ? words[2] : "",
        ends ? std::optional<int64_t>(std::stoll(words[2])) : std::nullopt);
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 1;
  }
}
