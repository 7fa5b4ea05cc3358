#include "argosy/train/callbacks/sample_sheet.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/data/cache.h"
#include "argosy/data/subset.h"
#include "argosy/image/codec.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

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
  FitOptions options{.verbose = 0, .callbacks = {told}, .class_names = given};
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

/// The sheet with these captions.
image::Image captioned(const Names& captions, int side) {
  std::vector<datasets::Tile> tiles;
  for (std::size_t i = 0; i < captions.size(); ++i) {
    image::Image picture({.height = 4, .width = 4}, image::Order::kGray);
    std::memset(picture.data(), i % 2 == 0 ? 255 : 0, picture.total_bytes());
    tiles.push_back({.picture = std::move(picture),
                     .caption = captions[i],
                     .mark = i % 2 == 0 ? datasets::Colour{.red = 40, .green = 160, .blue = 70}
                                        : datasets::Colour{.red = 210, .green = 50, .blue = 50}});
  }
  return datasets::contact_sheet(tiles, {.columns = 4, .side = side});
}

void expect_same(const image::Image& is, const image::Image& expected) {
  ASSERT_EQ(is.width(), expected.width());
  ASSERT_EQ(is.height(), expected.height());
  EXPECT_TRUE(std::equal(is.data(), is.data() + is.total_bytes(), expected.data()));
}

TEST(SampleSheet, OfARunSaysTheClassesNames) {
  const test::TempDir folder;
  const auto sheet_of = [&](const char* name, const auto& set, const Names& given) {
    const std::string run = (folder.path() / name).string();
    constant().fit(set, set, {.batch_size = 4, .verbose = 0, .class_names = given, .run_dir = run});
    return image::decode_file(run + "/samples/epoch 1.png");
  };
  run_job(1, [&](int) {
    Names captions;
    Names numbers;
    Names of_one;
    for (int i = 0; i < 4; ++i) {
      captions.insert(captions.end(), {"light", "dark, said light"});
      numbers.insert(numbers.end(), {"0", "1, said 0"});
      of_one.insert(of_one.end(), {"only", "1, said only"});
    }
    expect_same(sheet_of("named", NamedShades(), {}), captioned(captions, 144));
    expect_same(sheet_of("numbered", Shades(), {}), captioned(numbers, 96));
    expect_same(sheet_of("short", Shades(), {"only"}), captioned(of_one, 144));
  });
}

TEST(SampleSheet, NamesThatDoNotFitBesideEachOtherAreBothSeen) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    NamedShades set;
    set.names = {"hard-leaved pocket orchid", "globe-flower of the alps"};
    const std::string run = (folder.path() / "run").string();
    constant().fit(set, set, {.batch_size = 4, .verbose = 0, .run_dir = run});
    const image::Image sheet = image::decode_file(run + "/samples/epoch 1.png");
    const Names cut = {"hard-leaved pocket orchid",
                       datasets::fitting_text(set.names[1], 44) + ", said " +
                           datasets::fitting_text(set.names[0], 44)};
    Names captions;
    for (int i = 0; i < 4; ++i) {
      captions.insert(captions.end(), cut.begin(), cut.end());
    }
    expect_same(sheet, captioned(captions, 144));
  });
}

}  // namespace
}  // namespace argosy::train
