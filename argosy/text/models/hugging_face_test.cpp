// Holds both families against what transformers computed (tests/golden/text_models).
#include "argosy/text/models/hugging_face.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/os/fd.h"
#include "argosy/text/models/generate.h"
#include "argosy/text/models/gpt.h"

#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::HasSubstr;

std::string golden(const std::string& family, const std::string& file) {
  return std::string(ARGOSY_GOLDEN_DIR "/text_models/") + family + "/" + file;
}

std::string config_text(const std::string& family) {
  return *os::read_file(golden(family, "config.json"));
}

/// One of them was written in several files.
std::string weights_of(const std::string& family) {
  return golden(family,
                family == "llama_linear" ? "model.safetensors.index.json" : "model.safetensors");
}

class HuggingFace : public testing::TestWithParam<const char*> {
 protected:
  std::string family_ = GetParam();
  GptOptions options_ = options_of_config(config_text(family_));
  engine::StateDict theirs_ = checkpoint::read_weights(weights_of(family_));
  engine::StateDict computed_ = checkpoint::read_weights(golden(family_, "computed.safetensors"));

  [[nodiscard]] Gpt loaded() const {
    Gpt model(options_);
    engine::load_state_dict(model, from_hugging_face(theirs_, options_));
    return model;
  }
};
INSTANTIATE_TEST_SUITE_P(Golden,
                         HuggingFace,
                         testing::Values("gpt2", "llama", "llama_linear", "llama_llama3"));

TEST_P(HuggingFace, TheLogitsAreTheirs) {
  Gpt model = loaded();
  const at::NoGradGuard no_grad;
  const at::Tensor logits = model(computed_.at("tokens"));
  EXPECT_LT((logits - computed_.at("logits")).abs().max().item<float>(), 1e-4);
  EXPECT_GT(computed_.at("logits").abs().max().item<float>(), 1);  // 1e-4 says something
}

TEST_P(HuggingFace, TheLikeliestTokensAreTheirs) {
  const at::Tensor tokens = computed_.at("tokens");
  EXPECT_TRUE(at::equal(generate(loaded(), tokens, {.max_new_tokens = 8, .temperature = 0}),
                        computed_.at("greedy")));
}

TEST_P(HuggingFace, FilesGoThereAndBack) {
  const test::TempDir folder;
  const std::string path = folder.path() / "model.safetensors";
  const engine::StateDict ours = engine::state_dict(loaded());
  checkpoint::save_weights(to_hugging_face(ours, options_), path);
  const engine::StateDict again = checkpoint::read_weights(path);
  ASSERT_EQ(again.size(), theirs_.size());
  for (const auto& [name, tensor] : theirs_) {
    EXPECT_TRUE(at::equal(again.at(name), tensor)) << name;
  }
  const engine::StateDict back = from_hugging_face(again, options_);
  ASSERT_EQ(back.size(), ours.size());
  for (const auto& [name, tensor] : ours) {
    EXPECT_TRUE(at::equal(back.at(name), tensor)) << name;
  }
}

TEST_P(HuggingFace, ConfigurationsGoThereAndBack) {
  EXPECT_EQ(options_.vocab_size, 97);
  EXPECT_EQ(options_.layers, 2);
  EXPECT_EQ(options_.width, 32);
  EXPECT_EQ(options_.heads, 4);
  EXPECT_EQ(options_.kv_heads_or_default(), family_ == "gpt2" ? 4 : 2);
  EXPECT_EQ(options_.hidden_or_default(), family_ == "gpt2" ? 128 : 80);
  EXPECT_EQ(options_.context, 24);
  EXPECT_EQ(options_.tied, family_ == "gpt2");
  EXPECT_EQ(options_.norm_epsilon, family_ == "gpt2" ? 1e-5 : 1e-6);
  GptOptions again = options_of_config(config_of_options(options_));
  again.hidden = options_.hidden;  // is written as a number
  EXPECT_EQ(again, options_);
}

TEST_P(HuggingFace, MissingAndUnexpectedEntriesAreNamed) {
  engine::StateDict other;
  const std::string left_out =
      family_ == "gpt2" ? "transformer.ln_f.bias" : "model.layers.1.self_attn.k_proj.weight";
  for (const auto& [name, tensor] : theirs_) {
    if (name != left_out) {
      other.set(name, tensor);
    }
  }
  other.set("classifier.weight", at::zeros({2, 2}));
  try {
    (void)from_hugging_face(other, options_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing " + left_out + ";"));
    EXPECT_THAT(error.what(), HasSubstr("classifier.weight"));
  }
}

TEST(HuggingFaceNames, TheFirstFilesOfGpt2HaveNoPrefix) {
  const GptOptions options = options_of_config(config_text("gpt2"));
  engine::StateDict bare;
  for (const auto& [name, tensor] : checkpoint::read_weights(golden("gpt2", "model.safetensors"))) {
    bare.set(name.substr(std::string("transformer.").size()), tensor);
  }
  bare.set("h.0.attn.bias", at::ones({1, 1, 24, 24}));
  EXPECT_EQ(from_hugging_face(bare, options).size(), hugging_face_names(options).size());
}

TEST(HuggingFaceNames, OtherShapesAreRefused) {
  EXPECT_THROW((void)hugging_face_names(gpt_options("gpt:norm=rms")), UsageError);
  EXPECT_THROW((void)config_of_options(gpt_options("gpt:tied=no")), UsageError);
  GptOptions other = options_of_config(config_text("llama"));
  const engine::StateDict theirs = checkpoint::read_weights(golden("llama", "model.safetensors"));
  other.kv_heads = 4;
  try {
    (void)from_hugging_face(theirs, other);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("k_proj.weight: expected 32 rows, got the shape [16, 32]"));
  }
}

TEST(HuggingFaceConfig, ScaledPositionsAreRead) {
  const GptOptions linear = options_of_config(config_text("llama_linear"));
  EXPECT_EQ(linear.rope_factor, 4);
  EXPECT_EQ(linear.rope_original, 0);
  const GptOptions llama3 = options_of_config(config_text("llama_llama3"));
  EXPECT_EQ(llama3.rope_theta, 100);
  EXPECT_EQ(llama3.rope_factor, 8);
  EXPECT_EQ(llama3.rope_original, 16);
  EXPECT_EQ(llama3.rope_low, 0.5);
  EXPECT_EQ(llama3.rope_high, 2);
}

TEST(HuggingFaceConfig, SaysWhatAGptDoesNotHave) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)options_of_config(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto changed = [&](const std::string& family, const std::string& field) {
    std::string text = config_text(family);
    return refusal(text.insert(text.rfind('}'), "," + field));  // the last of two counts
  };
  EXPECT_THAT(refusal("{"), HasSubstr("expected the JSON of a config.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("the field model_type is missing"));
  EXPECT_THAT(refusal(R"({"model_type": "bert"})"), HasSubstr("expected gpt2 or llama, got bert"));
  EXPECT_THAT(refusal(R"({"model_type": 7})"), HasSubstr("model_type has the wrong kind: 7"));
  EXPECT_THAT(refusal(R"({"model_type": "gpt2"})"), HasSubstr("the field vocab_size is missing"));
  EXPECT_THAT(changed("gpt2", R"("n_layer": "two")"), HasSubstr("n_layer has the wrong kind"));
  EXPECT_THAT(changed("gpt2", R"("n_head": 5)"), HasSubstr("width must be a multiple of heads"));
  EXPECT_THAT(changed("gpt2", R"("activation_function": "relu")"), HasSubstr("got relu"));
  EXPECT_THAT(changed("gpt2", R"("attn_pdrop": 0.5)"),
              HasSubstr("attn_pdrop differs from resid_pdrop"));
  EXPECT_THAT(changed("gpt2", R"("tie_word_embeddings": false)"),
              HasSubstr("tie_word_embeddings: a Gpt has true only"));
  EXPECT_THAT(changed("llama", R"("hidden_act": "gelu")"),
              HasSubstr("hidden_act: a Gpt has \"silu\" only"));
  EXPECT_THAT(changed("llama", R"("mlp_bias": true)"), HasSubstr("mlp_bias"));
  EXPECT_THAT(changed("llama", R"("head_dim": 16)"),
              HasSubstr("head_dim: a Gpt has 8 only, got 16"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"rope_type": "yarn"})"),
              HasSubstr("rope_scaling: a Gpt has rope_type default, linear or llama3, got yarn"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"type": "dynamic"})"), HasSubstr("got dynamic"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"rope_type": "linear"})"),
              HasSubstr("the field rope_scaling.factor is missing"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"rope_type": "llama3", "factor": "8"})"),
              HasSubstr("rope_scaling.factor has the wrong kind"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"rope_type": "llama3", "factor": 8})"),
              HasSubstr("the field rope_scaling.original_max_position_embeddings is missing"));
  EXPECT_THAT(changed("llama", R"("rope_scaling": {"rope_type": "linear", "factor": 0.5})"),
              HasSubstr("rope_factor must be 1 or more, got 0.5"));
}

}  // namespace
}  // namespace argosy::text
