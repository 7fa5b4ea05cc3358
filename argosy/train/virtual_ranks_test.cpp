// fit() with virtual ranks: one result on any number of processes, also when it was stopped on some
// and goes on with others.
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/seed.h"
#include "argosy/optim/lr_plateau.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::HasSubstr;
using testing::run_job;

struct NoisyNetImpl : torch::nn::Module {
  NoisyNetImpl() {
    first = register_module("first", torch::nn::Linear(testing::kFeatures, 12));
    norm = register_module("norm", torch::nn::BatchNorm1d(12));
    last = register_module("last", torch::nn::Linear(12, testing::kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::dropout(norm(first(x)).relu(), 0.4, is_training()));
  }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(NoisyNet);

/// Counts what callbacks hear.
struct Heard : Callback {
  std::string text{};
  void on_train_batch_end(const Step& step) override {
    text += fmt::format("{}.{}{} ", step.epoch, step.batch, step.updates ? "!" : "");
    if (step.updates) {
      text += fmt::format("{} {} {} ", step.samples, step.loss, step.logs.to_string());
    }
  }
};

struct Training {
  int64_t virtual_ranks = 6;
  int64_t accumulate = 1;
  std::string folder{};  // of checkpoints
  std::optional<int64_t> num_iters{};
};

/// Trains on this process's part. Returns everything that must not depend on the processes.
std::string result_of(const Training& training) {
  seed_everything(11);
  NoisyNet net;
  optim::Adam optimizer(net, {.lr = 0.02, .grad_clip = optim::ClipGradByGlobalNorm(0.5)});
  Model model(net);
  model.prepare(optimizer,
                loss::CrossEntropy(),
                {metrics::Accuracy()},
                {.schedule = optim::ReduceLROnPlateau(optimizer, {.patience = 0}),
                 .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
  seed_everything(11, fleet::worker_index());
  auto heard = std::make_shared<Heard>();
  FitOptions options{.batch_size = 3,
                     .epochs = 3,
                     .num_workers = 2,
                     .virtual_ranks = training.virtual_ranks,
                     .callbacks = {heard, EarlyStopping({.patience = 1, .verbose = 0})},
                     .num_iters = training.num_iters,
                     .accumulate_grad_batches = training.accumulate,
                     .data = {.seed = 5},
                     .log = {.verbose = 0, .freq = 1}};
  if (!training.folder.empty()) {
    options.resume = Resume::kAuto;
    options.checkpoint.dir = training.folder;
  }
  const History history = model.fit(blobs(100), blobs(31), options);
  std::string figures;
  for (const Logs& epoch : history.epochs) {
    figures += epoch.to_string() + "\n";
  }
  return fmt::format("{} {} steps {}\n{}\n{}",
                     checkpoint::weights_hash(engine::state_dict(*net)),
                     optimizer.lr(),
                     history.steps,
                     figures,
                     training.folder.empty() ? heard->text : "");
}

/// Returns what all ranks have.
std::string train(const Training& training, int processes) {
  const test::TempDir folder;
  run_job(processes, [&](int rank) {
    const std::string result = result_of(training);
    std::ofstream(folder.path() / std::to_string(rank)) << result;
  });
  std::string first;
  for (int rank = 0; rank < processes; ++rank) {
    std::stringstream text;
    text << std::ifstream(folder.path() / std::to_string(rank)).rdbuf();
    first = rank == 0 ? text.str() : first;
    EXPECT_EQ(text.str(), first) << "rank " << rank << " of " << processes;
  }
  return first;
}

TEST(VirtualRanksOfFit, HaveOneResultOnAnyNumberOfProcesses) {
  for (const Training& training :
       {Training{.virtual_ranks = 6}, Training{.virtual_ranks = 5, .accumulate = 3}}) {
    const std::string expected = train(training, static_cast<int>(training.virtual_ranks));
    EXPECT_THAT(expected, HasSubstr("steps"));
    for (const int processes : {1, 2, 4, 7}) {
      EXPECT_EQ(train(training, processes), expected)
          << training.virtual_ranks << " virtual ranks on " << processes << " processes";
    }
  }
}

TEST(VirtualRanksOfFit, AreThoseOfTheCheckpointThatGoesOn) {
  const std::string whole = train({.virtual_ranks = 6, .accumulate = 2}, 2);
  const std::string hash = whole.substr(0, whole.find('\n'));  // weights, rate, steps
  const test::TempDir folder;
  Training part{.virtual_ranks = 6, .accumulate = 2, .folder = folder.path().string()};
  part.num_iters = 2;  // of four in an epoch
  (void)train(part, 3);
  part.virtual_ranks = 0;
  part.num_iters = 5;
  (void)train(part, 5);
  part.num_iters = 6;
  (void)train(part, 1);
  part.num_iters = 7;
  (void)train(part, 8);  // somebody has asked for six: two are spares
  part.num_iters.reset();
  const std::string resumed = train(part, 4);
  EXPECT_EQ(resumed.substr(0, resumed.find('\n')), hash);
}

/// The samples of blobs(), one after the other.
struct BlobStream {
  struct Reader {
    data::TensorDataset<2> set;
    data::Pass pass;
    int64_t at = 0;
    std::optional<std::array<at::Tensor, 2>> next() {
      const int64_t i = pass.key(at++);
      return i < set.size() ? std::optional(set.get(i)) : std::nullopt;
    }
  };
  [[nodiscard]] static Reader stream(const data::Pass& pass) { return {blobs(100), pass}; }
};

// A spare reads another rank's share.
TEST(VirtualRanksOfFit, EvaluateAndPredictEachSampleOfAStreamOnce) {
  fleet::DistributedStrategy strategy;
  strategy.virtual_ranks = 2;
  const test::TempDir folder;
  const auto result_on = [&](int processes) {
    run_job(
        processes,
        [&](int rank) {
          Model model = testing::sgd_model();
          data::DataLoader loader(
              BlobStream(), fleet::stream_shards({.batches = 3}), {.batch_size = 4});
          const std::string logs = model.evaluate(loader, {.verbose = 0}).to_string();
          const auto rows = model.predict(loader, {.verbose = 0}).at(0).size(0);
          if (rank + 1 == processes) {
            std::ofstream(folder.path() / "result") << logs << ", " << rows << " rows";
          }
        },
        strategy);
    std::stringstream text;
    text << std::ifstream(folder.path() / "result").rdbuf();
    return text.str();
  };
  const std::string expected = result_on(2);
  EXPECT_THAT(expected, HasSubstr(", 24 rows"));
  EXPECT_EQ(result_on(3), expected);
}

// They compute side by side, so that another number of processes is another recipe.
TEST(VirtualRanksOfFit, OfATrainingWithNormsOverAllRanksAreTheProcesses) {
  fleet::DistributedStrategy strategy;
  strategy.sync_batch_norm = true;
  const test::TempDir folder;
  int64_t updates = 0;
  for (const int processes : {3, 1, 2}) {
    updates += 2;
    run_job(
        processes,
        [&](int) {
          torch::nn::Sequential net(torch::nn::Linear(testing::kFeatures, 4),
                                    torch::nn::BatchNorm1d(4),
                                    torch::nn::Linear(4, testing::kClasses));
          Model model(net);
          model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy());
          const History history = model.fit(blobs(100),
                                            {.batch_size = 2,
                                             .epochs = 2,
                                             .resume = Resume::kAuto,
                                             .num_iters = updates,
                                             .checkpoint = {.dir = folder.path().string()},
                                             .log = {.verbose = 0}});
          EXPECT_EQ(history.steps, updates);
          EXPECT_EQ(fleet::virtual_ranks(), processes);
        },
        strategy);
  }
}

TEST(VirtualRanksOfFit, NeedALoaderThatIsDealtToThem) {
  run_job(1, [](int) {
    Model model = testing::sgd_model();
    const auto set = blobs(40);
    data::DataLoader loader(set, {.batch_size = 4});
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { model.fit(loader, {.virtual_ranks = 4, .log = {.verbose = 0}}); }),
                HasSubstr("the job has 4 virtual ranks, and the loader's batches are dealt to"));
  });
}

}  // namespace
}  // namespace argosy::train
