// What a server answers to those who do not speak as a worker of the job does.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/wire.h"
#include "argosy/rpc/server.h"

#include "rpc.pb.h"

namespace argosy::rpc {
namespace {

namespace net = rendezvous::wire;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kToken = "a1b2c3d4e5f60718";

class Strangers : public ::testing::Test {
 protected:
  Strangers() {
    functions_.serve("ran", [this](int) { ++ran_; });
    functions_.serve("length", [this](const Memory& memory) {
      ++ran_;
      return memory.size();
    });
    server_ = std::make_unique<Server>(ServerOptions{.host = "127.0.0.1",
                                                     .token = kToken,
                                                     .threads = 1,
                                                     .largest_call_bytes = size_t{1} << 20,
                                                     .shared_memory_bytes = size_t{64} << 20},
                                       functions_);
    channel_ = net::make_channel(
        net::grpc_addresses("127.0.0.1", server_->port()).or_throw<Error>("test"), {}, "127.0.0.1");
  }

  /// One call as somebody makes it by hand.
  struct Said {
    std::optional<std::string> token = kToken;
    std::string method = kMethod;
    std::vector<std::string> messages{};
    bool half_close = true;
    std::chrono::milliseconds timeout = 10s;
  };
  struct Heard {
    grpc::Status status{};
    bool refused = false;
    std::optional<wire::Reply> reply{};
  };

  Heard say(const Said& said) {
    class Reactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
     public:
      void begin(const Said& said) {
        for (const std::string& text : said.messages) {
          const grpc::Slice slice(text);
          messages.emplace_back(&slice, 1);
        }
        half_close = said.half_close;
        StartRead(&read);
        next();
        StartCall();
      }
      void next() {
        if (at < messages.size()) {
          StartWrite(&messages[at++]);
        } else if (half_close) {
          StartWritesDone();
        }
      }
      void OnWriteDone(bool ok) override {
        if (ok) {
          next();
        }
      }
      void OnReadDone(bool ok) override {
        if (ok) {
          replies.push_back(read);
          StartRead(&read);
        }
      }
      void OnDone(const grpc::Status& status) override { done.set_value(status); }

      std::vector<grpc::ByteBuffer> messages, replies;
      grpc::ByteBuffer read;
      size_t at = 0;
      bool half_close = true;
      std::promise<grpc::Status> done;
    };
    grpc::ClientContext context;
    if (said.token) {
      net::sign(context, *said.token);
    }
    context.set_deadline(net::to_grpc(Deadline::after(said.timeout)));
    Reactor reactor;
    grpc::GenericStub stub(channel_);
    stub.PrepareBidiStreamingCall(&context, said.method, {}, &reactor);
    reactor.begin(said);
    Heard heard{.status = reactor.done.get_future().get()};
    heard.refused = context.GetServerTrailingMetadata().contains(kRefused);
    if (!reactor.replies.empty()) {
      std::vector<grpc::Slice> slices;
      EXPECT_TRUE(reactor.replies[0].Dump(&slices).ok());
      std::string text;
      for (const grpc::Slice& slice : slices) {
        text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
      heard.reply.emplace();
      EXPECT_TRUE(heard.reply->ParseFromString(text));
    }
    return heard;
  }

  static wire::Request request(const std::string& function) {
    wire::Request all;
    all.set_function(function);
    all.set_caller("stranger");
    return all;
  }
  /// A call of "length" with a memory that lies in no message so far.
  static wire::Request beside(uint64_t bytes) {
    wire::Request all = request("length");
    all.mutable_arguments()->add_values()->set_memory(0);
    all.add_memories()->set_bytes(bytes);
    return all;
  }
  void expect_refused(const Heard& heard, const std::string& why) {
    EXPECT_TRUE(heard.refused);
    EXPECT_THAT(heard.status.error_message(), HasSubstr(why));
    EXPECT_EQ(ran_, 0);
  }

  Functions functions_;
  std::atomic<int> ran_ = 0;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(Strangers, WhoSpeaksAsAWorkerIsServed) {
  wire::Request call = request("ran");
  call.mutable_arguments()->add_values()->set_whole(3);
  const Heard heard = say({.messages = {call.SerializeAsString()}});
  EXPECT_TRUE(heard.status.ok()) << heard.status.error_message();
  EXPECT_TRUE(heard.reply->has_values());
  EXPECT_EQ(ran_, 1);
  const std::string half(500'000, 'x');
  const Heard length = say({.messages = {beside(1'000'000).SerializeAsString(), half, half}});
  ASSERT_TRUE(length.reply && length.reply->values().values_size() == 1)
      << length.status.error_message();
  EXPECT_EQ(length.reply->values().values(0).natural(), 1'000'000U);
}

TEST_F(Strangers, NobodyIsServedWithoutTheToken) {
  wire::Request call = request("ran");
  call.mutable_arguments()->add_values()->set_whole(3);
  const std::string text = call.SerializeAsString();
  const Heard wrong = say({.token = "wrong", .messages = {text}});
  expect_refused(wrong, "wrong job token");
  EXPECT_EQ(wrong.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  expect_refused(say({.token = "", .messages = {text}}), "no job token given");
  expect_refused(say({.token = std::nullopt, .messages = {text}}), "call protocol");
  expect_refused(say({.method = "/argosy.rpc.Agent/Other", .messages = {text}}), "no such method");
}

TEST_F(Strangers, AMessageThatCannotBeReadIsRefused) {
  expect_refused(say({.messages = {"\xff\xff\xff\xff"}}), "cannot be read");
  expect_refused(say({.messages = {}}), "not whole");
  expect_refused(say({.messages = {""}}), "it serves no function \"\"");
}

TEST_F(Strangers, MemoryThatIsNotAsItWasSaidIsRefused) {
  expect_refused(say({.messages = {beside(100'000).SerializeAsString(), "short"}}), "not whole");
  expect_refused(say({.messages = {beside(4).SerializeAsString(), "12345"}}), "5 bytes came");
  expect_refused(say({.messages = {beside(4).SerializeAsString(), ""}}), "0 bytes came");
  expect_refused(say({.messages = {beside(uint64_t{1} << 40).SerializeAsString()}}),
                 "exceeds 1048576 bytes");
  wire::Request many = beside(uint64_t{1} << 63);
  many.add_memories()->set_bytes(uint64_t{1} << 63);  // together 0
  expect_refused(say({.messages = {many.SerializeAsString()}}), "exceeds");
}

TEST_F(Strangers, SharedMemoryThatNobodyBroughtIsRefused) {
  wire::Request call = beside(64);
  call.mutable_memories(0)->mutable_shared()->set_offset(64);
  expect_refused(say({.messages = {call.SerializeAsString()}}), "none was brought");
  call.set_line("of nobody");
  expect_refused(say({.messages = {call.SerializeAsString()}}), "did not bring its memory");
}

TEST_F(Strangers, WhoSaysHalfAndStopsKeepsNoThread) {
  std::vector<std::future<Heard>> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(std::async(std::launch::async, [&] {
      return say({.messages = {beside(1000).SerializeAsString(), "half"},
                  .half_close = false,
                  .timeout = 1s});
    }));
  }
  wire::Request call = request("ran");
  call.mutable_arguments()->add_values()->set_whole(3);
  EXPECT_TRUE(say({.messages = {call.SerializeAsString()}}).status.ok());
  for (std::future<Heard>& half : halves) {
    EXPECT_EQ(half.get().status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(ran_, 1);
}

}  // namespace
}  // namespace argosy::rpc
