#include "argosy/rendezvous/store_kinds.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/store_server.h"

namespace argosy::rendezvous {
namespace {

struct TemporaryFolder {
  std::string path = (std::filesystem::temp_directory_path() / "argosy-store-XXXXXX").string();
  TemporaryFolder() {
    if (mkdtemp(path.data()) == nullptr) {
      std::abort();
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder(TemporaryFolder&&) = delete;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
};

std::function<std::shared_ptr<Store>()> in_process_world() {
  return [store = in_process_store()] { return store; };
}

std::function<std::shared_ptr<Store>()> file_world() {
  auto folder = std::make_shared<TemporaryFolder>();
  return [folder] { return file_store(folder->path + "/store"); };
}

std::function<std::shared_ptr<Store>()> prefix_world() {
  auto whole = in_process_store();
  whole->set("outside", "1", Deadline::never());  // must never be seen through the prefix
  return [whole] { return prefix_store(prefix_store(whole, "run 1"), "group/a"); };
}

std::function<std::shared_ptr<Store>()> grpc_world() {
  std::shared_ptr<StoreServer> server = StoreServer::start({.token = "sesame"});
  return [server] { return connect_store("127.0.0.1", server->port(), "sesame", soon()); };
}

// The hosting process and a client in turn: both faces of one board.
std::function<std::shared_ptr<Store>()> hosted_world() {
  std::shared_ptr<StoreServer> server = StoreServer::start({});
  return [server, parties = 0]() mutable {
    return ++parties % 2 == 1 ? server->local()
                              : connect_store("localhost", server->port(), "", soon());
  };
}

}  // namespace

std::vector<StoreKind> store_kinds() {
  return {{"in_process", in_process_world},
          {"file", file_world},
          {"prefix", prefix_world},
          {"grpc", grpc_world},
          {"hosted", hosted_world}};
}

std::string kind_name(const testing::TestParamInfo<StoreKind>& info) {
  return info.param.name;
}

}  // namespace argosy::rendezvous
