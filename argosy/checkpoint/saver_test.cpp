#include "argosy/checkpoint/saver.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/checkpoint/test_state_dicts.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/engine/memory_count.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using engine::StateDict;
using ::testing::AllOf;
using testing::await_save;
using testing::checkpoint_error;
using ::testing::ElementsAre;
using testing::expect_equal;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;

/// The same on all ranks but for what is a rank's own.
Snapshot sample(int64_t step, int rank = 0) {
  const auto number = static_cast<double>(step);
  return {.parts = {{"model",
                     {{"z.weight", torch::full({3, 4}, number)},
                      {"a.bias", torch::arange(5, torch::kHalf) + number},
                      {"a.count", torch::tensor(step)}}},
                    {"optimizer", {{"z.weight/exp_avg", torch::full({3, 4}, number / 3)}}},
                    {"none", {}}},
          .values = {{"best", -std::numeric_limits<double>::infinity()},
                     {"loss", 0.1 + number},
                     {"list", {1, 2.5, std::nan("")}}},
          .rank_tensors = {{"random", torch::full({16}, rank, torch::kByte)}},
          .rank_values = {{"sample", 100 * step + rank}},
          .step = step,
          .epoch = 2,
          .score = number};
}

void expect_equal(const Snapshot& a, const Snapshot& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_EQ(a.parts[i].first, b.parts[i].first);
    expect_equal(a.parts[i].second, b.parts[i].second);
  }
  expect_equal(a.rank_tensors, b.rank_tensors);
  EXPECT_EQ(a.rank_values, b.rank_values);
  EXPECT_EQ(a.values["best"], b.values["best"]);
  EXPECT_EQ(a.values["loss"], b.values["loss"]);
  EXPECT_TRUE(std::isnan(b.values["list"][2].get<double>()));
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.score, b.score);
}

class Saving : public ::testing::Test {
 protected:
  [[nodiscard]] std::string directory() const { return directory_.path().string() + "/run"; }
  [[nodiscard]] std::string in(const std::string& name) const { return directory() + "/" + name; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory())) {
      all.push_back(entry.path().filename().string());
    }
    std::ranges::sort(all);
    return all;
  }
  [[nodiscard]] bool is_saving() const { return std::ranges::any_of(names(), is_temporary_name); }

 private:
  test::TempDir directory_;
};

TEST_F(Saving, WhatWasSavedComesBack) {
  Saver saver(directory());
  saver.save(sample(120));
  saver.wait();
  EXPECT_THAT(names(), ElementsAre("step-000000120"));
  const Checkpoint checkpoint(in("step-000000120"));
  expect_equal(sample(120), checkpoint.snapshot());
  EXPECT_EQ(inspect(checkpoint.path(), Check::kChecksums).state, State::kWhole);
  EXPECT_THAT(checkpoint_error([&] { (void)checkpoint.part("ema"); }),
              HasSubstr("there is no part \"ema\"; there are: model, optimizer, none"));
  EXPECT_THROW((void)checkpoint.rank_tensors(1), UsageError);
}

TEST_F(Saving, TheCopyIsOfTheMomentOfTheCall) {
  Saver saver(directory());
  Snapshot snapshot = sample(1);
  saver.save(snapshot);
  for (const auto& [part, dict] : snapshot.parts) {
    for (const auto& [name, tensor] : dict) {
      at::Tensor(tensor).fill_(77);  // the training goes on
    }
  }
  saver.wait();
  expect_equal(sample(1), Checkpoint(in("step-000000001")).snapshot());
}

TEST_F(Saving, WhoWaitsNeedsNoMemoryForCopies) {
  engine::count_memory();
  const at::Tensor large = torch::rand({1 << 20});
  Snapshot snapshot;
  snapshot.parts = {{"model", {{"large", large}}}};
  for (const bool async : {false, true}) {
    Saver saver(directory(), {.async = async});
    engine::reset_memory_count();
    const int64_t before = engine::memory_count().most;
    saver.save(snapshot, "x");
    saver.wait();
    const bool has_copied =
        engine::memory_count().most - before >= static_cast<int64_t>(large.nbytes());
    EXPECT_EQ(has_copied, async);
    expect_equal(snapshot.parts[0].second, Checkpoint(in("x")).part("model"));
  }
}

TEST_F(Saving, TensorsOfAnyLayoutComeBackByTheirValues) {
  const at::Tensor images = torch::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  Snapshot snapshot;
  snapshot.parts = {{"model",
                     {{"last", images},
                      {"turned", torch::rand({3, 5}).t()},
                      {"spread", torch::ones({1}).expand({4, 4})},
                      {"one", torch::tensor(2.5, torch::kDouble)},
                      {"empty", torch::empty({0, 3})},
                      {"bf16", torch::rand({3}).to(torch::kBFloat16)},
                      {"bool", torch::tensor({true, false})},
                      {"grad", torch::rand({2}).requires_grad_()}}}};
  for (const bool async : {false, true}) {
    Saver saver(directory(), {.async = async});
    saver.save(snapshot, "x");
    saver.wait();
    expect_equal(snapshot.parts[0].second, Checkpoint(in("x")).part("model"));
  }
}

TEST_F(Saving, WhatCannotBeSavedIsNamedAndTheNextOneGoesThrough) {
  Saver saver(directory());
  Snapshot bad = sample(1);
  bad.parts[1].second.set("w/complex", torch::zeros({2}, torch::kComplexFloat));
  saver.save(bad);
  EXPECT_THAT(checkpoint_error([&] { saver.wait(); }),
              AllOf(HasSubstr("[checkpoint.save] "),
                    HasSubstr("\"w/complex\": safetensors have no type for ComplexFloat"),
                    HasSubstr("view_as_real")));
  saver.wait();  // told once
  bad = sample(1);
  bad.parts.emplace_back("rank0", StateDict());
  saver.save(bad);
  EXPECT_THAT(checkpoint_error([&] { saver.wait(); }), HasSubstr("got \"rank0\""));
  saver.save(sample(1), "../outside");
  EXPECT_THAT(checkpoint_error([&] { saver.wait(); }), HasSubstr("without \"/\""));
  saver.save(sample(2));
  saver.wait();
  EXPECT_THAT(names(), ElementsAre("step-000000002"));
}

TEST_F(Saving, AFolderThatCannotBeMadeIsAnErrorAtOnce) {
  write_text(directory(), "a file");
  EXPECT_THAT(checkpoint_error([&] { const Saver saver(in("deeper")); }),
              AllOf(HasSubstr("[checkpoint.save] "), HasSubstr("cannot create")));
  EXPECT_THAT(checkpoint_error([&] { const Saver saver("/proc/argosy"); }),
              HasSubstr("/proc/argosy: cannot create"));
}

TEST_F(Saving, AFolderThatCannotBeWrittenToIsAnErrorAtOnce) {
  // Root may write to any folder of a disk, but nobody to this one.
  EXPECT_THAT(checkpoint_error([&] { const Saver saver("/proc/self/fd"); }),
              HasSubstr("/proc/self/fd"));
}

TEST_F(Saving, AFullDiskComesOutOfTheNextCallAndTheLastOneStays) {
  Saver saver(directory());
  saver.save(sample(1));
  saver.wait();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{64, before.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  saver.save(sample(2));
  const std::string error = checkpoint_error([&] { saver.save(sample(3)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error,
              AllOf(HasSubstr("cannot write: File too large (EFBIG)"), HasSubstr("keep_last")));
  EXPECT_THAT(names(), ElementsAre("step-000000001"));
  saver.save(sample(4));
  saver.wait();
  EXPECT_EQ(find_newest(directory()).manifest->step, 4);
}

TEST_F(Saving, OldOnesArePrunedAndTheBestStays) {
  Saver saver(directory(),
              {.keep = {.keep_last = 2, .keep_best = 1, .best = Best::kLowest}, .async = false});
  for (const int64_t step : {5, 1, 6, 7, 8}) {
    Snapshot snapshot = sample(step);
    snapshot.step = step == 1 ? 50 : 10 * step;
    snapshot.score = static_cast<double>(step);
    saver.save(snapshot, "s" + std::to_string(step));
  }
  EXPECT_THAT(names(), ElementsAre("s1", "s7", "s8"));
}

TEST_F(Saving, SevenSavesInARowAllArrive) {
  {
    Saver saver(directory());
    for (int64_t step = 0; step < 7; ++step) {
      EXPECT_EQ(saver.save(sample(step)), Saved::kStarted);
    }
    EXPECT_EQ(saver.times().saves, 7);
  }  // waits
  EXPECT_EQ(names().size(), 7U);
  expect_equal(sample(6), Checkpoint(in("step-000000006")).snapshot());
}

TEST_F(Saving, ABusySaverSkipsIfAsked) {
  Saver saver(directory(), {.when_busy = WhenBusy::kSkip});
  Snapshot large = sample(1);
  large.parts[0].second.set("large", torch::zeros({int64_t{16} << 20}));
  EXPECT_EQ(saver.save(large), Saved::kStarted);
  int skipped = 0;
  while (saver.save(sample(2)) == Saved::kSkipped) {
    ++skipped;
  }
  EXPECT_GT(skipped, 0);
  saver.wait();
  EXPECT_EQ(saver.times().skipped, skipped);
  EXPECT_THAT(names(), ElementsAre("step-000000001", "step-000000002"));
}

TEST_F(Saving, EveryDamageOfAFileIsFoundWhenItIsRead) {
  Saver saver(directory(), {.async = false});
  saver.save(sample(1), "x");
  for (const auto& entry : fs::directory_iterator(in("x"))) {
    const std::string path = entry.path().string();
    const std::string good = read_text(path);
    for (size_t at = 0; at < good.size(); at += 7) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      write_text(path, bad);
      const std::string error = checkpoint_error([&] { (void)Checkpoint(in("x")).snapshot(); });
      ASSERT_THAT(error, HasSubstr(path)) << "byte " << at;
    }
    write_text(path, good.substr(0, good.size() - 1));
    EXPECT_THAT(checkpoint_error([&] { (void)Checkpoint(in("x")).snapshot(); }), HasSubstr(path));
    fs::remove(path);
    EXPECT_THAT(checkpoint_error([&] { (void)Checkpoint(in("x")).snapshot(); }),
                HasSubstr(in("x")));
    write_text(path, good);
  }
  expect_equal(sample(1), Checkpoint(in("x")).snapshot());
}

// Several ranks.

TEST_F(Saving, RankZeroWritesForAllAndEachFindsItsOwn) {
  comm::testing::with_threads(3, [&](comm::Group& world) {
    Saver saver(directory(), {}, world);
    saver.save(sample(4, world.rank()));
    saver.wait();
    expect_equal(sample(4, world.rank()), Checkpoint(in("step-000000004")).snapshot(world.rank()));
  });
  EXPECT_EQ(read_manifest(in("step-000000004")).world_size, 3);
  EXPECT_TRUE(fs::exists(in("step-000000004/model.safetensors")));
  EXPECT_EQ(inspect(in("step-000000004"), Check::kChecksums).state, State::kWhole);
  EXPECT_TRUE(Checkpoint(in("step-000000004")).snapshot(3).rank_tensors.empty());
}

TEST_F(Saving, ShardedAllWriteAndTheOrderStays) {
  comm::testing::with_threads(3, [&](comm::Group& world) {
    Saver saver(directory(), {.sharded = true}, world);
    Snapshot snapshot = sample(4, world.rank());
    for (int i = 0; i < 10; ++i) {
      snapshot.parts[0].second.set("more." + std::to_string(i), torch::full({100}, i));
    }
    // ZeRO: of the optimizer each rank has its own.
    snapshot.parts[1].second.set("own" + std::to_string(world.rank()), torch::ones({2}));
    saver.save(snapshot);
    saver.wait();
    const Snapshot back = Checkpoint(in("step-000000004")).snapshot(world.rank());
    expect_equal(snapshot.parts[0].second, back.parts[0].second);
    EXPECT_EQ(back.parts[1].second.size(), 4U);
    EXPECT_TRUE(back.parts[1].second.contains("own2"));
    expect_equal(snapshot.rank_tensors, back.rank_tensors);
  });
  EXPECT_EQ(inspect(in("step-000000004"), Check::kChecksums).state, State::kWhole);
  std::vector<uintmax_t> sizes;
  for (const char* part : {"1", "2", "3"}) {
    sizes.push_back(fs::file_size(
        in(std::string("step-000000004/model-0000") + part + "-of-00003.safetensors")));
  }
  EXPECT_LT(*std::ranges::max_element(sizes), 2 * *std::ranges::min_element(sizes));
}

TEST_F(Saving, AnErrorOfOneRankComesOutOfAllAlike) {
  for (const bool sharded : {false, true}) {
    comm::testing::with_threads(3, [&](comm::Group& world) {
      Saver saver(directory(), {.sharded = sharded}, world);
      Snapshot snapshot = sample(4, world.rank());
      if (world.rank() == 2) {
        snapshot.rank_tensors.set("bad", at::Tensor());
      }
      saver.save(snapshot);
      EXPECT_THAT(checkpoint_error([&] { saver.save(sample(5, world.rank())); }),
                  HasSubstr("(rank 2) \"bad\": expected a tensor, got nothing"))
          << "rank " << world.rank();
      saver.save(sample(6, world.rank()));
      saver.wait();
    });
    EXPECT_THAT(names(), ElementsAre("step-000000006"));
  }
}

/// What a failed operation had on a device is garbage, which must not become the newest checkpoint.
TEST_F(Saving, NothingIsKeptOnceAnOperationOfTheGroupHasFailed) {
  comm::testing::with_threads(2, [&](comm::Group& world) {
    Saver saver(directory(), {.async = false}, world);
    saver.save(sample(4, world.rank()));
    EXPECT_THROW(comm::all_reduce(torch::ones({1 + world.rank()}), world), CommError);
    EXPECT_THAT(test::error_text<CommError>([&] { saver.save(sample(5, world.rank())); }),
                HasSubstr("an earlier operation failed"));
  });
  EXPECT_THAT(names(), ElementsAre("step-000000004"));
}

TEST_F(Saving, ShardsOfOneNameMustAgree) {
  comm::testing::with_threads(2, [&](comm::Group& world) {
    Saver saver(directory(), {.async = false, .sharded = true}, world);
    Snapshot snapshot = sample(4);
    snapshot.parts[0].second.set("w", torch::ones({1 + world.rank()}));
    EXPECT_THAT(checkpoint_error([&] { saver.save(snapshot); }),
                HasSubstr("rank 0 has F32 [1], rank 1 has F32 [2]. Give the pieces"));
  });
}

TEST_F(Saving, AllRanksSkipOrNone) {
  comm::testing::with_threads(3, [&](comm::Group& world) {
    Saver saver(directory(), {.keep = {.keep_last = 1}, .when_busy = WhenBusy::kSkip}, world);
    std::string said;
    for (int64_t step = 0; step < 20; ++step) {
      while (world.rank() == 1 && is_saving()) {  // comes when the others' last save is done
        std::this_thread::yield();
      }
      Snapshot snapshot = sample(step, world.rank());
      snapshot.parts[0].second.set("large", torch::zeros({1 << 18}));
      said += saver.save(snapshot) == Saved::kSkipped ? 's' : '.';
    }
    for (const std::string& other : comm::all_gather_object(said, world)) {
      EXPECT_EQ(other, said);
    }
    saver.wait();
  });
}

TEST_F(Saving, KilledWhileSavingTheNewestWholeOneHasItsBits) {
  int64_t last = -1;
  for (int kill = 0; kill < 50; ++kill) {
    const std::vector<std::string> before = last < 0 ? std::vector<std::string>() : names();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      torch::set_num_threads(1);
      Saver saver(directory(), {.keep = {.keep_last = 3}});
      for (int64_t step = last + 1;; ++step) {
        saver.save(sample(step));
      }
    }
    while (last < 0 && !(fs::exists(directory()) && find_newest(directory()).path)) {
      std::this_thread::yield();
    }
    await_save(directory(), before, kill % 3);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Newest newest = find_newest(directory());
    ASSERT_TRUE(newest.path);
    ASSERT_GE(newest.manifest->step, last);
    last = newest.manifest->step;
    expect_equal(sample(last), Checkpoint(*newest.path).snapshot());
    for (const Inspected& skipped : newest.skipped) {
      EXPECT_TRUE(is_temporary_name(fs::path(skipped.path).filename().string())) << skipped.path;
    }
  }
  { const Saver saver(directory()); }
  for (const std::string& name : names()) {
    EXPECT_FALSE(is_temporary_name(name)) << "a new Saver clears what the dead have left";
  }
}

}  // namespace
}  // namespace argosy::checkpoint
