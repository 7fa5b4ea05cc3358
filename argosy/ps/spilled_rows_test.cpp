#include "argosy/ps/spilled_rows.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/spill_folder.h"
#include "argosy/ps/test_job.h"
#include "argosy/rpc/errors.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

namespace fs = std::filesystem;
using test::error_text;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Numbers = std::vector<uint64_t>;

constexpr size_t kMiB = size_t{1} << 20;

std::vector<std::string> entries_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

class SpilledTables : public ::testing::Test {
 protected:
  const test::TempDir directory_{};
  const std::string path_ = directory_.path().string();

  [[nodiscard]] std::shared_ptr<RowSpill> spill(size_t memory_limit = 1) const {
    return std::make_shared<RowSpill>(
        SpillOptions{.memory_limit = memory_limit, .directory = path_});
  }
};

std::vector<float> weights_of(const RowTable& table, const Numbers& ids) {
  std::vector<float> out(ids.size() * table.options().dim);
  table.pull(ids, out);
  return out;
}

SavedRows all_of(RowTable& table, size_t slots = 100) {
  RowSnapshot& copy = table.freeze();
  while (!table.copy_frozen(copy, slots)) {
  }
  SavedRows rows = copy.take();
  table.unfreeze(copy);
  return rows;
}

void expect_same(const SavedRows& a, const SavedRows& b, const std::string& what) {
  EXPECT_EQ(a.ids, b.ids) << what;
  EXPECT_EQ(a.weights, b.weights) << what;
  EXPECT_EQ(a.state, b.state) << what;
  EXPECT_EQ(a.waiting, b.waiting) << what;
  EXPECT_EQ(a.sights, b.sights) << what;
  EXPECT_EQ(a.day, b.day) << what;
}

/// The same changes to a table that may go to disk and to one that may not.
class TwoTables final {
 public:
  TwoTables(const SparseOptions& options, const std::shared_ptr<SpillPart>& part, uint64_t seed)
      : spilled(options, part), plain(options), random_(seed) {}

  void change() {
    switch (random_() % 10) {
      case 0:
        spilled.make_room(1);
        break;
      case 1:
      case 2:
        spilled.make_room(static_cast<double>(random_() % 100) / 100);
        break;
      case 3:
        add();
        break;
      case 4:
        if (plain.options().statistics) {
          EXPECT_EQ(spilled.shrink(), plain.shrink());
          spilled.set_day(++day_);
          plain.set_day(day_);
        }
        break;
      default:
        push();
    }
  }

  [[nodiscard]] Numbers some_ids() {
    Numbers ids(200);
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::shuffle(ids, random_);
    ids.resize(1 + random_() % 60);
    return ids;
  }

  RowTable spilled;
  RowTable plain;

 private:
  [[nodiscard]] std::vector<float> floats(size_t n) {
    std::vector<float> all(n);
    std::ranges::generate(all, [&] { return static_cast<float>(random_() % 2001) / 1000 - 1; });
    return all;
  }

  void push() {
    const Numbers ids = some_ids();
    const std::vector<float> gradients = floats(ids.size() * plain.options().dim);
    std::vector<float> shows = floats(ids.size());
    std::vector<float> clicks = floats(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      shows[i] = 2 + shows[i];
      clicks[i] = clicks[i] > 0.5F ? 1.0F : 0.0F;
    }
    if (random_() % 4 != 0) {  // else row by row
      spilled.bring_back(ids);
      EXPECT_EQ(spilled.count_on_disk(ids), 0U);
    }
    if (spilled.options().statistics && random_() % 4 == 0) {
      spilled.plan_shrink();  // for a push that never came
      spilled.bring_back(ids);
    }
    const RowPush push{
        .ids = ids, .gradients = gradients, .shows = shows, .clicks = clicks, .lr = 0.1};
    spilled.push(push);
    plain.push(push);
  }

  void add() {
    const Numbers ids = some_ids();
    const std::vector<float> differences = floats(ids.size() * plain.options().dim);
    spilled.add(ids, differences);
    plain.add(ids, differences);
  }

  std::mt19937_64 random_;
  int32_t day_ = 0;
};

TEST_F(SpilledTables, ChangeNoBit) {
  const auto part = std::make_shared<SpillPart>(spill());
  uint64_t seed = 0;
  size_t on_disk = 0;
  for (const auto& rule : {naive(), adagrad(), std_adagrad(), adam(), shared_adam()}) {
    for (const Entry& entry :
         {Entry(), Entry::count(2), Entry::probability(0.4), Entry::show_click({.score = 1})}) {
      for (const bool statistics : {false, true}) {
        SparseOptions options{.name = "t", .dim = 5, .rule = rule, .initial_range = 0.5F};
        options.entry = entry;
        options.statistics = statistics;
        options.shrink = {.show_click_decay = 0.9F, .delete_score = 0.3F};
        TwoTables tables(options, part, ++seed);
        const std::string what = fmt::format("{}, {}", rule->name(), seed);
        for (int i = 0; i < 60; ++i) {
          tables.change();
          on_disk += tables.spilled.rows_on_disk();
          ASSERT_EQ(tables.spilled.rows(), tables.plain.rows()) << what;
          const Numbers ids = tables.some_ids();
          ASSERT_EQ(weights_of(tables.spilled, ids), weights_of(tables.plain, ids)) << what;
        }
        expect_same(all_of(tables.spilled), all_of(tables.plain), what);
        RowTable again(options, part);  // a new backup, whose rows go to disk too
        again.restore(all_of(tables.spilled));
        again.make_room(1);
        expect_same(all_of(again), all_of(tables.plain), what);
      }
    }
  }
  EXPECT_GT(on_disk, 40U * 60U * 20U) << "most rows were to lie on disk";
}

TEST_F(SpilledTables, ACopyIsOfOneMomentWhateverGoesToDisk) {
  const auto part = std::make_shared<SpillPart>(spill());
  std::mt19937_64 random(5);
  for (uint64_t round = 0; round < 60; ++round) {
    SparseOptions options{.name = "t", .dim = 3, .rule = std_adagrad(), .initial_range = 0.5F};
    options.statistics = round % 2 == 0;
    options.entry = round % 3 == 0 ? Entry::count(2) : Entry();
    options.shrink = {.show_click_decay = 0.8F, .delete_score = 0.3F};
    TwoTables tables(options, part, round);
    for (int i = 0; i < 12; ++i) {
      tables.change();
    }
    const SavedRows before = all_of(tables.plain);
    RowSnapshot& frozen = tables.spilled.freeze();
    for (bool whole = false; !whole;) {
      whole = tables.spilled.copy_frozen(frozen, random() % 60);
      tables.change();
    }
    const SavedRows copy = frozen.take();
    tables.spilled.unfreeze(frozen);
    expect_same(copy, before, fmt::format("round {}", round));
  }
}

TEST_F(SpilledTables, KeepInMemoryWhatIsUsed) {
  RowTable table({.name = "t", .dim = 4, .rule = naive()}, std::make_shared<SpillPart>(spill()));
  Numbers all(2000);
  std::iota(all.begin(), all.end(), 0);
  const Numbers hot(all.begin(), all.begin() + 100);
  const std::vector<float> gradients(all.size() * 4, 1.0F);
  table.push({.ids = all, .gradients = gradients});
  for (int i = 0; i < 20; ++i) {
    table.push({.ids = hot, .gradients = std::span(gradients).first(400)});
    table.make_room(0.1);
  }
  EXPECT_GT(table.rows_on_disk(), 1500U);
  EXPECT_LT(table.rows_on_disk(), 1900U);
  EXPECT_EQ(table.count_on_disk(hot), 0U);
}

TEST_F(SpilledTables, GiveMemoryBack) {
  RowTable table({.name = "t", .dim = 100, .rule = naive()}, std::make_shared<SpillPart>(spill()));
  Numbers ids(5000);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> zeros(ids.size() * 100);
  table.push({.ids = ids, .gradients = zeros});
  const std::vector<float> before = weights_of(table, ids);
  EXPECT_GT(table.bytes(), 5000U * 400U);
  table.make_room(0.75);
  EXPECT_EQ(table.rows_on_disk(), 3750U);
  EXPECT_EQ(table.disk_bytes(), 3750U * 400U);
  EXPECT_LT(table.bytes(), 1500U * 400U + 25U * 5100U);
  EXPECT_EQ(weights_of(table, ids), before);
  table.make_room(1);
  EXPECT_LT(table.bytes(), 25U * 5100U);
  table.push({.ids = ids, .gradients = zeros});
  EXPECT_EQ(table.rows_on_disk(), 0U);
  EXPECT_EQ(weights_of(table, ids), before);
}

TEST_F(SpilledTables, ArePulledBySeveralThreadsAtOnce) {
  RowTable table({.name = "t", .dim = 8, .rule = naive(), .initial_range = 1},
                 std::make_shared<SpillPart>(spill()));
  Numbers ids(3000);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> zeros(ids.size() * 8);
  table.push({.ids = ids, .gradients = zeros});
  const std::vector<float> before = weights_of(table, ids);
  table.make_room(0.9);
  RowSnapshot& copy = table.freeze();
  std::vector<std::thread> threads;
  threads.emplace_back([&] {  // a save reads beside them
    while (!table.copy_frozen(copy, 500)) {
    }
  });
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(weights_of(table, ids), before);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(copy.take().weights, before);
  table.unfreeze(copy);
}

// -- The limit

constexpr uint64_t kIds = 20'000;

/// A push of some rows of both tables to the only partition.
PushRequest request_of(const TableSet& tables, uint32_t worker, uint64_t number, int tables_used) {
  PushRequest request{.worker = worker, .number = number};
  std::mt19937_64 random(number * 10 + worker);
  for (uint32_t table = 0; table < static_cast<uint32_t>(tables_used); ++table) {
    RowsPushed rows{.table = table, .lr = 0.1, .counts = std::vector<uint32_t>(kShards)};
    Numbers ids(500);
    std::ranges::generate(ids, [&] { return random() % kIds; });
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::ranges::stable_sort(ids, {}, shard_of);
    for (const uint64_t id : ids) {
      ++rows.counts[static_cast<size_t>(shard_of(id))];
    }
    std::vector<float> gradients(ids.size() * tables.sparse[table].dim);
    std::ranges::generate(gradients, [&] { return static_cast<float>(random() % 100) / 100; });
    rows.ids = rpc::Memory::own(std::move(ids));
    rows.gradients = rpc::Memory::own(std::move(gradients));
    request.rows.push_back(std::move(rows));
  }
  return request;
}

SavedRows all_of(Partition& partition, uint32_t table) {
  SavedRows all;
  for (int shard = 0; shard < kShards; ++shard) {
    const SavedRows some = all_of(partition.shard(table, shard));
    all.ids.insert(all.ids.end(), some.ids.begin(), some.ids.end());
    all.weights.insert(all.weights.end(), some.weights.begin(), some.weights.end());
    all.state.insert(all.state.end(), some.state.begin(), some.state.end());
  }
  return all;
}

TEST_F(SpilledTables, KeepTheLimitInEveryModeAndChangeNoBit) {
  TableSet tables;
  tables.sparse.push_back({.name = "a", .dim = 16, .rule = adagrad()});
  tables.sparse.push_back({.name = "b", .dim = 3, .rule = adam()});
  for (const UpdateMode mode : {UpdateMode::kSync, UpdateMode::kAsync, UpdateMode::kGeo}) {
    // Both have 20,000 rows of 68 and 44 bytes, 2.2 MB, and 25 more for each id, 1 MB.
    constexpr size_t kForRows = 2 * kMiB;
    Partition spilled(tables, {.workers = 2, .mode = mode, .spill = spill(kMiB + kForRows)});
    Partition plain(tables, {.workers = 2, .mode = mode});
    for (uint64_t step = 0; step < 100; ++step) {
      for (const uint32_t worker : {0U, 1U}) {
        const PushRequest request = request_of(tables, worker, step, step < 70 ? 2 : 1);
        spilled.prepare(request);
        spilled.push(request);
        plain.push(request);
        const size_t bytes = spilled.stat(0).bytes + spilled.stat(1).bytes;
        // The rows of one push and those that are free: an eighth.
        ASSERT_LT(bytes, kForRows * 9 / 8 + 2000U * 112U) << step;
      }
    }
    EXPECT_GT(spilled.stat(0).disk_rows, 3000U);
    EXPECT_GT(spilled.stat(1).disk_rows, 3000U) << "it goes to disk without pushes too";
    EXPECT_GT(spilled.stat(0).bytes + spilled.stat(1).bytes, kForRows / 2);
    for (const uint32_t table : {0U, 1U}) {
      EXPECT_EQ(spilled.stat(table).rows, plain.stat(table).rows);
      expect_same(all_of(spilled, table), all_of(plain, table), "a partition");
    }
  }
}

TEST_F(SpilledTables, OfTwoPartitionsShareTheLimit) {
  TableSet tables;
  tables.sparse.push_back({.name = "a", .dim = 16, .rule = adagrad()});
  const std::shared_ptr<RowSpill> all = spill(3 * kMiB);
  Partition first(tables, {.mode = UpdateMode::kAsync, .spill = all});
  EXPECT_EQ(all->quota(), 2 * kMiB);
  {
    Partition second(tables, {.mode = UpdateMode::kAsync, .spill = all});
    EXPECT_EQ(all->quota(), kMiB);
    for (uint64_t step = 0; step < 60; ++step) {
      const PushRequest request = request_of(tables, 0, step, 1);
      for (Partition* const partition : {&first, &second}) {
        partition->prepare(request);
        partition->push(request);
      }
    }
    EXPECT_LT(first.stat(0).bytes, kMiB * 9 / 8 + 500U * 68U);
    EXPECT_LT(second.stat(0).bytes, kMiB * 9 / 8 + 500U * 68U);
    expect_same(all_of(first, 0), all_of(second, 0), "their rows are apart");
  }
  EXPECT_EQ(all->quota(), 2 * kMiB);
}

// -- The disk

TEST_F(SpilledTables, BadLimitsAndFoldersAreRefused) {
  EXPECT_THAT(error_text<UsageError>([&] { (void)spill(0); }),
              HasSubstr("memory_limit must be 1 byte or more"));
  EXPECT_THAT(error_text<DiskError>(
                  [] { const RowSpill none({.memory_limit = 1, .directory = "/proc/none"}); }),
              HasSubstr("[ps.disk] /proc/none: cannot make this folder: "));
  EXPECT_THAT(error_text<DiskError>([&] {
                const RowSpill none({.memory_limit = 1, .directory = path_ + "/dta/rows"});
              }),
              HasSubstr("/dta/rows: cannot make this folder: No such file"));
  std::FILE* const file = std::fopen((path_ + "/file").c_str(), "w");
  ASSERT_NE(file, nullptr);
  (void)std::fclose(file);
  EXPECT_THAT(error_text<DiskError>(
                  [&] { const RowSpill none({.memory_limit = 1, .directory = path_ + "/file"}); }),
              HasSubstr("/file: cannot make"));
}

TEST_F(SpilledTables, AFolderGoesWithItsServerAndWithTheNextIfItWasKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    const SpillFolder folder(path_);
    std::ofstream(folder.path() + "/rows") << "left";
    (void)::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_THAT(entries_of(path_), SizeIs(1)) << "the killed one leaves its folder";
  fs::create_directory(path_ + "/of-somebody-else");
  {
    const SpillFolder first(path_);
    EXPECT_THAT(entries_of(path_), SizeIs(2)) << "it is removed";
    const SpillFolder second(path_);
    EXPECT_THAT(entries_of(path_), SizeIs(3)) << "one that lives is not";
    EXPECT_TRUE(fs::exists(first.path()));
  }
  EXPECT_EQ(entries_of(path_), std::vector<std::string>{"of-somebody-else"});
}

std::vector<float> row_of(uint64_t id) {
  std::vector<float> row(64);
  std::iota(row.begin(), row.end(), static_cast<float>(id));
  return row;
}

/// Puts rows until it fails; returns how many are there, and the message.
std::pair<uint64_t, std::string> fill(DiskRows& disk, uint32_t table) {
  constexpr uint64_t kAtOnce = 100;
  for (uint64_t begin = 0; begin < 1'000'000; begin += kAtOnce) {
    Numbers ids(kAtOnce);
    std::iota(ids.begin(), ids.end(), begin);
    std::vector<std::vector<float>> rows;
    std::ranges::transform(ids, std::back_inserter(rows), row_of);
    try {
      disk.put(
          table, ids, [&](size_t i) { return std::span<const float>(rows[i]); }, 7);
    } catch (const DiskError& error) {
      return {begin, error.what()};
    }
  }
  return {};
}

void expect_rows(const DiskRows& disk, uint32_t table, uint64_t count) {
  Numbers ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  size_t seen = 0;
  disk.get(table, ids, [&](size_t i, std::span<float> row, uint32_t stamp) {
    ++seen;
    EXPECT_EQ(std::vector<float>(row.begin(), row.end()), row_of(i));
    EXPECT_EQ(stamp, 7U);
  });
  EXPECT_EQ(seen, count);
}

/// Files may not grow beyond some size while it is there.
class FileLimit final {
 public:
  explicit FileLimit(rlim_t bytes) {
    (void)::getrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, SIG_IGN);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    (void)::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, SIG_DFL);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  FileLimit(FileLimit&&) = delete;
  FileLimit& operator=(FileLimit&&) = delete;

 private:
  rlimit before_{};
};

TEST_F(SpilledTables, ADiskThatTakesNoMoreLosesNothing) {
  DiskRows disk(path_, kMiB);
  const uint32_t table = disk.add_table();
  const FileLimit limit(40'000);
  const auto [there, message] = fill(disk, table);
  EXPECT_THAT(message, HasSubstr("[ps.disk] " + disk.folder() + ": cannot write 100 rows of "));
  EXPECT_THAT(message, HasSubstr("File too large. Free space there, name another folder"));
  EXPECT_GT(there, 100U);
  expect_rows(disk, table, there);
}

/// A small file system, for root alone.
class SmallDisk final {
 public:
  explicit SmallDisk(std::string path, const char* options) : path_(std::move(path)) {
    fs::create_directories(path_);
    is_there_ = ::mount("argosy", path_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (is_there_) {
      (void)::umount2(path_.c_str(), MNT_DETACH);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  SmallDisk(SmallDisk&&) = delete;
  SmallDisk& operator=(SmallDisk&&) = delete;

  [[nodiscard]] bool is_there() const { return is_there_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_there_ = false;
};

TEST_F(SpilledTables, APushToAFullDiskIsRefusedAndChangesNothing) {
  const SmallDisk small(path_ + "/small", "size=6m");
  if (!small.is_there()) {
    GTEST_SKIP() << "only root may mount a small disk";
  }
  TableSet tables;
  tables.sparse.push_back({.name = "a", .dim = 200, .rule = adagrad()});
  Partition spilled(tables,
                    {.mode = UpdateMode::kAsync,
                     .spill = std::make_shared<RowSpill>(
                         SpillOptions{.memory_limit = 1, .directory = small.path()})});
  Partition plain(tables, {.mode = UpdateMode::kAsync});
  uint64_t step = 0;
  std::string message;
  for (; step < 500 && message.empty(); ++step) {
    const PushRequest request = request_of(tables, 0, step, 1);
    try {
      spilled.prepare(request);
    } catch (const DiskError& error) {
      message = error.what();
      break;
    }
    spilled.push(request);
    plain.push(request);
  }
  EXPECT_THAT(message, HasSubstr("[ps.disk] " + small.path() + "/argosy-rows-"));
  EXPECT_THAT(message, HasSubstr("No space left on device"));
  EXPECT_EQ(spilled.pushes_of(0), step) << "it was not taken";
  expect_same(all_of(spilled, 0), all_of(plain, 0), "what was there before");
  // There is room again: the same push goes on.
  ASSERT_EQ(::mount("argosy", small.path().c_str(), "tmpfs", MS_REMOUNT, "size=100m"), 0);
  const PushRequest request = request_of(tables, 0, step, 1);
  for (const Deadline deadline = Deadline::after(std::chrono::seconds(30)); !message.empty();) {
    try {
      spilled.prepare(request);
      message.clear();
    } catch (const DiskError&) {
      ASSERT_FALSE(deadline.expired());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  spilled.push(request);
  plain.push(request);
  expect_same(all_of(spilled, 0), all_of(plain, 0), "and after it");
}

TEST_F(SpilledTables, AWorkerWhosePushMeetsAFullDiskHearsOfIt) {
  const SmallDisk small(path_ + "/small", "size=12m");
  if (!small.is_there()) {
    GTEST_SKIP() << "only root may mount a small disk";
  }
  TableSet tables;
  tables.sparse.push_back({.name = "a", .dim = 200, .rule = naive()});
  const JobOptions options{.servers = 2,
                           .mode = UpdateMode::kAsync,
                           .memory_limit = 1,
                           .spill_directory = small.path(),
                           .patience = std::chrono::seconds(20)};  // RocksDB takes up to 15 s
  TestJob::run(tables, options, [&small](TableClient& client, int /*worker*/) {
    const std::vector<float> ones(500 * 200, 1.0F);
    Numbers ids(500);
    uint64_t pushes = 0;
    const auto push = [&] {
      std::iota(ids.begin(), ids.end(), 500 * pushes);
      const IdDeal deal(ids);
      const TableClient::Gradients all{.ids = deal, .gradients = ones, .lr = 1};
      client.push({&all, 1});
      ++pushes;
    };
    EXPECT_THAT(error_text<rpc::RemoteError>([&] {
                  while (pushes < 200) {
                    push();
                  }
                }),
                AllOf(HasSubstr("/small/argosy-rows-"),
                      HasSubstr("No space left on device"),
                      HasSubstr("name another folder in spill_directory")));
    EXPECT_GT(pushes, 3U);
    EXPECT_GT(client.stats()[0].disk_rows, 0U);
    // Somebody makes room while a push waits for it.
    std::thread([&small] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      EXPECT_EQ(::mount("argosy", small.path().c_str(), "tmpfs", MS_REMOUNT, "size=200m"), 0);
    }).detach();
    push();
    for (uint64_t former = 0; former < pushes; ++former) {  // nothing of them is lost
      std::iota(ids.begin(), ids.end(), 500 * former);
      for (const float weight : rows_of(client, 0, ids)) {
        ASSERT_NEAR(weight, -1, 1e-3);
      }
    }
  });
}

TEST_F(SpilledTables, ARowThatCannotBeReadIsAnErrorThatNamesIt) {
  DiskRows disk(path_, kMiB);
  const uint32_t table = disk.add_table();
  const std::vector<float> row = row_of(3);
  disk.put(
      table, Numbers{3}, [&](size_t) { return std::span<const float>(row); }, 7);
  const uint32_t other = disk.add_table();
  const auto nothing = [](size_t, std::span<float>, uint32_t) {};
  EXPECT_THAT(error_text<DiskError>([&] { disk.get(other, Numbers{3}, nothing); }),
              AllOf(HasSubstr("cannot read the row of id 3: NotFound"),
                    HasSubstr("start again from the last checkpoint")));
  disk.remove_table(table);
  EXPECT_THROW(disk.get(table, Numbers{3}, nothing), DiskError);
}

}  // namespace
}  // namespace argosy::ps
