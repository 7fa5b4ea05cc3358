/// NCCL as far as one card shows it: the library that libtorch has loaded, its functions in a
/// communicator of one rank, and a group of one over its transport. On the second device it is the
/// fake library.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/call.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/device_queues.h"
#include "argosy/comm/init.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/lobby.h"
#include "argosy/transport/nccl/communicator.h"
#include "argosy/transport/nccl/exact.h"
#include "argosy/transport/nccl/library.h"
#include "argosy/transport/nccl/nccl.h"
#include "argosy/transport/peer_watch.h"

#include "tests/support/on_devices.h"
#include "tests/support/run_ranks.h"

namespace argosy::transport::nccl {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::array<std::pair<DataType, at::ScalarType>, 8> kTypes{{
    {DataType::kInt8, at::kChar},
    {DataType::kUint8, at::kByte},
    {DataType::kInt32, at::kInt},
    {DataType::kInt64, at::kLong},
    {DataType::kFloat16, at::kHalf},
    {DataType::kBfloat16, at::kBFloat16},
    {DataType::kFloat32, at::kFloat},
    {DataType::kFloat64, at::kDouble},
}};
constexpr std::array kSums{RedOp::kSum, RedOp::kProd, RedOp::kMax, RedOp::kMin, RedOp::kAvg};

class NcclAlone : public test::OnDevices {
 protected:
  void SetUp() override {
    OnDevices::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!is_cuda()) {
      comm::set_stream_handle(test::second_device().type(), &test::handle_of);
    }
    queue_ = comm::queues_of(device())->make();
    const auto inside = queue_->enter();
    communicator_ = std::make_unique<Communicator>(library());
  }

  /// The real one by itself: what libtorch has loaded.
  [[nodiscard]] std::string name_of_library() const { return is_cuda() ? "" : ARGOSY_FAKE_NCCL; }
  [[nodiscard]] std::shared_ptr<const Library> library() const {
    return Library::load(name_of_library());
  }
  [[nodiscard]] static Deadline soon() { return Deadline::after(60s); }

  void connect() { connect(*communicator_); }
  static void connect(Communicator& communicator) {
    const auto store = rendezvous::in_process_store();
    PeerWatch watch(store, 0, 1, {.transport = "nccl"}, soon());
    const RankNames names;
    const Lobby lobby(*store, watch, names);
    communicator.connect(lobby, {.key = "nccl", .members = {0}}, soon());
  }
  using Call = std::function<Result(const Api&, const void*, void*, Comm)>;
  /// What comes out of a call that gets `from`, in memory of its own.
  at::Tensor result_of(const char* name, const at::Tensor& from, const Call& call) {
    const at::Tensor to = at::zeros_like(from);
    queue_->follow(*queue_->mark_of_caller());
    communicator_->queue(name, soon(), [&](Comm comm) {
      return call(library()->api(), from.data_ptr(), to.data_ptr(), comm);
    });
    queue_->mark()->hold_caller();
    return to;
  }

  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<Communicator> communicator_;
};

TEST_P(NcclAlone, TheLibraryIsFoundAndLacksNothing) {
  RecordProperty("library", library()->description());
  fmt::print("{}\n", library()->description());
  EXPECT_THAT(library()->missing(), ::testing::IsEmpty());
}

TEST_P(NcclAlone, EveryCollectiveOfEveryTypeGivesBackWhatItGets) {
  connect();
  void* const stream = queue_->handle();
  constexpr size_t kCount = 1001;
  for (const auto& [type, scalar] : kTypes) {
    const at::Tensor from = at::arange(1.0, kCount + 1.0).remainder(50).to(scalar).to(device());
    const auto expect_back = [&](const char* name, const Call& call) {
      const at::Tensor to = result_of(name, from, call);
      EXPECT_TRUE(to.cpu().equal(from.cpu())) << name << " of " << scalar;
    };
    for (const RedOp op : kSums) {
      if (op == RedOp::kAvg && !from.is_floating_point()) {
        continue;  // not asked of NCCL
      }
      expect_back("ncclAllReduce", [&](const Api& api, const void* in, void* out, Comm comm) {
        return api.all_reduce(in, out, kCount, type, op, comm, stream);
      });
      expect_back("ncclReduce", [&](const Api& api, const void* in, void* out, Comm comm) {
        return api.reduce(in, out, kCount, type, op, 0, comm, stream);
      });
      expect_back("ncclReduceScatter", [&](const Api& api, const void* in, void* out, Comm comm) {
        return api.reduce_scatter(in, out, kCount, type, op, comm, stream);
      });
    }
    expect_back("ncclBroadcast", [&](const Api& api, const void* in, void* out, Comm comm) {
      return api.broadcast(in, out, kCount, type, 0, comm, stream);
    });
    expect_back("ncclAllGather", [&](const Api& api, const void* in, void* out, Comm comm) {
      return api.all_gather(in, out, kCount, type, comm, stream);
    });
    const at::Tensor got = at::zeros_like(from);
    queue_->follow(*queue_->mark_of_caller());
    communicator_->queue_group("ncclSend", soon(), [&](const auto& take, Comm comm) {
      take(library()->api().send(from.data_ptr(), kCount, type, 0, comm, stream));
      take(library()->api().recv(got.data_ptr(), kCount, type, 0, comm, stream));
    });
    queue_->mark()->hold_caller();
    EXPECT_TRUE(got.cpu().equal(from.cpu())) << "a message of " << scalar;
  }
  communicator_->check();
}

/// Its exchange between ranks is of nothing here, which the library must take for a group.
TEST_P(NcclAlone, ExactReductionInACommunicatorOfOne) {
  connect();
  const LeafDeal deal = LeafDeal::in_ranges(7, 2).leaves_of(0);
  std::vector<at::Tensor> nodes;
  std::vector<const void*> addresses;
  at::Tensor wanted = at::zeros({1000});
  for (size_t i = 0; i < deal.nodes(0).size(); ++i) {
    const at::Tensor node = at::full({1000}, static_cast<float>(i + 1));
    wanted += node;
    nodes.push_back(node.to(device()));
    addresses.push_back(nodes.back().data_ptr());
  }
  ASSERT_EQ(deal.sums().size(), 1U);
  const at::Tensor sum = at::empty_like(nodes[0]);
  void* const to = sum.data_ptr();
  const std::shared_ptr<const Library> nccl = library();
  queue_->follow(*queue_->mark_of_caller());
  ExactReduction(*nccl, *communicator_, *queue_, 0, soon())
      .all_reduce({deal, addresses, {&to, 1}}, 1000, DType::kF32, ReduceOp::kSum);
  queue_->mark()->hold_caller();
  EXPECT_TRUE(sum.cpu().equal(wanted));
}

TEST_P(NcclAlone, AWrongCallIsToldWithTheLibrarysWords) {
  connect();
  const at::Tensor some = at::ones({4}, device());
  try {
    communicator_->queue_group("ncclSend", soon(), [&](const auto& take, Comm comm) {
      take(library()->api().send(
          some.data_ptr(), 4, DataType::kFloat32, /*peer=*/5, comm, queue_->handle()));
    });
    FAIL() << "a message to rank 5 of 1 was taken";
  } catch (const OwnFault& fault) {
    EXPECT_THAT(fault.reason, HasSubstr("ncclSend"));
    EXPECT_THAT(fault.reason, HasSubstr("invalid argument"));
  }
}

TEST_P(NcclAlone, EndsInPeaceAndNotTwice) {
  connect();
  const at::Tensor ones = at::ones({8}, device());
  const at::Tensor sum =
      result_of("ncclAllReduce", ones, [&](const Api& api, const void* in, void* out, Comm comm) {
        return api.all_reduce(in, out, 8, DataType::kFloat32, RedOp::kSum, comm, queue_->handle());
      });
  EXPECT_TRUE(communicator_->close(soon()));
  Communicator::abort_together(library(), {communicator_.get()});  // nothing is left of it
  EXPECT_TRUE(sum.cpu().equal(at::ones({8})));
  EXPECT_THROW(communicator_->queue("ncclAllReduce", soon(), [](Comm) { return Result::kSuccess; }),
               LinkBroken);
}

/// The device lives on, and the next communicators work.
TEST_P(NcclAlone, SeveralAreAbortedWithWhatIsQueued) {
  const at::Tensor much = at::ones({int64_t{1} << 20}, device());
  for (int round = 0; round < 3; ++round) {
    Communicator one(library());
    Communicator other(library());
    for (Communicator* const each : {&one, &other}) {
      connect(*each);
      queue_->follow(*queue_->mark_of_caller());
      for (int i = 0; i < 20; ++i) {
        each->queue("ncclAllReduce", soon(), [&](Comm comm) {
          return library()->api().all_reduce(much.data_ptr(),
                                             much.data_ptr(),
                                             static_cast<size_t>(much.numel()),
                                             DataType::kFloat32,
                                             RedOp::kSum,
                                             comm,
                                             queue_->handle());
        });
      }
    }
    Communicator::abort_together(library(), {&one, &other});
    queue_->mark()->hold_caller();
    EXPECT_EQ(at::ones({3}, device()).sum().item<float>(), 3);
  }
}

/// Unless each has a NCCL_HOSTID of its own. Where the card's address is known nobody asks the
/// library.
TEST_P(NcclAlone, TwoRanksOnOneCardAreRefused) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        (void)make_nccl(
            store,
            rank,
            2,
            {.library = name_of_library(), .queues = comm::queues_of(device()), .timeout = 20s});
      },
      {.deadline = 50s});
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, is_cuda() ? "argosy::ConfigError" : "argosy::CommError")
        << describe(outcome);
    EXPECT_THAT(outcome.error,
                HasSubstr(is_cuda() ? "rank 0 and rank 1 are on one device" : "Duplicate GPU"));
  }
}

/// Everything of the transport but the library: its stream, its events, its thread.
class GroupOfOne : public NcclAlone {
 protected:
  void SetUp() override {
    NcclAlone::SetUp();
    if (!IsSkipped()) {
      group_ = comm::connect({.backend = "cpu:in_process,cuda:nccl",
                              .store = rendezvous::in_process_store(),
                              .timeout = 30s});
    }
  }
  comm::Group group_;
};

TEST_P(GroupOfOne, HasAStreamOfItsOwnAndEveryOperation) {
  const at::Tensor given = at::arange(24.0).reshape({4, 6});
  const at::Tensor some = given.to(device());
  ASSERT_NE(comm::route_of(group_.state(), some).line, nullptr) << "goes through the host";
  const auto expect_given = [&](const char* op, const at::Tensor& got) {
    EXPECT_EQ(got.device(), some.device()) << op;
    EXPECT_TRUE(got.cpu().equal(given)) << op;
  };
  const std::vector<at::Tensor> one{some};
  const auto into = [&](const std::function<void(const at::Tensor&)>& operation) {
    const at::Tensor to = at::zeros_like(some);
    operation(to);
    return to;
  };
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kProduct}) {
    comm::all_reduce(some, group_, {.op = op});
    comm::reduce(some, group_, {.op = op});
  }
  comm::broadcast(some, group_);
  comm::barrier(group_);
  expect_given("all_reduce, reduce, broadcast", some);
  expect_given("all_gather", comm::all_gather(some, group_)[0]);
  expect_given("all_gather_uneven", comm::all_gather_uneven(some, group_));
  expect_given("gather", comm::gather(some, group_)[0]);
  expect_given("scatter", into([&](const auto& to) { comm::scatter(to, one, group_); }));
  expect_given("reduce_scatter",
               into([&](const auto& to) { comm::reduce_scatter(to, one, group_); }));
  expect_given("all_to_all", into([&](const auto& to) { comm::all_to_all({to}, one, group_); }));
}

/// The operation comes after what the caller has queued in its stream, and the caller's next work
/// after the operation, though nothing waits but the device.
TEST_P(GroupOfOne, TakesItsPlaceInTheCallersStream) {
  const int64_t side = is_cuda() ? 2048 : 64;
  const at::Tensor factor = at::eye(side).to(device());
  const c10::impl::VirtualGuardImpl guard(device().type());
  for (int round = 0; round < 20; ++round) {
    const c10::StreamGuard in_own_stream(guard.getStreamFromGlobalPool(device()));
    at::Tensor late = at::full({side, side}, round + 1.0F, device());
    for (int i = 0; i < 10; ++i) {
      late = at::matmul(late, factor);
    }
    const at::Tensor gathered = at::zeros_like(late);
    const comm::Work work = comm::all_gather_async({gathered}, late, group_);
    late.reset();  // its memory is recorded on the group's stream
    const at::Tensor other = at::full({side, side}, -1.0F, device());
    work.wait();
    const at::Tensor next = gathered + 1;
    EXPECT_TRUE(next.cpu().eq(round + 2.0F).all().item<bool>()) << "round " << round;
    EXPECT_TRUE(other.cpu().eq(-1.0F).all().item<bool>());
  }
}

ARGOSY_ON_DEVICES(NcclAlone);
ARGOSY_ON_DEVICES(GroupOfOne);

}  // namespace
}  // namespace argosy::transport::nccl
