#include "argosy/checkpoint/save_weights.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/paddle_file.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/test_python.h"
#include "argosy/checkpoint/test_state_dicts.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/engine/engine_test_modules.h"
#include "argosy/engine/layout.h"

#include "tests/support/error_text.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using engine::state_dict;
using engine::StateDict;
using engine::to_channels_last;
using engine::small_models::SmallNet;
using testing::expect_equal;
using ::testing::HasSubstr;
using testing::python_with;

class Weights : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "argosy_weights_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name = "w.pt") const {
    return (folder_ / name).string();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};

TEST_F(Weights, RoundTripIsExact) {
  SmallNet from, to;
  to_channels_last(from);
  from->forward(torch::rand({2, 3, 5, 5}));  // moves the running statistics
  save_weights(from, path());
  expect_equal(state_dict(from), read_weights(path()));
  EXPECT_TRUE(
      read_weights(path()).at("features.0.weight").is_contiguous(torch::MemoryFormat::ChannelsLast))
      << "a file keeps the strides of what was saved";
  load_weights(to, path());
  expect_equal(state_dict(from), state_dict(to));
  EXPECT_TRUE(to->parameters()[0].is_contiguous()) << "a module keeps its own strides";
  EXPECT_EQ(files(), 1U) << "a temporary file was left behind";
}

TEST_F(Weights, ReadsWhatFleetSavedBeforeAndWhatLibtorchSaves) {
  SmallNet theirs, ours;
  torch::save(theirs, path("theirs.pt"));
  EXPECT_EQ(weights_kind(path("theirs.pt")), WeightsKind::kTorchScript);
  load_weights(ours, path("theirs.pt"));
  expect_equal(state_dict(theirs), state_dict(ours));
}

TEST_F(Weights, EveryEndingComesBack) {
  SmallNet from;
  from->forward(torch::rand({2, 3, 5, 5}));
  for (const char* name : {"w.pt", "w.pth", "w.safetensors", "w.pdparams"}) {
    SCOPED_TRACE(name);
    SmallNet to;
    save_weights(from, path(name));
    load_weights(to, path(name), {}, {.strict = false});  // Paddle counts no batches
    StateDict expected, got;
    for (const auto& [entry, tensor] : state_dict(from)) {
      if (!entry.ends_with("num_batches_tracked")) {
        expected.set(entry, tensor);
        got.set(entry, state_dict(to).at(entry));
      }
    }
    expect_equal(expected, got);
  }
  EXPECT_EQ(weights_kind(path("w.pth")), WeightsKind::kTorch);
  EXPECT_EQ(weights_kind(path("w.safetensors")), WeightsKind::kSafetensors);
  EXPECT_EQ(weights_kind(path("w.pdparams")), WeightsKind::kPaddle);
  for (const char* name : {"w", "w.bin", "w.pdopt"}) {
    EXPECT_THAT(test::error_text<UsageError>([&] { save_weights(from, path(name)); }),
                HasSubstr("the ending says what to write: expected .pt"))
        << name;
  }
  EXPECT_THAT(
      test::error_text<UsageError>([&] { save_weights(state_dict(from), path("a.pdparams")); }),
      HasSubstr("expected a module for Paddle's format"));
}

/// The modules of tests/golden/paddle_files.
struct PaddlesNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(1, 2, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(2));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(4, 3));
};
TORCH_MODULE(PaddlesNet);

TEST_F(Weights, WhatPaddleWroteIsWrittenAgainAsPaddleWroteIt) {
  const std::string golden = ARGOSY_GOLDEN_DIR "/paddle_files/model_4.pdparams";
  PaddlesNet net;
  load_weights(net, golden, {}, {.strict = false});
  save_weights(net, path("again.pdparams"));
  const StateDict theirs = read_paddle_file(golden);
  const StateDict again = read_paddle_file(path("again.pdparams"));
  EXPECT_EQ(again.size(), 8U);
  for (const auto& [name, tensor] : again) {
    EXPECT_EQ(tensor.sizes(), theirs.at(name).sizes()) << name;
    EXPECT_TRUE(torch::equal(tensor, theirs.at(name))) << name;
  }
}

TEST_F(Weights, RanksHearOfWhatRankZeroCannotWrite) {
  comm::testing::with_threads(2, [&](comm::Group& group) {
    torch::nn::Linear net(2, 2);
    save_weights_together(net, path("together.pt"), group);
    EXPECT_TRUE(fs::exists(path("together.pt")));
    EXPECT_THAT(test::error_text<CheckpointError>(
                    [&] { save_weights_together(*net, path("no/such/folder.pt"), group); }),
                HasSubstr("rank 0 failed: "));
    EXPECT_THROW(save_weights_together(*net, path("w.bin"), group), UsageError);
  });
}

TEST_F(Weights, AViewBringsOnlyItsOwnElements) {
  torch::nn::Linear small(4, 2);
  const torch::Tensor bucket = torch::rand({1 << 20});
  small->weight.set_data(bucket.slice(0, 8, 16).view({2, 4}));
  save_weights(small, path());
  EXPECT_LT(fs::file_size(path()), 64U << 10);
  EXPECT_TRUE(torch::equal(read_weights(path()).at("weight"), bucket.slice(0, 8, 16).view({2, 4})));
}

TEST_F(Weights, ReplacesTheFormerFile) {
  SmallNet first, second;
  save_weights(first, path());
  save_weights(second, path());
  expect_equal(read_weights(path()), state_dict(second));
}

TEST_F(Weights, AFullDiskIsAnErrorAndTheFormerFileStays) {
  torch::nn::Linear first(8, 8), second(512, 512);
  save_weights(first, path());
  // A limit on the size of files stands for the full disk: write() fails half-way (EFBIG).
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{200 << 10, before.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error =
      test::error_text<CheckpointError>([&] { save_weights(second, path()); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error, HasSubstr("[checkpoint.save_weights] " + path() + ": cannot write"));
  EXPECT_THAT(error, HasSubstr("(EFBIG)"));
  expect_equal(read_weights(path()), state_dict(first));
  EXPECT_EQ(files(), 1U);
}

TEST_F(Weights, ErrorsNameThePath) {
  SmallNet net;
  EXPECT_THAT(
      test::error_text<CheckpointError>([&] { save_weights(net, path("no/such/folder.pt")); }),
      HasSubstr("No such file or directory (ENOENT)"));
  EXPECT_THAT(test::error_text<CheckpointError>([&] { load_weights(net, path("absent.pt")); }),
              HasSubstr("absent.pt: No such file or directory (ENOENT)"));
  EXPECT_THAT(test::error_text<CheckpointError>([&] { load_weights(net, folder_.string()); }),
              HasSubstr("there is no manifest.json"));
  std::ofstream(path("text.pt")) << "this is no archive";
  EXPECT_THAT(test::error_text<CheckpointError>([&] { load_weights(net, path("text.pt")); }),
              HasSubstr("text.pt: expected weights by PyTorch"));
  save_weights(torch::nn::Linear(4, 2), path("linear.pt"));
  EXPECT_THAT(test::error_text<CheckpointError>([&] { load_weights(net, path("linear.pt")); }),
              HasSubstr("linear.pt: the entries do not fit the module"));
}

TEST_F(Weights, ATornFileIsAnError) {
  save_weights(SmallNet(), path());
  for (const double part : {0.2, 0.6, 0.98}) {
    const std::string torn = path("torn.pt");
    fs::copy_file(path(), torn, fs::copy_options::overwrite_existing);
    fs::resize_file(torn,
                    static_cast<std::uintmax_t>(part * static_cast<double>(fs::file_size(path()))));
    EXPECT_THAT(test::error_text<CheckpointError>([&] { (void)read_weights(torn); }),
                HasSubstr("torn.pt"))
        << part;
  }
}

// Runs where a Python with torch is found; the format itself is held by TorchFile's golden files
// everywhere.
TEST_F(Weights, PythonReadsTheNames) {
  const std::string python = python_with({"torch"});
  if (python.empty()) {
    GTEST_SKIP() << "no Python with torch: make peers, or PEERS=<python>";
  }
  SmallNet net;
  save_weights(net, path());
  std::ofstream(path("check.py")) << R"(
import sys, torch
d = torch.load(sys.argv[1], weights_only=True)
print(' '.join(d), float(d['fc.weight'].double().sum()))
assert list(d) == ['features.0.weight', 'features.0.bias', 'features.1.weight', 'features.1.bias',
  'features.1.running_mean', 'features.1.running_var', 'features.1.num_batches_tracked',
  'fc.weight', 'fc.bias'], list(d)
assert abs(float(d['fc.weight'].double().sum()) - float(sys.argv[2])) < 1e-9
)";
  const double sum = net->fc->weight.to(torch::kDouble).sum().item<double>();
  const std::string command =
      fmt::format("{} {} {} {:.17g}", python, path("check.py"), path(), sum);
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace argosy::checkpoint
