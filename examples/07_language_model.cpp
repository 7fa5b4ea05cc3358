// A model with a hidden state: an LSTM that reads a text letter by letter. The state goes from
// batch to batch, each rank has that of its own passages, and the wrapper sees only the weights.
//
//     argosy launch --nproc_per_node 2 ./07_language_model [text file] [--device auto|cpu|cuda:1]
#include <argosy/argosy.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include <torch/torch.h>

using namespace argosy;

using State = std::tuple<at::Tensor, at::Tensor>;  // h and c: [1, passages, hidden]

struct ReaderImpl : torch::nn::Module {
  explicit ReaderImpl(int64_t hidden = 128)
      : letters(register_module("letters", torch::nn::Embedding(256, 32))),
        memory(register_module("memory", torch::nn::LSTM(32, hidden))),
        next(register_module("next", torch::nn::Linear(hidden, 256))) {}

  /// text: i64 [letters, passages]. Returns the logits of each next letter and the state after it.
  std::tuple<at::Tensor, State> forward(const at::Tensor& text, const State& state) {
    auto [read, after] = memory->forward(letters->forward(text), state);
    return {next->forward(read), after};
  }

  torch::nn::Embedding letters;
  torch::nn::LSTM memory;
  torch::nn::Linear next;
};
TORCH_MODULE(Reader);

/// The rank's passages of a text that is cut into `passages` of equal length: i64 [length, own].
at::Tensor own_passages(const std::string& path, int64_t passages) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const int64_t length = static_cast<int64_t>(text.size()) / passages;
  const auto bytes = torch::tensor(std::vector<uint8_t>(text.begin(), text.end()), torch::kUInt8);
  const auto all = bytes.slice(0, 0, length * passages).view({passages, length});
  return all.chunk(fleet::worker_num())[fleet::worker_index()].t().contiguous().to(torch::kLong);
}

int main(int argc, char** argv) {
  constexpr int64_t kPassages = 16;
  constexpr int64_t kLetters = 32;  // that the gradient goes back
  const std::string word = program::take_option(argc, argv, "--device");
  fleet::init({}, {}, word);
  const at::Device device = fleet::device();
  torch::manual_seed(1);
  const char* const path = argc > 1 ? argv[1] : "/usr/share/common-licenses/GPL-3";
  const at::Tensor text = own_passages(path, kPassages).to(device);
  Reader reader;
  reader->to(device);
  auto model = fleet::distributed_model(reader);
  auto optimizer = fleet::distributed_optimizer(
      optim::Adam(model, {.lr = 3e-3, .grad_clip = optim::ClipGradByGlobalNorm(1.0)}));

  for (int epoch = 0; epoch < 8; ++epoch) {
    metrics::MeanLoss mean_loss;
    const at::Tensor nothing = torch::zeros({1, text.size(1), 128}, device);
    State state{nothing, nothing};
    for (int64_t at = 0; at + kLetters < text.size(0); at += kLetters) {
      auto [logits, after] = model(text.slice(0, at, at + kLetters), state);
      auto expected = text.slice(0, at + 1, at + kLetters + 1);
      auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), expected.flatten());
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      mean_loss.update(loss, expected.numel());
      state = {std::get<0>(after).detach(),
               std::get<1>(after).detach()};  // remembered, not learned from
    }
    fleet::print(
        "epoch {}: perplexity {:.2f}\n", epoch + 1, std::exp(mean_loss.compute(fleet::group())));
  }
  fleet::save(model, "reader.pt");
}
