#include "argosy/checkpoint/training_saver.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/optim/optim.h"

#include "tests/support/temp_dir.h"

namespace argosy::checkpoint {
namespace {

using testing::checkpoint_error;
using ::testing::HasSubstr;

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(6, 8),
                               torch::nn::BatchNorm1d(8),
                               torch::nn::Dropout(torch::nn::DropoutOptions(0.3)),
                               torch::nn::Linear(torch::nn::LinearOptions(8, 3).bias(false)));
}

data::TensorDataset<2> make_data() {
  return data::TensorDataset<2>(at::arange(40 * 6, at::kFloat).view({40, 6}).sin(),
                                at::arange(40) % 3);
}

/// A loop of one's own with one of each kind that TrainingSaver takes, as a program writes it.
struct Loop {
  explicit Loop(const std::string& folder, uint64_t seed = 3)
      : loader(make_data(), {.batch_size = 4, .shuffle = true, .seed = 5}),
        training(folder, {.async = false}) {
    torch::manual_seed(seed);
    net = make_net();
    optimizer.emplace(net, optim::AdamOptions{.lr = 0.01});
    schedule.emplace(*optimizer, optim::StepLROptions{.step_size = 3, .gamma = 0.5});
    average.emplace(net, optim::ExponentialMovingAverageOptions{.decay = 0.9});
    training.add(net).add(*optimizer).add(*schedule).add(scaler).add(*average).add(loader);
  }

  /// Two epochs, of which it leaves the second after `stop_at` updates in all.
  TrainingProgress run(int64_t stop_at) {
    TrainingProgress at = training.resume();
    for (; at.epoch < 2; ++at.epoch) {
      for (auto& [inputs, labels] : loader) {
        auto loss = torch::nn::functional::cross_entropy(net->forward(inputs), labels);
        scaler.scale(loss).backward();
        scaler.step(*optimizer);
        scaler.update();
        optimizer->zero_grad();
        schedule->step();
        average->update();
        at.values["sum"] = at.values.value("sum", 0.0) + loss.item<double>();
        if (++at.step == stop_at) {
          training.save(at);
          return at;
        }
      }
    }
    return at;
  }

  data::DataLoader<data::TensorDataset<2>> loader;
  torch::nn::Sequential net{nullptr};
  optim::GradScaler scaler{{.init_scale = 4, .growth_interval = 3}};
  std::optional<optim::Adam> optimizer{};
  std::optional<optim::StepLR> schedule{};
  std::optional<optim::ExponentialMovingAverage> average{};
  TrainingSaver training;
};

void expect_same_bits(const engine::StateDict& a, const engine::StateDict& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(torch::equal(tensor, b.at(name))) << name;
  }
}

class TrainingOfOnesOwn : public ::testing::Test {
 protected:
  [[nodiscard]] std::string folder(const std::string& name) const {
    return (directory_.path() / name).string();
  }

 private:
  test::TempDir directory_;
};

TEST_F(TrainingOfOnesOwn, ComesToTheSameBitsInTheMiddleOfAnEpoch) {
  Loop whole(folder("whole"));
  const TrainingProgress end = whole.run(-1);
  EXPECT_EQ(end.step, 20);
  for (const int64_t stop_at : {7, 10, 13}) {
    SCOPED_TRACE(stop_at);
    const std::string kept = folder("stopped" + std::to_string(stop_at));
    { Loop(kept).run(stop_at); }
    Loop resumed(kept, 99);  // begins with other weights and another state of the generator
    const TrainingProgress at = resumed.run(-1);
    EXPECT_EQ(at.step, 20);
    EXPECT_EQ(at.values, end.values);
    expect_same_bits(engine::state_dict(resumed.net), engine::state_dict(whole.net));
    expect_same_bits(resumed.average->state_dict().averages, whole.average->state_dict().averages);
    EXPECT_EQ(resumed.average->num_updates(), whole.average->num_updates());
    EXPECT_EQ(resumed.optimizer->lr(), whole.optimizer->lr());
    EXPECT_EQ(resumed.scaler.get_scale(), whole.scaler.get_scale());
    const optim::OptimizerState state = whole.optimizer->state_dict();
    for (const auto& [name, entries] : resumed.optimizer->state_dict().parameters) {
      SCOPED_TRACE(name);
      expect_same_bits(entries, *state.find(name));
    }
  }
}

/// A schedule steps once an epoch, and the training is saved after that.
TEST_F(TrainingOfOnesOwn, SavedAfterAnEpochItBeginsTheNext) {
  struct ByEpochs {
    explicit ByEpochs(const std::string& folder)
        : loader(make_data(), {.batch_size = 4, .shuffle = true, .seed = 5}),
          training(folder, {.async = false}) {
      torch::manual_seed(3);
      net = make_net();
      optimizer.emplace(net, optim::SGDOptions{.lr = 1.0});
      schedule.emplace(*optimizer, optim::StepLROptions{.step_size = 1, .gamma = 0.5});
      training.add(net).add(*optimizer).add(*schedule).add(loader);
    }
    void run(int64_t leave_after) {
      TrainingProgress at = training.resume();
      for (; at.epoch < 4 && at.epoch != leave_after; ++at.epoch) {
        for (auto& [inputs, labels] : loader) {
          torch::nn::functional::cross_entropy(net->forward(inputs), labels).backward();
          optimizer->step();
          optimizer->zero_grad();
          ++at.step;
        }
        schedule->step();
        training.save(at.next_epoch());
      }
    }
    data::DataLoader<data::TensorDataset<2>> loader;
    torch::nn::Sequential net{nullptr};
    std::optional<optim::SGD> optimizer{};
    std::optional<optim::StepLR> schedule{};
    TrainingSaver training;
  };
  ByEpochs whole(folder("whole"));
  whole.run(-1);
  EXPECT_EQ(whole.optimizer->lr(), 0.0625);
  { ByEpochs(folder("stopped")).run(2); }
  ByEpochs resumed(folder("stopped"));
  resumed.run(-1);
  EXPECT_EQ(resumed.optimizer->lr(), whole.optimizer->lr());
  expect_same_bits(engine::state_dict(resumed.net), engine::state_dict(whole.net));
}

/// Back to an older checkpoint, or to the beginning: what was saved since is kept, but is no longer
/// the newest.
TEST_F(TrainingOfOnesOwn, LaterCheckpointsOfAnotherTrainingAreSetAside) {
  torch::nn::Linear net(2, 2);
  const auto train = [&](int64_t from, const std::vector<int64_t>& steps) {
    TrainingSaver training(folder("kept"), {.keep = {.keep_last = 2}, .async = false});
    training.add(net);
    if (from > 0) {
      EXPECT_EQ(training.resume(folder("kept") + "/" + step_name(from)).step, from);
    }
    for (const int64_t step : steps) {
      training.save({.step = step});
    }
  };
  const auto newest = [&] {
    TrainingSaver training(folder("kept"));
    training.add(net);
    return training.resume().step;
  };
  train(0, {100, 200, 300});
  train(200, {210, 220});
  EXPECT_EQ(newest(), 220);
  EXPECT_TRUE(is_checkpoint(folder("kept") + "/earlier-1/" + step_name(300)));
  train(0, {10, 20, 30});
  EXPECT_EQ(newest(), 30);
  EXPECT_TRUE(is_checkpoint(folder("kept") + "/earlier-2/" + step_name(220)));
}

TEST_F(TrainingOfOnesOwn, BeginsAtZeroWithoutACheckpoint) {
  Loop loop(folder("empty"));
  const TrainingProgress at = loop.training.resume();
  EXPECT_EQ(at.step, 0);
  EXPECT_EQ(at.epoch, 0);
  EXPECT_THAT(checkpoint_error([&] { (void)loop.training.resume(folder("nowhere")); }),
              HasSubstr("nowhere"));
}

TEST_F(TrainingOfOnesOwn, NamesWhatDoesNotFit) {
  { Loop(folder("kept")).run(7); }
  auto other = make_net();
  TrainingSaver training(folder("kept"));
  training.add(other, "generator");
  EXPECT_THAT(checkpoint_error([&] { (void)training.resume(); }),
              HasSubstr("the checkpoint has no \"generator\""));
  EXPECT_THROW(training.add(other, "generator"), UsageError);
}

TEST_F(TrainingOfOnesOwn, AllRanksHearOfAnotherNumberOfRanks) {
  { Loop(folder("kept")).run(7); }
  comm::testing::with_threads(2, [&](comm::Group& group) {
    auto net = make_net();
    TrainingSaver training(folder("kept"), {.async = false}, group);
    training.add(net);
    EXPECT_THAT(checkpoint_error([&] { (void)training.resume(); }),
                HasSubstr("1 ranks saved it, and 2 resume it"));
  });
}

TEST_F(TrainingOfOnesOwn, OfVirtualRanksGoesOnWithAsManyOnAnotherNumberOfRanks) {
  const auto set = make_data();
  const auto on = [&](comm::Group& group, int64_t virtual_ranks, const auto& then) {
    data::DataLoader loader(set,
                            data::DistributedBatchSampler(40,
                                                          {.batch_size = 2,
                                                           .num_replicas = group.size(),
                                                           .rank = group.rank(),
                                                           .virtual_ranks = virtual_ranks}));
    torch::nn::BatchNorm1d norm(2);
    TrainingSaver training(folder("kept"), {.async = false}, group);
    training.add(norm).add(loader);
    then(training, loader, norm);
  };
  comm::testing::with_threads(2, [&](comm::Group& group) {
    on(group, 4, [&](TrainingSaver& training, auto& loader, torch::nn::BatchNorm1d& norm) {
      const torch::NoGradGuard no_grad;
      norm->running_mean.fill_(group.rank() + 5);
      auto batch = loader.begin();
      ++batch;  // the update of its two virtual ranks is done
      training.save({.step = 1});
    });
  });
  comm::testing::with_threads(3, [&](comm::Group& group) {
    on(group, 4, [&](TrainingSaver& training, auto& loader, torch::nn::BatchNorm1d& norm) {
      EXPECT_EQ(training.resume().step, 1);
      EXPECT_EQ(loader.state().position, 1);
      EXPECT_EQ(norm->running_mean[0].template item<double>(), 5) << "virtual rank 0's";
    });
    on(group, 3, [](TrainingSaver& training, auto& /*loader*/, auto& /*norm*/) {
      EXPECT_THAT(checkpoint_error([&] { (void)training.resume(); }),
                  HasSubstr("the training has 4 virtual ranks, and the loader's batches are dealt "
                            "to 3. Call fleet::init({.virtual_ranks = 4})"));
    });
  });
}

TEST_F(TrainingOfOnesOwn, EachRankHasItsOwnBuffers) {
  const auto run = [&](bool sharded, int64_t value, bool save) {
    comm::testing::with_threads(2, [&, value, save, sharded](comm::Group& group) {
      torch::nn::BatchNorm1d first(2), second(2);
      const std::string name = sharded ? "sharded" : "ranks";
      TrainingSaver training(folder(name), {.async = false, .sharded = sharded}, group);
      training.add(first).add(second, "second");
      if (save) {
        const torch::NoGradGuard no_grad;
        first->running_mean.fill_(value + group.rank());
        first->running_var.fill_(10 * value + group.rank());
        first->num_batches_tracked.fill_(100 * value + group.rank());
        second->running_mean.fill_(-value - group.rank());
        training.save({.step = 1});
      } else {
        EXPECT_EQ(training.resume().step, 1);
        EXPECT_EQ(first->running_mean[0].item<int64_t>(), value + group.rank());
        EXPECT_EQ(first->running_var[1].item<int64_t>(), 10 * value + group.rank());
        EXPECT_EQ(first->num_batches_tracked.item<int64_t>(), 100 * value + group.rank());
        EXPECT_EQ(second->running_mean[1].item<double>(),
                  static_cast<double>(-value) - group.rank());
      }
    });
  };
  for (const bool sharded : {false, true}) {
    run(sharded, 5, true);
    run(sharded, 5, false);
  }
}

TEST(States, OfAnOptimizerAreWholeWhateverTheirOrder) {
  Snapshot snapshot;
  optim::OptimizerState state;
  state.optimizer = "Adam";
  state.groups = {{.names = {"a", "b", "never stepped"}, .lr = 0.1}};
  state.parameters = {{"a", {{"step", torch::ones({})}}}, {"b", {{"step", torch::ones({})}}}};
  put_state(snapshot, "optimizer", state);
  engine::StateDict& saved = snapshot.parts.front().second;
  saved.set("a/exp_avg", torch::zeros({2}));  // comes behind those of b
  const auto back = get_state<optim::OptimizerState>(snapshot, "optimizer");
  ASSERT_EQ(back.parameters.size(), 2U);
  EXPECT_EQ(back.parameters[0].second.size(), 2U);
  engine::StateDict without_b;
  without_b.set("a/step", torch::ones({}));
  saved = without_b;
  EXPECT_THAT(testing::checkpoint_error(
                  [&] { (void)get_state<optim::OptimizerState>(snapshot, "optimizer"); }),
              ::testing::HasSubstr("the state of b is missing"));
}

TEST(States, GoIntoASnapshotAndBack) {
  Snapshot snapshot;
  const optim::LRSchedulerState schedule{.step = 3,
                                         .base_lrs = {0.1, 0.2},
                                         .scheduler = "StepLR",
                                         .unit = optim::ScheduleUnit::kEpoch,
                                         .last_lrs = {0.1},
                                         .best = 0.5,
                                         .num_bad_epochs = 2,
                                         .cooldown_counter = 1};
  put_state(snapshot, "schedule", schedule);
  const auto back = get_state<optim::LRSchedulerState>(snapshot, "schedule");
  EXPECT_EQ(back.step, 3);
  EXPECT_EQ(back.base_lrs, schedule.base_lrs);
  EXPECT_EQ(back.unit, schedule.unit);
  EXPECT_EQ(back.best, schedule.best);
  EXPECT_EQ(back.cooldown_counter, 1);
  EXPECT_THAT(
      checkpoint_error([&] { (void)get_state<optim::OptimizerState>(snapshot, "optimizer"); }),
      HasSubstr("the checkpoint has no value \"optimizer\""));
  EXPECT_THAT(
      checkpoint_error([&] { (void)get_state<optim::GradScalerState>(snapshot, "schedule"); }),
      HasSubstr("of another form"));
}

}  // namespace
}  // namespace argosy::checkpoint
