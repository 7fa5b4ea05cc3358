#include "argosy/rpc/tensors.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rpc/agent.h"

namespace argosy::rpc {
namespace {

at::Tensor there_and_back(const at::Tensor& tensor) {
  Parcel parcel;
  Writer writer(parcel);
  Codec<at::Tensor>::put(writer, tensor);
  Reader reader(parcel);
  return Codec<at::Tensor>::take(reader);
}

TEST(RpcTensors, ComeBackToTheBit) {
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kBool}) {
    const at::Tensor tensor = at::arange(12, at::kInt).to(type).view({3, 4});
    const at::Tensor back = there_and_back(tensor);
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(back.equal(tensor));
  }
  const at::Tensor turned = at::arange(12).view({3, 4}).t();
  EXPECT_TRUE(there_and_back(turned).equal(turned));
  EXPECT_TRUE(there_and_back(turned).is_contiguous());
  const at::Tensor number = at::full({}, 2.5);
  EXPECT_TRUE(there_and_back(number).equal(number));
  EXPECT_EQ(there_and_back(at::empty({0, 3})).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_FALSE(there_and_back(at::Tensor()).defined());
  at::Tensor weight = at::ones({2});
  weight.set_requires_grad(true);
  EXPECT_FALSE(there_and_back(weight).requires_grad());
}

TEST(RpcTensors, AnErrorOfLibtorchTravelsWithoutItsStack) {
  Functions functions;
  functions.serve("add", [](const at::Tensor& a, const at::Tensor& b) { return a + b; });
  const AgentOptions options{.rank = 0,
                             .world_size = 1,
                             .store = rendezvous::in_process_store(),
                             .token = "a secret of the job"};
  Agent agent(options, functions);
  try {
    (void)agent.call<at::Tensor>(0, "add", at::ones({2}), at::ones({3}));
    FAIL();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.thrown().type, "c10::Error");
    EXPECT_THAT(error.thrown().text, testing::StartsWith("The size of tensor a (2) must match"));
    EXPECT_THAT(error.thrown().text, testing::Not(testing::HasSubstr("frame #")));
    EXPECT_THAT(error.thrown().text, testing::Not(testing::HasSubstr("Exception raised")));
  }
  agent.shutdown();
}

TEST(RpcTensors, BytesThatAreNotTheirsAreRefused) {
  const auto take = [](const std::string& type, const std::vector<int64_t>& sizes, size_t bytes) {
    Parcel parcel;
    Writer writer(parcel);
    writer.begin_list();
    writer.text(type);
    Codec<std::vector<int64_t>>::put(writer, sizes);
    writer.memory(Memory::own(std::vector<std::byte>(bytes)));
    writer.end_list();
    Reader reader(parcel);
    return Codec<at::Tensor>::take(reader);
  };
  EXPECT_EQ(take("Float", {2}, 8).numel(), 2);
  EXPECT_THROW((void)take("Float", {2}, 7), UsageError);
  EXPECT_THROW((void)take("Float", {-1}, 4), UsageError);
  EXPECT_THROW((void)take("Float", {int64_t{1} << 62, 4}, 0), UsageError);
  EXPECT_THROW((void)take("Undefined", {1}, 4), UsageError);
}

}  // namespace
}  // namespace argosy::rpc
