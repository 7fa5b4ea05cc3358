#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rpc/memory.h"
#include "argosy/rpc/parcel.h"
#include "argosy/rpc/shared_line.h"

#include "rpc.pb.h"

// How requests and replies become messages of gRPC and are put together again. Internal to the
// room.
namespace argosy::rpc {

/// Blocks that were offered with a message. What the reader has not claimed is taken back.
class Offers final {
 public:
  Offers() = default;
  ~Offers() { withdraw(); }
  Offers(Offers&&) noexcept = default;
  Offers& operator=(Offers&&) noexcept = default;
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;

  void add(std::shared_ptr<SharedLine::Block> block) { blocks_.push_back(std::move(block)); }
  void withdraw();
  /// Leaves them to the reader, who may not have seen them yet.
  void keep() { blocks_.clear(); }

 private:
  std::vector<std::shared_ptr<SharedLine::Block>> blocks_{};
};

/// The memory beside one request or reply, as it leaves.
class Leaving final {
 public:
  /// `line`: by which memory is shared; nullptr: none is.
  Leaving(std::vector<Memory> memories, SharedLine* line, const Deadline& expires);

  /// Says where each memory lies.
  void describe(google::protobuf::RepeatedPtrField<wire::MemoryPlace>& places);
  /// Returns `first` and what follows it. The messages refer to the memory and keep it.
  [[nodiscard]] std::deque<grpc::ByteBuffer> messages(const google::protobuf::MessageLite& first);
  /// The memory that has to follow its description.
  [[nodiscard]] const std::vector<Memory>& apart() const { return apart_; }
  [[nodiscard]] Offers& offers() { return offers_; }

 private:
  void share(wire::MemoryPlace& place, const Memory& memory);

  std::vector<Memory> memories_;
  SharedLine* line_;
  const Deadline expires_;
  std::vector<Memory> apart_{};  ///< what follows in messages of its own
  Offers offers_{};
};

/// The memory beside one request or reply, as it comes.
class Coming final {
 public:
  /// `line`: where shared memory comes from; nullptr: none may. `most_bytes`: of all memory.
  /// Errors: RendezvousError when the sender's words are wrong.
  Coming(const google::protobuf::RepeatedPtrField<wire::MemoryPlace>& places,
         SharedLine* line,
         size_t most_bytes);

  [[nodiscard]] bool is_whole() const { return filling_ == apart_.size(); }
  /// Takes the next bytes that follow. Errors: RendezvousError when they are more than were said.
  void take(std::span<const std::byte> bytes);
  void take(grpc::ByteBuffer& message);
  [[nodiscard]] std::vector<Memory> memories() && { return std::move(memories_); }

 private:
  struct Apart {
    std::span<std::byte> bytes{};
    size_t filled = 0;
  };
  void skip_full();
  Memory make_apart(size_t bytes);

  std::vector<Memory> memories_{};
  std::vector<Apart> apart_{};
  size_t filling_ = 0;
};

/// Reads a message of `Proto`. Returns nullopt when the bytes are no such message.
template <typename Proto>
[[nodiscard]] std::optional<Proto> parse(grpc::ByteBuffer& message);

extern template std::optional<wire::Request> parse(grpc::ByteBuffer& message);
extern template std::optional<wire::Reply> parse(grpc::ByteBuffer& message);

}  // namespace argosy::rpc
