// Who clicks what, from a log in the form of Criteo's data sets: Wide & Deep or DeepFM, whose rows
// and weights lie on servers. Workers read the log as a stream, each its part of the batches.
//
//     argosy data criteo --lines 1000000 --out clicks.tsv        // a log whose truth is known
//     argosy data criteo --lines 100000 --seed 2 --out test.tsv
//     argosy launch --server_num 2 --worker_num 2 ./recommend clicks.tsv --test test.tsv
//         [--model deepfm|wide_deep] [--mode sync|async|half_async] [--checkpoints DIR]
//
// `argosy train --model deepfm` does the same without a program. Here the loop is your own, and so
// is the model if you like: argosy/recommend/click_model.h has both.
//
// Expect, with 300,000 lines for training and 30,000 for the test, which take ten seconds with two
// servers and two workers on two cores: AUC 0.781 of DeepFM and 0.795 of Wide & Deep, where the
// truth itself has 0.860.
#include <argosy/argosy.h>
#include <argosy/program/command_line.h>

#include <iostream>
#include <string>

#include <torch/torch.h>

using namespace argosy;

namespace {

struct Options {
  std::string log{};
  std::string test{};
  std::string model = "deepfm";
  std::string mode = "sync";
  std::string checkpoints{};
  int64_t batch_size = 512;
  int64_t epochs = 1;
  double lr = 0.01;
  uint64_t seed = 1;
};

ps::UpdateMode mode_of(const std::string& word) {
  return word == "async"        ? ps::UpdateMode::kAsync
         : word == "half_async" ? ps::UpdateMode::kHalfAsync
                                : ps::UpdateMode::kSync;
}

void learn(recommend::ClickModel& model,
           optim::Adam& optimizer,
           ps::ServedTraining& training,
           const Options& o) {
  const ps::Roles& roles = training.roles();
  recommend::ClickFeed feed(
      {.path = o.log,
       .batch_size = o.batch_size,
       .workers = roles.workers,
       .worker = roles.index,
       .from = recommend::ClickPlace::parse(training.place()).value_or(recommend::ClickPlace())},
      training.steps() - training.begun(),
      o.epochs);
  double loss_sum = 0;
  while (const auto item = feed.next()) {
    if (item->ends_epoch()) {
      continue;
    }
    optimizer.zero_grad();
    const at::Tensor loss =
        torch::binary_cross_entropy_with_logits(model(item->inputs.ids), item->inputs.clicked);
    loss.backward();
    training.step();
    training.set_place(item->place.to_text());  // a resume begins behind it
    loss_sum += loss.item<double>();
    if (training.steps() % 500 == 0) {
      if (!o.checkpoints.empty()) {
        training.save();
      }
      if (roles.index == 0) {
        fmt::print("step {}: loss {:.4f}\n", training.steps(), loss_sum / 500);
        std::cout << std::flush;
      }
      loss_sum = 0;
    }
  }
}

void run(const Options& options) {
  torch::manual_seed(options.seed);
  recommend::ClickModel model({.network = options.model == "deepfm"
                                              ? recommend::ClickNetwork::kDeepFm
                                              : recommend::ClickNetwork::kWideDeep,
                               .row_lr = options.lr});
  optim::Adam optimizer(*model, {.lr = options.lr / 10});
  ps::ServedTraining training(*model,
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
      const recommend::ClickScores scores = recommend::scores_on(*model, {.path = options.test});
      fmt::print("AUC {:.4f}, log loss {:.4f} on {} lines\n",
                 scores.auc(),
                 scores.log_loss(),
                 scores.lines());
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
      {"--seed", "N", "Of the network's weights", &o.seed}};
  return program::run({"Learns who clicks what, with rows on servers: argosy launch --server_num N "
                       "--worker_num M."},
                      rows,
                      argc,
                      argv,
                      [&] { run(o); });
}
