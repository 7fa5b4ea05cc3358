// Processes that are killed, stopped, or end in the middle.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/process_roles.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_kinds.h"
#include "argosy/rendezvous/store_server.h"

#include "tests/support/error_text.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::error_text;
using testing::AllOf;
using testing::HasSubstr;

int64_t milliseconds_since(Deadline::Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - start).count();
}

void expect_lost_when_killed(Store& store, Role& member) {
  ASSERT_EQ(member.line(), "present");
  ASSERT_TRUE(eventually([&] {
    const std::vector<Member> members = store.members("rank/", soon());
    return members.size() == 1 && members[0].note == "seq 7";
  }));
  EXPECT_TRUE(store.departures("", soon()).empty());
  const auto start = Deadline::Clock::now();
  member.signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return !store.departures("rank/", soon()).empty(); }));
  testing::Test::RecordProperty("noticed_after_ms", std::to_string(milliseconds_since(start)));
  const std::vector<Departure> gone = store.departures("rank/", soon());
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].member, "rank/1");
  EXPECT_TRUE(gone[0].lost);
  EXPECT_EQ(gone[0].note, "seq 7");
  EXPECT_TRUE(store.members("", soon()).empty());
}

TEST(StoreFaults, AKilledMemberIsLost) {
  auto server = StoreServer::start({});
  auto store = connect_store("127.0.0.1", server->port(), "", soon());
  Role member({"--member", std::to_string(server->port()), "rank/1"});
  expect_lost_when_killed(*store, member);
}

TEST(StoreFaults, AKilledMemberOfAFileStoreIsLost) {
  std::string folder = (std::filesystem::temp_directory_path() / "argosy-faults-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto store = file_store(folder + "/store");
  Role member({"--file-member", folder + "/store", "rank/1"});
  expect_lost_when_killed(*store, member);
  auto successor = store->announce("rank/1", soon());
  EXPECT_EQ(store->members("", soon()).size(), 1U);
  std::filesystem::remove_all(folder);
}

TEST(StoreFaults, AProxyInTheEnvironmentIsNotUsed) {
  auto server = StoreServer::start({});
  Role member({"--member", std::to_string(server->port()), "rank/1"},
              {"http_proxy=http://127.0.0.1:1", "grpc_proxy=http://127.0.0.1:1"});
  EXPECT_EQ(member.line(), "present");
}

TEST(StoreFaults, ALimitOfProcessesIsTold) {
  Role server({"--serve-with-few-threads"});
  EXPECT_THAT(server.line(), AllOf(HasSubstr("[rendezvous.threads]"), HasSubstr("ulimit -u")));
}

TEST(StoreFaults, AKilledServerEndsWaitsAtOnceAndIsNamed) {
  Role server({"--serve", ""});
  const std::string port = server.line();
  auto store = connect_store("127.0.0.1", static_cast<uint16_t>(std::stoi(port)), "", soon());
  auto presence = store->announce("rank/0", soon());
  auto waiting = std::async(std::launch::async, [&] {
    return error_text<RendezvousError>([&] { (void)store->get("never", soon()); });
  });
  EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
  server.signal(SIGKILL);
  const std::string lost = "lost the store grpc://127.0.0.1:" + port;
  EXPECT_THAT(waiting.get(), AllOf(HasSubstr("[rendezvous.get] " + lost), HasSubstr("ended")));
  const auto start = Deadline::Clock::now();
  EXPECT_THAT(error_text<RendezvousError>([&] { store->set("k", "v", soon()); }), HasSubstr(lost));
  EXPECT_THAT(error_text<RendezvousError>([&] { (void)store->announce("rank/1", soon()); }),
              HasSubstr(lost));
  presence->note("nobody hears it");
  presence->leave("");
  EXPECT_LT(milliseconds_since(start), 4000) << "leave() must not wait for a dead server";
}

TEST(StoreFaults, AStoppedServerIsToldFromAMissingKey) {
  Role server({"--serve", ""});
  auto store =
      connect_store("127.0.0.1", static_cast<uint16_t>(std::stoi(server.line())), "", soon());
  server.signal(SIGSTOP);
  EXPECT_THAT(
      error_text<TimeoutError>([&] { (void)store->get("k", Deadline::after(milliseconds(100))); }),
      HasSubstr("did not answer"));
  EXPECT_THAT(
      error_text<TimeoutError>([&] { store->set("k", "v", Deadline::after(milliseconds(100))); }),
      HasSubstr("did not answer"));
  server.signal(SIGCONT);
  store->set("k", "v", soon());
}

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(StoreFaults, WaitingCallsCostNoThreadsAndEndWithTheirClient) {
  constexpr size_t kWaiting = 128;
  auto server = StoreServer::start({});
  Role clients({"--wait-in-threads", std::to_string(server->port()), std::to_string(kWaiting)});
  ASSERT_EQ(clients.line(), "waiting");
  ASSERT_TRUE(eventually([&] { return server->waiting_calls() == kWaiting; }));
  EXPECT_LT(threads_of_this_process(), kWaiting / 2);
  clients.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return server->waiting_calls() == 0; }));
}

TEST(StoreFaults, AWaitThatTimedOutReleasesItsWaiter) {
  auto server = StoreServer::start({});
  auto store = connect_store("127.0.0.1", server->port(), "", soon());
  EXPECT_THROW((void)store->get("never", Deadline::after(milliseconds(50))), TimeoutError);
  EXPECT_TRUE(eventually([&] { return server->waiting_calls() == 0; }));
}

TEST(StoreFaults, AServerThatClosesAnswersItsWaiters) {
  auto server = StoreServer::start({});
  auto store = connect_store("127.0.0.1", server->port(), "", soon());
  auto local = server->local();
  auto presence = store->announce("rank/0", soon());
  const auto wait = [](std::shared_ptr<Store> from) {
    return error_text<RendezvousError>([&] { from->wait({"never"}, soon()); });
  };
  auto remote = std::async(std::launch::async, wait, store);
  auto beside = std::async(std::launch::async, wait, local);
  ASSERT_TRUE(eventually([&] { return server->waiting_calls() == 2; }));
  const auto start = Deadline::Clock::now();
  server.reset();
  EXPECT_LT(milliseconds_since(start), 400) << "somebody was not answered and had to be cancelled";
  EXPECT_THAT(remote.get(), HasSubstr("the store is closing"));
  EXPECT_THAT(beside.get(), HasSubstr("is closing while this call waited for \"never\""));
  EXPECT_THROW(local->set("k", "v", soon()), RendezvousError);
  presence->leave("");
}

TEST(StoreFaults, AProgramThatEndsWithoutClosingEndsCleanly) {
  for (const char* presence : {"keep", "leak"}) {
    Role program({"--end-without-closing", presence});
    const os::Exit exit = program.wait();
    EXPECT_EQ(exit.signal, 0) << presence;
    EXPECT_EQ(exit.code, 0) << presence;
  }
}

}  // namespace
}  // namespace argosy::rendezvous
