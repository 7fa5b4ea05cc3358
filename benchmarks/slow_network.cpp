// What a strategy that saves traffic costs and brings, for pictures or for a text.
//
//     argosy launch --nproc_per_node 2 bench_slow_network [--strategy '{"dgc": true}']
//         [--optimizer momentum|adamw] [--lr 0.05] [--batch 32] [--seed 1]
//         [--steps 50 --warmup 10 | --target 0.85 --most 3000 --check_every 20]
//     ... bench_slow_network --book bible.txt --optimizer adamw --lr 2e-3 --batch 8 --target 5 ...
//
// A perceptron of 535,818 parameters (784, 512, 256, 10) on Fashion-MNIST: 2.1 MB of gradients a
// step; or a GPT of the lesson's kind (2 blocks of 128 values, 2048 tokens, windows of 64) on a
// book: 2.6 MB. Each rank has every n-th sample of an order that the seed says. With --target it
// trains until the test set's accuracy, or the loss of windows that were held back, reaches it, by
// what the ranks have together; without it measures steps.
#include <argosy/argosy.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "argosy/program/command_line.h"
#include "argosy/text/text.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string book{};
  std::string strategy = "{}";
  std::string optimizer = "momentum";
  double lr = 0.05;
  int64_t batch = 32;
  int64_t seed = 1;
  int64_t steps = 50;
  int64_t warmup = 10;
  double target = 0;
  int64_t most = 3000;
  int64_t check_every = 20;
};

/// Samples of this rank: every n-th of one order an epoch, the same on all ranks.
class Order final {
 public:
  explicit Order(const Options& options)
      : batch_(options.batch), random_(torch::make_generator<at::CPUGeneratorImpl>(options.seed)) {}
  /// Returns the next batch of `samples`: i64 [batch].
  at::Tensor next(int64_t samples) {
    const int64_t all = batch_ * fleet::worker_num();
    if (!order_.defined() || at_ + all > order_.numel()) {
      order_ = torch::randperm(samples, random_, torch::kLong);
      at_ = 0;
    }
    at::Tensor mine = order_.slice(0, at_ + fleet::worker_index(), at_ + all, fleet::worker_num());
    at_ += all;
    return mine;
  }

 private:
  int64_t batch_;
  at::Generator random_;
  at::Tensor order_;
  int64_t at_ = 0;
};

/// Pictures of clothes, and how many of the test set are told right.
class Pictures final {
 public:
  using Net = torch::nn::Sequential;

  explicit Pictures(const Options& options)
      : folder_(options.data), train_(read(vision::Split::kTrain)), order_(options) {}

  static Net made(int64_t seed) {
    torch::manual_seed(seed);
    return Net(torch::nn::Linear(784, 512),
               torch::nn::ReLU(),
               torch::nn::Linear(512, 256),
               torch::nn::ReLU(),
               torch::nn::Linear(256, 10));
  }
  at::Tensor loss(parallel::DistributedDataParallel<Net>& model) {
    const at::Tensor mine = order_.next(train_.first.size(0));
    return torch::nn::functional::cross_entropy(
        model.forward<at::Tensor>(train_.first.index_select(0, mine)),
        train_.second.index_select(0, mine));
  }
  double judge(Net net) {
    if (!test_.first.defined()) {
      test_ = read(vision::Split::kTest);
    }
    const at::Tensor output = net->forward(test_.first);
    return output.argmax(1).eq(test_.second).to(torch::kDouble).mean().item<double>();
  }
  static bool is_reached(double accuracy, double target) { return accuracy >= target; }

 private:
  /// A split in memory: f32 [samples, 784] from -1 to 1, and i64 [samples].
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> read(vision::Split split) const {
    const vision::FashionMnist set(folder_, split, {.transform = {vision::ToTensor()}});
    std::vector<at::Tensor> images, labels;
    for (int64_t i = 0; i < set.size(); ++i) {
      const vision::Example sample = set.get(i);
      images.push_back(sample.image.reshape({-1}));
      labels.push_back(sample.target.reshape({1}));
    }
    return {(torch::stack(images) - 0.5) * 2, torch::cat(labels)};
  }

  std::string folder_;
  std::pair<at::Tensor, at::Tensor> train_, test_;
  Order order_;
};

/// A book, and the loss of its last tenth's first windows.
class Book final {
 public:
  using Net = text::GptLoss;
  static constexpr int64_t kVocabulary = 2048;
  static constexpr int64_t kLength = 64;
  static constexpr int64_t kJudged = 128;  // windows

  explicit Book(const Options& options) : order_(options) {
    const text::TokenFile tokens(tokens_of(options.book));
    const int64_t kept = tokens.size() / 10 * 9;
    train_.emplace(tokens, text::TokenWindowsOptions{.sequence_length = kLength, .tokens = kept});
    test_.emplace(tokens, text::TokenWindowsOptions{.sequence_length = kLength, .first = kept});
  }

  static Net made(int64_t seed) {
    seed_everything(static_cast<uint64_t>(seed));
    text::GptOptions shape = text::gpt_options(
        fmt::format("gpt:vocab_size={},layers=2,width=128,context={}", kVocabulary, kLength));
    return Net(text::Gpt(shape));
  }
  at::Tensor loss(parallel::DistributedDataParallel<Net>& model) {
    const auto [tokens, targets] = windows(*train_, order_.next(train_->size()));
    return model(tokens, targets);
  }
  double judge(Net net) const {
    const auto [tokens, targets] = windows(*test_, torch::arange(kJudged));
    return net.forward(tokens, targets).item<double>();
  }
  static bool is_reached(double loss, double target) { return loss <= target; }

 private:
  static std::tuple<at::Tensor, at::Tensor> windows(const text::TokenWindows& all,
                                                    const at::Tensor& indices) {
    std::vector<at::Tensor> inputs, targets;
    for (const int64_t index :
         std::span(indices.data_ptr<int64_t>(), static_cast<size_t>(indices.numel()))) {
      const auto [input, target] = all.get(index);
      inputs.push_back(input);
      targets.push_back(target);
    }
    return {torch::stack(inputs), torch::stack(targets)};
  }
  /// Returns the name of the book's file of tokens, which it makes once in a folder beside it.
  static std::string tokens_of(const std::string& book) {
    const std::string folder = fmt::format("{}.bpe{}", book, kVocabulary);
    std::string file = folder + "/text.tokens";
    if (fleet::local_rank() == 0 && !std::filesystem::exists(file)) {
      std::ifstream stream(book, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      text::train_bpe(text, {.vocab_size = kVocabulary}).save(folder);
      text::make_token_file({book}, file, text::open_tokenizer(folder));
    }
    fleet::barrier_worker();
    return file;
  }

  std::optional<text::TokenWindows> train_, test_;
  Order order_;
};

/// A training, and what is asked about it.
template <typename Task>
class Training final {
 public:
  explicit Training(const Options& options)
      : options_(options),
        task_(options),
        model_(fleet::distributed_model(Task::made(options.seed))),
        optimizer_(fleet::distributed_optimizer(made())) {}

  void step() {
    const at::Tensor loss = task_.loss(model_);
    loss.backward();
    last_loss_ = loss.item<double>();
    optimizer_.note_loss(last_loss_);
    optimizer_.step();
    optimizer_.zero_grad();
  }

  /// Of what the ranks have together; each judges all of it.
  [[nodiscard]] double judge() {
    const at::NoGradGuard no_grad;
    optimizer_.use_shared_weights(true);
    const double figure = task_.judge(model_.module());
    const bool alike = ranks_agree();
    optimizer_.use_shared_weights(false);
    agree_ = agree_ && alike;
    return figure;
  }
  [[nodiscard]] double last_loss() const { return last_loss_; }
  [[nodiscard]] bool agree() const { return agree_; }

 private:
  [[nodiscard]] optim::Optimizer made() {
    if (options_.optimizer == "adamw") {
      return optim::AdamW(model_, {.lr = options_.lr});
    }
    return optim::Momentum(model_, {.lr = options_.lr});
  }
  [[nodiscard]] bool ranks_agree() const {
    at::Tensor sum = torch::zeros({1}, torch::kDouble);
    for (const at::Tensor& parameter : model_.parameters()) {
      sum += parameter.detach().to(torch::kDouble).sum();
    }
    at::Tensor low = sum.clone(), high = sum.clone();
    fleet::all_reduce(low, {.op = comm::ReduceOp::kMin});
    fleet::all_reduce(high, {.op = comm::ReduceOp::kMax});
    return torch::equal(low, high);
  }

  const Options& options_;
  Task task_;
  parallel::DistributedDataParallel<typename Task::Net> model_;
  optim::Optimizer optimizer_;
  double last_loss_ = 0;
  bool agree_ = true;
};

template <typename Task>
void report_steps(const Options& options, Training<Task>& training, bench::Report& report) {
  double first = 0;
  for (int64_t step = 0; step < options.warmup; ++step) {
    training.step();
    first = step == 0 ? training.last_loss() : first;
  }
  fleet::barrier_worker();
  const double sent_before = bench::sent_mb();
  const bench::Stopwatch watch;
  for (int64_t step = 0; step < options.steps; ++step) {
    training.step();
  }
  const double ms = watch.ms();
  fleet::barrier_worker();
  const double sent = bench::sent_mb() - sent_before;
  report.numbers("samples_ms", {ms / static_cast<double>(options.steps)});
  report.numbers("sent_kb", {1e3 * sent / static_cast<double>(options.steps)});
  report.number("loss_first", first);
  report.number("loss_last", training.last_loss());
  report.number("figure", training.judge());
}

template <typename Task>
void report_target(const Options& options, Training<Task>& training, bench::Report& report) {
  int64_t step = 0;
  double figure = 0;
  bool reached = false;
  const bench::Stopwatch watch;
  while (!reached && step < options.most) {
    for (int64_t i = 0; i < options.check_every; ++i, ++step) {
      training.step();
    }
    figure = training.judge();
    reached = Task::is_reached(figure, options.target);
  }
  report.numbers("samples", {static_cast<double>(step)});
  report.number("figure", figure);
  report.text("reached", reached ? "yes" : "no");
  report.number("seconds", watch.ms() / 1e3);
}

template <typename Task>
void run(const Options& options) {
  Training<Task> training(options);
  bench::Report report("slow_network");
  report.number("ranks", fleet::worker_num());
  options.target > 0 ? report_target(options, training, report)
                     : report_steps(options, training, report);
  report.text("ranks_agree", training.agree() ? "yes" : "no");
  bench::add_versions(report);
  if (fleet::is_first_worker()) {
    report.print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Steps of a small model by a strategy that saves traffic."},
      {{"--data", "DIR", "Folder with the four IDX files", &o.data},
       {"--book", "FILE", "A text to learn from in the place of pictures", &o.book},
       {"--strategy", "JSON", "Of fleet::DistributedStrategy", &o.strategy},
       {"--optimizer", "NAME", "Of each rank", &o.optimizer, {.words = "momentum|adamw"}},
       {"--lr", "X", "Its rate", &o.lr, {.least = 0}},
       {"--batch", "N", "Per rank", &o.batch, {.least = 1}},
       {"--seed", "N", "Of weights and order", &o.seed, {.least = 0}},
       {"--steps", "N", "That are measured", &o.steps, {.least = 1}},
       {"--warmup", "N", "Steps before", &o.warmup, {.least = 1}},
       {"--target", "X", "Accuracy, or loss, to reach; 0: measures steps", &o.target, {.least = 0}},
       {"--most", "N", "Steps after which it gives up", &o.most, {.least = 1}},
       {"--check_every", "N", "Steps between two looks at it", &o.check_every, {.least = 1}}},
      argc,
      argv,
      [&] {
        fleet::init(fleet::DistributedStrategy::from_json(o.strategy));
        o.book.empty() ? run<Pictures>(o) : run<Book>(o);
      });
}
