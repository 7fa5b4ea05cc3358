/// Tensors that are not plain: memory formats, views, 0-dim, empty, lazily negated; and those that
/// are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using test::error_text;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::with_threads;

at::Tensor counting(const std::vector<int64_t>& shape) {
  return at::arange(c10::multiply_integers(shape), at::kFloat).reshape(shape);
}

TEST(Layout, ResultsLandInTheCallersView) {
  with_threads(2, [](Group& world) {
    at::Tensor base = counting({4, 6});
    at::Tensor view = base.slice(1, 1, 6, 2);  // every second column
    const at::Tensor before = view.clone();
    all_reduce(view, world);
    EXPECT_TRUE(view.equal(2 * before));
    EXPECT_TRUE(base.select(1, 0).equal(counting({4, 6}).select(1, 0)));  // between: untouched
    at::Tensor transposed = counting({3, 5}).t();
    broadcast(transposed, world, {.root = 1});
    EXPECT_TRUE(transposed.equal(counting({3, 5}).t()));
  });
}

TEST(Layout, RanksMayDifferInMemoryFormat) {
  with_threads(2, [](Group& world) {
    at::Tensor t = counting({2, 3, 4, 5});
    if (world.rank() == 1) {
      t = t.contiguous(at::MemoryFormat::ChannelsLast);
    }
    const void* place = t.data_ptr();
    all_reduce(t, world);
    EXPECT_TRUE(t.equal(2 * counting({2, 3, 4, 5})));
    EXPECT_EQ(t.data_ptr(), place);
    EXPECT_EQ(t.is_contiguous(at::MemoryFormat::ChannelsLast), world.rank() == 1);
    const auto parts = all_gather(t, world);
    EXPECT_TRUE(parts[0].equal(parts[1]));
  });
}

TEST(Layout, ZeroDimAndEmptyTensors) {
  with_threads(3, [](Group& world) {
    at::Tensor scalar = at::scalar_tensor(world.rank() + 1.0);
    all_reduce(scalar, world);
    EXPECT_EQ(scalar.item<double>(), 6.0);
    EXPECT_EQ(all_gather(scalar, world)[2].dim(), 0);
    at::Tensor empty = at::empty({0, 4});
    all_reduce(empty, world);
    broadcast(empty, world);
    EXPECT_EQ(all_gather(empty, world)[1].sizes().vec(), (std::vector<int64_t>{0, 4}));
    EXPECT_EQ(all_gather_uneven(empty, world).sizes().vec(), (std::vector<int64_t>{0, 4}));
    all_to_all({empty, empty, empty}, {empty, empty, empty}, world);
    at::Tensor still_together = at::ones({1});
    all_reduce(still_together, world);
    EXPECT_EQ(still_together.item<float>(), 3);
  });
}

TEST(Layout, ExpandedIsFineToReadAndRefusedToWrite) {
  with_threads(2, [](Group& world) {
    const at::Tensor expanded = at::full({1}, world.rank(), at::kFloat).expand({4});
    EXPECT_TRUE(all_gather(expanded, world)[1].equal(at::ones({4})));
    EXPECT_THAT(error_text<UsageError>([&] { all_reduce(expanded, world); }),
                AllOf(HasSubstr("[comm.all_reduce]"), HasSubstr("shape [4] is expanded")));
    broadcast(world.rank() == 0 ? expanded : at::empty({4}), world, {.root = 0});  // root reads
  });
}

TEST(Layout, LazyNegationAndConjugationAreResolved) {
  with_threads(2, [](Group& world) {
    const at::Tensor complex = at::complex(at::ones({3}), at::full({3}, 2.0F));
    const at::Tensor negated = at::imag(complex.conj());  // -2, as a bit on the tensor
    ASSERT_TRUE(negated.is_neg());
    EXPECT_TRUE(all_gather(negated, world)[1].equal(at::full({3}, -2.0F)));
    EXPECT_TRUE(all_gather(complex.conj(), world)[0].equal(complex.conj().resolve_conj()));
  });
}

TEST(Layout, LeavesThatRequireGradAreWrittenBelowAutograd) {
  with_threads(2, [](Group& world) {
    for (const bool plain : {true, false}) {
      at::Tensor leaf = counting({3, 4});
      leaf = (plain ? leaf : leaf.t()).detach().set_requires_grad(true);
      const at::Tensor before = leaf.detach().clone();
      all_reduce(leaf, world);
      EXPECT_TRUE(leaf.detach().equal(2 * before));
      EXPECT_FALSE(leaf.grad_fn());
    }
  });
}

TEST(Layout, GatheredListsMayBeViewsOfOneBlock) {
  with_threads(2, [](Group& world) {
    const at::Tensor block = at::empty({2, 3});
    const at::Tensor mine = at::full({3}, world.rank() + 1.0);
    all_gather_async({block[0], block[1]}, mine, world).wait();
    EXPECT_TRUE(block[1].equal(at::full({3}, 2.0F)));
    const at::Tensor columns = at::empty({3, 2});  // the same list, but strided
    all_gather_async({columns.select(1, 0), columns.select(1, 1)}, mine, world).wait();
    EXPECT_TRUE(columns.select(1, 1).equal(at::full({3}, 2.0F)));
  });
}

TEST(Refusals, SayWhatWorksAndLeaveTheGroupWhole) {
  with_threads(2, [](Group& world) {
    EXPECT_THAT(
        error_text<UsageError>([&] { all_reduce(at::ones({2}, at::kComplexFloat), world); }),
        AllOf(HasSubstr("cannot reduce tensors of type ComplexFloat"),
              HasSubstr("f32 f64 f16 bf16 i8 u8 i32 i64 bool")));
    EXPECT_THAT(error_text<UsageError>(
                    [&] { all_reduce(at::ones({2}), world, {.op = transport::ReduceOp::kBand}); }),
                HasSubstr("is not defined for f32"));
    EXPECT_THAT(error_text<UsageError>([&] { all_reduce(at::Tensor(), world); }),
                HasSubstr("the tensor is undefined"));
    EXPECT_THAT(error_text<UsageError>([&] { all_reduce(at::ones({2}).to_sparse(), world); }),
                HasSubstr("expected a plain strided tensor"));
    EXPECT_THAT(error_text<UsageError>([&] { all_reduce(at::empty({2}, at::kMeta), world); }),
                HasSubstr("the tensor is on the device \"meta\", where tensors have no values"));
    EXPECT_THAT(error_text<UsageError>([&] { broadcast(at::ones({2}), world, {.root = 2}); }),
                HasSubstr("root 2 is not in group \"world\": expected 0 to 1"));
    EXPECT_THAT(error_text<UsageError>(
                    [&] { (void)all_gather_async({at::ones({2})}, at::ones({2}), world); }),
                HasSubstr("expected 2 tensors, one for each rank, got 1"));
    EXPECT_THAT(error_text<UsageError>([&] {
                  (void)all_gather_async({at::ones({2}), at::ones({3})}, at::ones({2}), world);
                }),
                HasSubstr("tensor 1 of the list: expected f32 [2], got f32 [3]"));
    EXPECT_THAT(error_text<UsageError>([&] { (void)all_gather_uneven(at::ones({}), world); }),
                HasSubstr("at least one dimension"));
    at::Tensor still_works = at::ones({1});
    all_reduce(still_works, world);
    EXPECT_EQ(still_works.item<float>(), 2);
  });
}

TEST(Refusals, UnevenGatherNamesWhoDiffers) {
  with_threads(3, [](Group& world) {
    const at::Tensor mine = at::ones({1, world.rank() == 1 ? 4 : 3});
    EXPECT_THAT(error_text<CommError>([&] { (void)all_gather_uneven(mine, world); }),
                HasSubstr("rank 1 brought another dtype or other trailing sizes"));
  });
}

}  // namespace
}  // namespace argosy::comm
