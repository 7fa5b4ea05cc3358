#include "argosy/text/models/gpt_options.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::text {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& text) {
  return refusal([&] { (void)gpt_options(text); });
}

TEST(GptOptions, PublishedSizesHaveTheirPublishedParameters) {
  EXPECT_EQ(gpt_options("gpt2").parameters(), 124439808);
  EXPECT_EQ(gpt_options("gpt2-medium").parameters(), 354823168);
  EXPECT_EQ(gpt_options("gpt2-large").parameters(), 774030080);
  EXPECT_EQ(gpt_options("gpt2-xl").parameters(), 1557611200);
  EXPECT_EQ(gpt_options("tinyllama-1.1b").parameters(), 1100048384);
  EXPECT_EQ(gpt_options("llama-7b").parameters(), 6738415616);
  EXPECT_EQ(gpt_options("llama2-7b").parameters(), 6738415616);
  EXPECT_EQ(gpt_options("llama3-8b").parameters(), 8030261248);
  EXPECT_EQ(gpt_options("gpt"), GptOptions::gpt2());
  EXPECT_EQ(gpt_options("llama"), GptOptions::llama());
}

TEST(GptOptions, HiddenFollowsFromTheWidth) {
  EXPECT_EQ(gpt_options("gpt:width=256,heads=4").hidden_or_default(), 1024);
  EXPECT_EQ(gpt_options("llama:width=4096,heads=32").hidden_or_default(), 11008);
  EXPECT_EQ(gpt_options("llama:width=4096,heads=32,hidden=100").hidden_or_default(), 100);
}

TEST(GptOptions, AreReadFromAText) {
  const GptOptions options = gpt_options(
      "llama: layers=4, width=256 "
      ",heads=8,kv_heads=2,dropout=0.25,bias=yes,tied=yes,rope_theta=1e6");
  EXPECT_EQ(options.layers, 4);
  EXPECT_EQ(options.width, 256);
  EXPECT_EQ(gpt_options("gpt:width=256").heads, 4);
  EXPECT_EQ(gpt_options("gpt:width=256,heads=8").heads, 8);
  EXPECT_EQ(gpt_options("gpt:width=96").heads, 12) << "which fits";
  EXPECT_EQ(gpt_options("gpt:layers=2").heads, 12);
  EXPECT_EQ(options.heads, 8);
  EXPECT_EQ(options.kv_heads, 2);
  EXPECT_EQ(options.dropout, 0.25);
  EXPECT_TRUE(options.bias);
  EXPECT_TRUE(options.tied);
  EXPECT_EQ(options.rope_theta, 1e6);
  EXPECT_EQ(options.norm, NormKind::kRmsNorm);
  const GptOptions mixed = gpt_options("gpt:norm=rms,positions=rotary,activation=swiglu,bias=no");
  EXPECT_EQ(mixed.norm, NormKind::kRmsNorm);
  EXPECT_EQ(mixed.positions, PositionKind::kRotary);
  EXPECT_EQ(mixed.activation, ActivationKind::kSwiglu);
  EXPECT_FALSE(mixed.bias);
}

TEST(GptOptions, AreWrittenAsATextThatReadsTheSame) {
  EXPECT_EQ(to_string(GptOptions::gpt2()), "gpt");
  EXPECT_EQ(to_string(GptOptions::llama()), "llama");
  EXPECT_EQ(to_string(gpt_options("gpt:tied=no,heads=4,width=256")),
            "gpt:width=256,heads=4,tied=no");
  for (const char* text : {"gpt2-xl",
                           "llama3-8b",
                           "gpt:norm=rms",
                           "llama:norm=layer,activation=gelu",
                           "llama:rope_factor=8,rope_original=8192",
                           "gpt:norm_epsilon=1e-06,dropout=0.1"}) {
    const GptOptions options = gpt_options(text);
    EXPECT_EQ(gpt_options(to_string(options)), options) << to_string(options);
  }
}

TEST(GptOptions, ATextThatDoesNotFitIsRefused) {
  EXPECT_THAT(refusal(std::string("gtp2")),
              HasSubstr("unknown model \"gtp2\": expected one of gpt, gpt2"));
  EXPECT_THAT(refusal(std::string("gtp2")), HasSubstr("Did you mean \"gpt2\"?"));
  EXPECT_THAT(refusal(std::string("")), HasSubstr("unknown model \"\""));
  EXPECT_THAT(refusal(std::string("gpt:layer=4")), HasSubstr("unknown field \"layer\""));
  EXPECT_THAT(refusal(std::string("gpt:layer=4")), HasSubstr("Did you mean \"layers\"?"));
  EXPECT_THAT(refusal(std::string("gpt:layers")),
              HasSubstr("expected field=value, got \"layers\""));
  EXPECT_THAT(refusal(std::string("gpt:")), HasSubstr("expected field=value"));
  EXPECT_THAT(refusal(std::string("gpt:layers=four")),
              HasSubstr("layers: expected a whole number, got \"four\""));
  EXPECT_THAT(refusal(std::string("gpt:dropout=x")), HasSubstr("dropout: expected a number"));
  EXPECT_THAT(refusal(std::string("gpt:bias=1")), HasSubstr("bias: expected no or yes, got \"1\""));
  EXPECT_THAT(refusal(std::string("gpt:norm=batch")), HasSubstr("norm: expected layer or rms"));
}

TEST(GptOptions, ValidateNamesTheField) {
  const auto with = [](const std::function<void(GptOptions&)>& change) {
    GptOptions options = GptOptions::llama();
    change(options);
    return refusal([&] { options.validate(); });
  };
  EXPECT_THAT(with([](GptOptions& o) { o.layers = 0; }),
              HasSubstr("layers must be positive, got 0"));
  EXPECT_THAT(with([](GptOptions& o) { o.vocab_size = -1; }),
              HasSubstr("vocab_size must be positive"));
  EXPECT_THAT(with([](GptOptions& o) { o.kv_heads = -1; }),
              HasSubstr("kv_heads must be positive or 0"));
  EXPECT_THAT(with([](GptOptions& o) { o.heads = 5; }),
              HasSubstr("width must be a multiple of heads, got 768 and 5"));
  EXPECT_THAT(with([](GptOptions& o) { o.kv_heads = 5; }),
              HasSubstr("kv_heads must divide heads, got 5 and 12"));
  EXPECT_THAT(with([](GptOptions& o) { o.width = 36; }), HasSubstr("width / heads must be even"));
  EXPECT_THAT(with([](GptOptions& o) { o.dropout = 1; }),
              HasSubstr("dropout must be in [0, 1), got 1"));
  EXPECT_THAT(with([](GptOptions& o) { o.norm_epsilon = 0; }),
              HasSubstr("norm_epsilon must be positive"));
  EXPECT_THAT(with([](GptOptions& o) { o.rope_theta = -1; }),
              HasSubstr("rope_theta must be positive"));
  EXPECT_THAT(with([](GptOptions& o) { o.rope_factor = 0.5; }),
              HasSubstr("rope_factor must be 1 or more, got 0.5"));
  EXPECT_THAT(with([](GptOptions& o) { o.rope_low = 4; }),
              HasSubstr("less than rope_high, got 4 and 4"));
  EXPECT_THAT(refusal(std::string("gpt:rope_factor=2")),
              HasSubstr("rope_factor is for rotary positions"));
}

}  // namespace
}  // namespace argosy::text
