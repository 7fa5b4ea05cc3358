#include "argosy/checkpoint/read_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/paddle_file.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/checkpoint/saver.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/test_checkpoints.h"
#include "argosy/checkpoint/test_python.h"
#include "argosy/checkpoint/test_state_dicts.h"
#include "argosy/checkpoint/torch_file.h"
#include "argosy/checkpoint/torch_file_write.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/formats/pickler.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::checkpoint {
namespace {

using engine::StateDict;
using formats::PickleArray;
using formats::PickleValue;
using ::testing::AllOf;
using testing::checkpoint_error;
using ::testing::ElementsAre;
using testing::expect_equal;
using ::testing::HasSubstr;
using testing::names_of;
using testing::python_with;
using testing::read_text;
using testing::write_text;

std::string golden(const std::string& name) {
  return std::string(ARGOSY_GOLDEN_DIR "/") + name;
}

StateDict all_types() {
  StateDict dict;
  for (const auto type : {torch::kFloat,
                          torch::kDouble,
                          torch::kHalf,
                          torch::kBFloat16,
                          torch::kLong,
                          torch::kInt,
                          torch::kShort,
                          torch::kChar,
                          torch::kByte,
                          torch::kBool}) {
    dict.set(fmt::format("of.{}", c10::toString(type)), torch::tensor({0, 1, 2}).to(type));
  }
  dict.set("turned", torch::arange(6, torch::kFloat).view({2, 3}).t());
  dict.set("one", torch::tensor(-2.5));
  dict.set("none", torch::empty({0, 2}));
  return dict;
}

class WeightsFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  void write(const std::string& name, const PickleValue& value) const {
    write_text(path(name), formats::pickle(value));
  }

 private:
  test::TempDir directory_;
};

TEST_F(WeightsFiles, SafetensorsComeBackWithTheirMetadata) {
  const StateDict dict = all_types();
  write_safetensors(path("a.safetensors"), dict, {{"format", "pt"}, {"by", "Ü"}});
  SafetensorsMetadata metadata;
  expect_equal(dict, read_safetensors(path("a.safetensors"), &metadata));
  EXPECT_THAT(metadata, ElementsAre(std::pair("format", "pt"), std::pair("by", "Ü")));
}

TEST_F(WeightsFiles, SafetensorsSayWhatTheyCannotHold) {
  EXPECT_THAT(checkpoint_error([&] {
                write_safetensors(path("a"), {{"c", torch::zeros({1}, torch::kComplexFloat)}});
              }),
              AllOf(HasSubstr("[checkpoint.save_weights]"), HasSubstr("no type for ComplexFloat")));
  EXPECT_THAT(checkpoint_error([&] { (void)read_safetensors(path("no")); }), HasSubstr("(ENOENT)"));
  EXPECT_THAT(checkpoint_error([&] { write_safetensors(path("no/a"), all_types()); }),
              HasSubstr("(ENOENT)"));
}

/// Lines of model.txt: name, shape, sum, first element.
TEST_F(WeightsFiles, WhatPaddleWroteIsReadInBothProtocols) {
  for (const char* file : {"model_2.pdparams", "model_4.pdparams"}) {
    SCOPED_TRACE(file);
    const StateDict dict = read_paddle_file(golden(std::string("paddle_files/") + file));
    std::ifstream expected(golden("paddle_files/model.txt"));
    std::string line;
    std::getline(expected, line);
    std::vector<std::string> names;
    while (std::getline(expected, line)) {
      std::istringstream words(line);
      std::string name;
      std::string shape;
      double sum = 0;
      double first = 0;
      words >> name >> shape >> sum >> first;
      names.push_back(name);
      const at::Tensor values = dict.at(name).to(torch::kDouble);
      EXPECT_EQ(fmt::format("{}", fmt::join(values.sizes(), "x")), shape) << name;
      EXPECT_NEAR(values.sum().item<double>(), sum, 1e-12) << name;
      EXPECT_EQ(values.flatten()[0].item<double>(), first) << name;
    }
    EXPECT_EQ(names_of(dict), names);
    EXPECT_EQ(dict.at("half").scalar_type(), torch::kBFloat16);
    EXPECT_EQ(dict.at("steps").scalar_type(), torch::kLong);
  }
}

TEST_F(WeightsFiles, PaddlesOptimizerAndOtherPicklesAreRefusedInWords) {
  EXPECT_THAT(
      checkpoint_error([&] { (void)read_paddle_file(golden("paddle_files/optimizer.pdopt")); }),
      HasSubstr("expected an array, got"));
  write("list", PickleValue::list({1}));
  EXPECT_THAT(checkpoint_error([&] { (void)read_paddle_file(path("list")); }),
              AllOf(HasSubstr("expected a state_dict by paddle.save"), HasSubstr("list")));
  write(
      "evil",
      PickleValue::dict({{"w", PickleValue::call(PickleValue::global("os", "system"), {"true"})}}));
  EXPECT_THAT(checkpoint_error([&] { (void)read_paddle_file(path("evil")); }),
              HasSubstr("refused: the global os.system"));
  EXPECT_THAT(checkpoint_error([&] { (void)read_paddle_file(path("no")); }), HasSubstr("(ENOENT)"));
}

TEST_F(WeightsFiles, PaddlesCutParametersAreJoined) {
  // As Python would say it: a pickle by protocol 2 of what paddle.save makes of more than a GiB.
  const std::string script = R"(import pickle, sys, numpy as np
d = {'b': np.ones(2, 'f4'), 'w@@.0': np.arange(4, dtype='f4'), 'w@@.1': np.arange(4, 6, dtype='f4'),
     'UnpackBigParamInfor@@': {'w': {'OriginShape': (2, 3), 'slices': ['w@@.0', 'w@@.1']}}}
pickle.dump(d, open(sys.argv[1], 'wb'), protocol=2)
)";
  const std::string python = python_with({"numpy"});
  if (python.empty()) {
    GTEST_SKIP() << "no Python with numpy: make readers, or READERS=<python>";
  }
  write_text(path("cut.py"), script);
  const std::string command = fmt::format("{} {} {}", python, path("cut.py"), path("cut"));
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  const StateDict dict = read_paddle_file(path("cut"));
  EXPECT_THAT(names_of(dict), ElementsAre("w", "b"));
  EXPECT_TRUE(torch::equal(dict.at("w"), torch::arange(6, torch::kFloat).view({2, 3})));
}

TEST_F(WeightsFiles, EachKindIsKnownByItsContent) {
  const StateDict dict = {{"w", torch::rand({2, 3})}, {"b", torch::rand({3})}};
  write_torch_file(path("1"), dict);
  write_safetensors(path("2"), dict);
  torch::nn::Linear linear(3, 2);
  torch::save(linear, path("3"));
  Saver(path("run"), {.async = false}).save({.parts = {{"model", dict}}}, "x");
  EXPECT_EQ(weights_kind(path("1")), WeightsKind::kTorch);
  EXPECT_EQ(weights_kind(path("2")), WeightsKind::kSafetensors);
  EXPECT_EQ(weights_kind(path("3")), WeightsKind::kTorchScript);
  EXPECT_EQ(weights_kind(path("run/x")), WeightsKind::kFolder);
  EXPECT_EQ(weights_kind(golden("paddle_files/model_2.pdparams")), WeightsKind::kPaddle);
  EXPECT_EQ(weights_kind(golden("paddle_files/model_4.pdparams")), WeightsKind::kPaddle);
  expect_equal(dict, read_weights(path("1")));
  expect_equal(dict, read_weights(path("2")));
  expect_equal(dict, read_weights(path("run/x")));
  EXPECT_THAT(names_of(read_weights(path("3"))), ElementsAre("weight", "bias"));
  EXPECT_EQ(read_weights(golden("paddle_files/model_4.pdparams")).size(), 10U);
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(golden("torch_files/legacy.pth")); }),
              HasSubstr("before 1.6"));
}

/// A model in two files.
class ShardedWeights : public WeightsFiles {
 protected:
  void SetUp() override {
    write_safetensors(path("model-1.safetensors"), {{"a", first_}, {"b", second_}});
    write_safetensors(path("model-2.safetensors"), {{"c", third_}});
  }
  [[nodiscard]] std::string error_with(const std::string& weight_map) const {
    write_text(index_, R"({"metadata": {"total_size": 24}, "weight_map": )" + weight_map + "}");
    return checkpoint_error([&] { (void)read_weights(index_); });
  }
  at::Tensor first_ = torch::rand({2}), second_ = torch::rand({3}), third_ = torch::rand({1});
  std::string index_ = path("model.safetensors.index.json");
};

constexpr const char* kBoth =
    R"({"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"})";

TEST_F(ShardedWeights, AreReadByTheirIndex) {
  EXPECT_EQ(error_with(kBoth), "no CheckpointError was thrown");
  EXPECT_EQ(weights_kind(index_), WeightsKind::kSafetensorsIndex);
  expect_equal({{"a", first_}, {"b", second_}, {"c", third_}}, read_weights(index_));
  EXPECT_THAT(names_of(read_weights(index_, {.renames = {{"^c$", "d"}}})),
              ElementsAre("a", "b", "d"));
}

TEST_F(ShardedWeights, AMissingShardIsNamed) {
  std::filesystem::remove(path("model-2.safetensors"));
  EXPECT_THAT(error_with(kBoth),
              AllOf(HasSubstr(index_),
                    HasSubstr("the shard model-2.safetensors is missing, which holds 1 of 3")));
}

TEST_F(ShardedWeights, ATensorInTwoShardsIsNamed) {
  write_safetensors(path("model-2.safetensors"), {{"b", second_}, {"c", third_}});
  const std::string twice =
      "expected it in the shard model-1.safetensors, got it in model-2.safetensors too";
  EXPECT_THAT(error_with(kBoth), AllOf(HasSubstr("\"b\""), HasSubstr(twice)));
  const char* const without = R"({"a": "model-1.safetensors", "c": "model-2.safetensors"})";
  EXPECT_THAT(error_with(without), AllOf(HasSubstr("\"b\""), HasSubstr("in one shard")));
}

TEST_F(ShardedWeights, ATensorThatIsNotWhereTheIndexSaysIsNamed) {
  EXPECT_THAT(error_with(R"({"a": "model-1.safetensors", "x": "model-1.safetensors"})"),
              AllOf(HasSubstr("\"x\""), HasSubstr("has no tensor of this name")));
}

TEST_F(ShardedWeights, AFileOutsideOfTheFolderIsRefused) {
  for (const std::string file : {"\"/etc/passwd\"", "\"../a\"", "\"x/../../a\"", "\"\"", "7"}) {
    EXPECT_THAT(
        error_with("{\"a\": " + file + "}"),
        AllOf(HasSubstr("\"a\""),
              HasSubstr("expected the name of a file in the folder of the index, got " + file)));
  }
}

TEST_F(ShardedWeights, AnIndexWithoutNamesIsRefused) {
  for (const std::string map : {"{}", "[]", "3"}) {
    EXPECT_THAT(error_with(map), HasSubstr("JSON with a \"weight_map\""));
  }
  write_text(index_, "{ torn");
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(index_); }),
              HasSubstr("JSON with a \"weight_map\""));
}

TEST_F(WeightsFiles, WhatIsNoneOfThemIsRefused) {
  write_text(path("text"), "some words that are no weights at all");
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(path("text")); }),
              AllOf(HasSubstr("[checkpoint.read_weights]"), HasSubstr("got 37 bytes")));
  write_text(path("empty"), "");
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(path("empty")); }), HasSubstr("0 bytes"));
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(path("absent")); }), HasSubstr("ENOENT"));
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights(path("")); }),
              HasSubstr("there is no manifest.json"));
  EXPECT_THAT(checkpoint_error([&] { (void)read_weights("/dev/null"); }), HasSubstr("a file or"));
}

TEST_F(WeightsFiles, AnOptionThatTheFileHasNothingForIsRefused) {
  const std::string file = path("weights.safetensors");
  write_safetensors(file, all_types());
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)read_weights(file, {.key = "model"}); }),
              HasSubstr("key \"model\": " + file + " was not written by torch.save"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)read_weights(file, {.part = "ema"}); }),
              HasSubstr("part \"ema\": " + file + " is not a checkpoint's folder"));
}

TEST_F(WeightsFiles, DevicesAreCheckedFirst) {
  const auto usage = [&](const std::string& device) -> std::string {
    try {
      (void)read_weights(path("absent"), {.map_location = device});
    } catch (const UsageError& error) {
      return error.what();
    } catch (const CheckpointError&) {
      return "the device is taken";
    }
    return "";
  };
  EXPECT_EQ(usage("cpu"), "the device is taken");
  EXPECT_THAT(usage("gpu"), HasSubstr("expected cpu, cuda or cuda:<number>, got \"gpu\""));
  EXPECT_THAT(usage("cuda:99"), HasSubstr("\"cuda:99\" is not here"));
  if (!torch::cuda::is_available()) {
    EXPECT_THAT(usage("cuda"), HasSubstr("have 0 CUDA devices. Say \"cpu\""));
  }
}

TEST_F(WeightsFiles, NamesFollowTheRules) {
  const at::Tensor one = torch::ones({1});
  write_safetensors(path("a"), {{"module.layer1.w", one}, {"module.head.w", one}, {"other", one}});
  EXPECT_THAT(
      names_of(read_weights(
          path("a"),
          {.strip_prefix = "module.",
           .renames = {{"^layer([0-9])[.]", "stage$1."}, {"w$", "weight"}},
           .rename =
               [](const std::string& name) { return name == "other" ? "" : "net." + name; }})),
      ElementsAre("net.stage1.weight", "net.head.weight"));
  EXPECT_THAT(checkpoint_error([&] {
                (void)read_weights(path("a"), {.renames = {{"^.*$", "same"}}});
              }),
              AllOf(HasSubstr("\"same\": two entries get this name"),
                    HasSubstr("the second was \"module.head.w\"")));
  EXPECT_THROW((void)read_weights(path("a"), {.renames = {{"(", ""}}}), UsageError);
}

TEST_F(WeightsFiles, PartOfAFileIsLoadedAndTheRestReported) {
  torch::nn::Sequential net(torch::nn::Linear(3, 2), torch::nn::Linear(2, 5));
  write_torch_file(path("a.pth"),
                   {{"backbone.0.weight", torch::full({2, 3}, 7.0)},
                    {"backbone.0.bias", torch::zeros({2})},
                    {"backbone.1.weight", torch::zeros({9, 2})},
                    {"extra", torch::zeros({1})}});
  const engine::LoadResult done =
      load_weights(net, path("a.pth"), {.renames = {{"^backbone[.]", ""}}}, {.partial = true});
  EXPECT_THAT(done.loaded, ElementsAre("0.weight", "0.bias"));
  EXPECT_THAT(done.missing, ElementsAre("1.bias"));
  EXPECT_THAT(done.unexpected, ElementsAre("extra"));
  ASSERT_EQ(done.mismatched.size(), 1U);
  EXPECT_EQ(net->parameters()[0][0][0].item<float>(), 7);
  EXPECT_THAT(checkpoint_error([&] { load_weights(net, path("a.pth")); }),
              HasSubstr(path("a.pth")));
}

TEST_F(WeightsFiles, PaddlesNormsAndLinearLayersFitTheModule) {
  struct Net : torch::nn::Module {
    Net() {
      register_module("conv", torch::nn::Conv2d(1, 2, 3));
      register_module("norm", torch::nn::BatchNorm2d(2));
      fc = register_module("fc", torch::nn::Linear(4, 3));
    }
    torch::nn::Linear fc{nullptr};
  };
  Net net;
  const std::string file = golden("paddle_files/model_4.pdparams");
  const engine::LoadResult done = load_weights(net, file, {}, {.strict = false});
  EXPECT_THAT(done.missing, ElementsAre("norm.num_batches_tracked"));
  EXPECT_THAT(done.unexpected, ElementsAre("half", "steps"));
  EXPECT_TRUE(torch::equal(net.fc->weight, read_paddle_file(file).at("fc.weight").t()));
}

TEST_F(WeightsFiles, TheHashIsOneForAllKinds) {
  StateDict dict = all_types();
  write_torch_file(path("a.pth"), dict);
  write_safetensors(path("a.safetensors"), dict);
  Saver(path("run"), {.async = false}).save({.parts = {{"model", dict}}}, "x");
  const std::string word = weights_hash(dict);
  EXPECT_EQ(weights_hash(read_weights(path("a.pth"))), word);
  EXPECT_EQ(weights_hash(path("a.safetensors")), word);
  EXPECT_EQ(weights_hash(path("run/x")), word);
  dict.set("one", torch::tensor(-2.25));
  EXPECT_NE(weights_hash(dict), word);
}

TEST_F(WeightsFiles, DamageIsAnErrorOrNoMatter) {
  const std::string good = read_text(golden("paddle_files/model_4.pdparams"));
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    write_text(path("cut"), good.substr(0, i));
    EXPECT_THAT(checkpoint_error([&] { (void)read_paddle_file(path("cut")); }),
                HasSubstr(path("cut")))
        << i;
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    write_text(path("bad"), bad);
    try {
      (void)read_paddle_file(path("bad"));
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200) << "of " << good.size();
}

TEST_F(WeightsFiles, PythonReadsAndWritesSafetensors) {
  const std::string python = python_with({"numpy", "safetensors"});
  if (python.empty()) {
    GTEST_SKIP() << "no Python with numpy and safetensors: make readers, or READERS=<python>";
  }
  const StateDict dict = all_types();
  write_safetensors(path("a.safetensors"), dict, {{"by", "Ü"}});
  Saver(path("run"), {.async = false})
      .save({.parts = {{"model", dict}}, .rank_tensors = {{"random", torch::ones({3})}}}, "x");
  write_text(path("check.py"), R"(
import importlib.util, sys, numpy as np
from safetensors import TensorSpec, deserialize, safe_open, serialize_file
words = {'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16', 'I64': 'int64', 'I32': 'int32',
         'I16': 'int16', 'I8': 'int8', 'U8': 'uint8', 'BOOL': 'bool'}
def load(path):
    with open(path, 'rb') as f:
        return dict(deserialize(f.read()))
def values(tensor):  # the bits of a type that numpy lacks
    kind = words[tensor['dtype']].replace('bfloat16', 'uint16')
    return np.frombuffer(tensor['data'], kind).reshape(tensor['shape']).tolist()
ours = load(sys.argv[1])
with safe_open(sys.argv[1], framework='np') as f:
    assert f.metadata() == {'by': 'Ü'}, f.metadata()
    assert f.get_tensor('turned').tolist() == [[0, 3], [1, 4], [2, 5]]
kinds = {'Float': 'F32', 'Double': 'F64', 'Half': 'F16', 'Long': 'I64', 'Int': 'I32', 'Short': 'I16', 'Char': 'I8',
         'Byte': 'U8'}
for name, kind in kinds.items():
    tensor = ours['of.' + name]
    assert tensor['dtype'] == kind and values(tensor) == [0, 1, 2], name
assert ours['of.BFloat16']['dtype'] == 'BF16' and values(ours['of.BFloat16']) == [0, 0x3f80, 0x4000]
assert ours['of.Bool']['dtype'] == 'BOOL' and values(ours['of.Bool']) == [False, True, True]
checkpoint = load(sys.argv[3] + '/model.safetensors')
assert all(checkpoint[k] == ours[k] for k in ours) and len(checkpoint) == len(ours)
assert values(load(sys.argv[3] + '/rank0.safetensors')['random']) == [1, 1, 1]
bytes_of = {k: np.frombuffer(t['data'], 'uint8') for k, t in ours.items()}
serialize_file({k: TensorSpec(dtype=words[t['dtype']], shape=t['shape'], data_ptr=bytes_of[k].ctypes.data,
                              data_len=len(t['data'])) for k, t in ours.items()}, sys.argv[2], metadata={'format': 'pt'})
if importlib.util.find_spec('torch'):
    import torch
    from safetensors.torch import load_file
    for path in sys.argv[1:3]:
        theirs = load_file(path)
        assert torch.equal(theirs['turned'], torch.arange(6.).view(2, 3).t()) and len(theirs) == len(ours)
        assert theirs['of.BFloat16'].dtype == torch.bfloat16 and theirs['of.BFloat16'].tolist() == [0, 1, 2]
print(len(ours), 'tensors of', len({t['dtype'] for t in ours.values()}), 'types')
)");
  const std::string command = fmt::format("{} {} {} {} {}",
                                          python,
                                          path("check.py"),
                                          path("a.safetensors"),
                                          path("b.safetensors"),
                                          path("run/x"));
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  const StateDict theirs = read_safetensors(path("b.safetensors"));
  EXPECT_EQ(weights_hash(theirs), weights_hash(dict)) << "another order, the same weights";
}

}  // namespace
}  // namespace argosy::checkpoint
