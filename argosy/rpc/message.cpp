#include "argosy/rpc/message.h"

#include <fmt/format.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::rpc {
namespace {

/// Less is cheaper in the message than in shared memory or in a message of its own.
constexpr size_t kSmall = size_t{8} << 10;
/// Of one message of raw bytes.
constexpr size_t kChunk = size_t{4} << 20;

[[noreturn]] void bad_message(const std::string& what) {
  throw RendezvousError("rpc.message", what);
}

grpc::ByteBuffer to_buffer(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return {&slice, 1};
}

/// The slice keeps `memory` until gRPC has sent it.
grpc::ByteBuffer to_buffer(const Memory& memory, size_t offset, size_t size) {
  auto* const kept = new Memory(memory);
  void* const data = const_cast<std::byte*>(memory.bytes().data()) + offset;
  const grpc::Slice slice(
      data, size, [](void* owner) { delete static_cast<Memory*>(owner); }, kept);
  return {&slice, 1};
}

}  // namespace

void Offers::withdraw() {
  for (const std::shared_ptr<SharedLine::Block>& block : blocks_) {
    block->withdraw();
  }
  blocks_.clear();
}

Leaving::Leaving(std::vector<Memory> memories, SharedLine* line, const Deadline& expires)
    : memories_(std::move(memories)), line_(line), expires_(expires) {}

void Leaving::describe(google::protobuf::RepeatedPtrField<wire::MemoryPlace>& places) {
  for (const Memory& memory : memories_) {
    wire::MemoryPlace& place = *places.Add();
    place.set_bytes(memory.size());
    if (memory.size() <= kSmall) {
      place.set_data(memory.bytes().data(), memory.size());
    } else {
      share(place, memory);
    }
  }
}

void Leaving::share(wire::MemoryPlace& place, const Memory& memory) {
  std::shared_ptr<SharedLine::Block> block = line_ == nullptr ? nullptr : line_->offer(memory);
  if (block == nullptr && line_ != nullptr) {
    if (const std::optional<Draft> draft = line_->allocate(memory.size(), expires_)) {
      std::memcpy(draft->bytes().data(), memory.bytes().data(), memory.size());
      block = line_->offer(Draft(*draft).finish());
    }
  }
  if (block == nullptr) {
    apart_.push_back(memory);
    return;
  }
  place.mutable_shared()->set_segment(block->place().segment);
  place.mutable_shared()->set_offset(block->place().offset);
  place.mutable_shared()->set_number(block->place().number);
  offers_.add(std::move(block));
}

std::deque<grpc::ByteBuffer> Leaving::messages(const google::protobuf::MessageLite& first) {
  std::deque<grpc::ByteBuffer> all;
  all.push_back(to_buffer(first));
  for (const Memory& memory : apart_) {
    for (size_t offset = 0; offset < memory.size(); offset += kChunk) {
      all.push_back(to_buffer(memory, offset, std::min(kChunk, memory.size() - offset)));
    }
  }
  return all;
}

Coming::Coming(const google::protobuf::RepeatedPtrField<wire::MemoryPlace>& places,
               SharedLine* line,
               size_t most_bytes) {
  size_t left = most_bytes;
  for (const wire::MemoryPlace& place : places) {
    if (place.bytes() > left) {
      bad_message(fmt::format("the memory beside it exceeds {} bytes", most_bytes));
    }
    left -= place.bytes();
  }
  memories_.reserve(static_cast<size_t>(places.size()));
  for (const wire::MemoryPlace& place : places) {
    switch (place.place_case()) {
      case wire::MemoryPlace::kData: {
        std::vector<std::byte> bytes(place.data().size());
        std::memcpy(bytes.data(), place.data().data(), bytes.size());
        memories_.push_back(Memory::own(std::move(bytes)));
        break;
      }
      case wire::MemoryPlace::kShared:
        if (line == nullptr) {
          bad_message("it refers to shared memory, and none was brought");
        }
        memories_.push_back(line->claim(
            {place.shared().segment(), place.shared().offset(), place.shared().number()},
            place.bytes()));
        break;
      case wire::MemoryPlace::PLACE_NOT_SET:
        memories_.push_back(make_apart(place.bytes()));
        break;
    }
  }
  skip_full();
}

/// Pages are taken from the system when bytes come to them, so a length that is only said costs
/// none.
Memory Coming::make_apart(size_t bytes) {
  constexpr std::align_val_t kLine{64};
  auto* const data = static_cast<std::byte*>(::operator new(bytes, kLine, std::nothrow));
  if (data == nullptr) {
    bad_message(fmt::format("there is no memory for {} bytes", bytes));
  }
  std::shared_ptr<const void> owner(
      data, [](const void* all) { ::operator delete(const_cast<void*>(all), kLine); });
  apart_.push_back({.bytes = {data, bytes}});
  return Memory::of({data, bytes}, std::move(owner));
}

void Coming::skip_full() {
  while (!is_whole() && apart_[filling_].filled == apart_[filling_].bytes.size()) {
    ++filling_;
  }
}

void Coming::take(std::span<const std::byte> bytes) {
  if (is_whole()) {
    bad_message("more bytes came than were said");
  }
  Apart& apart = apart_[filling_];
  if (bytes.empty() || bytes.size() > apart.bytes.size() - apart.filled) {
    bad_message(fmt::format(
        "{} bytes came where {} were left", bytes.size(), apart.bytes.size() - apart.filled));
  }
  std::memcpy(apart.bytes.data() + apart.filled, bytes.data(), bytes.size());
  apart.filled += bytes.size();
  skip_full();
}

void Coming::take(grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok() || message.Length() == 0) {
    take(std::span<const std::byte>());
  }
  for (const grpc::Slice& slice : slices) {
    if (slice.size() > 0) {
      take(std::as_bytes(std::span(slice.begin(), slice.size())));
    }
  }
}

template <typename Proto>
std::optional<Proto> parse(grpc::ByteBuffer& message) {
  grpc::ProtoBufferReader reader(&message);
  Proto proto;
  if (!reader.status().ok() || !proto.ParseFromZeroCopyStream(&reader)) {
    return std::nullopt;
  }
  return proto;
}

template std::optional<wire::Request> parse(grpc::ByteBuffer& message);
template std::optional<wire::Reply> parse(grpc::ByteBuffer& message);

}  // namespace argosy::rpc
