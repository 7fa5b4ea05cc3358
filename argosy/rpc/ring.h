#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace argosy::rpc {

/// Frames in memory that two processes map: one writes them, the other reads them in that order.
/// Neither trusts the other: what it finds there is checked, and read once. Not thread-safe: one
/// thread of a process writes or reads at a time. Internal to the room.
class Ring final {
 public:
  struct Frame {
    uint32_t kind = 0;
    uint64_t call = 0;
    std::string bytes{};
  };

  /// What both see beside the frames. Zeros at the start.
  struct Control {
    alignas(64) std::atomic<uint64_t> written;  ///< bytes, since the start
    alignas(64) std::atomic<uint64_t> read;
    alignas(64) std::atomic<uint32_t> reader;  ///< what it does: see Lane
  };

  static constexpr size_t kBytes = size_t{256} << 10;  ///< that `data` has
  static constexpr size_t kMostInFrame = size_t{32} << 10;

  Ring(Control& control, std::span<std::byte> data) : control_(control), data_(data) {}

  /// False when there is no room for it yet. Errors: RendezvousError when the reader has written
  /// what cannot be.
  [[nodiscard]] bool put(uint32_t kind, uint64_t call, std::span<const std::byte> bytes);
  /// Returns nullopt when there is none. Errors: RendezvousError when the writer has written what
  /// cannot be.
  [[nodiscard]] std::optional<Frame> take();

  /// True if all that was written has been read. Any thread of the reader may ask.
  [[nodiscard]] bool is_empty() const { return control_.written.load() == at_.load(); }
  /// Returns how many bytes this side has written, or read.
  [[nodiscard]] uint64_t position() const { return at_; }
  /// Returns how many bytes the reader has read.
  [[nodiscard]] uint64_t read_so_far() const { return control_.read.load(); }
  [[nodiscard]] std::atomic<uint32_t>& reader() { return control_.reader; }

 private:
  void copy_in(uint64_t at, std::span<const std::byte> bytes);
  void copy_out(uint64_t at, std::span<std::byte> bytes) const;

  Control& control_;
  const std::span<std::byte> data_;
  std::atomic<uint64_t> at_ = 0;
};

}  // namespace argosy::rpc
