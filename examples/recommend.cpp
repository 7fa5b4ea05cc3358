// Who clicks what, from a log in the form of Criteo's data sets: Wide & Deep or DeepFM, whose rows
// and weights lie on servers. Workers read the log as a stream, each its part of the batches.
//
//     ./recommend --generate 1000000 clicks.tsv          // a log whose truth is known, and its AUC
//     ./recommend --generate 100000 --seed 2 test.tsv
//     argosy launch --server_num 2 --worker_num 2 ./recommend clicks.tsv --test test.tsv
//         [--model deepfm|wide_deep] [--mode sync|async|half_async] [--checkpoints DIR]
//
// All 39 columns are ids of one table: a category as it is, a number by its logarithm. A row has a
// weight of its own (the wide part) and 16 numbers: DeepFM multiplies the columns' numbers pair by
// pair, and both models give them to a small network.
//
// Expect, with 300,000 lines for training and 30,000 for the test, which take ten seconds with two
// servers and two workers on two cores: AUC 0.781 of DeepFM and 0.795 of Wide & Deep, where the
// truth itself has 0.860.
#include <argosy/argosy.h>
#include <argosy/formats/criteo.h>
#include <argosy/program/command_line.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <torch/torch.h>

using namespace argosy;
using formats::ClickBatch;

namespace {

constexpr size_t kColumns = ClickBatch::kNumbers + ClickBatch::kCategories;
constexpr int64_t kFactors = 16;

struct Options {
  std::string log{};
  std::string test{};
  std::string model = "deepfm";
  std::string mode = "sync";
  std::string checkpoints{};
  int64_t generate = 0;
  int64_t batch_size = 512;
  int64_t epochs = 1;
  double lr = 0.01;
  uint64_t seed = 1;
};

// -- A log whose truth is known.

/// A number in [-1, 1) that belongs to the id.
float taste(uint64_t id, uint64_t kind) {
  return 2 * ps::RowDraws(kind, id).unit(0) - 1;
}

/// The log odds of a click: what each category adds, what two pairs of them do together, and one of
/// the numbers. The other columns mean nothing.
double truth_of(const ClickBatch& batch, size_t row) {
  const uint64_t* const ids = &batch.categories[row * ClickBatch::kCategories];
  double odds = -1.2;
  for (size_t i = 0; i < 8; ++i) {
    odds += 0.8 * static_cast<double>(taste(ids[i], 1));
  }
  for (const auto& [one, other] : {std::pair(0, 1), std::pair(2, 3)}) {
    odds += 2.5 * static_cast<double>(taste(ids[one] % 64, 2) * taste(ids[other] % 64, 3));
  }
  const float number = batch.numbers[row * ClickBatch::kNumbers];
  return odds + (std::isnan(number) ? 0.0 : 0.3 * std::log1p(static_cast<double>(number)) - 0.6);
}

/// Column i has up to 10^(1 + i % 5) categories, of which few are seen often.
void draw_row(std::mt19937_64& random, ClickBatch& to) {
  std::uniform_real_distribution<double> uniform(0, 1);
  for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
    to.numbers.push_back(uniform(random) < 0.1
                             ? NAN
                             : static_cast<float>(std::floor(std::pow(1000.0, uniform(random)))));
  }
  for (uint64_t i = 0; i < ClickBatch::kCategories; ++i) {
    const auto category =
        static_cast<uint64_t>(std::pow(10.0, (1.0 + static_cast<double>(i % 5)) * uniform(random)));
    to.categories.push_back((i + 1) << 32U | category);
  }
  const double odds = truth_of(to, to.categories.size() / ClickBatch::kCategories - 1);
  to.clicked.push_back(uniform(random) < 1 / (1 + std::exp(-odds)) ? 1.0F : 0.0F);
}

metrics::Auc& add(metrics::Auc& auc, const ClickBatch& batch, const at::Tensor& odds) {
  auc.update(odds, torch::tensor(batch.clicked));
  return auc;
}

at::Tensor truth_of(const ClickBatch& batch) {
  std::vector<double> odds;
  for (size_t row = 0; row < batch.size(); ++row) {
    odds.push_back(truth_of(batch, row));
  }
  return torch::tensor(odds);
}

void generate(const Options& options) {
  std::mt19937_64 random(options.seed);
  std::ofstream out(options.log, std::ios::binary);
  metrics::Auc auc;
  for (int64_t row = 0; row < options.generate;) {
    ClickBatch batch;
    std::string text;
    for (; batch.size() < 4096 && row < options.generate; ++row) {
      draw_row(random, batch);
      append_criteo_line(batch, batch.size() - 1, text);
    }
    add(auc, batch, truth_of(batch));
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size()))) {
      throw DataError("recommend", "cannot write: is the disk full?", {.path = options.log});
    }
  }
  fmt::print("{} lines, AUC of the truth {:.4f}\n", options.generate, auc.compute());
}

// -- The models.

/// Returns the ids of all columns, i64 [n, 39]. Those of numbers follow those of categories.
at::Tensor ids_of(const ClickBatch& batch) {
  const auto n = static_cast<int64_t>(batch.size());
  at::Tensor ids = torch::empty({n, static_cast<int64_t>(kColumns)}, at::kLong);
  auto* to = ids.data_ptr<int64_t>();
  for (size_t row = 0; row < batch.size(); ++row) {
    for (size_t i = 0; i < ClickBatch::kCategories; ++i) {
      const uint64_t id = batch.categories[row * ClickBatch::kCategories + i];
      *to++ = static_cast<int64_t>(id != 0 ? id : (i + 1) << 48U);  // an empty one of each column
    }
    for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
      const float number = batch.numbers[row * ClickBatch::kNumbers + i];
      const int64_t size =
          std::isnan(number) ? 1000
                             : std::lround(4 * std::copysign(std::log1p(std::abs(number)), number));
      *to++ = (static_cast<int64_t>(ClickBatch::kCategories + i + 1) << 32) + size;
    }
  }
  return ids;
}

struct Recommender : torch::nn::Module {
  explicit Recommender(const Options& options)
      : multiplies(options.model == "deepfm"),
        columns(register_module("columns",
                                ps::Embedding(ps::EmbeddingOptions{.dim = 1 + kFactors,
                                                                   .rule = ps::adam(),
                                                                   .lr = options.lr,
                                                                   .initial_range = 0.01F}))),
        deep(register_module(
            "deep",
            torch::nn::Sequential(torch::nn::Linear(static_cast<int64_t>(kColumns) * kFactors, 64),
                                  torch::nn::ReLU(),
                                  torch::nn::Linear(64, 32),
                                  torch::nn::ReLU(),
                                  torch::nn::Linear(32, 1)))) {}

  /// Shape: ids i64 [n, 39] → log odds [n].
  at::Tensor forward(const at::Tensor& ids) {
    const at::Tensor rows = columns(ids);
    at::Tensor odds = rows.select(2, 0).sum(1);
    const at::Tensor factors = rows.narrow(2, 1, kFactors);
    if (multiplies) {  // the sum over all pairs of columns
      odds = odds + 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1);
    }
    return odds + deep->forward(factors.flatten(1)).squeeze(1);
  }

  bool multiplies;
  ps::Embedding columns;
  torch::nn::Sequential deep;
};

// -- Training.

ps::UpdateMode mode_of(const std::string& word) {
  return word == "async"        ? ps::UpdateMode::kAsync
         : word == "half_async" ? ps::UpdateMode::kHalfAsync
                                : ps::UpdateMode::kSync;
}

void evaluate(Recommender& model, const Options& options) {
  const torch::NoGradGuard no_grad;
  formats::CriteoReader log(options.test);
  metrics::Auc auc;
  metrics::Auc of_truth;
  for (ClickBatch batch; log.read(4096, batch) > 0; batch.clear()) {
    add(auc, batch, model.forward(ids_of(batch)));
    add(of_truth, batch, truth_of(batch));
  }
  fmt::print("AUC {:.4f} on {} lines; of the truth, if this program drew them, {:.4f}\n",
             auc.compute(),
             log.lines(),
             of_truth.compute());
}

/// Each worker takes its place in every round of batches. A rest that not all get is left out.
void learn(Recommender& model,
           optim::Adam& optimizer,
           ps::ServedTraining& training,
           const Options& o) {
  const ps::Roles& roles = training.roles();
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    formats::CriteoReader log(o.log);
    double loss_sum = 0;
    for (bool whole = true; whole;) {
      ClickBatch mine;
      for (int worker = 0; worker < roles.workers && whole; ++worker) {
        ClickBatch batch;
        whole =
            log.read(static_cast<size_t>(o.batch_size), batch) == static_cast<size_t>(o.batch_size);
        if (worker == roles.index) {
          mine = std::move(batch);
        }
      }
      if (!whole || step++ < training.steps()) {
        continue;  // the end, or before a resume
      }
      optimizer.zero_grad();
      const at::Tensor loss = torch::binary_cross_entropy_with_logits(model.forward(ids_of(mine)),
                                                                      torch::tensor(mine.clicked));
      loss.backward();
      training.step();
      loss_sum += loss.item<double>();
      if (step % 500 == 0) {
        if (!o.checkpoints.empty()) {
          training.save();
        }
        if (roles.index == 0) {
          fmt::print("step {}: loss {:.4f}\n", step, loss_sum / 500);
          std::cout << std::flush;
        }
        loss_sum = 0;
      }
    }
  }
}

void run(const Options& options) {
  if (options.generate > 0) {
    generate(options);
    return;
  }
  torch::manual_seed(options.seed);
  Recommender model(options);
  optim::Adam optimizer(model, {.lr = options.lr / 10});
  ps::ServedTraining training(model,
                              optimizer,
                              {.roles = ps::Roles::from_environment(),
                               .mode = mode_of(options.mode),
                               .staleness = 8,
                               .checkpoints = options.checkpoints,
                               .keep = {.keep_last = 2}});
  if (training.is_server()) {
    training.serve();
    return;
  }
  learn(model, optimizer, training, options);
  if (training.roles().index == 0) {
    for (const ps::TableStat& table : training.stats()) {
      fmt::print("{}: {} rows, {} MB\n", table.name, table.rows, table.bytes / 1'000'000);
    }
    if (!options.test.empty()) {
      evaluate(model, options);
    }
  }
  training.stop();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows{
      {"log", "", "Log of clicks in Criteo's form, .gz or not", &o.log, {.required = true}},
      {"--test", "FILE", "Log on which the first worker evaluates", &o.test},
      {"--model", "NAME", "What is learned", &o.model, {.words = "deepfm|wide_deep"}},
      {"--mode", "WORD", "When servers update", &o.mode, {.words = "sync|async|half_async"}},
      {"--checkpoints", "DIR", "Folder to save into, and to go on from", &o.checkpoints},
      {"--batch_size",
       "N",
       "Lines per step and worker",
       &o.batch_size,
       {.least = 1, .most = 65536}},
      {"--epochs", "N", "Passes over the log", &o.epochs, {.least = 1, .most = 1000}},
      {"--lr",
       "X",
       "Learning rate of the rows; a tenth of it for the network",
       &o.lr,
       {.least = 0, .most = 1}},
      {"--generate",
       "N",
       "Write a log of N lines instead",
       &o.generate,
       {.least = 0, .most = 1'000'000'000}},
      {"--seed", "N", "Of the weights, or of the log", &o.seed}};
  return program::run({"Learns who clicks what, with rows on servers: argosy launch --server_num N "
                       "--worker_num M."},
                      rows,
                      argc,
                      argv,
                      [&] { run(o); });
}
