#include "argosy/text/sentencepiece_model.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::text {
namespace {

constexpr const char* kParses = "text.sentencepiece";

/// Goes through the fields of one message of a protobuf.
///
/// By hand: Debian's libsentencepiece shows the symbols of a protobuf of its own, and programs
/// with gRPC's protobuf beside it die (docs/design/text.md).
class Fields final {
 public:
  Fields(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {}

  /// Goes to the next field. False: there is none.
  bool next() {
    if (rest_.empty()) {
      return false;
    }
    const uint64_t tag = varint();
    number_ = tag >> 3;
    switch (tag & 7U) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        fail();
    }
    kind_ = tag & 7U;
    return true;
  }

  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] uint64_t integer() const { return expect(0), value_; }
  [[nodiscard]] bool flag() const { return integer() != 0; }
  [[nodiscard]] std::string_view bytes() const { return expect(2), bytes_; }
  [[nodiscard]] std::string text() const { return std::string(bytes()); }
  [[nodiscard]] Fields message() const { return {bytes(), path_}; }
  [[nodiscard]] float f32() const {
    expect(5);
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) {
      bits |= static_cast<uint32_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    }
    return std::bit_cast<float>(bits);
  }

  [[noreturn]] void fail() const {
    throw DataError(kParses,
                    "damaged, or not a model of sentencepiece: expected a protobuf with pieces. "
                    "Fetch the file again, or check the path",
                    {path_});
  }

 private:
  void expect(uint64_t kind) const {
    if (kind_ != kind) {
      fail();
    }
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80U) {
        return value;
      }
    }
    fail();
  }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) {
      fail();
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  const std::string& path_;
  uint64_t number_ = 0;
  uint64_t kind_ = 0;
  uint64_t value_ = 0;
  std::string_view bytes_{};
};

SentencepieceModel::Piece read_piece(Fields fields) {
  SentencepieceModel::Piece piece;
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        piece.text = fields.text();
        break;
      case 2:
        piece.score = fields.f32();
        break;
      case 3:
        if (fields.integer() < 1 || fields.integer() > 6) {
          fields.fail();
        }
        piece.type = static_cast<SentencepieceModel::Type>(fields.integer());
        break;
      default:
        break;
    }
  }
  if (piece.text.empty()) {
    fields.fail();
  }
  return piece;
}

void read_trainer(Fields fields, SentencepieceModel& model) {
  while (fields.next()) {
    switch (fields.number()) {
      case 3:
        if (fields.integer() < 1 || fields.integer() > 4) {
          fields.fail();
        }
        model.algorithm = static_cast<SentencepieceModel::Algorithm>(fields.integer());
        break;
      case 24:
        model.space_as_suffix = fields.flag();
        break;
      case 35:
        model.byte_fallback = fields.flag();
        break;
      case 44:
        model.unknown_surface = fields.text();
        break;
      case 46:
        model.bos_piece = fields.text();
        break;
      case 47:
        model.eos_piece = fields.text();
        break;
      case 48:
        model.pad_piece = fields.text();
        break;
      default:
        break;
    }
  }
}

void read_normalizer(Fields fields, SentencepieceModel& model) {
  while (fields.next()) {
    switch (fields.number()) {
      case 2:
        model.character_map = fields.text();
        break;
      case 3:
        model.dummy_prefix = fields.flag();
        break;
      case 4:
        model.remove_extra_spaces = fields.flag();
        break;
      case 5:
        model.escape_spaces = fields.flag();
        break;
      default:
        break;
    }
  }
}

/// What a denormalizer changes is in its map alone.
bool has_map(Fields fields) {
  bool map = false;
  while (fields.next()) {
    map = map || (fields.number() == 2 && !fields.bytes().empty());
  }
  return map;
}

}  // namespace

SentencepieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& path) {
  SentencepieceModel model;
  Fields fields(bytes, path);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        model.pieces.push_back(read_piece(fields.message()));
        break;
      case 2:
        read_trainer(fields.message(), model);
        break;
      case 3:
        read_normalizer(fields.message(), model);
        break;
      case 5:
        model.denormalizes = has_map(fields.message());
        break;
      default:
        break;
    }
  }
  if (model.pieces.empty()) {
    fields.fail();
  }
  return model;
}

}  // namespace argosy::text
