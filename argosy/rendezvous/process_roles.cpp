#include "argosy/rendezvous/process_roles.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_kinds.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::rendezvous {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

[[noreturn]] void stay() {
  while (true) {
    pause();
  }
}

uint16_t port_of(const std::string& text) {
  return static_cast<uint16_t>(std::stoi(text));
}

int serve(const std::string& token) {
  auto server = StoreServer::start({.token = token});
  say(std::to_string(server->port()));
  stay();
}

/// As a login node limits its users. Root is under no such limit, so not as root.
int serve_with_few_threads() {
  const rlimit few{4, 4};
  if (setrlimit(RLIMIT_NPROC, &few) != 0 || (geteuid() == 0 && setuid(65534) != 0)) {
    say(errno_message(errno));
    return 1;
  }
  try {
    (void)StoreServer::start({});
    say("started");
  } catch (const RendezvousError& error) {
    say(error.what());
  }
  return 0;
}

int be_member(Store& store, const std::string& name) {
  auto presence = store.announce(name, soon());
  presence->note("seq 7");
  say("present");
  stay();
}

int wait_in_threads(const std::string& port, int count) {
  auto store = connect_store("127.0.0.1", port_of(port), "", soon());
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] { (void)store->get("never", Deadline::never()); });
  }
  say("waiting");
  stay();
}

// What a program leaves that returns from main in the middle of everything.
std::unique_ptr<StoreServer> static_server;
std::shared_ptr<Store> static_store;
std::unique_ptr<Presence> static_presence;
Presence* volatile never_destroyed = nullptr;  // volatile: or the leak checker finds no trace of it

int end_without_closing(bool leak_presence) {
  static_server = StoreServer::start({});
  static_store = connect_store("127.0.0.1", static_server->port(), "", soon());
  static_presence = static_store->announce("rank/0", soon());
  static_presence->note("about to end");
  if (leak_presence) {
    never_destroyed = static_presence.release();
  }
  std::thread([store = static_store] {
    try {
      (void)store->get("never", Deadline::never());
    } catch (const std::exception&) {  // the server's destructor answers this call
    }
  }).detach();
  return eventually([] { return static_server->waiting_calls() == 1; }) ? 0 : 1;
}

}  // namespace

int play_role(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::string role = args.empty() ? "" : args[0];
  if (role == "--serve") {
    return serve(args.at(1));
  }
  if (role == "--serve-with-few-threads") {
    return serve_with_few_threads();
  }
  if (role == "--member") {
    return be_member(*connect_store("127.0.0.1", port_of(args.at(1)), "", soon()), args.at(2));
  }
  if (role == "--file-member") {
    return be_member(*file_store(args.at(1)), args.at(2));
  }
  if (role == "--wait-in-threads") {
    return wait_in_threads(args.at(1), std::stoi(args.at(2)));
  }
  if (role == "--end-without-closing") {
    return end_without_closing(args.at(1) == "leak");
  }
  return -1;
}

namespace {

os::Subprocess start(std::vector<std::string> args,
                     const std::vector<std::string>& env,
                     const os::Pipe& output) {
  args.insert(args.begin(), "/proc/self/exe");
  args[0] = *os::find_program([] {
    std::string path(4096, '\0');
    path.resize(static_cast<size_t>(readlink("/proc/self/exe", path.data(), path.size())));
    return path;
  }());
  std::vector<std::string> all = os::environ_list();
  all.insert(all.end(), env.begin(), env.end());
  return std::move(os::Subprocess::spawn({.args = std::move(args),
                                          .env = std::move(all),
                                          .stdout_fd = output.write.get(),
                                          .stderr_fd = STDERR_FILENO}))
      .or_throw<RendezvousError>("test.role");
}

}  // namespace

Role::Role(std::vector<std::string> args, const std::vector<std::string>& env)
    : output_(*os::make_pipe()), process_(start(std::move(args), env, output_)) {
  output_.write.close();
}

std::string Role::line() {
  std::string text;
  char c = 0;
  while (true) {
    const Result<bool> ready = os::wait_ready(output_.read.get(), POLLIN, soon());
    if (!ready.ok() || !*ready || read(output_.read.get(), &c, 1) != 1 || c == '\n') {
      return text;
    }
    text += c;
  }
}

void Role::signal(int number) {
  process_.signal(number).or_throw<RendezvousError>("test.signal");
}

os::Exit Role::wait() {
  const Result<std::optional<os::Exit>> exit = process_.wait(soon());
  if (!exit.ok() || !exit->has_value()) {
    ADD_FAILURE() << "the process did not end";
    return {.code = -1};
  }
  return **exit;
}

}  // namespace argosy::rendezvous

int main(int argc, char** argv) {
  const int code = argosy::rendezvous::play_role(argc, argv);
  if (code >= 0) {
    return code;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
