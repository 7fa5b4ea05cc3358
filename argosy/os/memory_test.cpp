#include "argosy/os/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace argosy::os {
namespace {

TEST(SharedMemory, StartsAsZerosAndIsSeenByAnotherProcess) {
  const SharedMemory memory = *SharedMemory::create("test", 100'000);
  ASSERT_EQ(memory.bytes().size(), 100'000U);
  EXPECT_TRUE(
      std::ranges::all_of(memory.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<SharedMemory> same = SharedMemory::open(*duplicate(memory.fd()));
    if (!same.ok()) {
      ::_exit(1);
    }
    same->bytes()[99'999] = std::byte{7};
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.bytes()[99'999], std::byte{7});
}

TEST(SharedMemory, CannotBeShrunkUnderItsReaders) {
  const SharedMemory memory = *SharedMemory::create("test", 4096);
  EXPECT_NE(::ftruncate(memory.fd(), 0), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemory, RefusesWhatAnybodyCouldShrink) {
  UniqueFd fd(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(SharedMemory::open(std::move(fd)).failure().error_number, EPERM);
  EXPECT_FALSE(SharedMemory::open(UniqueFd()).ok());
}

TEST(SharedMemory, MayBeEmpty) {
  EXPECT_TRUE(SharedMemory::create("empty", 0)->bytes().empty());
}

TEST(SharedMemory, OutlivesItsDescriptorAndMoves) {
  Mapping mapping;
  {
    const SharedMemory memory = *SharedMemory::create("test", 10);
    mapping = *Mapping::map(memory.fd(), 10, Access::kReadWrite);
    memory.bytes()[3] = std::byte{9};
  }
  EXPECT_EQ(mapping.bytes()[3], std::byte{9});
  const Mapping moved(std::move(mapping));
  EXPECT_EQ(moved.bytes()[3], std::byte{9});
  EXPECT_TRUE(mapping.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST(Mapping, OfAFile) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("argosy-mapping-" + std::to_string(::getpid()));
  std::ofstream(path) << "content";
  const Result<Mapping> mapping = map_file(path);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapping->bytes().data()), 7), "content");
  const UniqueFd fd = *open_file(path, O_RDONLY);
  EXPECT_EQ(Mapping::map(fd.get(), 8, Access::kRead).failure().what,
            "map 8 bytes of a file of 7: Invalid argument (EINVAL)");
  EXPECT_EQ(Mapping::map(fd.get(), 1, Access::kRead, 4096).failure().what,
            "map 1 bytes of a file of 7 from byte 4096 on: Invalid argument (EINVAL)");
  std::filesystem::remove(path);
  EXPECT_EQ(map_file(path).failure().error_number, ENOENT);
}

}  // namespace
}  // namespace argosy::os
