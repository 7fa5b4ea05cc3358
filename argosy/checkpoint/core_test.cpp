#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/text.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/prune.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/checkpoint/weights_digest.h"

#include "tests/support/failing_call.h"
#include "tests/support/temp_dir.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::await_save;
using testing::checkpoint_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_checkpoint;
using ::testing::Not;
using testing::read_text;
using testing::write_text;

class CheckpointFolder : public ::testing::Test {
 protected:
  [[nodiscard]] std::string directory() const { return directory_.path().string(); }
  [[nodiscard]] std::string in(const std::string& name) const { return directory() + "/" + name; }
  /// Names of all that lies in the directory.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory())) {
      all.push_back(entry.path().filename().string());
    }
    std::ranges::sort(all);
    return all;
  }

 private:
  test::TempDir directory_;
};

TEST(CheckpointChecksum, IsThatOfTheReference) {
  // xxhsum -H3 of xxhash 0.8
  EXPECT_EQ(checksum_of(""), "xxh3:2d06800538d394c2");
  EXPECT_EQ(checksum_of("argosy").size(), 21U);
  EXPECT_NE(checksum_of("argosy"), checksum_of("argosz"));
}

TEST_F(CheckpointFolder, TheManifestComesBackAsItWas) {
  Manifest manifest{.step = 120,
                    .epoch = 3,
                    .score = 0.5,
                    .time = text::utc(std::chrono::system_clock::now()),
                    .world_size = 2};
  manifest.library = library_version();
  manifest.parts = {"model", "empty"};
  manifest.files = {{"model.safetensors", 7, checksum_of("x")}};
  manifest.tensors = {{"model", "a \"b\" ü", "BF16", {2, 0}, "model.safetensors"}};
  const Manifest back = parse_manifest(to_text(manifest), "m");
  EXPECT_EQ(to_text(back), to_text(manifest));
  EXPECT_EQ(back.tensors[0].name, "a \"b\" ü");
  EXPECT_EQ(back.score, 0.5);
  EXPECT_EQ(back.time.size(), std::string("2026-03-01T12:00:00.000Z").size()) << back.time;
}

/// A manifest with the checksum that its text has.
std::string sealed(const std::string& body) {
  return body + ",\n  \"checksum\": \"" + checksum_of(body) + "\"\n}\n";
}

TEST(CheckpointManifest, ANewerVersionSaysSo) {
  const std::string text =
      sealed(R"({"format": "argosy-checkpoint", "version": 3, "library": "argosy 9.9.9")");
  EXPECT_THAT(checkpoint_error([&] { (void)parse_manifest(text, "m"); }),
              AllOf(HasSubstr("format version 3, written by argosy 9.9.9"),
                    HasSubstr("reads up to 2. Update Argosy")));
}

TEST(CheckpointManifest, FieldsThatItCannotHaveAreRefused) {
  const auto error = [](const std::string& files, const std::string& tensors) {
    const std::string text = sealed(
        R"({"format": "argosy-checkpoint", "version": 1, "step": 1, "epoch": 0, "score": null,
        "time": "", "world_size": 1, "library": "", "parts": [], "files": [)" +
        files + "], \"tensors\": [" + tensors + "]");
    return checkpoint_error([&] { (void)parse_manifest(text, "m"); });
  };
  EXPECT_EQ(error("", ""), "no CheckpointError was thrown");
  const std::string rest = R"(, "bytes": 1, "checksum": ""})";
  EXPECT_THAT(error(R"({"name": "../x")" + rest, ""), HasSubstr("expected files of the folder"));
  EXPECT_THAT(error(R"({"name": "manifest.json")" + rest, ""), HasSubstr("expected files of"));
  EXPECT_THAT(error(R"({"name": 7)" + rest, ""), HasSubstr("a field is missing or of another"));
  EXPECT_THAT(error("", R"({"part": "", "name": "n", "dtype": "F32", "shape": [], "file": "f"})"),
              HasSubstr("\"n\" of  lies in \"f\", which is no file here"));
}

TEST_F(CheckpointFolder, AWholeOneIsFoundWhole) {
  const std::string path = make_checkpoint(directory(), {.step = 7});
  EXPECT_THAT(names(), ElementsAre("step-7"));
  const Inspected looked = inspect(path, Check::kChecksums);
  EXPECT_EQ(looked.state, State::kWhole) << looked.reason;
  EXPECT_EQ(looked.manifest->step, 7);
}

TEST_F(CheckpointFolder, EachOfAThousandFlippedBytesIsFound) {
  const std::string path = make_checkpoint(directory(), {.step = 7});
  std::vector<std::string> files;
  std::vector<size_t> sizes;
  for (const auto& entry : fs::directory_iterator(path)) {
    files.push_back(entry.path().string());
    sizes.push_back(fs::file_size(entry.path()));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 1'000; ++i) {
    const size_t file = random() % files.size();
    const std::string good = read_text(files[file]);
    std::string bad = good;
    const size_t at = random() % bad.size();
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random() % 255));
    write_text(files[file], bad);
    const Inspected looked = inspect(path, Check::kChecksums);
    EXPECT_EQ(looked.state, State::kDamaged) << "byte " << at << " of " << files[file];
    EXPECT_THAT(looked.reason, HasSubstr(fs::path(files[file]).filename().string()));
    write_text(files[file], good);
  }
  EXPECT_EQ(inspect(path, Check::kChecksums).state, State::kWhole);
}

TEST_F(CheckpointFolder, TornOnesAreKnown) {
  const std::string path = make_checkpoint(directory(), {.step = 7});
  write_text(path + "/state.json", "{");
  EXPECT_THAT(inspect(path, Check::kSizes).reason, "state.json: expected 3 bytes, got 1");
  fs::remove(path + "/state.json");
  EXPECT_EQ(inspect(path, Check::kSizes).state, State::kTorn);
  EXPECT_THAT(inspect(path, Check::kSizes).reason, HasSubstr("state.json: No such file"));
  fs::remove(path + "/manifest.json");
  EXPECT_EQ(inspect(path, Check::kSizes).state, State::kTorn);
  EXPECT_THAT(inspect(path, Check::kSizes).reason, HasSubstr("there is no manifest.json"));
  EXPECT_EQ(inspect(in(".step-7.tmp-1-0"), Check::kSizes).state, State::kTorn);
  EXPECT_EQ(inspect(in("nowhere"), Check::kSizes).state, State::kTorn);
}

TEST_F(CheckpointFolder, TheNewestWholeOneIsFoundAndTheOthersAreExplained) {
  EXPECT_FALSE(find_newest(in("absent")).path);
  EXPECT_FALSE(find_newest(directory()).path);
  make_checkpoint(directory(), {.step = 9});
  make_checkpoint(directory(), {.step = 100});
  const std::string damaged = make_checkpoint(directory(), {.step = 200});
  std::string text = read_text(damaged + "/model.safetensors");
  text.back() = static_cast<char>(text.back() + 1);
  write_text(damaged + "/model.safetensors", text);
  fs::create_directory(in("step-300"));
  fs::create_directory(in(".step-400.tmp-1-0"));
  fs::create_directory(in("logs"));
  fs::create_directory_symlink(in("step-100"), in("latest"));
  const Newest newest = find_newest(directory());
  ASSERT_TRUE(newest.path);
  EXPECT_EQ(*newest.path, in("step-100"));
  EXPECT_EQ(newest.manifest->step, 100);
  EXPECT_THAT(newest.remarks(),
              ElementsAre(AllOf(HasSubstr("step-200, which is damaged: model.safetensors: "),
                                HasSubstr("expected the checksum xxh3:")),
                          HasSubstr("step-300, which is torn: there is no manifest.json"),
                          HasSubstr(".step-400.tmp-1-0, which is torn: a save")));
}

TEST_F(CheckpointFolder, WithoutCommitNothingIsLeft) {
  { const PendingFolder folder(directory(), "step-1"); }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointFolder, TheSameNameIsReplaced) {
  make_checkpoint(directory(), {.step = 1, .name = "last"});
  make_checkpoint(directory(), {.step = 2, .name = "last"});
  EXPECT_THAT(names(), ElementsAre("last"));
  EXPECT_EQ(read_manifest(in("last")).step, 2);
}

TEST_F(CheckpointFolder, AFolderThatIsNotThereOrAFileIsAnErrorWithAdvice) {
  EXPECT_THAT(checkpoint_error([&] { const PendingFolder folder(in("no"), "x"); }),
              AllOf(HasSubstr("[checkpoint.save] "), HasSubstr("(ENOENT)")));
  write_text(in("step-1"), "a file");
  EXPECT_THAT(checkpoint_error([&] { make_checkpoint(directory(), {.step = 1}); }),
              HasSubstr("(ENOTDIR)"));
  EXPECT_THAT(names(), ElementsAre("step-1"));
}

TEST_F(CheckpointFolder, AFullDiskLeavesTheLastGoodOneAndNothingElse) {
  make_checkpoint(directory(), {.step = 1});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{50, before.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = checkpoint_error([&] { make_checkpoint(directory(), {.step = 2}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error,
              AllOf(HasSubstr("model.safetensors: cannot write: File too large (EFBIG). Free some"),
                    HasSubstr("untouched")));
  EXPECT_THAT(names(), ElementsAre("step-1"));
  EXPECT_EQ(inspect(in("step-1"), Check::kChecksums).state, State::kWhole);
}

TEST_F(CheckpointFolder, LeftoversOfTheDeadGoAndThoseOfTheLivingStay) {
  fs::create_directory(in(".step-1.tmp-1-0"));
  write_text(in(".step-1.tmp-1-0/model.safetensors"), "half");
  fs::create_directory(in(".step-2.old-1-0"));
  fs::create_directory(in(".hidden"));
  const PendingFolder living(directory(), "step-3");
  remove_leftovers(directory());
  EXPECT_THAT(names(), ElementsAre(".hidden", fs::path(living.path()).filename().string()));
}

TEST_F(CheckpointFolder, FoldersOfOthersStayWhateverTheirNames) {
  const std::vector<std::string> others{".config.old-2025", ".vim.old-2025-11", ".x.tmp-1-2-3"};
  for (const std::string& name : others) {
    fs::create_directories(in(name + "/app"));
    write_text(in(name + "/app/settings"), "mine");
  }
  fs::create_directory(in(".empty.old-1"));
  remove_leftovers(directory());
  for (const std::string& name : others) {
    EXPECT_TRUE(fs::exists(in(name + "/app/settings"))) << name;
  }
  EXPECT_TRUE(fs::exists(in(".empty.old-1")));
}

TEST_F(CheckpointFolder, IsReplacedInTwoStepsWhereNamesCannotBeExchanged) {
  make_checkpoint(directory(), {.step = 1});
  std::thread([&] {
    ASSERT_TRUE(test::fail_calls(SYS_renameat2, EINVAL));
    make_checkpoint(directory(), {.step = 1, .score = 0.5});
  }).join();
  EXPECT_THAT(names(), ElementsAre("step-1"));
  EXPECT_EQ(read_manifest(in("step-1")).score, 0.5);

  fs::rename(in("step-1"), in(".step-1.was-1-0"));  // as if killed between the two
  fs::create_directory(in(".step-1.tmp-1-1"));
  remove_leftovers(directory());
  EXPECT_THAT(names(), ElementsAre("step-1"));
  EXPECT_EQ(inspect(in("step-1"), Check::kChecksums).state, State::kWhole);
}

TEST_F(CheckpointFolder, PruningKeepsTheLastTheBestAndWhatIsNotWhole) {
  const std::vector<double> scores{0.1, 0.9, 0.3, 0.9, 0.2, 0.4};
  for (size_t i = 0; i < scores.size(); ++i) {
    make_checkpoint(directory(), {.step = static_cast<int64_t>(i), .score = scores[i]});
  }
  const std::string damaged = make_checkpoint(directory(), {.step = 99});
  fs::remove(damaged + "/state.json");
  const PruneOptions options{.keep = {.keep_last = 2, .keep_best = 1}};
  PruneOptions dry = options;
  dry.dry_run = true;
  EXPECT_THAT(prune(directory(), dry).removed,
              ElementsAre(in("step-2"), in("step-1"), in("step-0")));
  EXPECT_EQ(names().size(), 7U);
  const Pruned done = prune(directory(), options);
  EXPECT_THAT(done.kept, ElementsAre(in("step-5"), in("step-4"), in("step-3")));
  EXPECT_THAT(names(), ElementsAre("step-3", "step-4", "step-5", "step-99"))
      << "of two equally good ones the newer";
  prune(directory(), {.keep = {.keep_last = 1, .keep_best = 1, .best = Best::kLowest}});
  EXPECT_THAT(names(), ElementsAre("step-4", "step-5", "step-99"));
}

TEST_F(CheckpointFolder, TheNewestWholeOneIsNeverPruned) {
  make_checkpoint(directory(), {.step = 1});
  make_checkpoint(directory(), {.step = 2});
  for (const int64_t step : {3, 4}) {  // damaged where only checksums see it
    const std::string path = make_checkpoint(directory(), {.step = step});
    write_text(path + "/state.json", "[]\n");
  }
  const Pruned done = prune(directory(), {.keep = {.keep_last = 1}});
  EXPECT_THAT(done.removed, ElementsAre(in("step-1")));
  EXPECT_THAT(done.kept, ElementsAre(in("step-2")));
  EXPECT_EQ(find_newest(directory()).path, in("step-2"));
  EXPECT_THROW(prune(directory(), {.keep = {.keep_last = -1}}), UsageError);
}

TEST_F(CheckpointFolder, KilledAtAnyStageOfASaveThereIsAlwaysAWholeNewest) {
  int64_t last = -1;
  int torn = 0;
  for (int kill = 0; kill < 50; ++kill) {
    const std::vector<std::string> before = names();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      for (int64_t step = last + 1;; ++step) {
        make_checkpoint(directory(), {.step = step});
      }
    }
    while (last < 0 && !find_newest(directory()).path) {  // later there always is one
      std::this_thread::yield();
    }
    await_save(directory(), before, kill % 3);  // files of three, the manifest is the last
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Newest newest = find_newest(directory());
    ASSERT_TRUE(newest.path);
    ASSERT_GE(newest.manifest->step, last) << "a finished one was lost";
    for (const Inspected& skipped : newest.skipped) {
      ASSERT_EQ(skipped.state, State::kTorn) << skipped.path << ": " << skipped.reason;
      ASSERT_TRUE(is_temporary_name(fs::path(skipped.path).filename().string())) << skipped.path;
      ++torn;
    }
    last = newest.manifest->step;
    prune(directory(), {.keep = {.keep_last = 2}, .check = Check::kSizes});
    EXPECT_LE(names().size(), 2U) << "leftovers stayed";
  }
  EXPECT_GT(torn, 5) << "the kills hit no save";
}

TEST_F(CheckpointFolder, TheHashIsThatOfTheWeightsAloneWhereverTheyLie) {
  const std::string a = make_checkpoint(directory(), {.step = 1});
  const std::string b = make_checkpoint(directory(), {.step = 1, .score = 3.0, .name = "b"});
  const std::string word = weights_hash(a);
  EXPECT_EQ(word.size(), 64U);
  EXPECT_EQ(weights_hash(b), word);
  EXPECT_EQ(weights_hash(a + "/model.safetensors"), word);
  EXPECT_NE(weights_hash(make_checkpoint(directory(), {.step = 2})), word);
  EXPECT_TRUE(is_hashed_without_torch(a + "/model.safetensors"));
  EXPECT_FALSE(is_hashed_without_torch(a + "/state.json"));
  write_text(a + "/state.json", "[]\n");
  EXPECT_THAT(checkpoint_error([&] { (void)weights_hash(a); }), HasSubstr("damaged: state.json"));
}

TEST(CheckpointHash, DependsOnNamesTypesAndShapesAndNotOnOrder) {
  const auto hash = [](const std::vector<formats::SafetensorEntry>& entries) {
    WeightsDigest digest;
    for (formats::SafetensorEntry entry : entries) {
      entry.bytes = 4;
      digest.add(entry,
                 [](std::span<std::byte> out, int64_t) { std::ranges::fill(out, std::byte{1}); });
    }
    return digest.hex();
  };
  using formats::SafetensorType;
  const formats::SafetensorEntry a{.name = "a", .type = SafetensorType::kF32, .shape = {1}};
  const formats::SafetensorEntry b{.name = "b", .type = SafetensorType::kF32, .shape = {1}};
  const std::string word = hash({a, b});
  // Worked out by Python's hashlib over the bytes that the header describes.
  EXPECT_EQ(word, "09c7c5db42d69f0d52d29fd6d120415ded7ea255add3696f17e2b36962f5e25f");
  EXPECT_EQ(hash({b, a}), word);
  formats::SafetensorEntry other = b;
  other.name = "c";
  EXPECT_NE(hash({a, other}), word);
  other = b;
  other.type = SafetensorType::kI32;
  EXPECT_NE(hash({a, other}), word);
  other = b;
  other.shape = {1, 1};
  EXPECT_NE(hash({a, other}), word);
  EXPECT_THAT(checkpoint_error([&] { (void)hash({a, a}); }), HasSubstr("there twice"));
}

}  // namespace
}  // namespace argosy::checkpoint
