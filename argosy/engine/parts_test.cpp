#include "argosy/engine/parts.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

/// A tensor of which this process has some elements; nobody has the rest.
class Divided final : public ComingMemory {
 public:
  Divided(IndexRange range, at::Tensor part) : range_(range), part_(std::move(part)) {}
  void before_use(bool /*writes*/) noexcept override { ADD_FAILURE() << "nobody may ask for all"; }
  void after_use() noexcept override {}
  std::optional<TensorPart> own_part(const at::Tensor& /*view*/, bool to_write) override {
    written += to_write ? 1 : 0;
    return TensorPart{range_, part_};
  }
  int written = 0;

 private:
  IndexRange range_;
  at::Tensor part_;
};

/// The numbers from 0 on, of which it tells how many were read.
class Counted final : public ComingMemory {
 public:
  void before_use(bool /*writes*/) noexcept override { ADD_FAILURE() << "nobody may ask for all"; }
  void after_use() noexcept override {}
  [[nodiscard]] bool can_read() const override { return true; }
  at::Tensor read(const at::Tensor& /*view*/, const IndexRange& range) override {
    if (fails) {
      throw CheckpointError("test", "cannot read");
    }
    elements += range.size();
    return at::arange(range.begin, range.end, at::kFloat);
  }
  int64_t elements = 0;
  bool fails = false;
};

struct Target {
  explicit Target(IndexRange range)
      : part(at::zeros({range.size()})),
        memory(std::make_shared<Divided>(range, part)),
        whole(memory->make_flat(12, part.options()).view({2, 2, 3})) {}
  at::Tensor part;
  std::shared_ptr<Divided> memory;
  at::Tensor whole;
};

struct Source {
  std::shared_ptr<Counted> memory = std::make_shared<Counted>();
  at::Tensor whole = memory->make_flat(12, at::kFloat).view({2, 2, 3});
};

TEST(Parts, OfATensorInMemoryOnesOwnElementsAreCopied) {
  const Target target({4, 9});
  copy_values(target.whole, at::arange(12, at::kFloat).view({2, 2, 3}));
  EXPECT_TRUE(at::equal(target.part, at::arange(4, 9, at::kFloat)));
  EXPECT_EQ(target.memory->written, 1);
}

TEST(Parts, OfAFileOnesOwnElementsAreRead) {
  const Target target({4, 9});
  const Source source;
  copy_values(target.whole, source.whole);
  EXPECT_TRUE(at::equal(target.part, at::arange(4, 9, at::kFloat)));
  EXPECT_EQ(source.memory->elements, 5);
}

TEST(Parts, AreCountedInTheOrderOfTheTargetsMemory) {
  const at::Tensor values = at::arange(12, at::kFloat).view({2, 2, 3});
  const at::Tensor turned = at::empty({3, 2, 2}).permute({1, 2, 0});
  const at::Tensor expected = values.permute({2, 0, 1}).reshape({12}).slice(0, 4, 9);
  EXPECT_TRUE(at::equal(elements_like(turned, values, {4, 9}), expected));
  const Source source;
  EXPECT_TRUE(at::equal(elements_like(turned, source.whole, {4, 9}), expected));
}

/// On all ranks alike, whichever have the same part in both.
TEST(Parts, OfATensorThatIsDividedAllIsGathered) {
  const at::Tensor part = at::arange(4, 9, at::kFloat);
  int gathers = 0;
  const at::Tensor from = divided_tensor(at::empty({2, 2, 3}), {{4, 9}, part}, [&]() -> at::Tensor {
    ++gathers;
    return at::arange(12, at::kFloat).view({2, 2, 3});
  });
  const Target to({4, 9});
  copy_values(to.whole, from);
  EXPECT_TRUE(at::equal(to.part, part));
  EXPECT_EQ(gathers, 1);
}

TEST(Parts, AGatherThatFailsIsAnError) {
  const at::Tensor from =
      divided_tensor(at::empty({12}), {{4, 9}, at::zeros({5})}, []() -> at::Tensor {
        throw CheckpointError("test", "nobody is there");
      });
  const at::Tensor to = at::zeros({12});
  EXPECT_THROW(copy_values(to, from), CheckpointError);
  EXPECT_TRUE(at::equal(to, at::zeros({12})));
}

TEST(Parts, WhoHasAllReadsAll) {
  const Source source;
  const at::Tensor all = at::zeros({2, 2, 3});
  copy_values(all, source.whole);
  EXPECT_TRUE(at::equal(all.flatten(), at::arange(12, at::kFloat)));
  EXPECT_TRUE(at::equal(values_of(source.whole), all));
  EXPECT_FALSE(own_part(source.whole).has_value());
}

TEST(Parts, AFailureToReadIsThrownAndNothingIsCopied) {
  const Target target({4, 9});
  const Source source;
  source.memory->fails = true;
  EXPECT_THROW(copy_values(target.whole, source.whole), CheckpointError);
  EXPECT_TRUE(at::equal(target.part, at::zeros({5})));
}

}  // namespace
}  // namespace argosy::engine
