#include "argosy/recipes/run.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/datasets/pack.h"
#include "argosy/datasets/row.h"
#include "argosy/datasets/sets.h"
#include "argosy/engine/cpu.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/recipes_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ARun : public ::testing::Test {
 protected:
  ARun() { testing::write_classes(folder_.path() / "pictures", 12); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] TrainSettings settings() const {
    TrainSettings settings;
    settings.model = "lenet";
    settings.data = "folder:" + path("pictures") + ",holdout=0.25";
    settings.epochs = 3;
    settings.batch_size = 9;
    settings.augment = "crop:padding=1";
    settings.num_workers = 1;
    settings.verbose = 0;
    settings.run_dir = path("run");
    return settings;
  }
  [[nodiscard]] static Json in_job(int ranks, const std::function<Json()>& fn) {
    return testing::in_job(ranks, {}, fn);
  }

  test::TempDir folder_;
};

TEST_F(ARun, LearnsIsEvaluatedAndPredicts) {
  const Json trained = in_job(1, [&] { return train(settings()); });
  EXPECT_EQ(trained["ended"], "finished");
  EXPECT_EQ(trained["steps"], 9);
  EXPECT_EQ(trained["epochs"].size(), 3);
  EXPECT_EQ(trained["weights"], path("run/model.pt"));

  EvaluateSettings evaluation{.weights = path("run")};
  const Json evaluated = in_job(1, [&] { return evaluate(evaluation); });
  EXPECT_EQ(evaluated["split"], "valid");
  EvaluateSettings one_batch = evaluation;
  one_batch.num_iters = 1;
  one_batch.batch_size = 2;
  EXPECT_LT(2, evaluated["samples"].get<int64_t>());
  EXPECT_EQ(in_job(1, [&] { return evaluate(one_batch); })["samples"], 2);
  EXPECT_NEAR(evaluated["result"]["loss"].get<double>(),
              trained["result"]["eval_loss"].get<double>(),
              1e-6);

  PredictSettings prediction;
  prediction.weights = path("run");
  prediction.out = path("out.csv");
  prediction.sheet = path("sheet.html");
  const Json predicted = in_job(1, [&] { return predict(prediction, {}); });
  EXPECT_NEAR(predicted["right"].get<double>() / predicted["samples"].get<double>(),
              evaluated["result"]["acc"].get<double>(),
              1e-9);
  EXPECT_THAT(text_of(path("out.csv")), HasSubstr("index,name,label,predicted,probability\n0,"));
  EXPECT_THAT(text_of(path("sheet.html")), HasSubstr("<figure"));
}

TEST_F(ARun, LearnsSeveralClassesOfAPicture) {
  testing::write_voc2012(path("VOCtrainval_11-May-2012.tar"), 12);
  TrainSettings tags = settings();
  tags.data = "voc2012:" + path("VOCtrainval_11-May-2012.tar");
  tags.augment = "none";
  tags.epochs = 6;
  tags.batch_size = 6;
  const Json trained = in_job(1, [&] { return train(tags); });
  EXPECT_EQ(trained["ended"], "finished");
  EXPECT_LT(trained["result"]["loss"].get<double>(), 0.5);  // untrained: log(2) = 0.69
  const Json evaluated =
      in_job(1, [&] { return evaluate(EvaluateSettings{.weights = path("run")}); });
  EXPECT_NEAR(evaluated["result"]["loss"].get<double>(),
              trained["result"]["eval_loss"].get<double>(),
              1e-6);
  PredictSettings prediction;
  prediction.weights = path("run");
  prediction.out = path("out.csv");
  const Json predicted = in_job(1, [&] { return predict(prediction, {}); });
  EXPECT_EQ(predicted["samples"], 6);
  // Picture 0 of 6 is an aeroplane and has a person; each class has a probability of its own.
  EXPECT_THAT(text_of(path("out.csv")), HasSubstr("JPEGImages/000012.jpg,aeroplane;person,"));
  prediction.out = path("own.jsonl");
  prediction.topk = 20;
  const auto sum_of = [&](const std::vector<std::string>& pictures) {
    (void)in_job(1, [&] { return predict(prediction, pictures); });
    std::ifstream lines(prediction.out);
    std::string line;
    std::getline(lines, line);
    double sum = 0;
    for (const auto& guess : Json::parse(line)["predicted"]) {
      sum += guess["probability"].get<double>();
    }
    return sum;
  };
  EXPECT_GT(std::abs(sum_of({}) - 1), 0.01) << "probabilities of one class among many";
  image::write_file(path("own.png"), image::encode_png(testing::bar(0, 12)));
  EXPECT_GT(std::abs(sum_of({path("own.png")}) - 1), 0.01);
}

TEST_F(ARun, LearnsSeveralClassesOfPackedPictures) {
  testing::write_voc2012(path("VOCtrainval_11-May-2012.tar"), 12);
  datasets::pack(*datasets::open("voc2012", {.path = path("VOCtrainval_11-May-2012.tar")}),
                 path("voc.rec"));
  TrainSettings tags = settings();
  tags.data = "records:" + path("voc.rec");
  tags.augment = "none";
  tags.epochs = 1;
  const Json trained = in_job(1, [&] { return train(tags); });
  EXPECT_EQ(trained["ended"], "finished");
  EXPECT_LT(trained["result"]["eval_loss"].get<double>(), 1) << "a mean over the classes";
}

TEST_F(ARun, PixelsAreNormalizedAsTheyWereLearned) {
  TrainSettings own = settings();
  own.data += ",mean=0.9,std=0.1";
  const Json trained = in_job(1, [&] { return train(own); });
  EvaluateSettings evaluation{.weights = path("run"), .data = settings().data};
  const Json evaluated = in_job(1, [&] { return evaluate(evaluation); });
  EXPECT_NEAR(evaluated["result"]["loss"].get<double>(),
              trained["result"]["eval_loss"].get<double>(),
              1e-6);
}

TEST_F(ARun, LeavesTheWeightsOfAnotherThatEndedInItsFolder) {
  TrainSettings own = settings();
  own.data += ",mean=0.9,std=0.1";
  const Json first = in_job(1, [&] { return train(own); });
  TrainSettings other = settings();
  other.seed = 99;
  const Json second = in_job(1, [&] { return train(other); });
  const auto hash_of = [&](const std::string& file) {
    return checkpoint::weights_hash(checkpoint::read_weights(path("run/" + file)));
  };
  EXPECT_EQ(hash_of("earlier-1/model.pt"), first["weights_hash"]);
  EXPECT_EQ(hash_of("model.pt"), second["weights_hash"]);
  EXPECT_NE(first["weights_hash"], second["weights_hash"]);
  const EvaluateSettings evaluation{.weights = path("run/earlier-1/model.pt")};
  const Json evaluated = in_job(1, [&] { return evaluate(evaluation); });
  EXPECT_NEAR(
      evaluated["result"]["loss"].get<double>(), first["result"]["eval_loss"].get<double>(), 1e-6)
      << "with the pixels' constants of its own training";
}

TEST_F(ARun, TwoProcessesSeeWhatOneDoes) {
  TrainSettings one = settings();
  one.batch_size = 8;
  one.augment = "none";
  one.data += ",limit=24";  // an even number: two processes share it without a rest
  TrainSettings half = one;
  half.batch_size = 4;
  half.run_dir = path("half");
  const Json alone = in_job(1, [&] { return train(one); });
  const Json both = in_job(2, [&] { return train(half); });
  EXPECT_EQ(both["processes"], 2);
  EXPECT_EQ(both["steps"], alone["steps"]);
  for (const auto& [name, value] : alone["result"].items()) {
    EXPECT_NEAR(both["result"][name].get<double>(), value.get<double>(), 1e-4) << name;
  }
  EvaluateSettings evaluation{.weights = path("run")};
  const Json once = in_job(1, [&] { return evaluate(evaluation); });
  const Json twice = in_job(2, [&] { return evaluate(evaluation); });
  EXPECT_EQ(once["result"]["acc"], twice["result"]["acc"]);
  EXPECT_NEAR(once["result"]["loss"].get<double>(), twice["result"]["loss"].get<double>(), 1e-6);
}

TEST_F(ARun, IsRepeatedToTheBitByWhatItStored) {
  TrainSettings first = settings();
  first.schedule = "cosine";
  first.warmup = 2;
  first.ema = 0.9;
  const Json once = in_job(1, [&] { return train(first); });
  TrainSettings again;
  program::from_json(options_of(again), read_options(path("run/recipe.json")));
  again.run_dir = path("again");
  const Json twice = in_job(1, [&] { return train(again); });
  EXPECT_EQ(once["weights_hash"], twice["weights_hash"]);
  EXPECT_EQ(once["epochs"], twice["epochs"]);
  again.seed = 2;
  EXPECT_NE(in_job(1, [&] { return train(again); })["weights_hash"], once["weights_hash"]);
}

TEST_F(ARun, AStageOutOfAFileGoesWithItsMesh) {
  // Recipes of before said 3 where nothing was divided.
  std::ofstream(path("recipe.json")) << R"({"options": {"sharding_stage": 3}})";
  std::ofstream(path("divided.json")) << R"({"options": {"mesh": "sharding=2",
    "sharding_stage": 2}})";
  std::ofstream(path("written.json")) << R"({"mesh": "dp=8", "sharding_stage": 3})";
  const auto stage_of = [&](std::vector<std::string> words, const char* file = "recipe.json") {
    TrainSettings read;
    words.insert(words.end(), {"--config", path(file)});
    EXPECT_FALSE(parse_with_config({.what = "", .name = ""}, options_of(read), words, read));
    return read.sharding_stage;
  };
  EXPECT_EQ(stage_of({}), std::nullopt);
  EXPECT_EQ(stage_of({"--mesh", "dp=2"}), std::nullopt);
  EXPECT_EQ(stage_of({"--mesh", "sharding=2"}), std::nullopt);
  EXPECT_EQ(stage_of({}, "divided.json"), 2);
  EXPECT_EQ(stage_of({"--mesh", "sharding=4"}, "divided.json"), 2);
  EXPECT_EQ(stage_of({"--mesh", "dp=2"}, "divided.json"), std::nullopt);
  EXPECT_EQ(stage_of({}, "written.json"), 3) << "somebody wants what that mesh does not do";
  EXPECT_EQ(stage_of({"--sharding_stage", "2"}), 2);  // which is about an axis that is not there
}

TEST_F(ARun, TheSeedDrawsOrderAndAugmentationToo) {
  const Json first = in_job(1, [&] { return train(settings()); });
  TrainSettings from_there = settings();
  from_there.pretrained = path("run/model.pt");
  from_there.epochs = 1;
  from_there.run_dir = "none";
  const Json once = in_job(1, [&] { return train(from_there); });
  EXPECT_EQ(in_job(1, [&] { return train(from_there); })["weights_hash"], once["weights_hash"]);
  from_there.seed = 2;
  EXPECT_NE(in_job(1, [&] { return train(from_there); })["weights_hash"], once["weights_hash"]);
}

TEST_F(ARun, GoesOnToTheBitWhereItWasCut) {
  TrainSettings whole = settings();
  whole.schedule = "cosine";
  whole.ema = 0.9;
  const Json uncut = in_job(1, [&] { return train(whole); });
  TrainSettings cut = whole;
  cut.run_dir = path("cut");
  cut.num_iters = 4;
  cut.save_freq = 1;
  static_cast<void>(in_job(1, [&] { return train(cut); }));
  cut.num_iters.reset();
  cut.resume = "must";
  const Json resumed = in_job(1, [&] { return train(cut); });
  EXPECT_EQ(resumed["steps"], uncut["steps"]);
  EXPECT_EQ(resumed["weights_hash"], uncut["weights_hash"]);
}

TEST_F(ARun, InFloat16IsForDevicesThatCanAndSaysSo) {
  TrainSettings half = settings();
  half.amp = "float16";
  const std::string error =
      test::error_text<std::exception>([&] { (void)in_job(1, [&] { return train(half); }); });
  EXPECT_NE(error.find("amp.dtype Half: the device cpu cannot compute in it"), std::string::npos)
      << error;
}

TEST_F(ARun, ComputesInBfloat16WhereItIsToldAndIsEvaluatedAlike) {
  TrainSettings half = settings();
  half.amp = "bfloat16";
  const Json trained = in_job(1, [&] { return train(half); });
  EXPECT_EQ(read_options(path("run"))["amp"], "bfloat16") << "stored with the run";
  TrainSettings full = settings();
  full.run_dir = path("full");
  EXPECT_NE(in_job(1, [&] { return train(full); })["weights_hash"], trained["weights_hash"]);

  EvaluateSettings evaluation{.weights = path("run")};
  const Json alike = in_job(1, [&] { return evaluate(evaluation); });
  EXPECT_EQ(alike["amp"], "bfloat16");
  // In batches of another size, which matters where each addition is rounded to 16 bits.
  EXPECT_NEAR(alike["result"]["loss"].get<double>(),
              trained["result"]["eval_loss"].get<double>(),
              engine::bf16_products_lose_bits() ? 1e-3 : 1e-6);
  evaluation.amp = "off";
  const Json otherwise = in_job(1, [&] { return evaluate(evaluation); });
  EXPECT_NE(otherwise["result"]["loss"], alike["result"]["loss"]);

  PredictSettings prediction;
  prediction.weights = path("run");
  prediction.out = path("half.csv");
  static_cast<void>(in_job(1, [&] { return predict(prediction, {}); }));
  prediction.amp = "off";
  prediction.out = path("full.csv");
  static_cast<void>(in_job(1, [&] { return predict(prediction, {}); }));
  EXPECT_NE(text_of(path("half.csv")), text_of(path("full.csv")));

  TrainSettings none;
  EXPECT_THAT(
      [&] {
        program::from_json(options_of(none), {{"amp", "int8"}});
      },
      ::testing::ThrowsMessage<UsageError>(HasSubstr("--amp")));
}

TEST_F(ARun, OfVirtualRanksGoesOnWithAnyNumberOfProcesses) {
  TrainSettings whole = settings();
  whole.virtual_ranks = 3;
  whole.batch_size = 3;
  whole.schedule = "cosine";  // whose length is that of the virtual ranks' updates
  const Json expected = in_job(3, [&] { return train(whole); });
  TrainSettings part = whole;
  part.run_dir = path("parts");
  part.resume = "auto";
  part.num_iters = 2;
  static_cast<void>(in_job(2, [&] { return train(part); }));
  part.virtual_ranks = 0;
  part.num_iters.reset();
  const Json resumed = in_job(1, [&] {
    ::testing::internal::CaptureStderr();
    Json result = train(part);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::Not(HasSubstr("changed options")));
    return result;
  });
  EXPECT_EQ(resumed["steps"], expected["steps"]);
  EXPECT_EQ(resumed["weights_hash"], expected["weights_hash"]);
  EXPECT_EQ(resumed["result"], expected["result"]);
  EXPECT_EQ(Json::parse(text_of(path("parts/recipe.json")))["options"]["virtual_ranks"], 3);
}

TEST_F(ARun, NobodyIsToldOfVirtualRanksWhoHasNotAskedForThem) {
  TrainSettings part = settings();
  part.resume = "auto";
  part.num_iters = 1;
  static_cast<void>(in_job(1, [&] { return train(part); }));
  part.num_iters.reset();
  static_cast<void>(in_job(1, [&] {
    ::testing::internal::CaptureStderr();
    Json result = train(part);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(HasSubstr("virtual")));
    return result;
  }));
}

TEST_F(ARun, WhatCannotBeResumedDoesNotChangeTheDescription) {
  TrainSettings other = settings();
  other.model = "digit_net";  // of pictures alike
  other.resume = "must";
  const auto refused = [&] {
    return in_job(1, [&] {
      EXPECT_THROW(static_cast<void>(train(other)), CheckpointError);
      return Json();
    });
  };
  static_cast<void>(refused());
  EXPECT_FALSE(std::filesystem::exists(path("run/recipe.json"))) << "of a training that never was";
  static_cast<void>(in_job(1, [&] { return train(settings()); }));
  const std::string before = text_of(path("run/recipe.json"));
  EXPECT_THAT(before, HasSubstr("lenet"));
  static_cast<void>(refused());  // its weights are of another model
  EXPECT_EQ(text_of(path("run/recipe.json")), before);
}

TEST_F(ARun, PredictsPicturesWhereTheDataIsGone) {
  static_cast<void>(in_job(1, [&] { return train(settings()); }));
  std::filesystem::rename(path("pictures/b/3.png"), path("one.png"));
  std::filesystem::remove_all(path("pictures"));
  PredictSettings prediction;
  prediction.weights = path("run");
  prediction.out = path("out.jsonl");
  prediction.topk = 2;
  const Json predicted = in_job(1, [&] { return predict(prediction, {path("one.png")}); });
  EXPECT_EQ(predicted["samples"], 1);
  const Json line = Json::parse(text_of(path("out.jsonl")));
  EXPECT_EQ(line["predicted"].size(), 2);
  EXPECT_FALSE(line.contains("label"));
}

TEST_F(ARun, WhereNothingIsLeftToDoKeepsWhatItStored) {
  TrainSettings again = settings();
  const Json once = in_job(1, [&] { return train(again); });
  const std::string recipe = text_of(path("run/recipe.json"));
  const std::string run = text_of(path("run/run.json"));
  again.data += ",mean=0.9";
  again.resume = "auto";
  EXPECT_EQ(in_job(1, [&] { return train(again); })["weights_hash"], once["weights_hash"]);
  EXPECT_EQ(text_of(path("run/recipe.json")), recipe);
  EXPECT_EQ(text_of(path("run/run.json")), run);
}

TEST_F(ARun, WhereNothingIsLeftToDoItsRecordIsPutRight) {
  TrainSettings told = settings();
  told.save_freq = 2;
  (void)in_job(1, [&] { return train(told); });
  told.resume = "auto";
  Json run = Json::parse(text_of(path("run/run.json")));
  const auto state_after = [&](const char* state, const Json& exit_code) {
    run["state"] = state;
    run["exit_code"] = exit_code;
    std::ofstream(path("run/run.json")) << run.dump();
    (void)in_job(1, [&] { return train(told); });
    return Json::parse(text_of(path("run/run.json")))["state"];
  };
  EXPECT_EQ(state_after("running", nullptr), "finished") << "killed after its last checkpoint";
  EXPECT_EQ(state_after("failed", nullptr), "finished");
  EXPECT_EQ(state_after("stopped", 75), "finished") << "a signal at its last update";
  EXPECT_EQ(state_after("stopped", nullptr), "stopped") << "as it was asked to";
}

TEST_F(ARun, KeepsWhatItWasToldOtherwiseOnItsWay) {
  TrainSettings told = settings();
  told.lr = 0.02;
  told.num_iters = 2;
  (void)in_job(1, [&] { return train(told); });
  told.lr = 0.5;
  told.label_smoothing = 0.1;
  told.resume = "must";
  told.num_iters = 4;
  (void)in_job(1, [&] { return train(told); });
  for (const int64_t until : {6, 7}) {  // the same command, again and again
    told.num_iters = until;
    (void)in_job(1, [&] { return train(told); });
  }
  told.label_smoothing = 0.2;
  told.num_iters.reset();
  (void)in_job(1, [&] { return train(told); });
  const Json recipe = Json::parse(text_of(path("run/recipe.json")));
  EXPECT_EQ(recipe["options"]["lr"], 0.02);
  ASSERT_EQ(recipe["changes"].size(), 3);
  EXPECT_EQ(recipe["changes"][0],
            "after step 2: --lr 0.5 (was 0.02), --label_smoothing 0.1 (was 0.0)");
  EXPECT_EQ(recipe["changes"][1], "after step 4: --lr 0.5 (was 0.02)");
  EXPECT_EQ(recipe["changes"][2],
            "after step 7: --lr 0.5 (was 0.02), --label_smoothing 0.2 (was 0.1)");
}

TEST_F(ARun, GoesOnWithoutItsRecipeAndRefusesToLoseItsSchedule) {
  TrainSettings told = settings();
  told.schedule = "cosine";
  told.num_iters = 2;
  (void)in_job(1, [&] { return train(told); });
  std::ofstream(path("run/recipe.json")) << "{";
  told.num_iters.reset();
  told.resume = "must";
  EXPECT_EQ(in_job(1, [&] { return train(told); })["steps"], 9);
  EXPECT_EQ(Json::parse(text_of(path("run/recipe.json")))["options"]["schedule"], "cosine");
  told.schedule = "constant";
  told.epochs = 4;
  EXPECT_THAT([&] { (void)in_job(1, [&] { return train(told); }); },
              ::testing::ThrowsMessage<std::exception>(HasSubstr("has a schedule (Cosine")));
}

TEST(ChangedOptions, AreThoseThatMatter) {
  TrainSettings begun;
  begun.schedule = "cosine:t_max=90";
  TrainSettings now = begun;
  now.epochs = begun.epochs + 1;
  now.num_workers = begun.num_workers + 1;
  now.run_dir = "elsewhere";
  EXPECT_EQ(changed_options(begun, now), "");
  begun.schedule = now.schedule = "step";
  EXPECT_EQ(changed_options(begun, now), "");
  begun.schedule = now.schedule = "cosine";
  EXPECT_THAT(changed_options(begun, now), ::testing::StartsWith("--epochs "));
  now = begun;
  now.virtual_ranks = 6;
  EXPECT_EQ(changed_options(begun, now), "--virtual_ranks 6 (was 0)");
  begun.virtual_ranks = 4;
  EXPECT_EQ(changed_options(begun, now), "--virtual_ranks 6 (was 4)");
  now.virtual_ranks = 0;  // which goes on with 4
  EXPECT_EQ(changed_options(begun, now), "");
}

TEST_F(ARun, IsPlannedWithoutATrace) {
  TrainSettings planned = settings();
  planned.accumulate = 2;
  const Plan plan = recipes::plan(planned, 2);
  planned.device = "cuda:7";  // need not be where it is planned
  EXPECT_EQ(recipes::plan(planned, 2).training, plan.training);
  planned.device = "graphics";
  EXPECT_THROW(static_cast<void>(recipes::plan(planned, 2)), UsageError);
  planned.device = "auto";
  EXPECT_EQ(plan.data["splits"]["train"], 27);
  EXPECT_EQ(plan.training["updates_per_epoch"], 1);
  EXPECT_EQ(plan.training["samples_per_update"], 36);
  EXPECT_EQ(plan.options["lr"], 1e-3);
  EXPECT_GT(plan.model["parameters"].get<int64_t>(), 1000);
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  planned.optimizer = "sgd:momentum=-1";
  EXPECT_THROW(static_cast<void>(recipes::plan(planned, 1)), UsageError);
  planned = settings();
  for (const char* way : {"dgc", "localsgd"}) {
    planned.traffic = way;
    planned.optimizer = "adam";
    EXPECT_THROW(static_cast<void>(recipes::plan(planned, 2)), UsageError) << way;
    planned.optimizer = "momentum";
    EXPECT_NO_THROW(static_cast<void>(recipes::plan(planned, 2))) << way;
  }
  planned.traffic = "power_sgd:rank=0";
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)recipes::plan(planned, 2); }),
              HasSubstr("--traffic power_sgd:rank=0: [fleet.DistributedStrategy] power_sgd_configs."
                        "matrix_approximation_rank: expected at least 1, got 0"));
  planned = settings();
  planned.batch_size = 100;
  planned.drop_last = true;
  EXPECT_THROW(static_cast<void>(recipes::plan(planned, 1)), UsageError);
}

TEST_F(ARun, OptionsThatWouldDoNothingAreRefused) {
  const auto refusal = [&](TrainSettings settings) {
    return in_job(1,
                  [settings] {
                    return Json{
                        test::error_text<UsageError>([&] { static_cast<void>(train(settings)); })};
                  })
        .dump();
  };
  TrainSettings no_folder = settings();
  no_folder.run_dir = "none";
  no_folder.save_freq = 2;
  EXPECT_THAT(refusal(no_folder), HasSubstr("--save_freq and --keep_last"));
  TrainSettings no_split = settings();
  no_split.data = "folder:" + path("pictures") + ",holdout=0";
  no_split.eval_freq = 2;
  EXPECT_THAT(refusal(no_split), HasSubstr("--eval_freq and --eval_batch_size"));
}

TEST_F(ARun, EvaluationNeedsToKnowTheModel) {
  std::ofstream(path("weights.pt")) << "x";
  EvaluateSettings evaluation{.weights = path("weights.pt")};
  EXPECT_THAT([&] { static_cast<void>(evaluate(evaluation)); },
              ::testing::ThrowsMessage<UsageError>(HasSubstr("Give --model and --data")));
  evaluation.weights = path("none");
  EXPECT_THROW(static_cast<void>(evaluate(evaluation)), CheckpointError);
  fleet::stop_worker();
}

}  // namespace
}  // namespace argosy::recipes
