#include "argosy/checkpoint/torch_file.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/torch_file_write.h"
#include "argosy/engine/engine_test_modules.h"
#include "argosy/formats/pickler.h"

#include "tests/support/error_text.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using engine::load_state_dict;
using engine::LoadResult;
using engine::state_dict;
using engine::StateDict;
using formats::PickleValue;
namespace small_models = engine::small_models;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string torch_file(const std::string& name) {
  return ARGOSY_GOLDEN_DIR "/torch_files/" + name;
}

std::string read_error(const std::string& path, const ReadTorchFileOptions& options = {}) {
  return test::error_text<CheckpointError>([&] { (void)read_torch_file(path, options); });
}

/// "[2, 3] [3, 1] : 0.5 1.5", as generate.py writes tensors.
std::string describe(const at::Tensor& tensor) {
  const std::map<at::ScalarType, std::string> names{{at::kFloat, "float32"},
                                                    {at::kDouble, "float64"},
                                                    {at::kHalf, "float16"},
                                                    {at::kBFloat16, "bfloat16"},
                                                    {at::kLong, "int64"},
                                                    {at::kInt, "int32"},
                                                    {at::kShort, "int16"},
                                                    {at::kChar, "int8"},
                                                    {at::kByte, "uint8"},
                                                    {at::kBool, "bool"},
                                                    {at::kComplexFloat, "complex64"}};
  std::string text = fmt::format("{} [{}] [{}] :",
                                 names.at(tensor.scalar_type()),
                                 fmt::join(tensor.sizes(), ", "),
                                 fmt::join(tensor.strides(), ", "));
  const at::Tensor flat = (tensor.is_complex() ? torch::view_as_real(tensor) : tensor)
                              .to(torch::kDouble)
                              .contiguous()
                              .flatten();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    text += fmt::format(" {:.9g}", flat[i].item<double>());
  }
  return text;
}

/// Names and describe() of what Python wrote into a file.
std::map<std::string, std::string> expected(const std::string& wanted) {
  std::ifstream file(torch_file("expected.txt"));
  std::map<std::string, std::string> result;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string path, name, word;
    words >> path >> name;
    if (path != wanted) {
      continue;
    }
    std::string text;
    bool values = false;
    while (words >> word) {
      text += (text.empty() ? "" : " ") + (values ? fmt::format("{:.9g}", std::stod(word)) : word);
      values = values || word == ":";
    }
    result[name] = text;
  }
  return result;
}

void expect_golden(const StateDict& dict, const std::string& file) {
  const auto wanted = expected(file);
  EXPECT_EQ(dict.size(), wanted.size());
  ASSERT_FALSE(wanted.empty());
  for (const auto& [name, text] : wanted) {
    ASSERT_TRUE(dict.contains(name)) << name;
    EXPECT_EQ(describe(dict.at(name)), text) << name;
  }
}

TEST(TorchFile, ReadsEveryTypeAndStrideThatPythonWrote) {
  const StateDict dict = read_torch_file(torch_file("types.pth"));
  expect_golden(dict, "types.pth");
  EXPECT_EQ(dict.begin()->first, "float") << "the file's order";
  EXPECT_TRUE(dict.at("first").is_alias_of(dict.at("last"))) << "views share memory";
  EXPECT_TRUE(dict.at("first").is_alias_of(dict.at("transposed")));
  EXPECT_FALSE(dict.at("first").is_alias_of(dict.at("channels_last")));
  for (const auto& [name, tensor] : dict) {
    EXPECT_FALSE(tensor.requires_grad()) << name;
  }
}

TEST(TorchFile, ReadsStateDictsParametersAndCheckpoints) {
  expect_golden(read_torch_file(torch_file("model.pth")), "model.pth");
  expect_golden(read_torch_file(torch_file("parameters.pth")), "parameters.pth");
  expect_golden(read_torch_file(torch_file("wrapped.pth")), "wrapped.pth");
  expect_golden(read_torch_file(torch_file("checkpoint.pth"), {.key = "state_dict"}),
                "checkpoint.pth");
}

TEST(TorchFile, WhatPythonWroteFitsAModule) {
  torch::nn::Sequential net(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
  const LoadResult result = load_state_dict(net, read_torch_file(torch_file("model.pth")));
  EXPECT_EQ(result.loaded.size(), 7U);
  expect_golden(state_dict(net), "model.pth");
}

TEST(TorchFile, StripsThePrefixOfWrappers) {
  expect_golden(read_torch_file(torch_file("wrapped.pth"), {.strip_prefix = "module."}),
                "model.pth");
  expect_golden(read_torch_file(torch_file("model.pth"), {.strip_prefix = "module."}), "model.pth");
}

TEST(TorchFile, ACheckpointListsItsKeys) {
  EXPECT_THAT(
      read_error(torch_file("checkpoint.pth")),
      AllOf(HasSubstr("[checkpoint.read_weights] " + torch_file("checkpoint.pth")),
            HasSubstr("these keys: epoch, best, classes, size, done, state_dict (7 tensors), "
                      "optimizer, scheduler."),
            HasSubstr(".key = \"state_dict\"")));
  EXPECT_THAT(read_error(torch_file("checkpoint.pth"), {.key = "model"}),
              AllOf(HasSubstr("no state_dict under \"model\""), HasSubstr("keys found: epoch")));
  EXPECT_THAT(read_error(torch_file("checkpoint.pth"), {.key = "epoch"}),
              HasSubstr("no state_dict under \"epoch\""));
  EXPECT_THAT(read_error(torch_file("checkpoint.pth"), {.key = "optimizer"}),
              HasSubstr("these keys: state, param_groups"));
}

TEST(TorchFile, ObjectsOfPythonAreRefusedByName) {
  EXPECT_THAT(read_error(torch_file("evil.pth")), HasSubstr("posix.system"));
  EXPECT_THAT(read_error(torch_file("namespace.pth"), {.key = "state_dict"}),
              HasSubstr("argparse.Namespace"));
  EXPECT_THAT(read_error(torch_file("module.pth")),
              HasSubstr("torch.nn.modules.container.Sequential"));
}

TEST(TorchFile, OtherFilesAreNamedForWhatTheyAre) {
  EXPECT_THAT(
      read_error(torch_file("legacy.pth")),
      AllOf(HasSubstr("PyTorch wrote before 1.6"), HasSubstr("python3 -c \"import torch;")));
  EXPECT_THAT(read_error(torch_file("list.pth")),
              HasSubstr("expected a state_dict, got list of 1"));
  EXPECT_THAT(read_error(torch_file("absent.pth")),
              HasSubstr("No such file or directory (ENOENT)"));
  EXPECT_THAT(read_error(torch_file("")), HasSubstr("expected a file, got something else"));
  EXPECT_THAT(read_error(torch_file("generate.py")), HasSubstr("bytes of something else"));
}

class TorchFileOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "argosy_torch_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name = "w.pth") const {
    return (folder_ / name).string();
  }

  /// A file with these members, as torch.save would lay them out.
  std::string file(const std::map<std::string, std::string>& members) {
    std::ofstream out(path("made.pth"), std::ios::binary);
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
      out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
      return size;
    });
    for (const auto& [name, bytes] : members) {
      writer.writeRecord(name, bytes.data(), bytes.size());
    }
    writer.writeEndOfFile();
    return path("made.pth");
  }

  fs::path folder_;
};

void expect_same(const StateDict& a, const StateDict& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_EQ(describe(tensor), describe(b.at(name))) << name;
  }
}

TEST_F(TorchFileOnDisk, RoundTripKeepsTypesStridesAndOrder) {
  StateDict dict = read_torch_file(torch_file("types.pth"));
  dict.set("expanded", dict.at("expanded").clone());  // the rest of what is not dense is told below
  dict.set("every_second", dict.at("every_second").clone());
  write_torch_file(path(), dict);
  const StateDict back = read_torch_file(path());
  expect_same(dict, back);
  EXPECT_EQ(back.begin()->first, "float");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "a temporary file is left";
}

TEST_F(TorchFileOnDisk, AModelComesBackWhole) {
  small_models::SmallNet from, to;
  from->to(torch::kDouble);
  to->to(torch::kDouble);
  write_torch_file(path(), state_dict(from));
  load_state_dict(to, read_torch_file(path()));
  expect_same(state_dict(from), state_dict(to));
}

TEST_F(TorchFileOnDisk, TiedWeightsStayTiedAndViewsBecomeTheirOwn) {
  const at::Tensor bucket = torch::rand({1 << 18});
  const at::Tensor weight = bucket.slice(0, 8, 24).view({4, 4});
  write_torch_file(path(),
                   {{"embedding", weight},
                    {"decoder", weight.detach()},
                    {"other", bucket.slice(0, 24, 28)},
                    {"spread", bucket.slice(0, 0, 64, 16)},
                    {"many", torch::full({1}, 2.0).expand({2, 3})}});
  EXPECT_LT(fs::file_size(path()), 4096U);
  const StateDict back = read_torch_file(path());
  EXPECT_TRUE(torch::equal(back.at("embedding"), weight));
  EXPECT_TRUE(back.at("decoder").is_alias_of(back.at("embedding")));
  EXPECT_FALSE(back.at("other").is_alias_of(back.at("embedding")));
  EXPECT_TRUE(torch::equal(back.at("spread"), bucket.slice(0, 0, 64, 16)));
  EXPECT_TRUE(back.at("spread").is_contiguous());
  EXPECT_EQ(back.at("many").sum().item<float>(), 12);
}

TEST_F(TorchFileOnDisk, WhatCannotBeWrittenIsNamed) {
  EXPECT_THAT(test::error_text<CheckpointError>([&] {
                write_torch_file(path(), {{"a.b", at::Tensor()}});
              }),
              HasSubstr("\"a.b\": expected a tensor, got nothing"));
  EXPECT_THAT(test::error_text<CheckpointError>([&] {
                write_torch_file(path(), {{"s", torch::ones({2}).to_sparse()}});
              }),
              HasSubstr("\"s\": expected a dense tensor"));
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_THAT(test::error_text<CheckpointError>([&] { write_torch_file(path("no/such.pth"), {}); }),
              AllOf(HasSubstr("[checkpoint.save_weights]"), HasSubstr("(ENOENT)")));
}

TEST_F(TorchFileOnDisk, AFullDiskIsAnErrorAndTheFormerFileStays) {
  write_torch_file(path(), {{"a", torch::ones({2})}});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100 << 10, before.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = test::error_text<CheckpointError>([&] {
    write_torch_file(path(), {{"a", torch::ones({1 << 20})}});
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error, HasSubstr("cannot write"));
  EXPECT_EQ(read_torch_file(path()).at("a").numel(), 2);
}

TEST_F(TorchFileOnDisk, TorchScriptIsForAnotherReader) {
  small_models::SmallNet net;
  torch::save(net, path());
  EXPECT_THAT(read_error(path()), HasSubstr("got TorchScript"));
  EXPECT_TRUE(torch::equal(read_weights(path()).at("fc.weight"), net->fc->weight));
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(TorchFileOnDisk, EveryTruncationIsAnError) {
  const std::string whole = bytes_of(torch_file("model.pth"));
  for (size_t size = 0; size < whole.size(); size += 7) {
    std::ofstream(path(), std::ios::binary) << whole.substr(0, size);
    ASSERT_THAT(read_error(path()), HasSubstr(path())) << size;
  }
}

TEST_F(TorchFileOnDisk, AFlippedBitIsAnErrorOrNoMatter) {
  const std::string whole = bytes_of(torch_file("model.pth"));
  const auto wanted = expected("model.pth");
  int refused = 0;
  for (size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    std::ofstream(path(), std::ios::binary) << damaged;
    try {
      for (const auto& [name, tensor] : read_torch_file(path())) {
        ASSERT_EQ(describe(tensor), wanted.at(name)) << "bit " << i % 8 << " of byte " << i;
      }
    } catch (const CheckpointError& error) {
      ASSERT_THAT(error.what(), HasSubstr(path()));
      ++refused;
    }
  }
  EXPECT_GT(refused, 300) << "of " << whole.size() << ": all that is data";
}

/// The pickle of {"weight": a tensor over storage 0}.
struct Made {
  PickleValue type = PickleValue::global("torch", "FloatStorage");
  PickleValue numel = 6;
  PickleValue offset = 0;
  PickleValue sizes = PickleValue::tuple({2, 3});
  PickleValue strides = PickleValue::tuple({3, 1});
  PickleValue key = "0";
  PickleValue metadata{};

  [[nodiscard]] PickleValue tensor() const {
    const PickleValue id = PickleValue::tuple({"storage", type, key, "cuda:0", numel});
    return PickleValue::call(PickleValue::global("torch._utils", "_rebuild_tensor_v2"),
                             {PickleValue::persistent(id),
                              offset,
                              sizes,
                              strides,
                              false,
                              PickleValue::ordered_dict({}),
                              metadata});
  }
  [[nodiscard]] std::string pickle() const {
    return formats::pickle(PickleValue::dict({{"weight", tensor()}}));
  }
};

std::string six_floats() {
  return std::string(24, '\0');
}

TEST_F(TorchFileOnDisk, ATensorOutsideOfItsStorageIsRefused) {
  const auto error = [&](const Made& made) {
    return read_error(file({{"data.pkl", made.pickle()}, {"data/0", six_floats()}}));
  };
  EXPECT_EQ(error({}), "nothing was thrown");
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto tuple = [](std::vector<PickleValue> values) { return PickleValue::tuple(values); };
  const std::vector<Made> lies{{.offset = 1},
                               {.offset = -1},
                               {.offset = kHuge},
                               {.sizes = tuple({3, 3})},
                               {.sizes = tuple({-2, 3})},
                               {.sizes = tuple({kHuge, kHuge})},
                               {.sizes = tuple({kHuge, 4}), .strides = tuple({0, 0})},
                               {.sizes = tuple({2, 3, 1})},
                               {.strides = tuple({-3, 1})},
                               {.strides = tuple({kHuge, kHuge})},
                               {.offset = 7, .sizes = tuple({0, 3})}};
  for (size_t i = 0; i < lies.size(); ++i) {
    EXPECT_THAT(error(lies[i]), AllOf(HasSubstr("\"weight\": sizes ["), HasSubstr("do not fit")))
        << i;
  }
  EXPECT_THAT(error({.sizes = tuple({"2", 3})}), HasSubstr("expected an int"));
  EXPECT_EQ(error({.offset = 6, .sizes = tuple({0, 3})}), "nothing was thrown");
}

TEST_F(TorchFileOnDisk, AStorageThatIsNotThereIsRefused) {
  const auto error = [&](const Made& made, const std::string& bytes) {
    return read_error(file({{"data.pkl", made.pickle()}, {"data/0", bytes}}));
  };
  EXPECT_THAT(error({}, six_floats() + "x"), HasSubstr("6 elements of 4 bytes"));
  EXPECT_THAT(error({}, six_floats().substr(4)), HasSubstr("got 20 bytes"));
  EXPECT_THAT(
      error({.numel = int64_t{1} << 50}, six_floats()),
      HasSubstr("\"weight\": expected 1125899906842624 elements of 4 bytes in archive/data/0, "
                "got 24 bytes"));
  EXPECT_THAT(error({.key = "1"}, six_floats()), HasSubstr("got no such member"));
  EXPECT_THAT(error({.key = "../0"}, six_floats()), HasSubstr("got no such member"));
  EXPECT_THAT(error({.type = PickleValue::global("torch", "QUInt8Storage")}, six_floats()),
              HasSubstr("torch.QUInt8Storage"));
  for (const char* other : {"IntStorage", "FloatStorage"}) {
    Made again{.type = PickleValue::global("torch", other)};
    again.numel = again.type.as_global().name == "IntStorage" ? 6 : 5;
    again.sizes = PickleValue::tuple({1, 3});
    const PickleValue both =
        PickleValue::dict({{"first", Made().tensor()}, {"again", again.tensor()}});
    EXPECT_THAT(read_error(file({{"data.pkl", formats::pickle(both)}, {"data/0", six_floats()}})),
                HasSubstr("\"again\": storage 0 has two types or sizes"));
  }
}

TEST_F(TorchFileOnDisk, OtherArchivesAreNoStateDicts) {
  EXPECT_THAT(read_error(file({{"weights", "x"}})), HasSubstr("without a data.pkl"));
  EXPECT_THAT(read_error(file(
                  {{"data.pkl", Made().pickle()}, {"data/0", six_floats()}, {"byteorder", "big"}})),
              HasSubstr("expected little-endian numbers, got big"));
  EXPECT_THAT(read_error(file({{"data.pkl", "\x80\x02N"}})), HasSubstr("data.pkl"));
  const PickleValue twice =
      PickleValue::dict({{"a", Made().tensor()}, {"module.a", Made().tensor()}});
  EXPECT_THAT(read_error(file({{"data.pkl", formats::pickle(twice)}, {"data/0", six_floats()}}),
                         {.strip_prefix = "module."}),
              HasSubstr("\"a\": there are two of this name without \"module.\""));
  const PickleValue numbers = PickleValue::dict({{1, Made().tensor()}});
  EXPECT_THAT(read_error(file({{"data.pkl", formats::pickle(numbers)}, {"data/0", six_floats()}})),
              HasSubstr("name of an entry"));
}

TEST_F(TorchFileOnDisk, BoolsAreZeroOrOne) {
  Made made{.type = PickleValue::global("torch", "BoolStorage")};
  const std::string bytes("\0\1\2\3\x80\xff", 6);
  const StateDict dict = read_torch_file(file({{"data.pkl", made.pickle()}, {"data/0", bytes}}));
  EXPECT_EQ(describe(dict.at("weight")), "bool [2, 3] [3, 1] : 0 1 1 1 1 1");
  const auto* raw = static_cast<const uint8_t*>(dict.at("weight").data_ptr());
  EXPECT_EQ(raw[5], 1);
}

TEST_F(TorchFileOnDisk, ConjugatedAndNegatedViewsHaveTheirOwnNumbers) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 24);
  const auto read = [&](Made made, const char* word) {  // as torch.save writes x.conj().imag
    made.metadata = PickleValue::dict({{word, true}});
    return describe(
        read_torch_file(file({{"data.pkl", made.pickle()}, {"data/0", bytes}})).at("weight"));
  };
  EXPECT_EQ(read({.sizes = PickleValue::tuple({3}), .strides = PickleValue::tuple({2})}, "neg"),
            "float32 [3] [1] : -1 -3 -5");
  EXPECT_EQ(read({.type = PickleValue::global("torch", "ComplexFloatStorage"),
                  .numel = 3,
                  .sizes = PickleValue::tuple({3}),
                  .strides = PickleValue::tuple({1})},
                 "conj"),
            "complex64 [3] [1] : 1 -2 3 -4 5 -6");
}

TEST_F(TorchFileOnDisk, ATensorAndItsConjugateAreTwo) {
  const std::string path = file({{"x", "x"}});
  const at::Tensor one = torch::complex(torch::tensor({1.0F}), torch::tensor({2.0F}));
  write_torch_file(path, {{"one", one}, {"other", one.conj()}});
  const StateDict dict = read_torch_file(path);
  EXPECT_EQ(describe(dict.at("one")), "complex64 [1] [1] : 1 2");
  EXPECT_EQ(describe(dict.at("other")), "complex64 [1] [1] : 1 -2");
}

}  // namespace
}  // namespace argosy::checkpoint
