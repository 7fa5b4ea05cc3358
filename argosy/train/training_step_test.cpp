// A step of the user's in fit(): its bits, its figures, two models, several ranks, a resume.
#include "argosy/train/training_step.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/data/cache.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/subset.h"
#include "argosy/train/callbacks/boards.h"
#include "argosy/train/callbacks/keep_in_checkpoint.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/resume_test_support.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using testing::adam_model;
using ::testing::AllOf;
using testing::blobs;
using testing::hash;
using ::testing::HasSubstr;
using testing::kFeatures;
using testing::options_in;
using testing::run_job;
using testing::sgd_model;
using testing::SignalAt;
using testing::small_net;
using testing::SmallNet;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The loss, and a tenth of how far the outputs are from zero.
at::Tensor with_auxiliary_loss(TrainingStep& step) {
  const Tensors outputs = step.forward();
  const at::Tensor size = outputs.front().pow(2).mean();
  step.log("size", size);
  return step.loss(outputs) + 0.1 * size;
}

TEST(TrainingStepOfFit, TheUsualStepByHandComesToTheUsualBits) {
  run_job(2, [](int) {
    for (const bool amp : {false, true}) {
      const auto trained = [&](TrainingStepFunction training_step) {
        const SmallNet net = small_net();
        Model model(net);
        PrepareOptions prepare;
        if (amp) {
          prepare.amp = AmpOptions{.dtype = at::kBFloat16};
        }
        model.prepare(
            optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy(), {metrics::Accuracy()}, prepare);
        const History history = model.fit(blobs(50),
                                          {.batch_size = 4,
                                           .epochs = 2,
                                           .accumulate_grad_batches = 3,
                                           .training_step = std::move(training_step),
                                           .log = {.verbose = 0}});
        return hash(net) + history.epochs.back().to_string();
      };
      EXPECT_EQ(trained([](TrainingStep& step) { return step.loss(step.forward()); }), trained({}));
    }
  });
}

TEST(TrainingStepOfFit, AnAuxiliaryLossOnTwoRanksIsThatOfOneProcessWithTwiceTheBatch) {
  const test::TempDir folder;
  for (const int ranks : {1, 2}) {
    const std::string path = (folder.path() / std::to_string(ranks)).string();
    run_job(ranks, [&](int rank) {
      const SmallNet net = small_net();
      Model model = sgd_model(net);
      const History history = model.fit(blobs(48),
                                        {.batch_size = 8 / ranks,
                                         .epochs = 3,
                                         .training_step = with_auxiliary_loss,
                                         .data = {.shuffle = false},
                                         .log = {.verbose = 0}});
      model.save(path + ".pt");
      if (rank == 0) {
        std::ofstream(path) << history.epochs.back()["size"] << " "
                            << history.epochs.back()["loss"];
      }
    });
  }
  const auto read = [&](int ranks) {
    return checkpoint::read_weights((folder.path() / (std::to_string(ranks) + ".pt")).string());
  };
  const engine::StateDict two = read(2);
  for (const auto& [name, tensor] : read(1)) {
    EXPECT_TRUE(at::allclose(tensor, *two.find(name), 1e-5, 1e-6)) << name;
  }
  std::map<int, std::pair<double, double>> figures;
  for (const int ranks : {1, 2}) {
    std::istringstream text(text_of((folder.path() / std::to_string(ranks)).string()));
    text >> figures[ranks].first >> figures[ranks].second;
  }
  EXPECT_GT(figures[1].first, 0);
  EXPECT_NEAR(figures[1].first, figures[2].first, 1e-4 * figures[1].first);
  EXPECT_NEAR(figures[1].second, figures[2].second, 1e-4 * figures[1].second);
}

/// Whether the last record with this tag in a file of TensorBoard or VisualDL has this number: both
/// are protocol buffers, where a float stands as its bytes.
bool ends_with_scalar(const std::string& records, const std::string& tag, float value) {
  const std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
  const std::size_t begin = records.rfind(tag);
  constexpr std::size_t kFieldsBetween = 24;
  return begin != std::string::npos &&
         records.substr(begin + tag.size(), kFieldsBetween).find(bytes) != std::string::npos;
}

TEST(TrainingStepOfFit, AStepMayCallForwardSeveralTimes) {
  run_job(2, [](int) {
    const auto trained = [](TrainingStepFunction training_step) {
      const SmallNet net = small_net();
      Model model = sgd_model(net);
      model.fit(
          blobs(48),
          {.batch_size = 4, .training_step = std::move(training_step), .log = {.verbose = 0}});
      return engine::state_dict(*net);
    };
    const engine::StateDict once =
        trained([](TrainingStep& step) { return step.loss(step.forward()); });
    const engine::StateDict twice = trained([](TrainingStep& step) {
      const at::Tensor inputs = step.inputs().front();
      const at::Tensor first = step.forward({inputs.slice(0, 0, 1)}).front();
      return step.loss({torch::cat({first, step.forward({inputs.slice(0, 1)}).front()})});
    });
    for (const auto& [name, tensor] : once) {
      EXPECT_TRUE(at::allclose(tensor, *twice.find(name), 1e-5, 1e-6)) << name;
    }
  });
}

TEST(TrainingStepOfFit, FiguresAreMeansOverTheSamplesOfAllRanks) {
  const test::TempDir folder;
  const std::string run = (folder.path() / "run").string();
  run_job(2, [&](int rank) {
    Model model = sgd_model();
    const std::string bar = (folder.path() / std::to_string(rank)).string();
    std::FILE* const out = std::fopen(bar.c_str(), "w");
    const History history = model.fit(
        blobs(20),
        {.batch_size = 4,
         .run_dir = run,
         .callbacks = {ProgBarLogger({.verbose = 2, .out = out}), TensorBoard(), VisualDL()},
         .training_step =
             [&](TrainingStep& step) {
               step.log("twice", 2.0 * static_cast<double>(step.batch().front().size(0)));
               if (rank == 1) {
                 step.log("only_there", 7);
               }
               return step.loss(step.forward());
             },
         .log = {.verbose = 0, .freq = 1}});
    // Ten samples of each rank, in batches of 4, 4 and 2.
    EXPECT_DOUBLE_EQ(history.epochs.front()["twice"], (8 * 4 + 8 * 4 + 4 * 2) / 10.0);
    EXPECT_DOUBLE_EQ(history.epochs.front()["only_there"], 7);
    std::fclose(out);
    if (rank == 0) {
      EXPECT_THAT(text_of(bar), HasSubstr("step 3/3 - loss: "));
      EXPECT_THAT(text_of(bar), HasSubstr(" - acc: "));
      EXPECT_THAT(text_of(bar), HasSubstr(" - twice: 7.2000 - only_there: 7.0000"));
    }
  });
  const std::string lines = text_of(run + "/metrics.jsonl");
  const std::string last = lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(last)["metrics"]["twice"].get<double>(), 7.2);
  for (const char* const board : {"/tensorboard", "/visualdl"}) {
    const auto file = std::filesystem::directory_iterator(run + board)->path();
    EXPECT_TRUE(ends_with_scalar(text_of(file.string()), "train/twice", 7.2F)) << board;
    EXPECT_TRUE(ends_with_scalar(text_of(file.string()), "train/only_there", 7)) << board;
  }
}

/// A generator trained by fit() against a discriminator with an optimizer of its own.
struct Gan {
  SmallNet generator = small_net();
  parallel::DistributedDataParallel<SmallNet> discriminator = fleet::distributed_model(small_net());
  optim::Adam discriminator_optimizer = optim::Adam(discriminator, {.lr = 0.01});

  void freeze(bool frozen) {
    for (at::Tensor& parameter : discriminator.module()->parameters()) {
      parameter.requires_grad_(!frozen);
    }
  }
  at::Tensor operator()(TrainingStep& step) {
    const at::Tensor real = step.batch().front();
    const int64_t n = real.size(0);
    const at::Tensor condition = real.slice(1, 0, 3);
    const at::Tensor drawn =
        torch::cat({condition, step.forward({torch::randn({n, kFeatures})}).front()}, 1);
    freeze(false);
    const at::Tensor judged = discriminator(torch::cat({real, drawn.detach()})).mean(1);
    const at::Tensor loss =
        torch::softplus(-judged.slice(0, 0, n)).mean() + torch::softplus(judged.slice(0, n)).mean();
    loss.backward();
    discriminator_optimizer.step();
    discriminator_optimizer.zero_grad();
    step.log("discriminator", loss);
    freeze(true);
    return torch::softplus(-discriminator(drawn).mean(1)).mean();
  }
  History fit(const FitOptions& given) {
    Model model(generator);
    model.prepare(optim::Adam(generator, {.lr = 0.01}));
    FitOptions options = given;
    options.training_step = [this](TrainingStep& step) { return (*this)(step); };
    options.callbacks.emplace_back(
        KeepInCheckpoint("discriminator", discriminator.module().ptr(), discriminator_optimizer));
    return model.fit(blobs(50), options);
  }
  std::string hashes() { return hash(generator) + " " + hash(discriminator.module()); }
};

TEST(TrainingStepOfFit, TwoModelsResumeToTheSameBits) {
  const test::TempDir folder;
  run_job(2, [&](int rank) {
    torch::manual_seed(1000 + rank);
    Gan whole;
    torch::manual_seed(1000 + rank);
    FitOptions with_page = options_in((folder.path() / "whole").string());
    with_page.run_dir = (folder.path() / "run").string();
    const History straight = whole.fit(with_page);
    for (const int64_t stop : {5, 7, 10}) {  // 7 updates an epoch
      FitOptions options = options_in((folder.path() / std::to_string(stop)).string());
      {
        Gan cut;
        torch::manual_seed(1000 + rank);
        options.callbacks = {SignalAt(stop)};
        ASSERT_EQ(cut.fit(options).ended, Ended::kPreempted);
      }
      torch::manual_seed(99);
      Gan rest;
      options.callbacks.clear();
      options.resume = Resume::kMust;
      const History resumed = rest.fit(options);
      EXPECT_EQ(rest.hashes(), whole.hashes()) << "stopped after update " << stop;
      const std::size_t skipped = straight.epochs.size() - resumed.epochs.size();
      EXPECT_EQ(resumed.epochs.front()["discriminator"], straight.epochs[skipped]["discriminator"]);
    }
  });
}

TEST(TrainingStepOfFit, ACheckpointWithoutTheSecondModelIsRefusedByItsName) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    FitOptions options = options_in(folder.path().string());
    sgd_model().fit(blobs(50), options);
    options.resume = Resume::kMust;
    options.epochs = 9;
    Model model = sgd_model();
    const SmallNet second = small_net();
    options.callbacks = {KeepInCheckpoint("judge", second.ptr(), optim::SGD(second, {.lr = 0.1}))};
    EXPECT_THAT(test::error_text<CheckpointError>([&] { model.fit(blobs(50), options); }),
                AllOf(HasSubstr("the checkpoint has nothing of the callback \"judge\""),
                      HasSubstr(folder.path().string())));
  });
}

/// Rows of different lengths, which its own collate() fills up with zeros.
struct Rows {
  [[nodiscard]] int64_t size() const { return 24; }
  [[nodiscard]] std::tuple<at::Tensor, int64_t> get(int64_t i) const {
    return {torch::ones({1 + i % kFeatures}), i % 3};
  }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> collate(
      const std::vector<std::tuple<at::Tensor, int64_t>>& samples) const {
    const at::Tensor rows = torch::zeros({static_cast<int64_t>(samples.size()), kFeatures});
    const at::Tensor labels = torch::zeros({rows.size(0)}, at::kLong);
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto& [row, label] = samples[static_cast<std::size_t>(i)];
      rows[i].slice(0, 0, row.size(0)).copy_(row);
      labels[i] = label;
    }
    return {rows, labels};
  }
};

TEST(TrainingStepOfFit, TheDataSetsOwnCollateMakesTheBatches) {
  run_job(1, [](int) {
    for (const int num_workers : {0, 2}) {
      const FitOptions options{.batch_size = 8, .num_workers = num_workers, .log = {.verbose = 0}};
      EXPECT_EQ(sgd_model().fit(Rows(), options).steps, 3);
      EXPECT_EQ(sgd_model().fit(data::Subset(Rows(), {0, 3, 5, 7}), options).steps, 1);
    }
    const data::Cache rows_kept{Rows()};
    data::DataLoader loader(rows_kept, {.batch_size = 6});
    for (const auto& [rows, labels] : loader) {
      EXPECT_TRUE(at::equal(rows, at::ones({6, kFeatures}).tril()));
      break;
    }
  });
}

struct Losses : Callback {
  std::vector<double> of_updates{};
  void on_train_batch_end(const Step& step) override {
    if (step.updates) {
      of_updates.push_back(step.loss);
    }
  }
};

TEST(TrainingStepOfFit, TheLossOfAnUpdateIsTheMeanOfItsOwnBatches) {
  run_job(2, [](int rank) {
    const auto losses = std::make_shared<Losses>();
    sgd_model().fit(blobs(48),
                    {.batch_size = 4,
                     .callbacks = {losses},
                     .accumulate_grad_batches = 2,
                     .training_step =
                         [&](TrainingStep& step) {
                           const auto number = static_cast<double>(step.place().batch);
                           return 0 * step.forward().front().sum() + number + 10 * rank;
                         },
                     .log = {.verbose = 0}});
    EXPECT_THAT(losses->of_updates, ::testing::ElementsAre(5.5, 7.5, 9.5));
  });
}

TEST(TrainingStepOfFit, MistakesAreNamed) {
  run_job(1, [](int) {
    const auto error = [](TrainingStepFunction training_step) {
      return test::error_text<UsageError>([&] {
        sgd_model().fit(
            blobs(8),
            {.batch_size = 4, .training_step = std::move(training_step), .log = {.verbose = 0}});
      });
    };
    EXPECT_THAT(error([](TrainingStep& step) { return step.forward().front(); }),
                HasSubstr("got a tensor of several numbers"));
    EXPECT_THAT(error([](TrainingStep&) { return at::Tensor(); }), HasSubstr("got no tensor"));
    EXPECT_THAT(error([](TrainingStep& step) { return step.forward().front().mean().detach(); }),
                HasSubstr("got a number without a gradient"));
    for (const std::string name :
         {"acc", "loss", "lr", "input_wait", "eval_mine", "train_loss", ""}) {
      EXPECT_THAT(error([&](TrainingStep& step) {
                    step.log(name, 1);
                    return step.loss(step.forward());
                  }),
                  AllOf(HasSubstr("step.log(\"" + name + "\"): fit() has a figure of this name"),
                        HasSubstr("reserved are acc, loss, lr, loss_scale")));
    }
    EXPECT_THAT(
        error([](TrainingStep& step) { return step.model().parameters().front().second.sum(); }),
        HasSubstr("did not call step.forward()"));
    at::Tensor other = torch::ones({1}).requires_grad_();
    EXPECT_THAT(error([&](TrainingStep& step) {
                  return step.forward().front().detach().mean() + other.sum();
                }),
                HasSubstr("the loss of training_step does not depend on the network"));
  });
}

TEST(FitOptionsOf, AnOptionThatNothingWouldActOnIsNamed) {
  run_job(1, [](int) {
    const auto set = blobs(8);
    data::DataLoader loader(set, {.batch_size = 4});
    const auto refuse = [&](auto&& train, const std::string& expected, const FitOptions& options) {
      EXPECT_THAT(test::error_text<UsageError>([&] { sgd_model().fit(train, options); }),
                  HasSubstr(expected));
    };
    const std::vector<std::pair<std::string, FitOptions>> with_loader{
        {"batch_size is set", {.batch_size = 4}},
        {"num_workers is set", {.num_workers = 1}},
        {"data.drop_last is set", {.data = {.drop_last = true}}},
        {"data.shuffle = false is set", {.data = {.shuffle = false}}},
        {"data.seed is set", {.data = {.seed = 1}}},
        {"checkpoint.resume_batch = kGlobal is set, and the training batches come from a loader",
         {.run_dir = "never made",
          .resume = Resume::kAuto,
          .checkpoint = {.resume_batch = ResumeBatch::kGlobal}}}};
    for (const auto& [expected, options] : with_loader) {
      refuse(loader, expected, options);
    }
    const std::string no_folder = " is set, and there is no folder for checkpoints";
    const std::string theirs = " is set, and a ModelCheckpoint of the callbacks saves";
    const std::vector<AnyCallback> keeper{ModelCheckpoint({.dir = "never made"})};
    const std::vector<std::pair<std::string, FitOptions>> with_set{
        {"batch_size must be positive, got 0", {.batch_size = 0}},
        {"epochs must be positive, got 0", {.epochs = 0}},
        {"num_workers must not be negative, got -1", {.num_workers = -1}},
        {"there is no folder of checkpoints to resume from", {.resume = Resume::kAuto}},
        {"num_iters must be positive, got 0", {.num_iters = 0}},
        {"accumulate_grad_batches must be positive", {.accumulate_grad_batches = 0}},
        {"eval_freq must be positive, got 0", {.eval_freq = 0}},
        {"eval_freq is set, and there is no evaluation set", {.eval_freq = 2}},
        {"data.eval_batch_size is set", {.data = {.eval_batch_size = 4}}},
        {"checkpoint.every_epochs" + no_folder, {.checkpoint = {.every_epochs = 2}}},
        {"checkpoint.every_steps" + no_folder, {.checkpoint = {.every_steps = 4}}},
        {"checkpoint.keep_last" + no_folder, {.checkpoint = {.keep_last = 1}}},
        {"checkpoint.keep_last must not be negative, got -1", {.checkpoint = {.keep_last = -1}}},
        {"checkpoint.on_signal = kSaveAndReturn" + no_folder,
         {.checkpoint = {.on_signal = OnSignal::kSaveAndReturn}}},
        {"checkpoint.resume_batch = kGlobal is set, and nothing is resumed",
         {.checkpoint = {.resume_batch = ResumeBatch::kGlobal}}},
        {"checkpoint.every_epochs" + theirs,
         {.callbacks = keeper, .checkpoint = {.every_epochs = 2}}},
        {"checkpoint.every_steps" + theirs,
         {.callbacks = keeper, .checkpoint = {.every_steps = 2}}},
        {"checkpoint.keep_last" + theirs, {.callbacks = keeper, .checkpoint = {.keep_last = 2}}},
        {"log.verbose must be 0, 1, 2 or 3, got 4", {.log = {.verbose = 4}}},
        {"log.freq must be positive, got 0", {.log = {.freq = 0}}},
        {"log.class_names is set, and there is nothing that shows it",
         {.log = {.class_names = {"cat"}}}},
        {"log.hyperparameters is set, and there is nothing that shows it",
         {.log = {.hyperparameters = {{"dropout", "0.3"}}}}}};
    for (const auto& [expected, options] : with_set) {
      refuse(set, expected, options);
    }
    EXPECT_FALSE(std::filesystem::exists("never made"));
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { (void)sgd_model().evaluate(loader, {.batch_size = 4}); }),
                HasSubstr("batch_size is set, and the batches come from a loader"));
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { (void)sgd_model().predict(loader, {.num_workers = 1}); }),
                HasSubstr("num_workers is set, and the batches come from a loader"));
  });
}

}  // namespace
}  // namespace argosy::train
