#include "argosy/ps/table_saver.h"

#include <atomic>
#include <barrier>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/tensor_reader.h"
#include "argosy/ps/test_job.h"
#include "argosy/rpc/errors.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

namespace fs = std::filesystem;
using test::error_text;
using ::testing::HasSubstr;

constexpr int kWorkers = 2;
constexpr int kSaved = 4;  // steps before the save
constexpr int kSteps = 9;

/// Adam keeps the most for each row; an entry has ids that wait.
TableSet saved_tables() {
  TableSet tables = two_tables(adam());
  tables.sparse[1].entry = Entry::count(3);
  tables.sparse[1].statistics = true;
  return tables;
}

class Saves : public ::testing::Test {
 protected:
  const test::TempDir directory_{};
  const std::string path_ = directory_.path().string();
  const test::TempDir spill_directory_{};
  uint64_t disk_rows_ = 0;  ///< at the end

  /// Trains on from the newest checkpoint there, and returns what the tables hold after kSteps.
  std::vector<float> train(int servers, bool saves, int until = kSteps, size_t memory_limit = 0) {
    std::vector<float> result;
    std::barrier<> all(kWorkers);
    std::atomic<int64_t> first = 0;
    TestJob::run(saved_tables(),
                 {.servers = servers,
                  .workers = kWorkers,
                  .memory_limit = memory_limit,
                  .spill_directory = spill_directory_.path().string()},
                 [&](TableClient& client, int worker) {
                   std::optional<TableSaver> saver;
                   if (worker == 0) {
                     saver.emplace(client, path_);
                     first = saver->resume();
                   }
                   all.arrive_and_wait();
                   for (auto step = static_cast<int>(first); step < until; ++step) {
                     if (saves && worker == 0 && step == kSaved) {
                       saver->save(step);
                     }
                     train_step(client, worker, step);
                   }
                   if (worker == 0) {
                     disk_rows_ = client.stats()[0].disk_rows;
                     result = all_values(client);
                     EXPECT_TRUE(saver->wait());
                   }
                 });
    return result;
  }

  [[nodiscard]] std::string newest() const { return path_ + "/" + checkpoint::step_name(kSaved); }
};

TEST_F(Saves, GoOnWithAnotherNumberOfServersToTheSameBits) {
  const std::vector<float> whole = train(2, /*saves=*/true);  // and writes while it trains
  ASSERT_TRUE(checkpoint::is_checkpoint(newest()));
  for (const int servers : {1, 2, 3}) {
    EXPECT_EQ(train(servers, /*saves=*/false), whole) << servers << " servers";
  }
}

TEST_F(Saves, OfRowsOnDiskGoOnToTheSameBits) {
  const std::vector<float> whole = train(2, /*saves=*/false);
  EXPECT_EQ(disk_rows_, 0U);
  EXPECT_EQ(train(2, /*saves=*/true, kSteps, /*memory_limit=*/1), whole) << "it writes meanwhile";
  EXPECT_GT(disk_rows_, 0U);
  ASSERT_TRUE(checkpoint::is_checkpoint(newest()));
  for (const int servers : {1, 3}) {
    for (const size_t memory_limit : {0, 1}) {
      EXPECT_EQ(train(servers, /*saves=*/false, kSteps, memory_limit), whole)
          << servers << " servers, limit " << memory_limit;
    }
  }
}

TEST_F(Saves, DependOnNeitherServersNorRowsOnDiskNorWhatCameLater) {
  (void)train(3, /*saves=*/true, kSteps, /*memory_limit=*/1);
  const std::string by_three = path_ + "/of three";
  fs::rename(newest(), by_three);
  (void)train(1, /*saves=*/true, kSaved + 1);
  const checkpoint::Manifest one = checkpoint::read_manifest(newest());
  const checkpoint::Manifest three = checkpoint::read_manifest(by_three);
  ASSERT_EQ(one.files.size(), static_cast<size_t>(kShards) + 1);
  for (size_t i = 0; i < one.files.size(); ++i) {
    EXPECT_EQ(one.files[i].name, three.files[i].name);
    EXPECT_EQ(one.files[i].checksum, three.files[i].checksum) << one.files[i].name;
  }
}

TEST_F(Saves, HaveTheFormOfEveryCheckpoint) {
  (void)train(2, /*saves=*/true);
  const checkpoint::Inspected found = checkpoint::inspect(newest(), checkpoint::Check::kChecksums);
  EXPECT_EQ(found.state, checkpoint::State::kWhole) << found.reason;
  EXPECT_EQ(found.manifest->step, kSaved);
  const checkpoint::TensorReader reader(newest(), *found.manifest);
  std::set<std::string> names;
  for (const checkpoint::ManifestTensor& tensor : reader.manifest().tensors) {
    names.insert(tensor.part + ": " + tensor.name);
    std::vector<std::byte> bytes(static_cast<size_t>(checkpoint::bytes_of(tensor)));
    reader.read(tensor, bytes);
    if (tensor.name == "weight") {
      EXPECT_EQ(tensor.shape, (std::vector<int64_t>{4, 25}));
    }
    if (tensor.name == "users/weights") {
      EXPECT_EQ(tensor.shape[1], static_cast<int64_t>(kDim));
      EXPECT_GT(tensor.shape[0], 100);
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"model: bias",
                                   "model: weight",
                                   "optimizer: bias/state",
                                   "optimizer: weight/state",
                                   "tables: items/day",
                                   "tables: items/ids",
                                   "tables: items/sights",
                                   "tables: items/state",
                                   "tables: items/waiting",
                                   "tables: items/weights",
                                   "tables: users/ids",
                                   "tables: users/state",
                                   "tables: users/weights"}));
}

TEST_F(Saves, OfOtherTablesAreRefused) {
  (void)train(1, /*saves=*/true);
  TableSet other = saved_tables();
  other.sparse[0].rule = adagrad();
  EXPECT_THAT(
      error_text<UsageError>([&] { TableFiles(newest(), other); }),
      HasSubstr("was saved of other tables: it has rows \"users\": 5 weights by adam, first "
                "within 0.1 of seed 0; this program has rows \"users\": 5 weights by "
                "adagrad"));
  other = saved_tables();
  other.dense.pop_back();
  EXPECT_THAT(error_text<UsageError>([&] { TableFiles(newest(), other); }),
              HasSubstr("this program has nothing more"));
  TestJob::run(saved_tables(), {.servers = 2, .workers = 1}, [&](TableClient& client, int) {
    EXPECT_THAT(error_text<rpc::RemoteError>([&] { client.load(path_); }),
                HasSubstr("there is no manifest.json"));
    train_step(client, 0, 0);
    EXPECT_THAT(error_text<rpc::RemoteError>([&] { client.load(newest()); }),
                HasSubstr("has pushes already"));
  });
}

TEST_F(Saves, OneThatIsDamagedIsPassedOver) {
  const std::vector<float> whole = train(1, /*saves=*/true);
  const std::string damaged = path_ + "/" + checkpoint::step_name(kSaved + 2);
  fs::copy(newest(), damaged);
  fs::resize_file(damaged + "/shard-07-of-64.safetensors", 10);
  EXPECT_EQ(train(1, /*saves=*/false), whole);
}

TEST_F(Saves, ThatCannotBeWrittenLoseNothing) {
  const std::vector<float> whole = train(2, /*saves=*/true);
  fs::remove_all(newest());
  std::vector<float> result;
  TestJob::run(saved_tables(), {.servers = 2, .workers = 1}, [&](TableClient& client, int) {
    // The folder goes while the servers write.
    const TableClient::Saving gone = client.begin_save(path_ + "/nowhere");
    EXPECT_THAT(error_text<rpc::RemoteError>([&] { (void)gone.wait(); }),
                HasSubstr("No such file or directory"));
    TableSaver saver(client, path_);
    saver.save(1);  // the next one does
    EXPECT_TRUE(saver.wait());
  });
  EXPECT_TRUE(checkpoint::is_checkpoint(path_ + "/" + checkpoint::step_name(1)));
  EXPECT_EQ(whole.size(), 200 * kDim + 200 * 3 + 103);
}

TEST_F(Saves, IntoAFolderThatCannotBeAreRefusedAtOnce) {
  TestJob::run(saved_tables(), {.servers = 1, .workers = 1}, [&](TableClient& client, int) {
    EXPECT_EQ(error_text<CheckpointError>([&] { const TableSaver saver(client, "/proc/none"); }),
              "[ps.save] /proc/none: cannot create: No such file or directory (ENOENT)");
  });
}

TEST_F(Saves, KeepAsManyAsWanted) {
  TestJob::run(saved_tables(), {.servers = 2, .workers = 1}, [&](TableClient& client, int) {
    TableSaver saver(client, path_, {.keep_last = 2});
    EXPECT_EQ(saver.resume(), 0);
    for (int step = 0; step < 5; ++step) {
      train_step(client, 0, step);
      saver.save(step + 1);
    }
    EXPECT_TRUE(saver.wait());
  });
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{checkpoint::step_name(4), checkpoint::step_name(5)}));
}

}  // namespace
}  // namespace argosy::ps
