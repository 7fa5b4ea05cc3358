// Compares every list with what the real PaddlePaddle and PyTorch yielded (tests/golden/samplers).

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/data/batch_sampler.h"
#include "argosy/data/sampler.h"

namespace argosy::data {
namespace {

constexpr int64_t kShort = 48;

/// "paddle n=10 k=4 … len=2 : 2 3 | 9"
struct Line {
  std::map<std::string, int64_t> options;
  std::string key;       // the options without epoch and len: one sampler
  std::string expected;  // what follows the colon

  int64_t operator[](const std::string& name) const { return options.at(name); }
};

std::vector<Line> read_golden(const std::string& name) {
  std::ifstream file(std::string(ARGOSY_GOLDEN_DIR) + "/samplers/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#')) {
      continue;
    }
    Line line;
    const size_t colon = text.find(" :");
    std::istringstream words(text.substr(0, colon));
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        continue;
      }
      line.options[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
      if (!word.starts_with("epoch") && !word.starts_with("len")) {
        line.key += word + " ";
      }
    }
    line.expected = text.size() > colon + 3 ? text.substr(colon + 3) : "";
    lines.push_back(line);
  }
  return lines;
}

class Fnv1a {
 public:
  void add(int64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      digest_ = (digest_ ^ (static_cast<uint64_t>(value) >> (8 * byte) & 0xff)) * 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("fnv {:016x}", digest_); }

 private:
  uint64_t digest_ = 0xcbf29ce484222325ULL;
};

std::string show(const BatchPlan& plan) {
  Fnv1a digest;
  std::string text;
  for (int64_t b = 0; b < plan.size(); ++b) {
    text += b == 0 ? "" : " | ";
    for (size_t i = 0; i < plan[b].size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : " ", plan[b][i]);
      digest.add(plan[b][i]);
    }
    digest.add(-1);
  }
  return static_cast<int64_t>(plan.indices().size()) <= kShort ? text : digest.text();
}

std::string show(const std::vector<int64_t>& indices) {
  Fnv1a digest;
  std::string text;
  for (const int64_t i : indices) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", i);
    digest.add(i);
  }
  return static_cast<int64_t>(indices.size()) <= kShort ? text : digest.text();
}

DistributedBatchSampler paddle_sampler(const Line& line) {
  return DistributedBatchSampler(line["n"],
                                 {.batch_size = line["b"],
                                  .num_replicas = static_cast<int>(line["k"]),
                                  .rank = static_cast<int>(line["rank"]),
                                  .shuffle = line["shuffle"] != 0,
                                  .drop_last = line["drop_last"] != 0});
}

DistributedSampler torch_sampler(const Line& line) {
  return DistributedSampler(line["n"],
                            {.num_replicas = static_cast<int>(line["k"]),
                             .rank = static_cast<int>(line["rank"]),
                             .shuffle = line["shuffle"] != 0,
                             .seed = static_cast<uint64_t>(line["seed"]),
                             .drop_last = line["drop_last"] != 0});
}

TEST(SamplerGolden, DistributedBatchSamplerIsPaddlesInEveryCase) {
  const std::vector<Line> lines = read_golden("paddle.txt");
  EXPECT_GT(lines.size(), 4000U);
  for (const Line& line : lines) {
    DistributedBatchSampler sampler = paddle_sampler(line);
    ASSERT_EQ(sampler.size(), line["len"]) << line.key;
    ASSERT_EQ(show(sampler.plan(line["epoch"])), line.expected) << line.key << line["epoch"];
  }
}

TEST(SamplerGolden, EpochsAdvanceByThemselvesAsPaddlesDo) {
  std::map<std::string, DistributedBatchSampler> samplers;
  int64_t automatic = 0;
  for (const Line& line : read_golden("paddle.txt")) {
    DistributedBatchSampler& sampler =
        samplers.try_emplace(line.key, paddle_sampler(line)).first->second;
    if (sampler.epoch() != line["epoch"]) {
      sampler.set_epoch(line["epoch"]);  // the generator called set_epoch too
    } else if (line["epoch"] > 0) {
      ++automatic;
    }
    BatchPlan seen;
    for (const std::span<const int64_t> batch : sampler) {
      seen.add(batch);
    }
    ASSERT_EQ(show(seen), line.expected) << line.key << line["epoch"];
  }
  EXPECT_GT(automatic, 1000);
}

TEST(SamplerGolden, DistributedSamplerIsPyTorchsInEveryCase) {
  const std::vector<Line> lines = read_golden("torch.txt");
  EXPECT_GT(lines.size(), 1900U);
  for (const Line& line : lines) {
    DistributedSampler sampler = torch_sampler(line);
    ASSERT_EQ(sampler.size(), line["len"]) << line.key;
    sampler.set_epoch(line["epoch"]);
    ASSERT_EQ(show(sampler.next_epoch()), line.expected) << line.key << line["epoch"];
    ASSERT_EQ(sampler.epoch(), line["epoch"] + 1);
  }
}

TEST(SamplerGolden, RandomSamplerIsPyTorchsWithOneRank) {
  int64_t compared = 0;
  for (const Line& line : read_golden("torch.txt")) {
    if (line["k"] == 1 && line["shuffle"] == 1) {
      const RandomSampler sampler(line["n"], {.seed = static_cast<uint64_t>(line["seed"])});
      ASSERT_EQ(show(sampler.order(line["epoch"])), line.expected) << line.key;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace argosy::data
