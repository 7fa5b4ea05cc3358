// Who clicks what: a model whose weights lie on servers, because there is one for each of a million
// users and a hundred thousand things. A row is made when somebody is first seen. Servers and
// workers run this same program; each part of the tables lies on two servers, so that one may die.
//
//     argosy launch --server_num 2 --worker_num 2 ./09_parameter_server [--mode sync|async|geo]
//         [--checkpoints DIR] [--spill DIR] [--record DIR | --replay DIR]
//
// With --checkpoints it saves every 100 steps and goes on from there, with any number of servers.
// With --spill rows lie on disk there, beyond a few megabytes for each server.
// An asynchronous run with --record is repeated to the bit by --replay. In the mode geo, workers
// train by themselves for ten steps before they send what these have changed.
#include <argosy/argosy.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include <torch/torch.h>

using namespace argosy;

struct Clicks {
  at::Tensor users{}, things{}, clicked{};  ///< i64, i64, f32: [n]
  std::vector<float> truth{};               ///< log odds of each click
};

/// How much the id likes to click, or is clicked: a number in [-2, 2).
float liking(uint64_t id, uint64_t kind) {
  return 4 * ps::RowDraws(kind, id).unit(0) - 2;
}

/// `n` people who are shown something each. Few of both are seen often.
Clicks draw_clicks(int64_t n, uint64_t seed) {
  constexpr double kUsers = 1e6;
  constexpr double kThings = 1e5;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto often = [&](double most) {
    return static_cast<int64_t>(std::pow(most, uniform(random)));
  };
  Clicks all{.users = torch::empty(n, at::kLong),
             .things = torch::empty(n, at::kLong),
             .clicked = torch::empty(n)};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t user = often(kUsers);
    const int64_t thing = often(kThings);
    const float odds =
        liking(static_cast<uint64_t>(user), 1) + liking(static_cast<uint64_t>(thing), 2);
    all.users[i] = user;
    all.things[i] = thing;
    all.truth.push_back(odds);
    all.clicked[i] = uniform(random) < 1 / (1 + std::exp(-odds)) ? 1.0F : 0.0F;
  }
  return all;
}

struct Model : torch::nn::Module {
  Model()
      : users(register_module("users", ps::Embedding(row()))),
        things(register_module("things", ps::Embedding(row()))),
        bias(register_parameter("bias", torch::zeros(1))) {}

  static ps::EmbeddingOptions row() { return {.dim = 1, .rule = ps::adam(), .lr = 0.1}; }
  /// Returns the log odds of each click, [n].
  at::Tensor forward(const Clicks& clicks) {
    return (users(clicks.users) + things(clicks.things)).squeeze(-1) + bias;
  }

  ps::Embedding users, things;
  at::Tensor bias;
};

/// The chance that a click has higher odds than what was not clicked.
double area_under_curve(std::vector<float> odds, const at::Tensor& clicked) {
  std::vector<std::pair<float, bool>> all;
  for (size_t i = 0; i < odds.size(); ++i) {
    all.emplace_back(odds[i], clicked[static_cast<int64_t>(i)].item<float>() > 0);
  }
  std::ranges::sort(all);
  double below = 0;  // that were not clicked
  double pairs = 0;
  for (const auto& [score, click] : all) {
    pairs += click ? below : 0;
    below += click ? 0 : 1;
  }
  return pairs / (below * (static_cast<double>(all.size()) - below));
}

ps::UpdateMode mode_of(const std::string& name) {
  return name == "geo"     ? ps::UpdateMode::kGeo
         : name == "async" ? ps::UpdateMode::kAsync
                           : ps::UpdateMode::kSync;
}

int main(int argc, char** argv) {
  const std::string mode = program::take_option(argc, argv, "--mode");
  const auto folder_of = [&](const char* option) {
    return program::take_option(argc, argv, option, "");
  };
  const std::string checkpoints = folder_of("--checkpoints");
  const std::string spill = folder_of("--spill");
  Model model;
  optim::SGD optimizer(model, {.lr = 0.05});
  ps::ServedTraining training(model,
                              optimizer,
                              {.roles = ps::Roles::from_environment(),
                               .mode = mode_of(mode),
                               .geo_steps = 10,
                               .checkpoints = checkpoints,
                               .keep = {.keep_last = 2},
                               .record = folder_of("--record"),
                               .replay = folder_of("--replay"),
                               .memory_limit = spill.empty() ? size_t{0} : size_t{6'000'000},
                               .spill_directory = spill});
  if (training.is_server()) {
    training.serve();
    return 0;
  }
  const int worker = training.roles().index;
  while (training.steps() < 600) {
    const Clicks batch = draw_clicks(
        512, 1000 + static_cast<uint64_t>(training.steps() * training.roles().workers + worker));
    optimizer.zero_grad();
    const at::Tensor loss =
        torch::binary_cross_entropy_with_logits(model.forward(batch), batch.clicked);
    loss.backward();
    training.step();
    if (!checkpoints.empty() && training.steps() % 100 == 0) {
      training.save();
    }
    if (worker == 0 && training.steps() % 200 == 0) {
      std::cout << "step " << training.steps() << ": loss " << loss.item<float>() << std::endl;
    }
  }
  if (worker == 0) {
    const torch::NoGradGuard no_grad;
    const Clicks test = draw_clicks(20'000, 1);
    const at::Tensor odds = model.forward(test);
    const std::vector<float> mine(odds.data_ptr<float>(), odds.data_ptr<float>() + odds.numel());
    for (const ps::TableStat& table : training.stats()) {
      std::cout << table.name << ": " << table.rows << " rows\n";
    }
    std::cout << "AUC " << area_under_curve(mine, test.clicked) << ", of the truth itself "
              << area_under_curve(test.truth, test.clicked) << "\n";
  }
  training.stop();
}
