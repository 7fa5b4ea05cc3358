/// Language models in train(), evaluate(), plan() and generate().
#include "argosy/recipes/language.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/engine/state_dict.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/recipes_test_support.h"
#include "argosy/recipes/run.h"
#include "argosy/text/make_token_file.h"
#include "argosy/text/models/hugging_face.h"
#include "argosy/text/train_bpe.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class OfText : public ::testing::Test {
 protected:
  OfText() {
    ::setenv("ARGOSY_DATA_HOME", path("home").c_str(), 1);
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 60; ++i) {
      text << "The ship has " << i << " oars, and " << 7 * i % 60 << " of them are in the water.\n";
    }
  }
  ~OfText() override { ::unsetenv("ARGOSY_DATA_HOME"); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] TrainSettings settings() const {
    TrainSettings settings;
    settings.model = "gpt:layers=2,width=32,heads=2";
    settings.data = "text:" + path("text.txt") + ",holdout=0.25";
    settings.sequence_length = 16;
    settings.epochs = 2;
    settings.batch_size = 2;
    settings.num_workers = 1;
    settings.verbose = 0;
    settings.run_dir = path("run");
    return settings;
  }
  /// What train() comes to on so many processes.
  [[nodiscard]] Json trained(int ranks, const TrainSettings& settings) const {
    return testing::in_job(ranks, strategy_of(settings), [&] { return train(settings); });
  }
  [[nodiscard]] std::string refusal(const std::function<void(TrainSettings&)>& change) const {
    TrainSettings changed = settings();
    change(changed);
    return test::error_text<Error>([&] { (void)plan(changed, 1); });
  }

  test::TempDir folder_;
};

TEST_F(OfText, LearnsIsEvaluatedAndSpeaks) {
  TrainSettings longer = settings();
  longer.epochs = 12;
  longer.batch_size = 8;
  longer.lr = 1e-2;
  const Json result = trained(1, longer);
  EXPECT_EQ(result["ended"], "finished");
  const Json& last = result["epochs"].back();
  EXPECT_LT(last["perplexity"].get<double>(), 6) << "of 257 bytes";
  EXPECT_LT(last["eval_perplexity"].get<double>(), 12);
  for (const char* const of : {"", "eval_"}) {
    EXPECT_NEAR(std::log(last[std::string(of) + "perplexity"].get<double>()),
                last[std::string(of) + "loss"].get<double>(),
                1e-9);
  }
  const Json evaluated = testing::in_job(1, {}, [&] { return evaluate({.weights = path("run")}); });
  EXPECT_EQ(evaluated["split"], "valid");
  EXPECT_NEAR(
      evaluated["result"]["perplexity"].get<double>(), last["eval_perplexity"].get<double>(), 1e-5);

  GenerateSettings speech{.checkpoint = path("run"), .prompt = "The s", .temperature = 0};
  std::string pieces;
  const auto add = [&](std::string_view piece) { pieces += piece; };
  const std::string text = generate(speech, add);
  EXPECT_EQ(text, "The s" + pieces);
  EXPECT_THAT(text, HasSubstr("The ship has"));
  EXPECT_EQ(text.size(), 16U) << "the context is full";
  speech.checkpoint = path("run/model.pt");
  EXPECT_EQ(generate(speech, {}), text);
  speech.checkpoint = path("run/checkpoints");
  EXPECT_EQ(generate(speech, {}), text);
  speech.temperature = 1;
  speech.max_new_tokens = 9;
  const std::string drawn = generate(speech, {});
  EXPECT_EQ(generate(speech, {}), drawn);
  speech.seed = 5;
  EXPECT_NE(generate(speech, {}), drawn);
}

TEST_F(OfText, TheEndOfTheTextIsNotLearned) {
  std::ofstream(path("ab.txt")) << std::string(3000, 'a') << std::string(1000, 'b');
  TrainSettings halves = settings();
  halves.data = "text:" + path("ab.txt") + ",holdout=0.25";
  halves.lr = 1e-2;
  const Json last = trained(1, halves)["epochs"].back();
  EXPECT_LT(last["perplexity"].get<double>(), 1.2);
  EXPECT_GT(last["eval_perplexity"].get<double>(), 100);
  halves.data = "text:" + path("ab.txt") + ",limit=7";
  EXPECT_EQ(plan(halves, 1).data["splits"], (Json{{"train", 7}, {"valid", 7}}));
  halves.data = "text:" + path("ab.txt") + ",holdout=0";
  EXPECT_EQ(plan(halves, 1).data["splits"], (Json{{"train", 250}}));
}

TEST_F(OfText, TheSameWeightsOnEveryLayout) {
  TrainSettings one = settings();
  one.virtual_ranks = 12;
  one.run_dir = "none";
  one.batch_size = 1;
  one.num_iters = 5;
  const Json alone = trained(1, one);
  EXPECT_EQ(alone["steps"], 5);
  const std::vector<std::tuple<int, std::string, std::optional<int64_t>, bool>> layouts{
      {2, "", {}, false},
      {2, "sharding", 3, true},
      {3, "sharding=3", 2, false},
      {4, "dp_degree=2,sharding_degree=-1", 3, false},
      {4, "dp=2,sharding=2", 3, true}};
  for (const auto& [ranks, mesh, stage, recompute] : layouts) {
    TrainSettings divided = one;
    divided.mesh = mesh;
    divided.sharding_stage = stage;
    divided.recompute = recompute;
    const Json result = trained(ranks, divided);
    EXPECT_EQ(result["weights_hash"], alone["weights_hash"]) << ranks << " " << mesh;
    EXPECT_EQ(result["epochs"], alone["epochs"]) << ranks << " " << mesh;
  }
  one.seed = 2;
  EXPECT_NE(trained(1, one)["weights_hash"], alone["weights_hash"]);
}

/// Parameters of 16 bits with masters in files, on any number of processes; others read the run.
TEST_F(OfText, PureTypesAndStateInFilesOnEveryLayout) {
  TrainSettings pure = settings();
  pure.virtual_ranks = 6;
  pure.batch_size = 1;
  pure.amp = "pure_bfloat16";
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)trained(1, pure); }),
              HasSubstr("--amp pure_bfloat16 and --offload_folder are about parameters that "
                        "processes divide"));
  pure.mesh = "sharding";
  pure.run_dir = path("pure");
  const Json alone = trained(1, pure);
  TrainSettings plain = pure;
  plain.amp = "off";
  plain.run_dir = path("plain");
  EXPECT_NE(trained(1, plain)["weights_hash"], alone["weights_hash"]);
  pure.run_dir = "none";
  pure.offload_folder = path("state");
  std::filesystem::create_directories(pure.offload_folder);
  EXPECT_EQ(trained(3, pure)["weights_hash"], alone["weights_hash"]);
  const Json evaluated =
      testing::in_job(1, {}, [&] { return evaluate({.weights = path("pure"), .batch_size = 1}); });
  EXPECT_EQ(evaluated["amp"], "pure_bfloat16");
  pure.offload_folder.clear();
  pure.resume = plain.resume = "must";
  std::swap(pure.run_dir = path("pure"), plain.run_dir);
  EXPECT_THAT(test::error_text<std::exception>([&] { (void)trained(1, plain); }),
              HasSubstr("was begun with --amp pure_bfloat16"));
  EXPECT_THAT(test::error_text<std::exception>([&] { (void)trained(1, pure); }),
              HasSubstr("was begun with --amp off"));
  EXPECT_EQ(evaluated["result"]["loss"], alone["result"]["eval_loss"]) << alone << evaluated;
}

TEST_F(OfText, GoesOnAsAnotherLayout) {
  TrainSettings whole = settings();
  whole.virtual_ranks = 12;
  whole.batch_size = 1;
  const Json undisturbed = trained(1, whole);
  TrainSettings cut = whole;
  cut.run_dir = path("cut");
  cut.num_iters = 5;
  cut.save_freq = 2;
  cut.mesh = "dp=2,sharding=2";
  (void)trained(4, cut);
  TrainSettings rest = whole;
  rest.run_dir = path("cut");
  rest.mesh = "sharding=3";
  rest.resume = "must";
  rest.sample = "The ";
  const Json resumed = trained(3, rest);
  EXPECT_EQ(resumed["weights_hash"], undisturbed["weights_hash"]);
  EXPECT_EQ(resumed["steps"], undisturbed["steps"]);
  EXPECT_THAT(read_description(path("cut"))->changes, ElementsAre());
}

TEST_F(OfText, ATokenFileAndItsTokenizerAreTaken) {
  text::make_token_file({path("text.txt")}, path("text.tokens"), text::byte_tokenizer());
  TrainSettings tokens = settings();
  tokens.data = "text:" + path("text.tokens");
  const Plan planned = plan(tokens, 1);
  EXPECT_EQ(planned.data["splits"], (Json{{"train", 185}, {"valid", 20}}));
  EXPECT_EQ(planned.data["vocab_size"], 257);
  tokens.tokenizer = path("tokenizer");
  text::train_bpe("the oars and the oars and the oars", {.vocab_size = 260}).save(tokens.tokenizer);
  EXPECT_THAT(test::error_text<DataError>([&] { (void)plan(tokens, 1); }), HasSubstr("tokenizer"));
  tokens.data = "text:" + path("text.txt");
  EXPECT_EQ(plan(tokens, 1).data["vocab_size"], 260);
}

TEST_F(OfText, TextThatChangedIsReadAgain) {
  const auto tokens = [&] { return plan(settings(), 1).data["tokens"].get<int64_t>(); };
  const int64_t before = tokens();
  EXPECT_EQ(tokens(), before);
  std::ofstream(path("text.txt"), std::ios::app) << "more";
  EXPECT_EQ(tokens(), before + 4);
}

TEST_F(OfText, APlanCompletesTheSettings) {
  const Plan planned = plan(settings(), 4);
  EXPECT_EQ(planned.options["model"], "gpt:vocab_size=257,layers=2,width=32,heads=2,context=16");
  EXPECT_EQ(planned.options["tokenizer"], "bytes");
  EXPECT_EQ(planned.options["lr"], 1e-3);
  EXPECT_EQ(planned.options["clip_norm"], 1.0);
  EXPECT_EQ(planned.training["samples_per_update"], 8);
  TrainSettings wide = settings();
  wide.model = "llama:layers=1,width=1024,context=32";
  wide.sequence_length.reset();
  const Plan other = plan(wide, 1);
  EXPECT_EQ(other.options["sequence_length"], 32);
  EXPECT_EQ(other.options["lr"], 0.5 / 1024);
}

TEST_F(OfText, ReadsFoldersOfHuggingFace) {
  const text::GptOptions shape =
      text::gpt_options("gpt:vocab_size=257,layers=2,width=32,heads=2,context=16");
  const text::Gpt gpt(shape);
  gpt.ptr()->initialize(9);
  std::filesystem::create_directory(path("theirs"));
  std::ofstream(path("theirs/config.json")) << text::config_of_options(shape);
  checkpoint::save_weights(text::to_hugging_face(engine::state_dict(gpt), shape),
                           path("theirs/model.safetensors"));
  const GenerateSettings speech{
      .checkpoint = path("theirs"), .prompt = "a", .tokenizer = "bytes", .temperature = 0};
  const std::string said = text::generate_text(
      gpt, text::byte_tokenizer(), "a", {.max_new_tokens = 15, .temperature = 0});
  EXPECT_EQ(generate(speech, {}), said);
  std::filesystem::rename(path("theirs/model.safetensors"), path("theirs/all.safetensors"));
  std::string index;  // of one shard
  for (const text::HuggingFaceName& name : text::hugging_face_names(shape)) {
    index += fmt::format(
        "{}\"{}\": \"all.safetensors\"", index.empty() ? "" : ", ", name.theirs.front());
  }
  std::ofstream(path("theirs/model.safetensors.index.json"))
      << "{\"weight_map\": {" << index << "}}";
  EXPECT_EQ(generate(speech, {}), said);
  TrainSettings tuned = settings();
  tuned.pretrained = path("theirs");
  tuned.lr = 0;
  tuned.num_iters = 1;
  EXPECT_EQ(trained(1, tuned)["weights_hash"], checkpoint::weights_hash(engine::state_dict(gpt)));
}

TEST_F(OfText, SaysWhatIsWrong) {
  EXPECT_THAT(refusal([](auto& s) { s.model = "gpt:width=30,heads=4"; }),
              HasSubstr("width must be a multiple of heads, got 30 and 4"));
  EXPECT_THAT(refusal([](auto& s) { s.model = "gpt:layer=3"; }),
              HasSubstr("unknown field \"layer\""));
  EXPECT_THAT(refusal([](auto& s) { s.model = "gpt:layers=2,vocab_size=100"; }),
              HasSubstr("--model has vocab_size=100, and the tokenizer has 257 tokens"));
  EXPECT_THAT(refusal([](auto& s) { s.model = "gpt:layers=2,context=8"; }),
              HasSubstr("--sequence_length 16 is more than the model's context of 8"));
  EXPECT_THAT(refusal([](auto& s) { s.data = "cifar10:/x"; }),
              HasSubstr("learns from text: --data text:FILE"));
  EXPECT_THAT(refusal([](auto& s) { s.data = "text"; }), HasSubstr("expected a path: text:FILE"));
  EXPECT_THAT(refusal([](auto& s) { s.data = "text:/none.txt"; }), HasSubstr("/none.txt"));
  EXPECT_THAT(refusal([](auto& s) { s.model = "lenet"; }),
              HasSubstr("is text, from which language models learn: --model gpt"));
  EXPECT_THAT(refusal([](auto& s) { s.tokenizer = "/none"; }), HasSubstr("/none"));
  EXPECT_THAT(refusal([](auto& s) { s.augment = "flip"; }),
              HasSubstr("--augment is about pictures"));
  EXPECT_THAT(refusal([](auto& s) { s.label_smoothing = 0.1; }),
              HasSubstr("--label_smoothing is about pictures"));
  EXPECT_THAT(refusal([](auto& s) { s.data += ",holdout=1"; }),
              HasSubstr("holdout: expected 0 to 1, got 1"));
  EXPECT_THAT(refusal([](auto& s) { s.sequence_length = 100000; }),
              HasSubstr("and a window takes 100001"));
  EXPECT_THAT(refusal([](auto& s) { s.sample = std::string(16, 'a'); }),
              HasSubstr("--sample has 16 tokens, and the model's context is 16"));
  EXPECT_THAT(test::error_text<Error>([&] { (void)generate({.checkpoint = path("none")}, {}); }),
              HasSubstr("No such file"));
  EXPECT_THAT(
      test::error_text<Error>([&] { (void)generate({.checkpoint = path("text.txt")}, {}); }),
      HasSubstr("Give --model and --tokenizer"));
  EXPECT_THAT(
      test::error_text<Error>([&] { (void)generate({.checkpoint = path(""), .top_p = 0}, {}); }),
      HasSubstr("top_p must be in (0, 1]"));
}

TEST(MeshOf, ReadsAxes) {
  EXPECT_THAT(mesh_of(""), ElementsAre());
  EXPECT_THAT(mesh_of("dp=2,sharding=4"), ElementsAre(Pair("dp", 2), Pair("sharding", 4)));
  EXPECT_THAT(mesh_of("sharding_degree=2, dp_degree=-1"),
              ElementsAre(Pair("dp", -1), Pair("sharding", 2)));
  EXPECT_THAT(mesh_of("sharding"), ElementsAre(Pair("sharding", -1)));
  EXPECT_THAT(mesh_of("dp=2,mp=1"), ElementsAre(Pair("dp", 2), Pair("mp", 1)));
  const auto refused = [](const std::string& mesh) {
    return test::error_text<UsageError>([&] { (void)mesh_of(mesh); });
  };
  EXPECT_THAT(refused("pp=2"), HasSubstr("--mesh pp=2: there is no axis \"pp\" yet, only dp"));
  EXPECT_THAT(refused("dp=2,mp_degree=4"), HasSubstr("there is no axis \"mp_degree\" yet"));
  EXPECT_THAT(refused("dq=2"), HasSubstr("there is no axis \"dq\""));
  EXPECT_THAT(refused("dp=x"), HasSubstr("got \"dp=x\""));
  EXPECT_THAT(refused("dp=0"), HasSubstr("expected axis=processes"));
  EXPECT_THAT(refused("dp=2,dp_degree=2"), HasSubstr("dp stands twice"));
  EXPECT_THAT(refused("dp=2,,sharding=2"), HasSubstr("got \"\""));
}

}  // namespace
}  // namespace argosy::recipes
