#include "listening_ports.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

namespace argosy::test {
namespace {

/// "socket:[4711]" of each socket that the process holds.
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> found;
  std::error_code gone;  // descriptors come and go while they are looked at
  const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end;
       at.increment(gone)) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(at->path(), closed).string();
    if (!closed && target.starts_with("socket:[")) {
      found.insert(target);
    }
  }
  return found;
}

}  // namespace

std::vector<uint16_t> listening_ports(pid_t pid) {
  const std::set<std::string> sockets = sockets_of(pid);
  std::vector<uint16_t> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // its head
  while (std::getline(table, line)) {
    // sl local rem state queues timer retransmissions uid timeout inode
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, again, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> again >> user >> timeout >>
        inode;
    if (state == "0A" && sockets.count("socket:[" + inode + "]") > 0) {
      ports.push_back(
          static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

}  // namespace argosy::test
