// One training of a recipe, whatever computes it. For matrix.sh, resume.sh and tree.sh, which
// compare what it prints.
//
//     PICTURES=… argosy launch -n 3 same_bits_program --loop fleet --virtual_ranks 8 --updates 30
//     PICTURES=… same_bits_program --loop wrapper --threads 3 --virtual_ranks 8 --updates 30
//
// Real images with random crops by three threads, dropout, batch norm, clipping, accumulation,
// mixed precision whose scaler skips updates now and then, an average of the weights, a rate that
// falls on a plateau, the best checkpoint. Its last line is "hash", a digest of all that must be
// the same, and the digests of the parts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "argosy/argosy.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/log.h"
#include "argosy/data/random.h"
#include "argosy/optim/lr_plateau.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/run_ranks.h"

using namespace argosy;

namespace {

struct Recipe {
  std::string loop = "fit";        // or fleet, wrapper
  std::string model = "cnn";       // or resnet18, at 32 × 32
  std::string optimizer = "adam";  // or lamb, momentum
  std::string precision = "f32";   // or bf16
  int64_t virtual_ranks = 8;
  int64_t accumulate = 1;
  int64_t updates = 30;
  int64_t seed = 1;
  // The rest changes nothing of the result.
  int64_t workers = 3;
  int threads = 0;       // ranks that are threads; wrapper only
  int64_t stop = 0;      // ends after so many updates; fit and fleet
  std::string folder{};  // of checkpoints; fit and fleet
  std::string write{};   // folder for the gradients of the first two updates; wrapper only

  [[nodiscard]] bool mixed() const { return precision == "bf16"; }
};

constexpr int64_t kBatch = 4;

Recipe recipe_of(int argc, char** argv) {
  Recipe recipe;
  const std::map<std::string, std::string*> texts{{"--loop", &recipe.loop},
                                                  {"--model", &recipe.model},
                                                  {"--optimizer", &recipe.optimizer},
                                                  {"--precision", &recipe.precision},
                                                  {"--folder", &recipe.folder},
                                                  {"--write", &recipe.write}};
  const std::map<std::string, int64_t*> numbers{{"--virtual_ranks", &recipe.virtual_ranks},
                                                {"--accumulate", &recipe.accumulate},
                                                {"--updates", &recipe.updates},
                                                {"--seed", &recipe.seed},
                                                {"--workers", &recipe.workers},
                                                {"--stop", &recipe.stop}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (texts.count(name) == 1) {
      *texts.at(name) = value;
    } else if (numbers.count(name) == 1) {
      *numbers.at(name) = std::stoll(value);
    } else if (name == "--threads") {
      recipe.threads = std::stoi(value);
    } else {
      throw UsageError("same_bits", "unknown option " + name);
    }
  }
  return recipe;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(const Recipe& recipe)
      : dropout(recipe.loop == "wrapper" ? 0 : 0.2), deep(recipe.model == "resnet18") {
    if (deep) {
      resnet = register_module("resnet", vision::resnet18({.num_classes = 10, .in_channels = 1}));
    } else {
      cnn = register_module("cnn", vision::MnistCnn());
    }
  }
  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor x = torch::dropout(images, dropout, is_training());
    return deep ? resnet->forward(x) : cnn->forward(x);
  }
  double dropout;
  bool deep;
  vision::MnistCnn cnn{nullptr};
  vision::ResNet resnet{nullptr};
};
TORCH_MODULE(Net);

/// The generator of libtorch is one for all threads.
Net new_net(const Recipe& recipe) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  seed_everything(static_cast<uint64_t>(recipe.seed));
  return Net(recipe);
}

struct Pictures {
  vision::FashionMnist train, test;

  explicit Pictures(const Recipe& recipe)
      : train(folder(), vision::Split::kTrain, {.transform = cropped(recipe)}),
        test(folder(), vision::Split::kTest, {.transform = cropped(recipe)}) {}

  static std::string folder() { return std::getenv("PICTURES"); }
  static vision::Compose cropped(const Recipe& recipe) {
    return recipe.model == "resnet18"
               ? vision::Compose{vision::RandomCrop(32, {.padding = 4}), vision::ToTensor()}
               : vision::Compose{vision::RandomCrop(28, {.padding = 3}), vision::ToTensor()};
  }
};

template <typename Model>
optim::Optimizer optimizer_of(const Recipe& recipe, const Model& model) {
  const optim::GradClip clip = optim::ClipGradByGlobalNorm(0.5);
  if (recipe.optimizer == "lamb") {
    return optim::Lamb(model, {.lr = 1e-2, .grad_clip = clip});
  }
  if (recipe.optimizer == "momentum") {
    return optim::Momentum(model, {.lr = 0.02, .grad_clip = clip});
  }
  return optim::Adam(model, {.lr = 2e-3, .grad_clip = clip});
}

/// The scale is so high that gradients overflow when it has grown: what is skipped depends on it.
/// Gradients that are written stay finite.
optim::GradScalerOptions scaler_of(const Recipe& recipe) {
  return {.init_scale = recipe.write.empty() ? 0x1p126 : 1,
          .growth_interval = 5,
          .enabled = recipe.mixed()};
}

/// It soon takes a slow gain for a plateau.
constexpr optim::ReduceLROnPlateauOptions kPlateau{
    .factor = 0.7, .patience = 0, .threshold = 0.3, .min_lr = 5e-4};
constexpr optim::ExponentialMovingAverageOptions kAverage{
    .decay = 0.95, .warmup = optim::EmaWarmup::kNumUpdates, .buffers = optim::EmaBuffers::kAverage};

/// What must be the same, by name.
class Digests final {
 public:
  void add(const std::string& name, const engine::StateDict& tensors) {
    add(name, checkpoint::weights_hash(tensors).substr(0, 16));
  }
  void add(const std::string& name, double figure) {
    add(name, fmt::format("{:016x}", std::bit_cast<uint64_t>(figure)));
  }
  void add(const std::string& name, const std::string& digest) {
    text_ += fmt::format(" {} {}", name, digest);
  }
  /// Collective: throws unless all ranks have the same. Rank 0 prints.
  void print(const comm::Group& group) const {
    const auto all = comm::all_gather_object(text_, group);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank] != all[0]) {
        throw std::runtime_error(
            fmt::format("rank 0 has{}\nrank {} has{}", all[0], rank, all[rank]));
      }
    }
    if (group.rank() == 0) {
      Fingerprint whole;
      whole.add(std::string_view(text_));
      fmt::print("hash {:016x}{}\n", whole.value(), text_);
      std::fflush(stdout);
    }
  }

 private:
  std::string text_;
};

engine::StateDict tensors_of(const optim::OptimizerState& state) {
  engine::StateDict all;
  for (const auto& [parameter, tensors] : state.parameters) {
    for (const auto& [name, tensor] : tensors) {
      all.set(parameter + "/" + name, tensor);
    }
  }
  return all;
}

/// What a loop of one's own does beside its passes, alike for fleet's and for a wrapper by hand.
template <typename Model>
class Rest final {
 public:
  Rest(const Recipe& recipe, const Pictures& pictures, const comm::Group& group, Model& model)
      : group_(group), model_(model), average_(model, kAverage) {
    sampler_ = {.batch_size = 16,
                .num_replicas = group.size(),
                .rank = group.rank(),
                .virtual_ranks = recipe.virtual_ranks};
    pictures_ = &pictures;
  }

  [[nodiscard]] optim::ExponentialMovingAverage& average() { return average_; }

  /// What a checkpoint keeps beside the average: the epoch's loss of all ranks, and what was best.
  [[nodiscard]] nlohmann::ordered_json state() const {
    metrics::MeanLoss all;
    const std::string mine = nlohmann::json(loss_.state()).dump();
    for (const std::string& each : comm::all_gather_object(mine, group_)) {
      all.merge_state(nlohmann::json::parse(each).get<metrics::State>());
    }
    return {
        {"loss", all.state()}, {"figures", figures_}, {"best_score", best_score_}, {"best", best_}};
  }
  void load(const nlohmann::ordered_json& state) {
    if (group_.rank() == 0) {
      loss_.load_state(state.at("loss").get<metrics::State>());
    }
    figures_ = state.at("figures").get<std::string>();
    best_score_ = state.at("best_score").get<double>();
    best_ = state.at("best").get<std::string>();
  }

  void after_pass(const at::Tensor& loss, int64_t samples) { loss_.update(loss, samples); }

  void update(optim::Optimizer& optimizer, optim::GradScaler& scaler) {
    if (scaler.step(optimizer)) {
      average_.update();
    }
    scaler.update();
    optimizer.zero_grad();
  }

  /// Lowers the rate on a plateau, and keeps the best average in mind.
  void after_epoch(optim::ReduceLROnPlateau& schedule) {
    const double loss = loss_.compute(group_);
    loss_.reset();
    note(loss);
    schedule.step(loss);
    if (average_.num_updates() == 0) {
      return;
    }
    const optim::Averaged averaged(average_);
    metrics::Accuracy accuracy;
    data::DataLoader loader(pictures_->test,
                            data::EvaluationSampler(pictures_->test.size(), sampler_));
    model_.eval();
    {
      const torch::NoGradGuard no_grad;
      for (auto& [images, labels] : loader) {
        accuracy.update(model_.forward_alone(images), labels);
      }
    }
    model_.train();
    const double score = accuracy.compute(group_);
    note(score);
    if (score > best_score_) {
      best_score_ = score;
      best_ = checkpoint::weights_hash(engine::state_dict(*model_.module())).substr(0, 16);
    }
  }

  void print(const optim::Optimizer& optimizer, const optim::GradScaler& scaler) const {
    Digests digests;
    digests.add("weights", engine::state_dict(*model_.module()));
    digests.add("optimizer", tensors_of(optimizer.state_dict()));
    digests.add("average", average_.state_dict().averages);
    digests.add("best", best_);
    digests.add("rate", optimizer.lr());
    digests.add("scale", scaler.get_scale());
    digests.add("updates", std::to_string(average_.num_updates()));
    Fingerprint figures;
    figures.add(std::string_view(figures_));
    digests.add("figures", fmt::format("{:016x}", figures.value()));
    digests.print(group_);
  }

 private:
  void note(double figure) { figures_ += fmt::format("{:016x}", std::bit_cast<uint64_t>(figure)); }

  comm::Group group_;
  Model& model_;
  const Pictures* pictures_;
  data::EvaluationSamplerOptions sampler_{};
  optim::ExponentialMovingAverage average_;
  metrics::MeanLoss loss_;
  std::string figures_{};  // of the epochs
  double best_score_ = -1;
  std::string best_ = "none";  // digest of the weights
};

void train_by_fit(const Recipe& recipe) {
  fleet::init();
  const Net net = new_net(recipe);
  const Pictures pictures(recipe);
  optim::Optimizer optimizer = optimizer_of(recipe, net);
  train::PrepareOptions options{.schedule = optim::ReduceLROnPlateau(optimizer, kPlateau),
                                .ema = kAverage};
  if (recipe.mixed()) {
    options.amp = train::AmpOptions{.scaler = scaler_of(recipe)};
  }
  train::Model model(net);
  model.prepare(optimizer, loss::CrossEntropy(), {metrics::Accuracy()}, options);
  const auto keep = std::make_shared<train::ModelCheckpoint>(
      train::ModelCheckpointOptions{.dir = recipe.folder, .monitor = "acc"});
  const train::History history =
      model.fit(pictures.train,
                pictures.test,
                {.batch_size = kBatch,
                 .epochs = 1000,
                 .num_workers = static_cast<int>(recipe.workers),
                 .virtual_ranks = recipe.virtual_ranks,
                 .resume = train::Resume::kAuto,
                 .callbacks = {keep},
                 .num_iters = recipe.stop > 0 ? recipe.stop : recipe.updates,
                 .accumulate_grad_batches = recipe.accumulate,
                 .data = {.eval_batch_size = 16, .seed = static_cast<uint64_t>(recipe.seed) + 2},
                 .log = {.freq = 1000}});  // says from where it resumes
  Digests digests;
  const std::string last = checkpoint::find_newest(recipe.folder).path.value();
  digests.add("weights", engine::state_dict(*net));
  for (const char* part : {"optimizer", "ema"}) {
    digests.add(part, checkpoint::read_weights(last, {.part = part}));
  }
  // Not its place: the folder is the run's.
  const std::string best = std::filesystem::path(keep->best().value_or("none")).filename();
  digests.add("best", best);
  digests.add("score", keep->best_score());
  digests.add("rate", optimizer.lr());
  digests.add("updates", std::to_string(history.steps));
  Fingerprint figures;  // of the last epoch, which a resumed training also has whole
  for (const auto& [name, value] : history.epochs.back()) {
    figures.add(std::string_view(name));
    figures.add(value);
  }
  digests.add("figures", fmt::format("{:016x}", figures.value()));
  digests.print(fleet::group());
}

void train_by_fleet(const Recipe& recipe) {
  fleet::init({.virtual_ranks = recipe.virtual_ranks, .amp = recipe.mixed()});
  auto model = fleet::distributed_model(new_net(recipe));
  const Pictures pictures(recipe);
  optim::Optimizer optimizer = fleet::distributed_optimizer(optimizer_of(recipe, model));
  optim::GradScaler scaler = fleet::distributed_scaler(optim::GradScaler(scaler_of(recipe)));
  optim::ReduceLROnPlateau schedule(optimizer, kPlateau);
  Rest rest(recipe, pictures, fleet::group(), model);
  data::DataLoader loader(
      pictures.train,
      fleet::distributed_batch_sampler(pictures.train.size(),
                                       {.batch_size = kBatch,
                                        .shuffle = true,
                                        .seed = static_cast<uint64_t>(recipe.seed) + 2,
                                        .micro_batches = recipe.accumulate}),
      {.num_workers = static_cast<int>(recipe.workers), .seed = 5});
  checkpoint::TrainingSaver saver(recipe.folder, {}, fleet::group());
  saver.add(model).add(optimizer).add(scaler).add(schedule).add(rest.average()).add(loader);
  checkpoint::TrainingProgress at = saver.resume();
  if (at.step > 0) {
    rest.load(at.values);
    fleet::print("Resuming from {}: epoch {}, step {}\n", recipe.folder, at.epoch, at.step);
  }
  const int64_t last = recipe.stop > 0 ? recipe.stop : recipe.updates;
  for (; at.step < last; ++at.epoch) {
    for (auto& update : fleet::updates(loader)) {
      for (auto& [images, labels] : update) {
        const at::Tensor loss = torch::nn::functional::cross_entropy(model(images), labels);
        scaler.scale(loss / update.micro_batches()).backward();
        rest.after_pass(loss, images.size(0));
      }
      rest.update(optimizer, scaler);
      if (++at.step == last) {
        break;
      }
    }
    if (at.step == recipe.stop) {
      at.values = rest.state();
      saver.save(at);
      saver.wait();
      break;
    }
    rest.after_epoch(schedule);
  }
  rest.print(optimizer, scaler);
}

/// Writes each virtual rank's gradients as they come to a parameter, and the average of all, for
/// check_tree.py.
class GradientFiles final {
 public:
  GradientFiles(const std::string& folder, const Net& net) : folder_(folder) {
    if (folder.empty()) {
      return;
    }
    parameters_ = net->parameters();
    of_pass_.resize(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].register_hook(
          [this, i](const at::Tensor& gradient) { of_pass_[i] = gradient.clone(); });
    }
  }

  void write_pass(int64_t update, int64_t virtual_rank, int64_t micro) {
    write(fmt::format("leaf-{}-{}-{}", update, virtual_rank, micro), of_pass_);
  }
  void write_average(int64_t update, int rank) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters_) {
      gradients.push_back(parameter.grad());
    }
    write(fmt::format("average-{}-{}", update, rank), gradients);
  }

 private:
  void write(const std::string& name, const std::vector<at::Tensor>& gradients) const {
    if (folder_.empty()) {
      return;
    }
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    for (const at::Tensor& gradient : gradients) {
      const at::Tensor flat = gradient.contiguous();
      file.write(static_cast<const char*>(flat.data_ptr()),
                 static_cast<std::streamsize>(flat.nbytes()));
    }
  }

  std::string folder_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> of_pass_;
};

/// Ranks that are threads share libtorch's generator, so this dropout has one of its own.
at::Tensor with_dropout(const at::Tensor& images, uint64_t key) {
  const at::Generator generator = at::detail::createCPUGenerator(key);
  return images * at::empty_like(images).bernoulli_(0.8, generator) / 0.8;
}

void train_by_wrapper(const Recipe& recipe, const comm::Group& group) {
  const Net net = new_net(recipe);
  const Pictures pictures(recipe);
  parallel::DdpOptions options{.first_bucket_bytes = 20'000, .bucket_cap_bytes = 60'000};
  options.virtual_ranks = recipe.virtual_ranks;
  if (recipe.mixed()) {
    options.autocast = at::kBFloat16;
  }
  parallel::DistributedDataParallel model(net, group, options);
  optim::Optimizer optimizer = optimizer_of(recipe, model);
  if (recipe.optimizer != "lamb") {
    (void)model.divide_step(optimizer);  // where the ranks share memory
  }
  optim::GradScaler scaler(scaler_of(recipe));
  optim::ReduceLROnPlateau schedule(optimizer, kPlateau);
  Rest rest(recipe, pictures, group, model);
  GradientFiles files(recipe.write, net);
  data::DataLoader loader(
      pictures.train,
      data::DistributedBatchSampler(pictures.train.size(),
                                    {.batch_size = kBatch,
                                     .num_replicas = group.size(),
                                     .rank = group.rank(),
                                     .shuffle = true,
                                     .virtual_ranks = recipe.virtual_ranks,
                                     .micro_batches = recipe.accumulate,
                                     .seed = static_cast<uint64_t>(recipe.seed) + 2}),
      {.num_workers = static_cast<int>(recipe.workers), .seed = 5});
  const data::BatchTurns turns = loader.turns();
  int64_t done = 0;
  for (int64_t epoch = 0; done < recipe.updates; ++epoch) {
    auto batch = loader.begin();
    for (int64_t left = loader.size(); left > 0 && done < recipe.updates; ++done) {
      const int64_t micros = std::min(recipe.accumulate, left / turns.leaves);
      for (int64_t leaf = 0; leaf < turns.leaves; ++leaf) {
        for (int64_t micro = 0; micro < micros; ++micro, ++batch) {
          if (turns.spare) {
            continue;
          }
          const auto& [images, labels] = *batch;
          uint64_t key = static_cast<uint64_t>(recipe.seed);
          for (const int64_t part : {done, turns.first + leaf, micro}) {
            key = data::mix(key, static_cast<uint64_t>(part));
          }
          model.begin({.leaf = leaf, .leaves = turns.leaves, .micro = micro, .micros = micros});
          const at::Tensor loss =
              torch::nn::functional::cross_entropy(model(with_dropout(images, key)), labels);
          scaler.scale(loss / micros).backward();
          rest.after_pass(loss, images.size(0));
          if (done < 2) {
            files.write_pass(done, turns.first + leaf, micro);
          }
        }
      }
      left -= turns.leaves * micros;
      model.end_update();
      if (done < 2) {
        files.write_average(done, group.rank());
      }
      rest.update(optimizer, scaler);
    }
    rest.after_epoch(schedule);
  }
  rest.print(optimizer, scaler);
}

void run(const Recipe& recipe) {
  if (recipe.loop == "fit") {
    train_by_fit(recipe);
  } else if (recipe.loop == "fleet") {
    train_by_fleet(recipe);
  } else if (recipe.threads == 0) {
    train_by_wrapper(recipe, comm::init());
  } else {
    const auto store = rendezvous::in_process_store();
    test::run_ranks(
        recipe.threads,
        [&](int rank) {
          torch::set_num_threads(1);  // OpenMP asks each thread
          train_by_wrapper(
              recipe,
              comm::connect(
                  {.backend = "in_process", .store = store, .rank = rank, .size = recipe.threads}));
        },
        {.deadline = std::chrono::minutes(30)});
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (std::getenv("PICTURES") == nullptr) {
      throw UsageError("same_bits", "PICTURES must name a folder of Fashion-MNIST");
    }
    torch::set_num_threads(1);
    run(recipe_of(argc, argv));
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 1;
  }
}
