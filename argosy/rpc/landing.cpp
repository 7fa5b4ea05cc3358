#include "argosy/rpc/landing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/random.h"

namespace argosy::rpc {
namespace {

/// Who was said to come has come already.
constexpr std::chrono::seconds kSoon{2};

// What a caller brings to a Landing: "<secret> <name> line", or "… lane" with its memory.
constexpr std::string_view kLineWord = "line";
constexpr std::string_view kLaneWord = "lane";

Result<os::UniqueFd> land(const std::string& socket,
                          const std::string& hello,
                          std::span<const int> fds) {
  Result<os::UniqueFd> fd = os::connect_messages(socket);
  if (!fd.ok()) {
    return fd;
  }
  // Its owner may be gone, and anybody may have taken the name since.
  const Result<uid_t> user = os::user_of_peer(fd->get());
  if (!user.ok() || *user != ::geteuid()) {
    return Failure{"another user listens at " + socket};
  }
  if (Status sent = os::send_message(fd->get(), hello, fds); !sent.ok()) {
    return std::move(sent).failure();
  }
  return fd;
}

}  // namespace

Landing::Landing(size_t most_bytes)
    : most_bytes_(most_bytes),
      name_("argosy/rpc/" + os::random_hex(16)),
      secret_(os::random_hex(16)),
      listener_(os::MessageListener::listen(name_).or_throw<Error>("rpc.shared_memory")) {}

Landing::~Landing() = default;

/// A caller of this user that knows the secret names its line or its lane. Another one is let go.
void Landing::admit(os::UniqueFd socket) {
  const Result<uid_t> user = os::user_of_peer(socket.get());
  if (!user.ok() || *user != ::geteuid()) {
    return;
  }
  Result<os::Message> hello = os::receive_message(socket.get(), Deadline::after(kSoon));
  const std::vector<std::string> words =
      hello.ok() ? strings::split(hello->text, ' ') : std::vector<std::string>();
  if (words.size() != 3 || !strings::equal_constant_time(words[0], secret_)) {
    return;
  }
  if (words[2] == kLineWord) {
    lines_.try_emplace(words[1], std::make_shared<SharedLine>(std::move(socket), most_bytes_));
  } else if (words[2] == kLaneWord && hello->fds.size() == 1) {
    Result<os::SharedMemory> memory = os::SharedMemory::open(std::move(hello->fds[0]));
    if (memory.ok() && Lane::is_memory(*memory)) {
      lanes_.try_emplace(
          words[1],
          std::make_unique<Lane>(std::move(socket), *std::move(memory), Lane::End::kServer));
    }
  }
}

void Landing::drop_abandoned() {
  std::erase_if(lines_, [](const auto& line) { return line.second->is_abandoned(); });
  std::erase_if(lanes_, [](const auto& lane) { return lane.second->is_abandoned(); });
}

void Landing::admit_until(const std::function<bool()>& found) {
  const Deadline deadline = Deadline::after(kSoon);
  while (!found()) {
    drop_abandoned();
    Result<os::UniqueFd> caller = listener_.accept(deadline);
    if (!caller.ok()) {
      throw RendezvousError("rpc.shared_memory",
                            "the caller did not bring its memory: " + caller.failure().what);
    }
    admit(*std::move(caller));
  }
}

std::shared_ptr<SharedLine> Landing::line(const std::string& id) {
  const std::lock_guard lock(mutex_);
  admit_until([&] { return lines_.contains(id); });
  return lines_.at(id);
}

std::unique_ptr<Lane> Landing::lane(const std::string& id) {
  const std::lock_guard lock(mutex_);
  admit_until([&] { return lanes_.contains(id); });
  return std::move(lanes_.extract(id).mapped());
}

Result<std::shared_ptr<SharedLine>> connect_line(const std::string& socket,
                                                 const std::string& secret,
                                                 const std::string& id,
                                                 size_t most_bytes) {
  Result<os::UniqueFd> fd = land(socket, fmt::format("{} {} {}", secret, id, kLineWord), {});
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  return std::make_shared<SharedLine>(*std::move(fd), most_bytes);
}

Result<std::unique_ptr<Lane>> connect_lane(const std::string& socket,
                                           const std::string& secret,
                                           const std::string& id) {
  Result<os::SharedMemory> memory = Lane::make_memory();
  if (!memory.ok()) {
    return std::move(memory).failure();
  }
  const std::array<int, 1> fds{memory->fd()};
  Result<os::UniqueFd> fd = land(socket, fmt::format("{} {} {}", secret, id, kLaneWord), fds);
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  return std::make_unique<Lane>(*std::move(fd), *std::move(memory), Lane::End::kCaller);
}

}  // namespace argosy::rpc
