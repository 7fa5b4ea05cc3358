#include "argosy/rendezvous/store_kinds.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/in_process_store.h"

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

}  // namespace

std::vector<StoreKind> store_kinds() {
  return {{"in_process", in_process_world}, {"file", file_world}, {"prefix", prefix_world}};
}

std::string kind_name(const testing::TestParamInfo<StoreKind>& info) {
  return info.param.name;
}

}  // namespace argosy::rendezvous
