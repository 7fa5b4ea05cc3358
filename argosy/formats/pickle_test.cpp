#include "argosy/formats/pickle.h"

#include <bit>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/pickle_text.h"
#include "argosy/formats/test_damage.h"
#include "argosy/formats/test_pickles.h"

namespace argosy::formats {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

PickleValue load(const std::string& pickle, const UnpickleOptions& options = {}) {
  return unpickle(as_bytes(pickle), options);
}

std::string text_of(const std::string& pickle) {
  return to_text(load(pickle));
}

DataError error_of(const std::string& pickle, UnpickleOptions options = {}) {
  options.path = "some.pkl";
  try {
    (void)load(pickle, options);
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, "some.pkl");
    EXPECT_GE(error.place().offset, 0);
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

std::string message_of(const std::string& pickle, const UnpickleOptions& options = {}) {
  return error_of(pickle, options).what();
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EveryValueOfPythonFromProtocol2On) {
  const std::vector<GoldenPickle> pickles = golden_pickles(GetParam());
  ASSERT_GT(pickles.size(), 20U);
  int refused = 0;
  for (const GoldenPickle& golden : pickles) {
    SCOPED_TRACE(golden.name + " protocol " + golden.protocol);
    const bool old = golden.protocol < "2";
    try {
      EXPECT_EQ(text_of(golden.pickle), golden.text);
    } catch (const DataError& error) {
      EXPECT_TRUE(old) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("expected protocol 2 to 5"));
      ++refused;
    }
  }
  EXPECT_GT(refused, 5);
}

TEST_P(Golden, EveryTruncationIsAnError) {
  for (const GoldenPickle& golden : golden_pickles(GetParam())) {
    SCOPED_TRACE(golden.name + " protocol " + golden.protocol);
    const DamageCount count =
        read_truncated(golden.pickle, [](const std::string& damaged) { (void)load(damaged); });
    EXPECT_EQ(count.refused, 200);
  }
}

TEST_P(Golden, FlippedBytesGiveErrorsOrValuesAndNothingElse) {
  DamageCount all;
  for (const GoldenPickle& golden : golden_pickles(GetParam())) {
    SCOPED_TRACE(golden.name + " protocol " + golden.protocol);
    const DamageCount count = read_flipped(
        golden.pickle, [](const std::string& damaged) { (void)to_text(load(damaged)); }, 500);
    all.read += count.read;
    all.refused += count.refused;
  }
  EXPECT_GE(all.read + all.refused, 10'000);
  std::cout << all.refused << " refused, " << all.read << " read\n";
}

INSTANTIATE_TEST_SUITE_P(Python, Golden, testing::Values("numpy1.txt", "numpy2.txt"));

TEST(Unpickle, Python2StringsAreBytes) {
  EXPECT_EQ(text_of("U\x02"s + "ab."), "b6162");
  EXPECT_EQ(text_of("T\x02\0\0\0ab."s), "b6162");
}

TEST(Unpickle, TheProtocolsThatAreTextAreNamedWithWhatToDo) {
  for (const std::string& pickle : {"I5\n."s,
                                    "L5L\n."s,
                                    "F1.5\n."s,
                                    "S'a'\n."s,
                                    "Va\n."s,
                                    "Np0\n."s,
                                    "g0\n."s,
                                    "P1\n."s,
                                    "(ios\nsystem\n."s,
                                    "(l."s,
                                    "(d."s}) {
    const std::string message = message_of(pickle);
    EXPECT_THAT(message, HasSubstr("belongs to pickle's protocols 0 and 1")) << pickle;
    EXPECT_THAT(message, HasSubstr("expected protocol 2 to 5"));
    EXPECT_THAT(message, HasSubstr("pickle.dump(value, file, protocol=2)"));
  }
  EXPECT_THAT(message_of("\x80\x01."), HasSubstr("protocol 1: expected 2 to 5"));
}

TEST(Unpickle, APython2ArrayAsCifarHasIt) {
  // What Python 2's cPickle wrote: protocol 2, str as SHORT_BINSTRING, memo from 1 on.
  const std::string pickle =
      "\x80\x02}q\x01U\x04"s + "dataq\x02" + "cnumpy.core.multiarray\n_reconstruct\nq\x03" +
      "cnumpy\nndarray\nq\x04K\0\x85U\x01"s + "b\x87Rq\x05(K\x01K\x02K\x03\x86"s +
      "cnumpy\ndtype\nq\x06U\x02u1K\0K\x01\x87Rq\x07"s +
      "(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U\x06"s + "abcdeftbs.";
  const PickleValue value = load(pickle);
  EXPECT_EQ(to_text(value), "{b64617461:Au1;2x3;616263646566}");
  EXPECT_EQ(value.at("data").as_array().bytes.size(), 6U);
}

TEST(Unpickle, LargeIntsAreRefusedAndSmallOnesOfManyBytesAreNot) {
  EXPECT_EQ(text_of("\x8a\x00."s), "0");
  EXPECT_EQ(text_of("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00."s), "9223372036854775807");
  EXPECT_EQ(text_of("\x8a\x09\0\0\0\0\0\0\0\x80\xff."s), "-9223372036854775808");
  EXPECT_THAT(message_of("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."s),
              HasSubstr("more than 64 bits"));
  EXPECT_THAT(message_of("\x8a\x09\0\0\0\0\0\0\0\0\x01."s), HasSubstr("more than 64 bits"));
  EXPECT_THAT(message_of("\x8b\xff\xff\xff\xff."s),
              HasSubstr("4294967295 more bytes are promised"));
}

TEST(Unpickle, GlobalsAreRefusedByNameAndOffset) {
  for (const std::string& pickle : {"\x80\x02(cos\nsystem\nU\x04"s + "true\x85R."s,
                                    "cposix\nsystem\n(U\x04truetR."s,
                                    "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."s}) {
    const DataError error = error_of(pickle);
    EXPECT_THAT(error.what(), HasSubstr("refused: the global "));
    EXPECT_THAT(error.what(), HasSubstr(".system is not one that plain values"));
    EXPECT_THAT(error.what(), HasSubstr("Nothing was executed"));
  }
  EXPECT_EQ(error_of("N0cos\nsystem\n.").place().offset, 2);
  EXPECT_THAT(message_of("cos\x1b[2J\nsystem\n."), HasSubstr("os\\x1b[2J.system"));
  EXPECT_THAT(message_of("c" + std::string(100'000, 'o') + "\nx\n."),
              testing::SizeIs(testing::Lt(500U)));
  for (const std::string& name : std::vector<std::string>{"builtins\neval",
                                                          "builtins\ngetattr",
                                                          "numpy\nload",
                                                          "numpy.core.multiarray\n_reconstruct2",
                                                          "copyreg\n_reconstructor",
                                                          "collections\nOrderedDict.x",
                                                          "builtins\nset.x"}) {
    EXPECT_THAT(message_of("c" + name + "\n."), HasSubstr("refused: the global"));
  }
}

TEST(Unpickle, WhatMakesInstancesOrGetsThemFromElsewhereIsRefused) {
  EXPECT_THAT(message_of("ccollections\nOrderedDict\n)\x81."),
              HasSubstr("makes an instance of global collections.OrderedDict"));
  EXPECT_THAT(message_of("ccollections\nOrderedDict\n)}\x92."), HasSubstr("makes an instance"));
  EXPECT_THAT(message_of("(ccollections\nOrderedDict\no."), HasSubstr("makes an instance"));
  EXPECT_THAT(message_of("\x82\x01."), HasSubstr("extension registry"));
  EXPECT_THAT(message_of("K\x01Q."), HasSubstr("an object outside of the pickle, of the id int 1"));
  EXPECT_THAT(message_of("\x97."), HasSubstr("buffer from outside"));
  EXPECT_THAT(message_of("]}b."), HasSubstr("refused: list of 0 gets the state dict of 0"));
  EXPECT_THAT(message_of("K\x01)R."), HasSubstr("refused: a call of int 1"));
  EXPECT_THAT(message_of("c_codecs\nencode\n(X\x01\0\0\0aX\x05\0\0\0rot13tR."s),
              HasSubstr("refused: _codecs.encode"));
  EXPECT_THAT(message_of("cnumpy\nndarray\n)R."), HasSubstr("refused: a call of numpy.ndarray"));
}

TEST(Unpickle, HalfBuiltThingsAreNoResult) {
  EXPECT_THAT(message_of("ccollections\nOrderedDict\n."), HasSubstr("stands alone"));
  EXPECT_THAT(message_of("]ccollections\nOrderedDict\na."), HasSubstr("stands alone"));
  EXPECT_THAT(message_of("cnumpy\ndtype\n(U\x02u1K\0K\x01tR."s),
              HasSubstr("a numpy.dtype stands alone"));
  EXPECT_THAT(
      message_of("(cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\x01"s + "btRt."),
      HasSubstr("array without its content"));
}

/// SHORT_BINSTRING.
std::string bytes_op(const std::string& text) {
  return "U" + std::string(1, static_cast<char>(text.size())) + text;
}

/// BININT1 or LONG1.
std::string int_op(int64_t value) {
  if (value >= 0 && value < 256) {
    return "K" + std::string(1, static_cast<char>(value));
  }
  return "\x8a\x08" + std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// An array by its shape, dtype and the operations of its content.
std::string array_pickle(const std::vector<int64_t>& shape,
                         const std::string& dtype,
                         const std::string& content) {
  std::string dims;
  for (const int64_t dim : shape) {
    dims += int_op(dim);
  }
  return "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + int_op(0) + "t" +
         bytes_op("b") + "tR(" + int_op(1) + "(" + dims + "tcnumpy\ndtype\n(" + bytes_op(dtype) +
         int_op(0) + int_op(1) + "tR\x89" + content + "tb.";
}

TEST(Unpickle, ArraysThatLieAreErrors) {
  constexpr int64_t kMost = INT64_MAX;
  const std::string two = bytes_op("ab");
  EXPECT_EQ(text_of(array_pickle({2}, "u1", two)), "Au1;2;6162");
  EXPECT_EQ(text_of(array_pickle({1}, ">i2", two)), "Ai2;1;6261");
  EXPECT_EQ(text_of(array_pickle({}, "u2", two)), "Au2;;6162");
  EXPECT_THAT(message_of(array_pickle({3}, "u1", two)),
              HasSubstr("shape (3) and type u1 does not fit its 2 bytes"));
  EXPECT_THAT(message_of(array_pickle({-2}, "u1", two)), HasSubstr("int -2 for a dimension"));
  EXPECT_THAT(message_of(array_pickle({kMost / 2 + 2, 4}, "u1", bytes_op("abcd"))),
              HasSubstr("does not fit its 4 bytes"));
  EXPECT_THAT(message_of(array_pickle({2}, "O8", "]")),
              HasSubstr("numpy.dtype 'O8' is not one of"));
  EXPECT_THAT(message_of(array_pickle({1}, "f2", two)),
              HasSubstr("numpy.dtype 'f2' is not one of"));
  EXPECT_THAT(message_of(array_pickle({2}, "u1", "]")),
              HasSubstr("arrays of objects are not read"));
  EXPECT_THAT(message_of(array_pickle(std::vector<int64_t>(65, 1), "u1", bytes_op("a"))),
              HasSubstr("at most 64 ints"));
  EXPECT_EQ(text_of(array_pickle({0, kMost, kMost}, "u1", bytes_op(""))),
            "Au1;0x9223372036854775807x9223372036854775807;");
  std::string word = array_pickle({2}, "u1", two);  // a str for a dimension
  word.replace(word.find("K\x02"), 2, bytes_op("x"));
  EXPECT_THAT(message_of(word), HasSubstr("for a dimension"));
}

TEST(Unpickle, AnArrayGetsItsContentOnce) {
  std::string pickle = array_pickle({2}, "u1", bytes_op("ab"));
  pickle.pop_back();
  EXPECT_THAT(message_of(pickle + "(K\x01(K\0tN\x89U\0tb."s), HasSubstr("gets its content twice"));
}

TEST(Unpickle, DamagedProgramsAreErrors) {
  EXPECT_THAT(message_of(""), HasSubstr("1 more bytes are promised, 0 are left"));
  EXPECT_THAT(message_of("."), HasSubstr("needs a value that is not there"));
  EXPECT_THAT(message_of("\xff."), HasSubstr("byte ff is no operation"));
  EXPECT_THAT(message_of("\x80\x06."), HasSubstr("protocol 6: expected 2 to 5"));
  EXPECT_THAT(message_of("NN."), HasSubstr("left over"));
  EXPECT_THAT(message_of("(N."), HasSubstr("left over"));
  EXPECT_THAT(message_of("Ne."), HasSubstr("needs a mark"));
  EXPECT_THAT(message_of("](a."), HasSubstr("needs a value"));
  EXPECT_THAT(message_of("]N(a."), HasSubstr("needs a value"));  // not from below the mark
  EXPECT_THAT(message_of("NNa."), HasSubstr("expected a list to fill, got None"));
  EXPECT_THAT(message_of("](NNu."), HasSubstr("expected a dict to fill, got list of 0"));
  EXPECT_THAT(message_of("}(Nu."), HasSubstr("a dict's key has no value"));
  EXPECT_THAT(message_of("}]Ns."), HasSubstr("list of 0 as a key"));
  EXPECT_THAT(message_of("}]\x85Ns."), HasSubstr("tuple of 1 as a key"));
  EXPECT_THAT(message_of("h\x05."), HasSubstr("place 5 of the memo is empty"));
  EXPECT_THAT(message_of("X\x01\0\0\0\xff."s), HasSubstr("a str that is not UTF-8"));
  EXPECT_THAT(message_of("\x95\xff\0\0\0\0\0\0\0."s), HasSubstr("a frame of 255 bytes"));
  EXPECT_THAT(message_of("N.."), HasSubstr("trailing bytes after the pickle's end"));
  EXPECT_EQ(error_of("N.x").place().offset, 2);
  EXPECT_THAT(message_of("cos"), HasSubstr("a line does not end"));
}

TEST(Unpickle, LengthsThatLieAllocateNothing) {
  EXPECT_THAT(message_of("X\xff\xff\xff\xff."),
              HasSubstr("4294967295 more bytes are promised, 1 are left"));
  EXPECT_THAT(message_of("\x8e\xff\xff\xff\xff\xff\xff\xff\xff."),
              HasSubstr("18446744073709551615 more bytes"));
  EXPECT_THAT(message_of("Nr\xff\xff\xff\xff."), HasSubstr("raise UnpickleOptions::memo"));
  EXPECT_THAT(message_of("Nr\xff\xff\x7f\0."s), HasSubstr("raise UnpickleOptions::memory_bytes"));
}

TEST(Unpickle, BombsAreRefused) {
  // The same megabyte turned into bytes over and over.
  std::string bomb = "c_codecs\nencode\nq\0X\0\0\x10\0"s + std::string(1 << 20, 'x') +
                     "q\x01X\x06\0\0\0latin1q\x02"s;
  std::string again = "h\0h\x01h\x02\x86R"s;
  for (int i = 0; i < 10'000; ++i) {
    bomb += again;
  }
  EXPECT_THAT(message_of(bomb + "."), HasSubstr("taken for a bomb"));
}

TEST(Unpickle, AKeyThatComesAgainAndAgainIsLookedAtOnce) {
  // A tuple of n numbers, and a frozenset that has it n times: n² steps took a minute for 400 KB.
  constexpr int kMany = 50'000;
  std::string pickle = "\x80\x04(";
  for (int i = 0; i < kMany; ++i) {
    pickle += "K\x01";
  }
  pickle += "t" + "q\0"s + "0(";
  for (int i = 0; i < kMany; ++i) {
    pickle += "h\0"s;
  }
  const std::clock_t before = std::clock();
  EXPECT_EQ(load(pickle + "\x91.").items().size(), static_cast<size_t>(kMany));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC);
  EXPECT_THAT(message_of("\x80\x04(]t" + "q\0"s + "0(" + "h\0h\0"s + "\x91."),
              HasSubstr("as a key"));
}

TEST(Unpickle, SharedBranchesStaySharedAndAreWalkedOnce) {
  std::string tree = "]q\0"s;
  for (int i = 0; i < 100; ++i) {
    tree += "h\0\x86q\0"s;  // (t, t)
  }
  const PickleValue value = load(tree + ".");  // 2^100 paths
  EXPECT_TRUE(value.items()[0].same(value.items()[1]));
}

TEST(Unpickle, DepthIsLimited) {
  const auto nested = [](int levels) {
    return std::string(levels, ']') + std::string(levels - 1, 'a') + ".";
  };
  EXPECT_EQ(load(nested(200)).kind(), PickleKind::kList);
  EXPECT_THAT(message_of(nested(201)), HasSubstr("more than 200 levels"));
  EXPECT_THAT(message_of(nested(200'000)), HasSubstr("more than 200 levels"));
  EXPECT_THAT(message_of("N" + std::string(200'000, '\x85') + "."),
              HasSubstr("more than 200 levels"));
  EXPECT_THAT(message_of("N" + std::string(200'000, '\x85') + "0"),
              HasSubstr("1 more bytes are promised"));
  // Deep, and thrown away before the end.
  EXPECT_THAT(message_of("N" + std::string(200'000, '\x85') + "0N."),
              HasSubstr("more than 200 levels"));
  EXPECT_EQ(load(nested(201), {.depth = 201}).kind(), PickleKind::kList);
  EXPECT_THROW(load("N.", {.depth = 1001}), UsageError);
}

TEST(Unpickle, AValueInsideItselfIsRefusedAndLeavesNothingBehind) {
  EXPECT_THAT(message_of("]q\0h\0a."s), HasSubstr("a list that holds itself"));
  EXPECT_THAT(message_of("}q\0K\x01h\0s."s), HasSubstr("a dict that holds itself"));
  EXPECT_THAT(message_of("]q\0h\0\x85"s + "a."), HasSubstr("that holds itself"));
  EXPECT_THAT(message_of("ccollections\nOrderedDict\n)Rq\0}K\x01h\0sb."s),
              HasSubstr("holds itself"));
  EXPECT_THAT(message_of("]q\0h\0a0N."s), HasSubstr("a list that holds itself"));
  EXPECT_THAT(message_of("]q\0h\0a"s), HasSubstr("1 more bytes are promised"));
}

TEST(Unpickle, LimitsNameThemselves) {
  EXPECT_THAT(message_of("Nq\x05.", {.memo = 5}), HasSubstr("more than 5 places in the memo"));
  EXPECT_THAT(message_of("X\x05\0\0\0abcde."s, {.memory_bytes = 100}),
              HasSubstr("more than 100 bytes of memory"));
}

TEST(Unpickle, TakesAPickleFromTheFrontOfOtherData) {
  const std::string data = "K\x01.K\x02.rest";
  std::span<const uint8_t> rest = as_bytes(data);
  EXPECT_EQ(unpickle_front(rest).as_int(), 1);
  EXPECT_EQ(unpickle_front(rest).as_int(), 2);
  EXPECT_EQ(std::string(rest.begin(), rest.end()), "rest");
}

/// What torch.save writes for {"w": tensor} and how a reader takes it, symbolically.
UnpickleOptions torch_like() {
  UnpickleOptions options;
  options.global = [](std::string_view module,
                      std::string_view name) -> std::optional<PickleValue> {
    if (module == "torch" || module == "torch._utils") {
      return PickleValue::global(std::string(module), std::string(name));
    }
    return std::nullopt;
  };
  options.call = [](const PickleValue& callable,
                    std::span<const PickleValue> args) -> std::optional<PickleValue> {
    if (!callable.is(PickleKind::kGlobal) || callable.as_global().name != "_rebuild_tensor_v2") {
      return std::nullopt;
    }
    return PickleValue::call(callable, {args.begin(), args.end()});
  };
  options.persistent = [](const PickleValue& id) -> std::optional<PickleValue> {
    return PickleValue::persistent(id);
  };
  return options;
}

const std::string kTorchLike =
    "\x80\x02"s + "ccollections\nOrderedDict\n)Rq\0X\x01\0\0\0w"s +
    "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"s +
    "ctorch\nFloatStorage\nX\x01\0\0\0"s +
    "0X\x03\0\0\0cpuK\x06tQK\0K\x02K\x03\x86K\x03K\x01\x86\x89"s +
    "ccollections\nOrderedDict\n)RtRs}X\x09\0\0\0_metadataccollections\nOrderedDict\n)Rsb."s;

TEST(UnpickleHandlers, BuildWhatTorchWrites) {
  const PickleValue state = load(kTorchLike, torch_like());
  const PickleCall& tensor = state.at("w").as_call();
  EXPECT_EQ(tensor.callable.as_global().name, "_rebuild_tensor_v2");
  ASSERT_EQ(tensor.args.size(), 6U);
  EXPECT_EQ(tensor.args[0].persistent_id().items()[1].as_global().name, "FloatStorage");
  EXPECT_EQ(to_text(tensor.args[2]), "(2,3)");
  EXPECT_TRUE(state.attributes().at("_metadata").is(PickleKind::kOrderedDict));
}

TEST(UnpickleHandlers, MayAnswerWithWhateverTheyLike) {
  UnpickleOptions options = torch_like();
  options.call = [](const PickleValue&,
                    std::span<const PickleValue> args) -> std::optional<PickleValue> {
    return PickleValue::opaque(
        std::vector<int64_t>{args[2].items()[0].as_int(), args[2].items()[1].as_int()});
  };
  const PickleValue state = load(kTorchLike, options);
  const auto* shape = state.at("w").if_opaque<std::vector<int64_t>>();
  ASSERT_NE(shape, nullptr);
  EXPECT_THAT(*shape, ElementsAre(2, 3));
  EXPECT_EQ(state.at("w").if_opaque<int>(), nullptr);
}

TEST(UnpickleHandlers, RefusalsNameWhatWasRefused) {
  EXPECT_THAT(message_of(kTorchLike), HasSubstr("the global torch._utils._rebuild_tensor_v2"));
  UnpickleOptions options = torch_like();
  options.call = {};
  EXPECT_THAT(message_of(kTorchLike, options),
              HasSubstr("refused: a call of global torch._utils._rebuild_tensor_v2"));
  options = torch_like();
  options.persistent = {};
  EXPECT_THAT(message_of(kTorchLike, options), HasSubstr("of the id tuple of 5"));
  EXPECT_THAT(message_of("cos\nsystem\n.", torch_like()), HasSubstr("the global os.system"));
  // A known name stays known: nobody can replace it.
  options = torch_like();
  options.global = [](std::string_view, std::string_view) -> std::optional<PickleValue> {
    return PickleValue(5);
  };
  EXPECT_EQ(to_text(load("ccollections\nOrderedDict\n)R.", options)), "O{}None");
}

TEST(UnpickleHandlers, TheirExceptionsPassThrough) {
  UnpickleOptions options = torch_like();
  options.global = [](std::string_view, std::string_view) -> std::optional<PickleValue> {
    throw std::runtime_error("mine");
  };
  EXPECT_THROW(load(kTorchLike, options), std::runtime_error);
}

TEST(UnpickleHandlers, WhatTheyReturnCountsForDepthAndCircles) {
  UnpickleOptions options = torch_like();
  options.persistent = [](const PickleValue& id) -> std::optional<PickleValue> {
    return PickleValue::persistent(id);
  };
  EXPECT_THAT(message_of("N" + std::string(100'000, 'Q') + ".", options),
              HasSubstr("more than 200 levels"));
  EXPECT_THAT(message_of("]q\0h\0Qa."s, options), HasSubstr("that holds itself"));
}

TEST(UnpickleDamage, TorchLikePicklesTruncatedAndFlipped) {
  const UnpickleOptions options = torch_like();
  const auto read = [&](const std::string& damaged) { (void)to_text(load(damaged, options)); };
  EXPECT_EQ(read_truncated(kTorchLike, read).refused, 200);
  EXPECT_GT(read_flipped(kTorchLike, read).refused, 5000);
}

TEST(PickleText, KnowsUtf8AsPythonDoes) {
  for (const std::string& good : {""s,
                                  "a"s,
                                  "\xc2\x80"s,
                                  "\xdf\xbf"s,
                                  "\xe0\xa0\x80"s,
                                  "\xed\xa0\x80"s,
                                  "\xef\xbf\xbf"s,
                                  "\xf0\x90\x80\x80"s,
                                  "\xf4\x8f\xbf\xbf"s}) {
    EXPECT_TRUE(is_utf8(good)) << to_hex(good);
    EXPECT_TRUE(is_utf8("x" + good + "y")) << to_hex(good);
  }
  for (const std::string& bad : {"\x80"s,
                                 "\xc1\xbf"s,
                                 "\xc2"s,
                                 "\xc2\x7f"s,
                                 "\xc2\xc0"s,
                                 "\xe0\x9f\xbf"s,
                                 "\xe1\x80"s,
                                 "\xe1\x80\x7f"s,
                                 "\xf0\x8f\xbf\xbf"s,
                                 "\xf4\x90\x80\x80"s,
                                 "\xf5\x80\x80\x80"s,
                                 "\xff"s}) {
    EXPECT_FALSE(is_utf8(bad)) << to_hex(bad);
    EXPECT_FALSE(is_utf8("x" + bad + "y")) << to_hex(bad);
  }
}

TEST(PickleText, Latin1ThereAndBack) {
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i) {
    all[i] = static_cast<char>(i);
  }
  EXPECT_EQ(latin1_to_utf8("\x7f\x80\xff"), "\x7f\xc2\x80\xc3\xbf");
  EXPECT_EQ(utf8_to_latin1(latin1_to_utf8(all)), all);
  EXPECT_EQ(utf8_to_latin1("\xc4\x80"), std::nullopt);  // U+0100
}

TEST(PickleValue, AccessorsNameWhatTheyExpected) {
  const PickleValue value =
      PickleValue::dict({{"n", 5}, {PickleValue::bytes("b"), PickleValue::list({1, 2.5, "text"})}});
  const auto message = [](const auto& access) -> std::string {
    try {
      access();
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([&] { (void)value.at("n").items("labels"); }),
            "[formats.pickle] \"labels\": expected a list, tuple or set, got int 5");
  EXPECT_EQ(message([&] { (void)value.as_int(); }),
            "[formats.pickle] expected an int, got dict of 2");
  EXPECT_EQ(message([&] { (void)value.at("x"); }),
            "[formats.pickle] the dict has no key 'x', among 2 that begin: 'n', 'b'");
  EXPECT_EQ(message([&] { (void)value.at("n").at("x"); }),
            "[formats.pickle] expected a dict, got int 5");
  EXPECT_EQ(value.at("b").items()[2].as_string(), "text");
  EXPECT_EQ(value.at("b").items()[0].as_float(), 1.0);
  EXPECT_EQ(value.find("x"), nullptr);
  EXPECT_THROW(PickleValue(uint64_t{1} << 63), UsageError);
  EXPECT_THROW(PickleArray::of(PickleType::kF32, {2}, std::vector<uint8_t>(7)), UsageError);
}

TEST(PickleValue, TheLastOfTwoEqualKeysCounts) {
  const PickleValue value = load("}(U\x01kK\x01U\x01kK\x02u.");
  EXPECT_EQ(value.entries().size(), 2U);
  EXPECT_EQ(value.at("k").as_int(), 2);
}

}  // namespace
}  // namespace argosy::formats
