#include "argosy/engine/state_dict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/engine_test_modules.h"
#include "argosy/engine/layout.h"

#include "tests/support/error_text.h"

namespace argosy::engine {
namespace {

using small_models::SmallNet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(const StateDict& dict) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : dict) {
    result.push_back(name);
  }
  return result;
}

std::string load_error(const SmallNet& net,
                       const StateDict& dict,
                       const LoadOptions& options = {}) {
  return test::error_text<CheckpointError>([&] { load_state_dict(net, dict, options); });
}

TEST(StateDict, ListsParametersAndBuffersInPyTorchsOrder) {
  EXPECT_THAT(names(state_dict(SmallNet())),
              ElementsAre("features.0.weight",
                          "features.0.bias",
                          "features.1.weight",
                          "features.1.bias",
                          "features.1.running_mean",
                          "features.1.running_var",
                          "features.1.num_batches_tracked",
                          "fc.weight",
                          "fc.bias"));
}

TEST(StateDict, SharesMemoryUntilCloned) {
  SmallNet net;
  const StateDict shared = state_dict(net), copy = shared.clone();
  {
    torch::NoGradGuard no_grad;
    net->fc->bias.fill_(7);
  }
  EXPECT_EQ(shared.at("fc.bias")[0].item<float>(), 7);
  EXPECT_NE(copy.at("fc.bias")[0].item<float>(), 7);
  EXPECT_FALSE(shared.at("fc.bias").requires_grad());
}

TEST(StateDict, SetReplacesAndKeepsThePlace) {
  StateDict dict{{"a", torch::zeros({1})}, {"b", torch::zeros({1})}};
  dict.set("a", torch::ones({2}));
  EXPECT_THAT(names(dict), ElementsAre("a", "b"));
  EXPECT_EQ(dict.at("a").numel(), 2);
  EXPECT_EQ(dict.find("c"), nullptr);
  EXPECT_THROW((void)dict.at("c"), UsageError);
}

TEST(LoadStateDict, RoundTripKeepsAddresses) {
  SmallNet from, to;
  const void* address = to->fc->weight.data_ptr();
  const LoadResult result = load_state_dict(to, state_dict(from));
  EXPECT_TRUE(result.missing.empty() && result.unexpected.empty());
  for (const auto& [name, tensor] : state_dict(from)) {
    EXPECT_TRUE(torch::equal(tensor, state_dict(to).at(name))) << name;
  }
  EXPECT_EQ(to->fc->weight.data_ptr(), address);
  EXPECT_TRUE(to->fc->weight.requires_grad());
}

TEST(LoadStateDict, ErrorNamesEveryEntryAndNothingIsCopied) {
  SmallNet net;
  StateDict dict;
  const StateDict before = state_dict(net).clone();
  for (const auto& [name, tensor] : before) {
    if (name == "fc.weight") {
      dict.set(name, torch::ones({5, 4}));
    } else if (name == "features.1.weight") {
      dict.set(name, torch::ones({4}, torch::kDouble));
    } else if (name != "features.0.bias") {
      dict.set(name, torch::ones_like(tensor));
    }
  }
  dict.set("classifier.bias", torch::ones({2}));
  const std::string error = load_error(net, dict, {.source = "weights.pt"});
  EXPECT_THAT(error, HasSubstr("[engine.load_state_dict] weights.pt: "));
  EXPECT_THAT(error, HasSubstr("missing (1): features.0.bias"));
  EXPECT_THAT(error, HasSubstr("unexpected (1): classifier.bias"));
  EXPECT_THAT(error, HasSubstr("mismatched (2)"));
  EXPECT_THAT(error, HasSubstr("features.1.weight: expected [4] Float, got [4] Double"));
  EXPECT_THAT(error, HasSubstr("fc.weight: expected [2, 4] Float, got [5, 4] Float"));
  for (const auto& [name, tensor] : before) {
    EXPECT_TRUE(torch::equal(tensor, state_dict(net).at(name))) << name;
  }
}

TEST(LoadStateDict, WithoutAPathTheMessageStartsWithTheFault) {
  EXPECT_THAT(load_error(SmallNet(), {}), HasSubstr("[engine.load_state_dict] the entries do not"));
}

TEST(LoadStateDict, NotStrictLoadsWhatFitsAndReportsTheRest) {
  SmallNet net;
  const LoadResult result = load_state_dict(
      net, {{"fc.bias", torch::full({2}, 3.0)}, {"other", torch::ones({1})}}, {.strict = false});
  EXPECT_EQ(result.missing.size(), 8U);
  EXPECT_THAT(result.unexpected, ElementsAre("other"));
  EXPECT_EQ(net->fc->bias[1].item<float>(), 3);
  EXPECT_THAT(load_error(net, {{"fc.bias", torch::ones({3})}}, {.strict = false}),
              HasSubstr("fc.bias: expected [2] Float, got [3] Float"));
}

TEST(LoadStateDict, ConvertsFloatingTypesWhenAsked) {
  SmallNet net;
  const StateDict dict{{"fc.bias", torch::full({2}, 3.0, torch::kBFloat16)}};
  EXPECT_THAT(load_error(net, dict, {.strict = false}), HasSubstr("got [2] BFloat16"));
  load_state_dict(net, dict, {.strict = false, .convert_dtype = true});
  EXPECT_EQ(net->fc->bias[0].item<float>(), 3);
}

TEST(LoadStateDict, PartialLoadsWhatFitsByNameAndShapeAndReportsTheRest) {
  SmallNet from, to;
  StateDict dict = state_dict(from).clone();
  dict.set("fc.weight", torch::ones({5, 4}));
  dict.set("features.1.weight", torch::ones({4}, torch::kDouble));
  dict.set("head.bias", torch::ones({5}));
  const StateDict before = state_dict(to).clone();
  StateDict without;
  for (const auto& [name, tensor] : dict) {
    if (name != "fc.bias") {
      without.set(name, tensor);
    }
  }
  const LoadResult result = load_state_dict(to, without, {.partial = true});
  EXPECT_THAT(result.loaded,
              ElementsAre("features.0.weight",
                          "features.0.bias",
                          "features.1.bias",
                          "features.1.running_mean",
                          "features.1.running_var",
                          "features.1.num_batches_tracked"));
  for (const std::string& name : result.loaded) {
    EXPECT_TRUE(torch::equal(state_dict(to).at(name), dict.at(name))) << name;
  }
  for (const char* name : {"fc.weight", "fc.bias", "features.1.weight"}) {
    EXPECT_TRUE(torch::equal(state_dict(to).at(name), before.at(name))) << name;
  }
  EXPECT_EQ(result.to_string(),
            "loaded 6 of 9 entries of the module; left alone:\n"
            "entry              why          module            file\n"
            "features.1.weight  other type   [4] Float         [4] Double\n"
            "fc.weight          other shape  [2, 4] Float      [5, 4] Float\n"
            "fc.bias            missing      keeps its values\n"
            "head.bias          unexpected                     not used\n");
}

TEST(LoadStateDict, AWholeLoadSaysSo) {
  EXPECT_EQ(load_state_dict(SmallNet(), state_dict(SmallNet())).to_string(),
            "loaded 9 of 9 entries of the module\n");
}

TEST(LoadStateDict, PartialIsAnErrorWhenNothingFits) {
  const std::string error =
      load_error(SmallNet(), {{"fc.bias", torch::ones({3})}}, {.partial = true});
  EXPECT_THAT(error, HasSubstr("no entry fits the module by name, shape and type:"));
  EXPECT_THAT(error, HasSubstr("fc.bias: expected [2] Float, got [3] Float"));
  EXPECT_THAT(error, Not(HasSubstr("set .")));
  EXPECT_THAT(load_error(SmallNet(), {}, {.partial = true}), HasSubstr("missing (9)"));
}

TEST(LoadStateDict, KnowsTheNamesOfAWrappedModule) {
  StateDict wrapped;
  for (const auto& [name, tensor] : state_dict(SmallNet())) {
    wrapped.set("module." + name, tensor);
  }
  for (const bool partial : {false, true}) {
    EXPECT_THAT(load_error(SmallNet(), wrapped, {.partial = partial}),
                HasSubstr("read the file with .strip_prefix = \"module.\""));
  }
  EXPECT_THAT(load_error(SmallNet(), wrapped, {.advice = "Ask them."}),
              HasSubstr("--strip_prefix module."));
  EXPECT_THAT(load_error(SmallNet(), {}, {.advice = "Ask them."}), HasSubstr("Ask them."));
}

TEST(LoadStateDict, TheErrorNamesThePartialLoad) {
  EXPECT_THAT(load_error(SmallNet(), {{"fc.bias", torch::ones({3})}}, {.strict = false}),
              HasSubstr("or set .partial = true to load what fits."));
  EXPECT_THAT(load_error(SmallNet(), {}), HasSubstr("or set .strict = false to load what fits."));
}

TEST(NamedParameters, TakesEverythingThatHasThem) {
  SmallNet net;
  struct Wrapper {
    SmallNet inner;
    [[nodiscard]] auto named_parameters() const { return inner->named_parameters(); }
  };
  const std::shared_ptr<small_models::SmallNetImpl> pointer = net.ptr();
  const NamedTensors list = named_parameters(net);
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(list[0].first, "features.0.weight");
  EXPECT_TRUE(list[0].second.is_same(net->named_parameters()["features.0.weight"]));
  for (const NamedTensors& other : {named_parameters(*net),
                                    named_parameters(pointer),
                                    named_parameters(Wrapper{net}),
                                    named_parameters(torch::nn::AnyModule(net)),
                                    named_parameters(net->named_parameters()),
                                    named_parameters(list)}) {
    ASSERT_EQ(other.size(), list.size());
    EXPECT_TRUE(other[5].second.is_same(list[5].second));
  }
}

TEST(Layout, ComparesStorageOrder) {
  const torch::Tensor plain = torch::rand({2, 3, 4, 5});
  const torch::Tensor last = plain.contiguous(torch::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(same_storage_order(last, last.clone()));
  EXPECT_FALSE(same_storage_order(last, plain));
  EXPECT_TRUE(is_dense(plain.transpose(0, 1)));
  EXPECT_FALSE(is_dense(plain.slice(1, 0, 2)));
  EXPECT_FALSE(is_dense(torch::ones({1}).expand({4})));
  const torch::Tensor one = torch::rand({4, 1, 1, 1});  // strides of dims of one say nothing
  EXPECT_TRUE(same_storage_order(one, one.contiguous(torch::MemoryFormat::ChannelsLast)));
}

TEST(Layout, ChannelsLastKeepsValuesAndIdentity) {
  SmallNet net;
  const torch::Tensor before = net->named_parameters()["features.0.weight"].detach().clone();
  to_channels_last(net);
  const torch::Tensor after = net->named_parameters()["features.0.weight"];
  EXPECT_TRUE(after.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::equal(before, after));
  EXPECT_TRUE(after.requires_grad() && after.is_leaf());
}

}  // namespace
}  // namespace argosy::engine
