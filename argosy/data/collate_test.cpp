#include "argosy/data/collate.h"

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::data {
namespace {

const std::array<int64_t, 3> kIndices{40, 41, 42};

class Collate : public testing::Test {
 protected:
  template <typename Sample>
  auto operator()(const std::vector<Sample>& samples) {
    return DefaultCollate()(samples, context);
  }
  TensorPool pool;
  BatchContext context{.indices = kIndices, .pool = &pool};
};

TEST_F(Collate, TensorsAreStacked) {
  const std::vector<at::Tensor> samples{
      torch::rand({2, 3}), torch::rand({2, 3}), torch::rand({2, 3})};
  const at::Tensor batch = (*this)(samples);
  EXPECT_TRUE(at::equal(batch, torch::stack(samples)));
  EXPECT_EQ(pool.stats().allocated, 1U);
}

TEST_F(Collate, StridesBitsAndEmptyTensorsAreRespected) {
  const at::Tensor base = torch::rand({3, 2});
  EXPECT_TRUE(at::equal((*this)(std::vector<at::Tensor>{base.t(), base.t() + 1}),
                        torch::stack({base.t(), base.t() + 1})));
  const at::Tensor z = torch::view_as_complex(torch::rand({4, 2}));
  EXPECT_TRUE(
      at::equal((*this)(std::vector<at::Tensor>{at::conj(z)}), torch::stack({at::conj(z)})));
  EXPECT_EQ((*this)(std::vector<at::Tensor>{torch::empty({0, 5})}).sizes(),
            (std::vector<int64_t>{1, 0, 5}));
  EXPECT_EQ((*this)(std::vector<at::Tensor>{torch::tensor(2.5)}).sizes(),
            (std::vector<int64_t>{1}));
}

TEST_F(Collate, ImagesTakeTheMemoryFormatOfTheContext) {
  context.memory_format = at::MemoryFormat::ChannelsLast;
  const at::Tensor batch = torch::rand({3, 3, 4, 5});
  const auto expect_same = [&](const at::Tensor& all) {
    const at::Tensor out = (*this)(std::vector<at::Tensor>{all[0], all[1], all[2]});
    EXPECT_TRUE(at::equal(out, all));
    EXPECT_TRUE(out.is_contiguous(all.dim() == 4 && all.is_floating_point()
                                      ? at::MemoryFormat::ChannelsLast
                                      : at::MemoryFormat::Contiguous));
  };
  expect_same(batch);
  expect_same(batch.to(at::MemoryFormat::ChannelsLast));
  expect_same(batch.transpose(2, 3));
  expect_same(batch.slice(3, 1, 4));
  expect_same(batch.slice(1, 0, 1));
  expect_same(batch.slice(1, 0, 2));
  expect_same(batch.to(torch::kDouble));
  expect_same(batch.to(torch::kHalf));
  expect_same((batch * 255).to(torch::kByte));
  expect_same(torch::rand({3, 4, 5}));
  expect_same(torch::rand({3, 1, 1, 1}));
  context.memory_format = at::MemoryFormat::Contiguous;
  EXPECT_TRUE((*this)(std::vector<at::Tensor>{batch.to(at::MemoryFormat::ChannelsLast)[0]})
                  .is_contiguous());
}

TEST_F(Collate, NumbersTakeTheirTypes) {
  EXPECT_TRUE(at::equal((*this)(std::vector<int>{1, -2}), torch::tensor({1, -2}, torch::kLong)));
  EXPECT_TRUE(at::equal((*this)(std::vector<uint8_t>{255}), torch::tensor({255}, torch::kLong)));
  EXPECT_TRUE(at::equal((*this)(std::vector<float>{0.5F}), torch::tensor({0.5}, torch::kFloat)));
  EXPECT_TRUE(at::equal((*this)(std::vector<double>{0.1}), torch::tensor({0.1}, torch::kDouble)));
  EXPECT_TRUE(at::equal(DefaultCollate()(std::vector<bool>{true, false}, context),
                        torch::tensor({true, false})));
}

TEST_F(Collate, TuplesPairsArraysAndNestedOnes) {
  using Sample = std::tuple<at::Tensor, std::pair<int, double>, std::array<float, 2>>;
  const auto [x, numbers, two] = (*this)(std::vector<Sample>{
      {torch::zeros({2}), {1, 2.0}, {3.F, 4.F}}, {torch::ones({2}), {5, 6.0}, {7.F, 8.F}}});
  EXPECT_EQ(x.sizes(), (std::vector<int64_t>{2, 2}));
  const auto& [i, d] = numbers;
  EXPECT_TRUE(at::equal(i, torch::tensor({1, 5}, torch::kLong)));
  EXPECT_TRUE(at::equal(d, torch::tensor({2.0, 6.0}, torch::kDouble)));
  EXPECT_TRUE(at::equal(std::get<1>(two), torch::tensor({4.F, 8.F})));
}

TEST_F(Collate, ATupleOfOneTupleStaysNested) {
  const auto batch = (*this)(std::vector<std::tuple<std::pair<int, int>>>{{{1, 2}}});
  static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(batch)>> == 1);
  EXPECT_EQ(std::get<1>(std::get<0>(batch)).item<int64_t>(), 2);
}

enum class Side { kLeft, kRight };
struct Face {
  at::Tensor image;
  std::array<float, 2> point;
  Side side;
  int64_t id;
};

TEST_F(Collate, StructsBecomeTuplesOfTheirFields) {
  const auto [image, point, side, id] =
      (*this)(std::vector<Face>{{torch::zeros({1, 2}), {1, 2}, Side::kRight, 9},
                                {torch::ones({1, 2}), {3, 4}, Side::kLeft, 8}});
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{2, 1, 2}));
  EXPECT_TRUE(at::equal(std::get<0>(point), torch::tensor({1.F, 3.F})));
  EXPECT_TRUE(at::equal(side, torch::tensor({1, 0}, torch::kLong)));
  EXPECT_TRUE(at::equal(id, torch::tensor({9, 8}, torch::kLong)));
}

template <typename F>
DataError error_of(F f) {
  try {
    f();
  } catch (const DataError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST_F(Collate, ASampleOfAnotherShapeIsNamed) {
  const DataError error = error_of([&] {
    (void)(*this)(
        std::vector<at::Tensor>{torch::zeros({3, 4}), torch::zeros({3, 4}), torch::zeros({3, 5})});
  });
  EXPECT_STREQ(error.what(),
               "[data.collate] expected the shape [3, 4] Float of the batch's first sample, got "
               "[3, 5] Float. Resize or pad in get(), or pass a collate function to the "
               "DataLoader (sample 42)");
  EXPECT_EQ(error.place().index, 42);
  EXPECT_EQ(
      error_of([&] {
        (void)(*this)(std::vector<at::Tensor>{torch::zeros({2}), torch::zeros({2}, torch::kLong)});
      })
          .place()
          .index,
      41);
  EXPECT_EQ(error_of([&] { (void)(*this)(std::vector<at::Tensor>{at::Tensor()}); }).place().index,
            40);
}

}  // namespace
}  // namespace argosy::data
