/// Tensors that ranks divide, and checkpoints that other numbers of ranks read.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/dcp_file_write.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/checkpoint/saver.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/checkpoint/test_python.h"
#include "argosy/checkpoint/test_state_dicts.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/engine/parts.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using engine::StateDict;
using ::testing::AllOf;
using testing::checkpoint_error;
using testing::expect_equal;
using ::testing::HasSubstr;
using testing::python_with;
using testing::read_text;
using testing::write_text;

/// Of many kinds: one has more bytes than a block, one lies in another order, and of some not every
/// rank gets an element.
StateDict weights() {
  const auto numbers = [](at::IntArrayRef shape) {
    int64_t count = 1;
    for (const int64_t dim : shape) {
      count *= dim;
    }
    return at::arange(count, at::kFloat).mul_(0.37).sin_().view(shape);
  };
  return {{"large.weight", numbers({640, 700})},
          {"conv.weight", numbers({6, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
          {"turned", numbers({5, 9}).t()},
          {"bias", numbers({5})},
          {"half", numbers({3, 11}).to(at::kBFloat16)},
          {"count", at::arange(7)},
          {"scalar", at::scalar_tensor(2.5, at::kDouble)},
          {"empty", at::empty({0, 3})}};
}

/// An optimizer's state of some of them: each has two moments, and a count that ranks do not
/// divide.
StateDict moments() {
  StateDict state;
  for (const char* name : {"conv.weight", "turned", "bias"}) {
    const at::Tensor weight = weights().at(name);
    state.set(fmt::format("{}/exp_avg", name), weight * 0.25);
    state.set(fmt::format("{}/exp_avg_sq", name), weight.square());
    state.set(fmt::format("{}/step", name), at::scalar_tensor(3, at::kFloat));
  }
  return state;
}

using Parts = std::vector<std::pair<std::string, StateDict>>;

Parts training() {
  return {{"model", weights()}, {"optimizer", moments()}};
}

using Division = std::function<IndexRange(int64_t elements)>;

Division even(int ranks, int rank) {
  return [=](int64_t elements) { return even_part(elements, ranks, rank); };
}

/// The same of which this rank has what `division` says; `filled`: with the values.
StateDict divided(const StateDict& whole, const Division& division, bool filled) {
  StateDict parts;
  for (const auto& [name, tensor] : whole) {
    if (name.ends_with("/step")) {
      parts.set(name, filled ? tensor : at::full_like(tensor, -7));
      continue;
    }
    const IndexRange range = division(tensor.numel());
    const at::Tensor part = engine::elements_of(tensor, range).clone();
    const auto gather = [name = name]() -> at::Tensor {
      throw CheckpointError("test", "nobody may gather " + name);
    };
    parts.set(name,
              engine::divided_tensor(tensor, {range, filled ? part : part.fill_(-7)}, gather));
  }
  return parts;
}

Parts divided(Parts parts, const Division& division) {
  for (auto& [name, whole] : parts) {
    whole = divided(whole, division, true);
  }
  return parts;
}

void expect_parts(const StateDict& loaded, const StateDict& whole, const std::string& what) {
  for (const auto& [name, tensor] : loaded) {
    const auto part = engine::own_part(tensor);
    const at::Tensor& expected = whole.at(name);
    EXPECT_TRUE(part.has_value()
                    ? at::equal(part->elements, engine::elements_of(expected, part->range))
                    : at::equal(tensor, expected))
        << what << ", " << name;
  }
}

class Pieces : public ::testing::Test {
 protected:
  /// The folder of a checkpoint by so many ranks, which divide all tensors.
  std::string saved_by(int ranks) {
    const std::string directory = this->directory("by-" + std::to_string(ranks));
    comm::testing::with_threads(ranks, [&](comm::Group& group) {
      Saver saver(directory, {.async = false}, group);
      saver.save({.parts = divided(training(), even(ranks, group.rank()))}, "x");
    });
    return directory + "/x";
  }
  [[nodiscard]] std::string directory(const std::string& name) const {
    return (directory_.path() / name).string();
  }

 private:
  test::TempDir directory_;
};

/// Reads what `ranks` ranks need, one after the other.
void expect_read_by(int ranks, const std::string& folder) {
  for (int rank = 0; rank < ranks; ++rank) {
    const Checkpoint checkpoint(folder);
    for (const auto& [part, whole] : training()) {
      const StateDict own = divided(whole, even(ranks, rank), false);
      for (const auto& [name, tensor] : checkpoint.part(part, Reading::kWhenUsed)) {
        engine::copy_values(own.at(name), tensor);
      }
      expect_parts(own, whole, fmt::format("{} of {} by {}", part, folder, ranks));
    }
  }
}

TEST_F(Pieces, AnyNumberOfRanksReadsWhatAnyNumberWrote) {
  const std::string whole = directory("whole") + ".safetensors";
  save_weights(weights(), whole);
  for (int writers = 1; writers <= 8; ++writers) {
    const std::string folder = saved_by(writers);
    EXPECT_EQ(read_manifest(folder).version(), writers == 1 ? 1 : 2);
    EXPECT_EQ(inspect(folder, Check::kChecksums).state, State::kWhole);
    EXPECT_EQ(weights_hash(folder), weights_hash(whole));
    for (const auto& [part, whole] : training()) {
      expect_equal(Checkpoint(folder).part(part), whole);
    }
    for (int readers = 1; readers <= 8; ++readers) {
      expect_read_by(readers, folder);
    }
  }
}

TEST_F(Pieces, OperatorsReadThemToo) {
  const StateDict read = Checkpoint(saved_by(3)).part("model", Reading::kWhenUsed);
  for (const auto& [name, tensor] : weights()) {
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
    EXPECT_EQ(read.at(name).storage().data(), nullptr);
  }
}

TEST_F(Pieces, EachRankWritesItsPartAndNobodyWritesTwice) {
  const std::string folder = saved_by(4);
  int64_t bytes = 0;
  for (int rank = 1; rank <= 4; ++rank) {
    const auto size = static_cast<int64_t>(
        fs::file_size(folder + "/model-0000" + std::to_string(rank) + "-of-00004.safetensors"));
    EXPECT_LT(size, 640 * 700 + 4096);  // a quarter of 4 bytes each, and little beside
    bytes += size;
  }
  EXPECT_LT(bytes, 4 * (640 * 700 + 4096));
}

/// Hybrid sharding: ranks with the same part.
TEST_F(Pieces, RanksWithTheSamePartShareTheWork) {
  comm::testing::with_threads(4, [&](comm::Group& group) {
    Saver saver(directory("a"), {.async = false}, group);
    saver.save({.parts = {{"model", divided(weights(), even(2, group.rank() % 2), true)}}}, "x");
  });
  expect_equal(Checkpoint(directory("a") + "/x").part("model"), weights());
  EXPECT_TRUE(fs::exists(directory("a") + "/x/model-00003-of-00004.safetensors"));
}

TEST_F(Pieces, AnElementThatNobodyHasIsAnError) {
  const auto save = [&](const Division& of_last) {
    return [this, of_last](const comm::Group& group) {
      Saver saver(directory("b"), {.async = false}, group);
      const Division own = group.rank() == 2 ? of_last : even(3, group.rank());
      saver.save({.parts = {{"model", divided(weights(), own, true)}}}, "x");
    };
  };
  const auto short_by_one = [](int64_t elements) {
    const IndexRange range = even_part(elements, 3, 2);
    return IndexRange{range.begin, std::max(range.begin, range.end - 1)};
  };
  comm::testing::with_threads(3, [&](comm::Group& group) {
    EXPECT_THAT(checkpoint_error([&] { save(short_by_one)(group); }),
                AllOf(HasSubstr("\"large.weight\": of model: no rank has its element 447999")));
  });
  comm::testing::with_threads(3, [&](comm::Group& group) {
    EXPECT_THAT(checkpoint_error([&] {
                  save([](int64_t all) { return IndexRange{all, all}; })(group);
                }),
                HasSubstr("\"large.weight\": of model: no rank has its element 298667"));
  });
  comm::testing::with_threads(3, [&](comm::Group& group) {
    const auto overlaps = [](int64_t all) { return IndexRange{all / 2, all}; };
    EXPECT_THAT(checkpoint_error([&] { save(overlaps)(group); }),
                HasSubstr("rank 2 has elements that others have, too"));
  });
  EXPECT_FALSE(fs::exists(directory("b") + "/x"));
}

/// The model is complete, and one rank has nothing of the optimizer's state.
TEST_F(Pieces, AMomentThatNobodyHasIsAnError) {
  comm::testing::with_threads(3, [&](comm::Group& group) {
    Saver saver(directory("b"), {.async = false}, group);
    Parts parts = divided(training(), even(3, group.rank()));
    if (group.rank() == 1) {
      parts.back().second = divided(
          moments(),
          [](int64_t all) {
            return IndexRange{all, all};
          },
          true);
    }
    EXPECT_THAT(checkpoint_error([&] { saver.save({.parts = parts}, "x"); }),
                HasSubstr("\"conv.weight/exp_avg\": of optimizer: no rank has its element 72"));
  });
  EXPECT_FALSE(fs::exists(directory("b") + "/x"));
}

TEST_F(Pieces, AShardThatIsMissingIsFoundBeforeAnythingIsRead) {
  const std::string folder = saved_by(3);
  Manifest manifest = read_manifest(folder);
  const auto error_without = [&](const std::string& part, size_t piece) {
    Manifest less = manifest;
    std::vector<ManifestPiece>& pieces =
        std::ranges::find(less.tensors, part, &ManifestTensor::part)->pieces;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(piece));
    return checkpoint_error([&] { (void)parse_manifest(to_text(less), "m"); });
  };
  EXPECT_THAT(error_without("model", 0),
              HasSubstr("\"large.weight\" of model: elements 0 to 149333"));
  EXPECT_THAT(error_without("model", 1), HasSubstr("elements 149334 to 298666 are in no file"));
  EXPECT_THAT(error_without("model", 2),
              HasSubstr("has 448000 elements, and the files have 298667"));
  EXPECT_THAT(error_without("optimizer", 1),
              HasSubstr("\"conv.weight/exp_avg\" of optimizer: elements 72 to 143"));
  Manifest twice = manifest;
  twice.tensors.front().pieces[1].range.begin -= 1;
  EXPECT_THAT(checkpoint_error([&] { (void)parse_manifest(to_text(twice), "m"); }),
              HasSubstr("elements 149333 to 149333 are in no file, or in two"));
  fs::remove(folder + "/model-00002-of-00003.safetensors");
  EXPECT_EQ(inspect(folder, Check::kSizes).state, State::kTorn);
  EXPECT_THAT(checkpoint_error([&] { (void)Checkpoint(folder).part("model"); }),
              HasSubstr("model-00002-of-00003.safetensors"));
}

TEST_F(Pieces, OnlyWhatIsNeededIsReadAndThatIsChecked) {
  const std::string folder = saved_by(1);
  const std::string path = folder + "/model.safetensors";
  std::string bytes = read_text(path);
  bytes[bytes.size() - 100000] ^= 1;  // in the second block
  write_text(path, bytes);
  const StateDict read = Checkpoint(folder).part("model", Reading::kWhenUsed);
  const at::Tensor large = weights().at("large.weight");
  EXPECT_TRUE(at::equal(engine::elements_like(large, read.at("large.weight"), {0, 1000}),
                        large.flatten().slice(0, 0, 1000)));
  const auto damaged =
      AllOf(HasSubstr("model.safetensors"), HasSubstr("damaged: bytes 1048576 to "));
  EXPECT_THAT(checkpoint_error([&] {
                engine::copy_values(at::empty({640, 700}), read.at("large.weight"));
              }),
              damaged);
  EXPECT_THAT(checkpoint_error([&] { (void)Checkpoint(folder).part("model"); }), damaged);
  EXPECT_TRUE(read.at("large.weight").isnan().all().item<bool>());  // by an operator
}

TEST_F(Pieces, FilesWithoutHashesOfBlocksAreReadAsAWhole) {
  const std::string folder = saved_by(2);
  Manifest manifest = read_manifest(folder);
  for (ManifestFile& file : manifest.files) {
    file.blocks.clear();
  }
  write_text(folder + "/manifest.json", to_text(manifest));
  expect_read_by(3, folder);
  const std::string path = folder + "/model-00001-of-00002.safetensors";
  std::string bytes = read_text(path);
  bytes[bytes.size() / 2] ^= 1;
  write_text(path, bytes);
  EXPECT_THAT(checkpoint_error([&] { expect_read_by(1, folder); }),
              HasSubstr("damaged: expected the checksum"));
}

/// Rank 0 writes what the others cannot.
TEST_F(Pieces, WhereRanksSeeDifferentFoldersTheFirstGathers) {
  comm::testing::with_threads(3, [&](comm::Group& group) {
    StateDict own;
    for (const auto& [name, tensor] : weights()) {
      const IndexRange range = even_part(tensor.numel(), 3, group.rank());
      own.set(
          name,
          engine::divided_tensor(
              tensor, {range, engine::elements_of(tensor, range).clone()}, [&group, name = name] {
                comm::barrier(group);  // all ranks gather, and in one order
                return weights().at(name);
              }));
    }
    Saver saver(directory("host-" + std::to_string(group.rank())), {.async = false}, group);
    saver.save({.parts = {{"model", own}}}, "x");
  });
  const std::string folder = directory("host-0") + "/x";
  EXPECT_EQ(read_manifest(folder).version(), 1);
  expect_equal(Checkpoint(folder).part("model"), weights());
}

TEST_F(Pieces, WhoSavesAloneIsTold) {
  Saver saver(directory("alone"));
  saver.save({.parts = {{"model", divided(weights(), even(2, 0), true)}}}, "x");
  EXPECT_THAT(checkpoint_error([&] { saver.wait(); }),
              AllOf(HasSubstr("\"large.weight\": ranks divide its values"),
                    HasSubstr("Give the Saver the group")));
}

TEST_F(Pieces, ViewsAndWritesAreThoseOfOrdinaryTensors) {
  const StateDict read = Checkpoint(saved_by(3)).part("model", Reading::kWhenUsed);
  const at::Tensor whole = weights().at("large.weight");
  const at::Tensor large = read.at("large.weight");
  for (const auto& view :
       {large.narrow(1, 5, 10), large.t(), large.narrow(0, 7, 9), large.select(1, 3)}) {
    const at::Tensor expected =
        whole.as_strided(view.sizes(), view.strides(), view.storage_offset());
    EXPECT_TRUE(at::equal(engine::values_of(view), expected));
    const at::Tensor copy = at::zeros(view.sizes());
    engine::copy_values(copy, view);
    EXPECT_TRUE(at::equal(copy, expected));
  }
  const at::Tensor bias = read.at("bias");
  bias.add_(1);
  EXPECT_TRUE(at::equal(bias, weights().at("bias") + 1));
  EXPECT_TRUE(at::equal(engine::values_of(bias), weights().at("bias") + 1));
}

TEST_F(Pieces, WhatIsNoPartIsRefused) {
  const StateDict own = divided(weights(), even(2, 0), true);
  const auto save = [&](const Snapshot& snapshot) {
    Saver saver(directory("refused"), {.async = false});
    saver.save(snapshot, "x");
  };
  EXPECT_THAT(checkpoint_error([&] { save({.rank_tensors = own}); }),
              HasSubstr("it is none of a rank's own tensors"));
  EXPECT_THAT(
      test::error_text<UsageError>([&] { (void)engine::own_part(own.at("bias").narrow(0, 0, 2)); }),
      HasSubstr("has no part of its own"));
}

TEST_F(Pieces, AManifestThatLeadsAstrayIsRefused) {
  const Manifest good = read_manifest(saved_by(2));
  const auto refused = [&](const std::function<void(ManifestTensor&)>& spoil) {
    Manifest bad = good;
    spoil(bad.tensors.front());
    return checkpoint_error([&] { (void)parse_manifest(to_text(bad), "m"); });
  };
  EXPECT_THAT(refused([](auto& t) {
                t.shape = {-640, -700};
              }),
              HasSubstr("no tensor has this shape"));
  EXPECT_THAT(refused([](auto& t) {
                t.shape = {int64_t{1} << 32, int64_t{1} << 32};
              }),
              HasSubstr("no tensor has this shape"));
  EXPECT_THAT(refused([](auto& t) { t.order = {0}; }), HasSubstr("its order names other dims"));
  EXPECT_THAT(refused([](auto& t) {
                t.pieces.clear();
                t.file = "model-00001-of-00002.safetensors";
                t.order = {0, 1};
              }),
              HasSubstr("its order names other dims"));
}

TEST_F(Pieces, BecomeOneFileOfAnyKind) {
  const std::string folder = saved_by(3);
  const StateDict read = Checkpoint(folder).part("model", Reading::kWhenUsed);
  for (const std::string name : {"one.safetensors", "one.pt"}) {
    save_weights(read, directory(name));
    expect_equal(read_weights(directory(name)), weights());
    EXPECT_EQ(weights_hash(read_weights(directory(name))), weights_hash(read));
  }
  Saver saver(directory("one"), {.async = false});
  saver.save({.parts = {{"model", read}}}, "x");
  expect_equal(Checkpoint(directory("one") + "/x").part("model"), weights());
  EXPECT_EQ(read_manifest(directory("one") + "/x").version(), 1);
}

TEST_F(Pieces, PythonReadsThemAsADistributedCheckpoint) {
  const std::string python = python_with({"torch"});
  if (python.empty()) {
    GTEST_SKIP() << "no Python with torch: make peers, or PEERS=<python>";
  }
  const StateDict read = Checkpoint(saved_by(3)).part("model", Reading::kWhenUsed);
  write_dcp(directory("model.dcp"), read);
  save_weights(read, directory("model.pt"));
  EXPECT_THAT(checkpoint_error([&] { write_dcp(directory("model.dcp"), read); }),
              HasSubstr("it exists already"));
  write_text(directory("check.py"), R"(
import sys, torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
folder, plain, made = sys.argv[1:]
expected = torch.load(plain, weights_only=True)
into = {name: torch.zeros_like(t) if t.dim() else torch.zeros((), dtype=t.dtype) for name, t in expected.items()}
dcp.load(into, checkpoint_id=folder)
dcp_to_torch_save(folder, made)
other = torch.load(made, weights_only=True)
assert list(other) == list(expected), (list(other), list(expected))
for name, t in expected.items():
    assert torch.equal(into[name], t) and torch.equal(other[name], t) and other[name].dtype == t.dtype, name
print(len(into), 'tensors')
)");
  const std::string command = fmt::format("{} {} {} {} {}",
                                          python,
                                          directory("check.py"),
                                          directory("model.dcp"),
                                          directory("model.pt"),
                                          directory("made.pt"));
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace argosy::checkpoint
