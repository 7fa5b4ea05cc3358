// What fit() costs beside a loop of the same parts, written by hand: batches of one and of the
// other in turns, in one process, on two models that begin with the same weights and see the same
// batches.
//
//     argosy launch --nproc_per_node 2 bench_fit_overhead mnist_cnn|resnet18
//         [--epochs 10] [--warmup 2] [--verbose 2] [--control]
//
// Each loop has a thread, and hands the turn to the other one after every batch: what disturbs the
// machine for longer than a batch disturbs both; a rank keeps to one core. Reports of every ten
// batches by how many percent fit's turns took longer, the mean over the ranks, and the same of all
// turns together; what an epoch begins with is in the turn of its first batch.
// --control: the loop by hand takes fit's place, too: what is measured then is the measurement.
// In the end both models have the same weights, to the bit, or the figure is void.
#include <argosy/argosy.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>

#include <torch/torch.h>

#include "argosy/base/log.h"
#include "argosy/engine/cpu.h"
#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string model;
  int epochs = 10;
  int warmup = 2;
  int verbose = 2;
  bool control = false;
};

using Set = data::TensorDataset<2>;

auto loader_of(const Set& set, int64_t batch_size) {
  return data::DataLoader(
      set,
      fleet::distributed_batch_sampler(set.size(), {.batch_size = batch_size, .shuffle = true}),
      {.num_workers = 1});
}

/// Whose turn it is, and how long each one's turns have been.
class Turns final {
 public:
  /// Waits for the turn of `who`.
  void take(int who) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return turn_ == who || failed_; });
    if (failed_) {
      throw std::runtime_error("the other loop has failed");
    }
    watch_ = {};
  }
  /// Ends the turn of `who`.
  void give(int who) {
    const double ms = watch_.ms();
    const std::scoped_lock lock(mutex_);
    ms_[who].push_back(ms);
    turn_ = 1 - who;
    moved_.notify_all();
  }
  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    moved_.notify_all();
  }
  [[nodiscard]] const std::vector<double>& ms(int who) const { return ms_[who]; }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  int turn_ = 0;
  bool failed_ = false;
  bench::Stopwatch watch_;
  std::array<std::vector<double>, 2> ms_;
};

constexpr std::size_t kBlock = 10;  // FitOptions::log_freq
constexpr int kHand = 0;
constexpr int kFit = 1;

/// fit()'s end of a turn.
struct GiveTurn final : train::Callback {
  explicit GiveTurn(Turns& all_turns) : turns(all_turns) {}
  void on_train_batch_end(const train::Step& /*step*/) override {
    turns.give(kFit);
    turns.take(kFit);
  }
  Turns& turns;
};

/// Epochs by hand: the parts of examples/03_fleet.cpp. Returns the mean loss of each.
template <typename Model, typename Loader>
std::vector<double> train_by_hand(
    Model& model, optim::Optimizer& optimizer, Loader& loader, int epochs, Turns& turns, int who) {
  const loss::CrossEntropy cross_entropy;
  std::vector<double> losses;
  turns.take(who);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    metrics::MeanLoss mean_loss;
    metrics::Accuracy accuracy;
    loader.set_epoch(epoch);
    for (auto& [images, labels] : loader) {
      const at::Tensor logits = model(images);
      const at::Tensor loss = cross_entropy(logits, labels);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      mean_loss.update(loss, images.size(0));
      accuracy.update(logits, labels);
      turns.give(who);
      turns.take(who);
    }
    (void)accuracy.compute(fleet::group());
    losses.push_back(mean_loss.compute(fleet::group()));
  }
  turns.give(who);
  return losses;
}

/// The two loops in threads of their own, each as long as the other has not failed.
void run_in_turns(Turns& turns,
                  const std::function<void()>& hand,
                  const std::function<void()>& fit) {
  const auto guarded = [&](const std::function<void()>& loop) {
    return [&turns, &loop] {
      try {
        engine::setup_cpu();
        loop();
      } catch (...) {
        turns.fail();
        throw;
      }
    };
  };
  auto by_hand = std::async(std::launch::async, guarded(hand));
  auto by_fit = std::async(std::launch::async, guarded(fit));
  by_hand.get();
  by_fit.get();
}

/// Sums of as many turns as lie between two lines of fit's progress, of the measured epochs; the
/// mean over the ranks. The end of the last epoch, the last turn, is left out.
std::vector<double> blocks_ms(const std::vector<double>& turns, const Options& options) {
  const std::size_t batches = turns.size() / (options.warmup + options.epochs);
  const at::Tensor all = torch::tensor(turns, torch::kDouble)
                             .slice(0, static_cast<int64_t>(options.warmup * batches))
                             .slice(0, 0, static_cast<int64_t>(options.epochs * batches));
  const at::Tensor sums = all.slice(0, 0, all.size(0) / kBlock * kBlock).view({-1, kBlock}).sum(1);
  comm::all_reduce(sums, fleet::group(), {.op = comm::ReduceOp::kAvg});
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

bool same_weights(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const auto& x, const auto& y) {
        return x.equal(y);
      });
}

template <typename Net>
void measure(const Options& options, const std::function<Net()>& make, const Set& set) {
  const int64_t batch_size = options.model == "resnet18" ? 32 : 64;
  const auto filled = [&] {
    Net net = make();
    bench::fill_weights(*net);
    return net;
  };
  Net by_hand = filled();
  auto model = fleet::distributed_model(by_hand);
  auto optimizer = fleet::distributed_optimizer(optim::SGD(model, {.lr = 1e-2, .momentum = 0.9}));
  auto loader = loader_of(set, batch_size);

  Net fitted = filled();
  auto fit_loader = loader_of(set, batch_size);
  const int epochs = options.warmup + options.epochs;
  Turns turns;
  std::vector<double> losses;
  const auto by_hand_first = [&] {
    losses = train_by_hand(model, optimizer, loader, epochs, turns, kHand);
  };
  if (options.control) {
    auto same = fleet::distributed_model(fitted);
    auto same_optimizer =
        fleet::distributed_optimizer(optim::SGD(same, {.lr = 1e-2, .momentum = 0.9}));
    run_in_turns(turns, by_hand_first, [&] {
      (void)train_by_hand(same, same_optimizer, fit_loader, epochs, turns, kFit);
    });
  } else {
    train::Model trainer(fitted);
    trainer.prepare(optim::SGD(fitted, {.lr = 1e-2, .momentum = 0.9}),
                    loss::CrossEntropy(),
                    {metrics::Accuracy()});
    run_in_turns(turns, by_hand_first, [&] {
      turns.take(kFit);
      (void)trainer.fit(fit_loader,
                        {.epochs = epochs,
                         .callbacks = {std::make_shared<GiveTurn>(turns)},
                         .log = {.verbose = options.verbose}});
      turns.give(kFit);
    });
  }
  const std::vector<double> hand_ms = blocks_ms(turns.ms(kHand), options);
  const std::vector<double> fit_ms = blocks_ms(turns.ms(kFit), options);
  std::vector<double> overhead_percent;
  for (std::size_t i = 0; i < fit_ms.size(); ++i) {
    overhead_percent.push_back(100 * (fit_ms[i] / hand_ms[i] - 1));
  }
  const auto sum = [](const auto& ms) { return std::accumulate(ms.begin(), ms.end(), 0.0); };
  if (!fleet::is_first_worker()) {
    return;
  }
  bench::Report report("fit_overhead");
  report.text("model", options.model);
  report.number("ranks", fleet::worker_num());
  report.numbers("overhead_percent", overhead_percent);
  std::vector<double> overhead_us;  // of a batch
  for (std::size_t i = 0; i < fit_ms.size(); ++i) {
    overhead_us.push_back(1e3 * (fit_ms[i] - hand_ms[i]) / kBlock);
  }
  report.numbers("overhead_us", overhead_us);
  report.number("overhead_of_all_percent", 100 * (sum(fit_ms) / sum(hand_ms) - 1));
  report.numbers("samples_ms", hand_ms);
  report.number("loss_first", losses.front());
  report.number("loss_last", losses.back());
  report.text("same_weights", same_weights(*by_hand, *fitted) ? "yes" : "no");
  bench::add_versions(report);
  report.print();
}

/// A core for each rank: what moves threads about costs more than what is measured here.
void stay_on_one_core() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(fleet::local_rank() % std::thread::hardware_concurrency(), &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
    log::warn("[bench.fit_overhead] the rank cannot keep to one core: the figures are noisier");
  }
}

void run(const Options& options) {
  fleet::init();
  stay_on_one_core();
  engine::setup_cpu();
  if (options.model == "resnet18") {
    const bench::Batch all = bench::color_batch(320, 96, 1);
    measure<vision::ResNet>(
        options, [] { return vision::ResNet({.depth = 18}); }, Set(all.images, all.labels));
  } else if (options.model == "nothing") {
    const bench::Batch all = bench::image_batch_of(6400, 4, 1, 1);
    measure<torch::nn::Linear>(
        options,
        [] { return torch::nn::Linear(4, 10); },
        Set(all.images.flatten(1).contiguous(), all.labels));
  } else {
    const bench::Batch all = bench::image_batch(6400, 1);
    measure<vision::MnistCnn>(
        options, [] { return vision::MnistCnn(); }, Set(all.images, all.labels));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"fit() beside a loop of the same parts."},
      {{"model", "", "", &o.model, {.words = "mnist_cnn|resnet18|nothing", .required = true}},
       {"--epochs", "N", "Measured epochs", &o.epochs, {.least = 1, .most = 1000}},
       {"--warmup", "N", "Epochs before them", &o.warmup, {.least = 0, .most = 1000}},
       {"--control", "", "A loop by hand in fit's place: nought but noise", &o.control},
       {"--verbose", "N", "What fit() prints", &o.verbose, {.least = 0, .most = 3}}},
      argc,
      argv,
      [&] { run(o); });
}
