#include "argosy/train/callbacks/eval_samples.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/data/cache.h"
#include "argosy/data/subset.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::run_job;
using Names = std::vector<std::string>;

/// Gray pictures of two classes, one light, one dark.
struct Shades {
  [[nodiscard]] int64_t size() const { return 8; }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get(int64_t i) const {
    return {torch::full({1, 4, 4}, i % 2 == 0 ? 1.0F : -1.0F), torch::tensor(i % 2)};
  }
};
struct NamedShades : Shades {
  [[nodiscard]] const Names& classes() const { return names; }
  Names names = {"light", "dark"};
};

/// Says always the same.
struct ConstantImpl : torch::nn::Module {
  ConstantImpl() { bias = register_parameter("bias", torch::tensor({1.0F, 0.0F})); }
  at::Tensor forward(const at::Tensor& images) { return bias.expand({images.size(0), 2}); }
  at::Tensor bias{};
};
TORCH_MODULE(Constant);

Model constant() {
  const Constant net;
  Model model(net);
  model.prepare(optim::SGD(net, {.lr = 0}), loss::CrossEntropy());
  return model;
}

struct Told : Callback {
  Names names{};
  void on_train_begin(const Training& training) override { names = training.class_names; }
};

template <typename Train, typename... Eval>
Names names_in_fit(const Names& given, Train&& train, Eval&&... eval) {
  const auto told = std::make_shared<Told>();
  FitOptions options{.callbacks = {told}, .log = {.verbose = 0, .class_names = given}};
  constant().fit(std::forward<Train>(train), std::forward<Eval>(eval)..., options);
  return told->names;
}

TEST(ClassNames, AreTheDataSetsUnlessTheUserSaysOthers) {
  run_job(1, [](int) {
    EXPECT_THAT(names_in_fit({}, Shades()), IsEmpty());
    EXPECT_THAT(names_in_fit({}, NamedShades()), ElementsAre("light", "dark"));
    EXPECT_THAT(names_in_fit({}, NamedShades(), Shades()), ElementsAre("light", "dark"));
    NamedShades other;
    other.names = {"day", "night"};
    EXPECT_THAT(names_in_fit({}, NamedShades(), other), ElementsAre("day", "night"))
        << "the pictures are those of evaluations";
    EXPECT_THAT(names_in_fit({"a", "b"}, NamedShades()), ElementsAre("a", "b"));
    EXPECT_THAT(names_in_fit({}, data::Subset(data::Cache(NamedShades()), {0, 3, 5})),
                ElementsAre("light", "dark"));
    const NamedShades set;
    data::DataLoader loader(set, fleet::distributed_batch_sampler(8, {.batch_size = 2}));
    EXPECT_THAT(names_in_fit({}, loader), ElementsAre("light", "dark"));
  });
}

TEST(EvalSamples, OfARunHaveTheClassesNames) {
  const test::TempDir folder;
  const auto captions_of = [&](const char* name, const auto& set, const Names& given) {
    const std::string run = (folder.path() / name).string();
    constant().fit(
        set, set, {.batch_size = 4, .run_dir = run, .log = {.verbose = 0, .class_names = given}});
    std::ifstream file(run + "/samples/epoch 1.json");
    Names captions;
    for (const auto& picture : nlohmann::json::parse(file)) {
      captions.push_back(fmt::format("{} {}",
                                     picture.at("mark") == 1 ? "right" : "wrong",
                                     picture.at("caption").get<std::string>()));
    }
    EXPECT_EQ(captions.size(), 8U);
    captions.resize(2);
    return captions;
  };
  run_job(1, [&](int) {
    EXPECT_THAT(captions_of("named", NamedShades(), {}),
                ElementsAre("right light", "wrong dark, said light"));
    EXPECT_THAT(captions_of("numbered", Shades(), {}), ElementsAre("right 0", "wrong 1, said 0"));
    EXPECT_THAT(captions_of("short", Shades(), {"only"}),
                ElementsAre("right only", "wrong 1, said only"));
  });
}

TEST(EvalSamples, ACaptionStaysInItsCellOfTheTable) {
  run_job(1, [](int) {
    detail::EvalSamples samples{2};
    samples.set_class_names({"cat | dog\nor <b>&\\", "**d**"});
    Model model = constant();
    const Tensors inputs{torch::ones({2, 1, 4, 4})};
    const Tensors outputs{torch::tensor({{1.0F, 0.0F}, {1.0F, 0.0F}})};
    const Tensors labels{torch::tensor({0, 1})};
    samples.add({.model = model, .inputs = inputs, .outputs = outputs, .labels = labels});
    EXPECT_EQ(samples.table(),
              "| picture | what it is |\n|---|---|\n"
              "| 1 | cat &#124; dog or &#60;b&#62;&#38;&#92; |\n"
              "| 2 | &#42;&#42;d&#42;&#42;, said cat &#124; dog or &#60;b&#62;&#38;&#92; |\n");
  });
}

TEST(EvalSamples, GridFramesWhatIsRightAndWhatIsWrong) {
  run_job(1, [&](int) {
    struct Keep : Callback {
      detail::EvalSamples samples{6};
      void on_eval_batch_end(const EvalStep& step) override { samples.add(step); }
    };
    const auto keep = std::make_shared<Keep>();
    constant().fit(
        Shades(), Shades(), {.batch_size = 4, .callbacks = {keep}, .log = {.verbose = 0}});
    const image::Image grid = keep->samples.grid();
    EXPECT_EQ(grid.size(), (image::Size{.height = 2 * 8, .width = 4 * 8}));
    const auto pixel = [&](int y, int x) {
      const auto* p = grid.row<uint8_t>(y) + 3 * x;
      return std::vector<int>{p[0], p[1], p[2]};
    };
    EXPECT_THAT(pixel(0, 0), ElementsAre(40, 160, 70));
    EXPECT_THAT(pixel(2, 2), ElementsAre(255, 255, 255));  // light
    EXPECT_THAT(pixel(1, 9), ElementsAre(210, 50, 50));
    EXPECT_THAT(pixel(5, 13), ElementsAre(0, 0, 0));        // dark
    EXPECT_THAT(pixel(8, 31), ElementsAre(255, 255, 255));  // there is no eighth
    EXPECT_THAT(keep->samples.table(), ::testing::HasSubstr("| 2 | 1, said 0 |"));
  });
}

}  // namespace
}  // namespace argosy::train
