#include "argosy/launch/remote/hostfile.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/fd.h"

namespace argosy::launch {
namespace {

[[noreturn]] void bad(const std::string& path, size_t line, const std::string& text) {
  throw UsageError(
      "launch.hostfile",
      fmt::format("{}:{}: expected HOST, HOST slots=N or HOST:N, got \"{}\"", path, line, text));
}

HostLine parse(const std::string& text, const std::string& path, size_t line) {
  std::vector<std::string> words = strings::split(text, ' ');
  std::erase(words, "");
  HostLine host{.host = words.front()};
  std::string slots;
  const size_t colon = host.host.find(':');
  if (colon != std::string::npos) {
    slots = host.host.substr(colon + 1);
    host.host = host.host.substr(0, colon);
  } else if (words.size() > 1 && words[1].starts_with("slots=")) {
    slots = words[1].substr(6);
  } else if (words.size() > 1) {
    bad(path, line, text);
  }
  const bool said = colon != std::string::npos || words.size() > 1;
  const int64_t number = strings::parse_int(slots).value_or(-1);
  // What begins with a dash would be an option of ssh's.
  if ((said && (number < 1 || number > 4096)) || host.address().empty() ||
      host.host.front() == '-') {
    bad(path, line, text);
  }
  host.slots = said ? static_cast<int>(number) : 0;
  return host;
}

}  // namespace

std::vector<HostLine> read_hostfile(const std::string& path) {
  const std::string content = os::read_file(path).or_throw<UsageError>("launch.hostfile");
  std::vector<HostLine> hosts;
  size_t number = 0;
  for (std::string line : strings::split(content, '\n')) {
    ++number;
    std::replace(line.begin(), line.end(), '\t', ' ');
    const std::string text(strings::trim(line.substr(0, line.find('#'))));
    if (text.empty()) {
      continue;
    }
    HostLine host = parse(text, path, number);
    const auto same = [&](const HostLine& other) { return other.address() == host.address(); };
    if (std::ranges::any_of(hosts, same)) {
      throw UsageError("launch.hostfile",
                       fmt::format("{}:{}: {} stands there twice. One line for each host, with the "
                                   "number of its ranks: {} slots=2",
                                   path,
                                   number,
                                   host.address(),
                                   host.host));
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) {
    throw UsageError("launch.hostfile", fmt::format("{} names no host", path));
  }
  return hosts;
}

}  // namespace argosy::launch
