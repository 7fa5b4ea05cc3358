#include "argosy/recipes/spec.h"

#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/settings.h"

#include "tests/support/temp_dir.h"

namespace argosy::recipes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Spec, OptionsBelongToTheNameOnTheirLeft) {
  const std::vector<Spec> specs = parse_specs(kAugment, "crop:padding=4,mode=edge, flip,erase:p=1");
  ASSERT_EQ(specs.size(), 3);
  EXPECT_EQ(to_string(specs[0]), "crop:padding=4,mode=edge");
  EXPECT_EQ(to_string(specs[1]), "flip");
  EXPECT_EQ(to_string(specs[2]), "erase:p=1");
  EXPECT_EQ(parse_spec(kOptimizers, "adam:betas=0.9/0.99").options.front().second, "0.9/0.99");
}

TEST(Spec, SaysWhichWordIsNone) {
  for (const char* text : {"", ",flip", "flip,,crop", ":p=1", "p=1,flip", "flip:p", "flip:=1"}) {
    EXPECT_THROW(static_cast<void>(parse_specs(kAugment, text)), UsageError) << text;
  }
  EXPECT_THAT([] { static_cast<void>(parse_spec(kModels, "lenet,resnet18")); },
              ThrowsMessage<UsageError>(HasSubstr("expected one model, got 2")));
}

TEST(Spec, AnUnknownNameIsAnsweredByTheNearest) {
  EXPECT_THAT(
      [] { static_cast<void>(find_entry(kModels, models(), "resnet19")); },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("unknown model \"resnet19\": nearest is resnet18"),
                                      HasSubstr("argosy train --list models"))));
}

const TableRow kRow{
    "thing",
    "of a test",
    {{"rate", "0.5", ""}, {"count", "3", ""}, {"pair", "1/2", ""}, {"on", "no", ""}}};

TEST(Values, AreThoseGivenAndTheTablesForTheRest) {
  const Values values(kModels, kRow, {{"count", "7"}, {"on", "yes"}});
  EXPECT_EQ(values.number("rate"), 0.5);
  EXPECT_EQ(values.whole("count"), 7);
  EXPECT_THAT(values.numbers("pair", 2), ::testing::ElementsAre(1, 2));
  EXPECT_TRUE(values.flag("on"));
  EXPECT_EQ(values.to_string(), "thing:rate=0.5,count=7,pair=1/2,on=yes");
}

TEST(Values, OfAnotherKindAreNamed) {
  const Values values(
      kModels, kRow, {{"rate", "nan"}, {"count", "1.5"}, {"pair", "1"}, {"on", "1"}});
  EXPECT_THAT([&] { static_cast<void>(values.number("rate")); },
              ThrowsMessage<UsageError>(HasSubstr("thing:rate: expected a number, got \"nan\"")));
  EXPECT_THROW(static_cast<void>(values.whole("count")), UsageError);
  EXPECT_THROW(static_cast<void>(values.numbers("pair", 2)), UsageError);
  EXPECT_THROW(static_cast<void>(values.flag("on")), UsageError);
  EXPECT_THAT(
      [] {
        Values(kModels, kRow, {{"cuont", "1"}});
      },
      ThrowsMessage<UsageError>(HasSubstr("nearest is count")));
}

template <typename Entry>
void expect_whole_rows(const std::vector<Entry>& table) {
  std::set<std::string> names;
  for (const Entry& entry : table) {
    EXPECT_TRUE(names.insert(entry.row.name).second) << entry.row.name << " is there twice";
    EXPECT_FALSE(entry.row.what.empty()) << entry.row.name;
    EXPECT_EQ(entry.row.name.find_first_of(" :,=/"), std::string::npos) << entry.row.name;
    for (const OptionRow& option : entry.row.options) {
      EXPECT_FALSE(option.help.empty()) << entry.row.name << ":" << option.name;
      EXPECT_EQ(option.fallback.find(','), std::string::npos) << entry.row.name;
    }
  }
  EXPECT_GT(names.size(), 5);
}

TEST(Tables, HaveRowsThatCanBeWrittenAsWords) {
  expect_whole_rows(models());
  expect_whole_rows(data_sets());
  expect_whole_rows(optimizers());
  expect_whole_rows(schedules());
  expect_whole_rows(augmentations());
}

TEST(Settings, SurviveTheWayThroughJson) {
  TrainSettings settings;
  settings.model = "lenet";
  settings.lr = 0.1 + 0.2;
  settings.num_iters = 12;
  settings.sync_bn = true;
  TrainSettings again;
  program::from_json(options_of(again), nlohmann::ordered_json::parse(to_json(settings).dump()));
  EXPECT_EQ(to_json(again), to_json(settings));
  EXPECT_EQ(*again.lr, 0.1 + 0.2);
  EXPECT_FALSE(again.clip_norm.has_value());
}

TEST(Settings, OfARunLieInItsRecipe) {
  const test::TempDir folder;
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder.path() / name) << text;
    return (folder.path() / name).string();
  };
  const std::string run = write("run.json", R"({"options": {"epochs": 1}})");
  EXPECT_EQ(read_options(run)["epochs"], 1);
  write("recipe.json", R"({"options": {"epochs": 2}})");
  EXPECT_EQ(read_options(run)["epochs"], 2);
  EXPECT_EQ(read_options(folder.path().string())["epochs"], 2);
  EXPECT_EQ(read_options(write("own.json", R"({"epochs": 3})"))["epochs"], 3);
  EXPECT_THROW(static_cast<void>(read_options(write("list.json", "[1]"))), ConfigError);
  EXPECT_THROW(static_cast<void>(read_options(run + "x")), ConfigError);
  for (const char* const text : {R"({"lr": )", R"({"lr": 1e999})", "{\"model\": \"\xff\"}", ""}) {
    const std::string wrong = write("wrong.json", text);
    EXPECT_THAT([&] { static_cast<void>(read_options(wrong)); },
                ThrowsMessage<ConfigError>(HasSubstr(wrong + ": expected a JSON object")))
        << text;
  }
}

}  // namespace
}  // namespace argosy::recipes
