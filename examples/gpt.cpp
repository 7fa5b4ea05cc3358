// A small GPT that learns to write like a book, and shows after each epoch how well it does.
//
//     apt-get install bible-kjv
//     bible gen1:1-rev22:21 </dev/null >bible.txt
//     ./gpt bible.txt
//     argosy launch --nproc_per_node 2 ./gpt bible.txt
//     argosy launch --nproc_per_node 2 ./gpt bible.txt --sharding
//
// It trains a tokenizer on the text, writes the text as tokens, and learns from windows of them;
// the last tenth is for evaluation. With --sharding the processes divide the model, its gradients
// and the optimizer's state among them.
//
// Each step is four virtual ranks' work, whoever does it. So all three ways print the same lines:
// the same losses to the last digit, the same samples and the same hash of the weights. A sample is
// drawn from the model's probabilities, and reproducible by its seed.
//
// Expect, after epochs 1 to 4: losses of 4.75, 3.90, 3.55 and 3.31, and perplexities of 109, 80, 65
// and 57 for the last tenth, which is the New Testament's end. The first sample has words, the last
// one sentences: "And God said unto him, What doest thou?"
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lesson.h"

using namespace argosy;

namespace {

struct Options : lesson::Options {
  Options() {
    epochs = 4;
    batch_size = 8;  // per virtual rank
  }

  int64_t layers = 4;
  int64_t width = 128;
  int64_t vocab_size = 2048;
  int64_t sequence_length = 128;
  double lr = 2e-3;
  bool sharding = false;
  std::string prompt = "And God said";
};

/// The text as tokens of a tokenizer that was trained on it. Both are made once, in a folder beside
/// the text that has their size in its name.
std::pair<text::Tokenizer, text::TokenFile> tokens_of(const Options& options) {
  const std::string folder = fmt::format("{}.bpe{}", options.data, options.vocab_size);
  const std::string file = folder + "/text.tokens";
  if (fleet::local_rank() == 0 && !std::filesystem::exists(file)) {
    std::ifstream book(options.data, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(book), {}};
    text::train_bpe(text, {.vocab_size = options.vocab_size}).save(folder);
    text::make_token_file({options.data}, file, text::open_tokenizer(folder));
  }
  fleet::barrier_worker();  // the other processes of the host wait for it
  return {text::open_tokenizer(folder), text::TokenFile(file)};
}

/// Writes a passage after each epoch. All processes do so alike, for each may have a part of the
/// model only; one prints.
class Sample final : public train::Callback {
 public:
  Sample(text::Gpt gpt, text::Tokenizer tokenizer, std::string prompt)
      : gpt_(std::move(gpt)), tokenizer_(std::move(tokenizer)), prompt_(std::move(prompt)) {}

  void on_epoch_end(const train::Epoch& /*epoch*/) override {
    const std::string passage = text::generate_text(gpt_,
                                                    tokenizer_,
                                                    prompt_,
                                                    {.max_new_tokens = gpt_->options().context / 2,
                                                     .temperature = 0.7,
                                                     .top_k = 40,
                                                     .seed = 1});
    fleet::print("          {}\n", passage);
  }

 private:
  text::Gpt gpt_;
  text::Tokenizer tokenizer_;
  std::string prompt_;
};

void run(const Options& options) {
  fleet::init({.virtual_ranks = 4, .sharding = options.sharding}, {}, options.device);
  const auto [tokenizer, tokens] = tokens_of(options);
  const int64_t length = options.sequence_length;
  const int64_t held = tokens.size() / 10 / length * length + 1;
  const text::TokenWindows train(tokens,
                                 {.sequence_length = length, .tokens = tokens.size() - held + 1});
  const text::TokenWindows valid(tokens,
                                 {.sequence_length = length, .first = tokens.size() - held});

  seed_everything(1);
  text::GptOptions shape = text::gpt_options(
      fmt::format("gpt:layers={},width={},context={}", options.layers, options.width, length));
  shape.vocab_size = tokenizer.vocab_size();
  text::Gpt gpt(shape);
  gpt->to(fleet::device());
  fleet::print("GPT of {} parameters on {}: {} windows of {} tokens to learn from\n",
               text::count(shape.parameters()),
               lesson::processes(),
               text::count(train.size()),
               length);

  train::Model model{text::GptLoss(gpt)};
  model.prepare(optim::AdamW(gpt, {.lr = options.lr, .grad_clip = optim::ClipGradByGlobalNorm(1)}),
                loss::FromNetwork(),
                {metrics::Perplexity()});
  model.fit(train,
            valid,
            {.batch_size = options.batch_size,
             .epochs = options.epochs,
             .num_workers = options.num_workers,
             .callbacks = {lesson::EpochLine([](const train::Logs& logs) {
                             return fmt::format("loss {:.6f}, perplexity {:.2f} of the last tenth",
                                                logs["loss"],
                                                logs["eval_perplexity"]);
                           }),
                           Sample(gpt, tokenizer, options.prompt)},
             .data = {.seed = 1},
             .log = {.verbose = 0}});
  model.save("gpt.safetensors");
  fleet::print("weights {}\n",
               fleet::is_first_worker()
                   ? checkpoint::weights_hash(checkpoint::read_weights("gpt.safetensors"))
                   : "");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows = lesson::with_options_of(
      o,
      "A text",
      "Windows per step and virtual rank",
      {{"--layers", "N", "Blocks of the model", &o.layers, {.least = 1, .most = 1000}},
       {"--width", "N", "Values of a token", &o.width, {.least = 64, .most = 65536}},
       {"--vocab_size", "N", "Tokens", &o.vocab_size, {.least = 257, .most = 65536}},
       {"--sequence_length",
        "N",
        "Tokens of a window",
        &o.sequence_length,
        {.least = 8, .most = 65536}},
       {"--lr", "X", "Learning rate", &o.lr, {.least = 1e-9, .most = 100}},
       {"--sharding", "", "The processes divide the model", &o.sharding},
       {"--prompt", "TEXT", "What the samples begin with", &o.prompt}});
  return program::run({"Trains a GPT on a text; under `argosy launch` on several processes."},
                      rows,
                      argc,
                      argv,
                      [&] { run(o); });
}
