// Callers that should not be here: wrong token, wrong version, garbage, a taken port.
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_kinds.h"
#include "argosy/rendezvous/store_server.h"

#include "store.grpc.pb.h"
#include "tests/support/error_text.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::error_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Strangers : public testing::Test {
 protected:
  static constexpr const char* kToken = "open sesame";
  std::unique_ptr<StoreServer> server_ = StoreServer::start({.token = kToken});

  std::string connect(const std::string& token) {
    return error_text<RendezvousError>(
        [&] { (void)connect_store("127.0.0.1", server_->port(), token, soon()); });
  }
  std::string address() { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::unique_ptr<wire::StoreService::Stub> stub() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxSendMessageSize(-1);
    return wire::StoreService::NewStub(grpc::CreateCustomChannel(
        "ipv4:" + address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void expect_alive() { EXPECT_EQ(connect(kToken), "nothing was thrown"); }
};

TEST_F(Strangers, AWrongTokenIsRefusedAndNeverPrinted) {
  EXPECT_THAT(connect("open barley"),
              AllOf(HasSubstr("[rendezvous.connect] the store grpc://" + address() +
                              " refused this process: wrong job token"),
                    HasSubstr("ARGOSY_TOKEN"),
                    Not(HasSubstr("barley")),
                    Not(HasSubstr("sesame"))));
  EXPECT_THAT(connect(""), HasSubstr("no job token given"));
  EXPECT_THAT(connect("open sesam"), HasSubstr("wrong job token"));
  expect_alive();
}

TEST_F(Strangers, ARefusalIsLoggedOnceForEachHost) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(connect("open barley"), HasSubstr("wrong job token"));
  EXPECT_THAT(connect("open rye"), HasSubstr("wrong job token"));
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string told = "refused a caller from 127.0.0.1: wrong job token";
  EXPECT_THAT(log, HasSubstr(told));
  EXPECT_EQ(log.find(told), log.rfind(told)) << log;
  EXPECT_THAT(log, Not(HasSubstr("barley")));
}

TEST_F(Strangers, EveryCallNeedsTheToken) {
  const auto stub = this->stub();
  const auto code = [&](auto method, auto request, auto reply) {
    grpc::ClientContext context;
    context.AddMetadata("argosy-protocol", "1");
    return ((*stub).*method)(&context, request, &reply).error_code();
  };
  using wire::StoreService;
  using Stub = StoreService::Stub;
  constexpr auto kRefused = grpc::StatusCode::UNAUTHENTICATED;
  EXPECT_EQ(code(&Stub::Hello, wire::HelloRequest(), wire::HelloReply()), kRefused);
  EXPECT_EQ(code(&Stub::Set, wire::SetRequest(), wire::SetReply()), kRefused);
  EXPECT_EQ(code(&Stub::Get, wire::GetRequest(), wire::GetReply()), kRefused);
  EXPECT_EQ(code(&Stub::Wait, wire::WaitRequest(), wire::WaitReply()), kRefused);
  EXPECT_EQ(code(&Stub::Missing, wire::MissingRequest(), wire::MissingReply()), kRefused);
  EXPECT_EQ(code(&Stub::Add, wire::AddRequest(), wire::AddReply()), kRefused);
  EXPECT_EQ(code(&Stub::CompareSet, wire::CompareSetRequest(), wire::CompareSetReply()), kRefused);
  EXPECT_EQ(code(&Stub::Remove, wire::RemoveRequest(), wire::RemoveReply()), kRefused);
  EXPECT_EQ(code(&Stub::Keys, wire::KeysRequest(), wire::KeysReply()), kRefused);
  EXPECT_EQ(code(&Stub::Departures, wire::DeparturesRequest(), wire::DeparturesReply()), kRefused);
  EXPECT_EQ(code(&Stub::Members, wire::MembersRequest(), wire::MembersReply()), kRefused);
  grpc::ClientContext context;
  context.AddMetadata("argosy-protocol", "1");
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stream = stub->Announce(&context);
  wire::PresenceUpdate update;
  update.set_member("rank/0");
  stream->Write(update);
  EXPECT_EQ(stream->Finish().error_code(), kRefused);
  EXPECT_TRUE(server_->local()->members("", soon()).empty());
}

TEST_F(Strangers, AnotherProtocolVersionIsRefusedWithBothVersions) {
  for (const std::string version : {"2", "none"}) {
    grpc::ClientContext context;
    if (version != "none") {
      context.AddMetadata("argosy-protocol", version);
    }
    context.AddMetadata("argosy-token-bin", kToken);
    wire::HelloReply reply;
    const grpc::Status status = stub()->Hello(&context, {}, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(), "expected store protocol 1, got " + version);
  }
}

TEST_F(Strangers, TheServerItselfRefusesMalformedAndOversizedRequests) {
  const auto stub = this->stub();
  const auto set = [&](const std::string& key, size_t bytes) {
    grpc::ClientContext context;
    context.AddMetadata("argosy-protocol", "1");
    context.AddMetadata("argosy-token-bin", kToken);
    wire::SetRequest request;
    request.set_key(key);
    request.set_value(std::string(bytes, 'v'));
    wire::SetReply reply;
    return stub->Set(&context, request, &reply).error_code();
  };
  EXPECT_EQ(set("a\nb", 1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(set("", 1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(set("k", (16 << 20) + 1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(set("k", 40 << 20), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(set("k", 1), grpc::StatusCode::OK);
}

TEST_F(Strangers, GarbageOnThePortHarmsNobody) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"),
                                   std::string(1000, '\xff'),
                                   std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff", 27),
                                   std::string("PRI * HT")}) {
    os::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(server_->port());
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
    ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    expect_alive();
  }
}

TEST_F(Strangers, AThousandConnectionsThatSayNothingOrHalfAWordKeepNobodyOut) {
  constexpr size_t kConnections = 1000;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 3 * kConnections) {  // both ends are in this process
    GTEST_SKIP() << "only " << files.rlim_max << " open files";
  }
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  constexpr std::array<std::string_view, 3> kHalf{
      "", "PRI * HTTP/2.0\r\n", std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12", 27)};
  std::vector<os::UniqueFd> strangers;
  for (size_t i = 0; i < kConnections; ++i) {
    strangers.push_back(*os::connect_tcp("127.0.0.1", server_->port(), soon()));
    const std::string_view words = kHalf.at(i % kHalf.size());
    ASSERT_EQ(::send(strangers.back().get(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  const auto store = connect_store("127.0.0.1", server_->port(), kToken, soon());
  const auto presence = store->announce("rank/0", soon());
  store->set("key", "value", soon());
  EXPECT_EQ(store->get("key", soon()), "value");
  strangers.clear();
  EXPECT_EQ(store->get("key", soon()), "value");
  EXPECT_EQ(store->members("rank/", soon()).size(), 1U);
  expect_alive();
}

TEST_F(Strangers, ATakenPortIsNamed) {
  EXPECT_THAT(
      error_text<RendezvousError>([&] { (void)StoreServer::start({.port = server_->port()}); }),
      AllOf(HasSubstr("[rendezvous.listen] cannot listen on " + address() +
                      ": Address already in use (EADDRINUSE)"),
            HasSubstr("Choose another port")));
  EXPECT_THAT(error_text<RendezvousError>(
                  [&] { (void)StoreServer::start({.host = "192.0.2.1", .port = 1}); }),
              HasSubstr("cannot listen on 192.0.2.1:1: Cannot assign requested address"));
  EXPECT_THAT(error_text<RendezvousError>(
                  [&] { (void)StoreServer::start({.host = "no.such.host.invalid"}); }),
              HasSubstr("cannot resolve host \"no.such.host.invalid\""));
  expect_alive();
}

TEST(Connecting, SaysWhatWasTriedWhenNobodyIsThere) {
  uint16_t port = 0;
  {
    auto server = StoreServer::start({});
    port = server->port();
  }
  const auto start = Deadline::Clock::now();
  EXPECT_THAT(error_text<RendezvousError>([&] {
                (void)connect_store("127.0.0.1", port, "", Deadline::after(milliseconds(300)));
              }),
              AllOf(HasSubstr("[rendezvous.connect] cannot reach the store at 127.0.0.1:" +
                              std::to_string(port)),
                    HasSubstr("Connection refused"),
                    HasSubstr(" attempts in "),
                    HasSubstr("firewall")));
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(290)) << "it must wait for a late server";
  EXPECT_THAT(error_text<RendezvousError>([&] {
                (void)connect_store(
                    "no.such.host.invalid", 1, "", Deadline::after(milliseconds(50)));
              }),
              HasSubstr("cannot resolve host \"no.such.host.invalid\""));
}

TEST(Connecting, ToSomethingElseSaysSo) {
  os::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&here);
  socklen_t size = sizeof here;
  ASSERT_EQ(bind(fd.get(), generic, size), 0);
  ASSERT_EQ(listen(fd.get(), 8), 0);  // accepts, and never says a word
  ASSERT_EQ(getsockname(fd.get(), generic, &size), 0);
  EXPECT_THAT(error_text<RendezvousError>([&] {
                (void)connect_store(
                    "127.0.0.1", ntohs(here.sin_port), "", Deadline::after(milliseconds(200)));
              }),
              AllOf(HasSubstr("cannot reach the store at 127.0.0.1:"), Not(HasSubstr(": : "))));
}

}  // namespace
}  // namespace argosy::rendezvous
