#include "argosy/text/generate_text.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

#include "tests/support/error_text.h"

namespace argosy::text {
namespace {

using ::testing::HasSubstr;

const std::string kSaying = "café — 日本語 👍 end";

/// A model that has learned to say kSaying after an end of text, and the end of a text after it.
const Gpt& parrot() {
  static const Gpt model = [] {
    torch::manual_seed(1);
    Gpt gpt(gpt_options("gpt:vocab_size=260,layers=1,width=32,heads=2,context=48"));
    gpt->initialize(3);
    std::vector<int64_t> ids{256};
    for (const int32_t id : byte_tokenizer().encode(kSaying)) {
      ids.push_back(id);
    }
    ids.push_back(256);
    const at::Tensor all = torch::tensor(ids).unsqueeze(0);
    const int64_t length = all.size(1) - 1;
    torch::optim::Adam optimizer(gpt->parameters(), torch::optim::AdamOptions(1e-2));
    for (int step = 0; step < 120; ++step) {
      optimizer.zero_grad();
      gpt->loss(all.narrow(1, 0, length), all.narrow(1, 1, length)).backward();
      gpt->loss(all.narrow(1, 1, length - 1), all.narrow(1, 2, length - 1)).backward();
      optimizer.step();
    }
    return gpt;
  }();
  return model;
}

std::string said(const std::string& prompt, std::vector<std::string>& pieces, int64_t tokens = 40) {
  return generate_text(parrot(),
                       byte_tokenizer(),
                       prompt,
                       {.max_new_tokens = tokens, .temperature = 0},
                       [&](std::string_view piece) { pieces.emplace_back(piece); });
}

TEST(GenerateText, SaysTheTextInPiecesOfWholeCharacters) {
  std::vector<std::string> pieces;
  EXPECT_EQ(said("", pieces), kSaying) << "and not the end of the text";
  std::string all;
  for (const std::string& piece : pieces) {
    all += piece;
  }
  EXPECT_EQ(all, kSaying);
  EXPECT_THAT(pieces, ::testing::IsSupersetOf({"é", "—", "日", "👍"}));
  EXPECT_EQ(pieces.size(), 16U) << "one for each character";
}

TEST(GenerateText, ContinuesAPrompt) {
  std::vector<std::string> pieces;
  EXPECT_EQ(said("café ", pieces, 7), "café — 日");
  EXPECT_THAT(pieces, ::testing::ElementsAre("—", " ", "日"));
  pieces.clear();
  EXPECT_EQ(said("café", pieces, 3), "café \xE2\x80") << "what is there when the tokens end";
}

TEST(GenerateText, SaysWhatIsWrong) {
  const Gpt small(gpt_options("gpt:vocab_size=100,layers=1,width=32,heads=2,context=16"));
  EXPECT_THAT(test::error_text<UsageError>([&] { generate_text(small, byte_tokenizer(), "a"); }),
              HasSubstr("the tokenizer has 257 tokens and the model 100: it is another model's"));
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { generate_text(parrot(), byte_tokenizer(), std::string(40, 'a'), {}); }),
              HasSubstr("more than the model's context of 48"));
}

}  // namespace
}  // namespace argosy::text
