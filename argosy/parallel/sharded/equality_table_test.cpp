// A training has the bits of data parallelism however ranks divide its model, and on any number of
// them. ARGOSY_EQUALITY_STEPS=1000 makes so many steps and prints the rows of the guide's table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/even_part.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"

namespace argosy::parallel {
namespace {

using testing::Blocks;
using testing::on_ranks;
using testing::OptimizerCase;
using testing::optimizers;
using testing::ShardedBlocks;
using testing::values;

constexpr int64_t kVirtualRanks = 6;

struct TrainedCase {
  OptimizerCase optimizer{};
  int micros = 1;
  std::optional<at::ScalarType> autocast{};
};

/// Who keeps what.
struct Division {
  std::string name{};
  std::optional<ShardOptions> shard{};
  DivideOptions step{};
  bool shared_memory = true;
  bool divides = true;
};

std::vector<Division> divisions() {
  ShardOptions all;
  all.unit_bytes = 0;
  ShardOptions two = all;
  two.degree = 2;
  return {{.name = "data parallelism", .shared_memory = false, .divides = false},
          {.name = "stage 1", .step = {.divide_state = true}, .shared_memory = false},
          {.name = "stage 2", .step = {.scatter_gradients = true}, .shared_memory = false},
          {.name = "stage 3, gathered", .shard = all, .shared_memory = false},
          {.name = "stage 3, shared", .shard = all},
          {.name = "hybrid, among two", .shard = two}};
}

void keep_of_rank_0(ShardedBlocks& model, std::vector<at::Tensor>& result) {
  const WholeParameters whole = model.whole_parameters();
  if (model.group().rank() == 0) {
    for (const at::Tensor& parameter : model.parameters()) {
      result.push_back(parameter.detach().clone());
    }
  }
}

/// Returns the parameters that rank 0 has in the end.
std::vector<at::Tensor> train(const TrainedCase& recipe,
                              const Division& division,
                              int ranks,
                              int steps) {
  std::vector<at::Tensor> result;
  const auto body = [&](comm::Group& group) {
    ShardedBlocks model(Blocks(12, 2),
                        group,
                        {.shared_memory = division.shared_memory,
                         .autocast = recipe.autocast,
                         .shard = division.shard,
                         .virtual_ranks = kVirtualRanks});
    optim::Optimizer optimizer = recipe.optimizer.make(model);
    if (division.divides) {
      (void)model.divide_step(optimizer, division.step);
    }
    const IndexRange leaves = even_part(kVirtualRanks, ranks, group.rank());
    for (int step = 0; step < steps; ++step) {
      for (int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
        for (int micro = 0; micro < recipe.micros; ++micro) {
          model.begin({.leaf = leaf - leaves.begin,
                       .leaves = leaves.size(),
                       .micro = micro,
                       .micros = recipe.micros});
          const double seed = static_cast<double>(leaf) + 10.0 * step + 0.5 * micro;
          model(values({4, 3}, seed, at::kFloat)).to(at::kFloat).square().mean().backward();
        }
      }
      model.end_update();
      optimizer.step();
      optimizer.zero_grad();
    }
    keep_of_rank_0(model, result);
  };
  constexpr std::chrono::seconds kTimeout{20};
  on_ranks(ranks, body, kTimeout, {.deadline = kTimeout + std::chrono::seconds(steps)});
  return result;
}

/// The same without virtual ranks: the ranks' passes are added up in the process, or each is
/// reduced first.
std::vector<at::Tensor> train_adding_up(bool locally, const Division& division, int ranks) {
  std::vector<at::Tensor> result;
  on_ranks(ranks, [&](comm::Group& group) {
    ShardedBlocks model(
        Blocks(12, 2), group, {.shared_memory = division.shared_memory, .shard = division.shard});
    optim::Optimizer optimizer = optimizers()[3].make(model);
    if (division.divides) {
      (void)model.divide_step(optimizer, division.step);
    }
    for (int step = 0; step < 4; ++step) {
      for (int micro = 0; micro < 3; ++micro) {
        std::optional<NoSync> apart;
        if (locally && micro < 2) {
          apart.emplace(model.no_sync());
        }
        const double seed = group.rank() + 10.0 * step + 0.5 * micro;
        model(values({4, 3}, seed, at::kFloat)).square().mean().backward();
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    keep_of_rank_0(model, result);
  });
  return result;
}

bool have_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const at::Tensor& y) {
    return x.nbytes() == y.nbytes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
  });
}

std::vector<TrainedCase> trained_cases() {
  std::vector<TrainedCase> all;
  for (const OptimizerCase& each : optimizers()) {
    all.push_back({.optimizer = each});
    all.push_back({.optimizer = each, .micros = 3, .autocast = at::kBFloat16});
  }
  all.push_back({.optimizer = optimizers()[3], .micros = 3});
  all.push_back({.optimizer = optimizers()[3], .autocast = at::kBFloat16});
  return all;
}

std::string case_name(const ::testing::TestParamInfo<TrainedCase>& info) {
  const TrainedCase& recipe = info.param;
  const std::string& optimizer = recipe.optimizer.name;
  return fmt::format("{}_{}{}",
                     optimizer.substr(0, optimizer.find_first_of(" ,")),
                     recipe.micros,
                     recipe.autocast.has_value() ? "_bf16" : "");
}

class EqualityTable : public ::testing::TestWithParam<TrainedCase> {};

TEST_P(EqualityTable, EveryDivisionHasTheBitsOfDataParallelism) {
  const TrainedCase& recipe = GetParam();
  const char* const wanted = std::getenv("ARGOSY_EQUALITY_STEPS");
  const int steps = wanted == nullptr ? 4 : std::stoi(wanted);
  const std::vector<int> sizes = {1, 2, 4, 6};
  const std::vector<at::Tensor> expected = train(recipe, divisions()[0], 1, steps);
  EXPECT_FALSE(have_same_bits(expected, train(recipe, divisions()[0], 1, steps - 1)))
      << "a step changes something";
  std::string row = fmt::format("| {}, A = {}{} |",
                                recipe.optimizer.name,
                                recipe.micros,
                                recipe.autocast.has_value() ? ", bf16" : "");
  for (const Division& division : divisions()) {
    std::string same;
    for (const int size : sizes) {
      if (division.shard.has_value() && division.shard->degree > size) {
        continue;
      }
      const bool equal = have_same_bits(train(recipe, division, size, steps), expected);
      EXPECT_TRUE(equal) << row << ' ' << division.name << " on " << size;
      same += fmt::format("{}{}", equal ? "" : "not ", size) + (size == sizes.back() ? "" : ", ");
    }
    row += ' ' + same + " |";
  }
  if (wanted != nullptr) {
    std::cout << row << std::endl;  // it takes minutes
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EqualityTable, ::testing::ValuesIn(trained_cases()), case_name);

TEST(EqualityOfOrders, BothOrdersOfSumsHaveTheBitsOfDataParallelism) {
  for (const int size : {2, 4}) {
    std::vector<std::vector<at::Tensor>> plain;
    for (const bool locally : {true, false}) {
      plain.push_back(train_adding_up(locally, divisions()[0], size));
      for (const Division& division : divisions()) {
        EXPECT_TRUE(have_same_bits(train_adding_up(locally, division, size), plain.back()))
            << division.name << " on " << size << (locally ? ", local" : ", reduced");
      }
    }
    EXPECT_FALSE(have_same_bits(plain[0], plain[1])) << "the orders differ in their last bits";
  }
}

}  // namespace
}  // namespace argosy::parallel
