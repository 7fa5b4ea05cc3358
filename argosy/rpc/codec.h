#pragma once

#include <array>
#include <concepts>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argosy/rpc/parcel.h"

namespace argosy::rpc {

/// How values of type T travel. These do: bool, numbers, enums, text, Memory, and std::vector,
/// array, optional, pair, tuple, map and unordered_map of what travels. A struct of your own does
/// when it says what it is made of:
///
///     struct Row {
///       int64_t id = 0;
///       std::vector<float> values{};
///       auto fields() { return std::tie(id, values); }
///     };
///
/// Specialize it for types of others. take() and put() are each other's inverse to the bit, except
/// that which bits a NaN has may change.
template <typename T>
struct Codec;

template <typename T>
concept Travels = requires(Writer& writer, Reader& reader, const T& value) {
  Codec<T>::put(writer, value);
  { Codec<T>::take(reader) } -> std::convertible_to<T>;
};

/// Names the type as messages do: "a vector of f32".
template <typename T>
[[nodiscard]] constexpr std::string_view number_name() {
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? "f32" : "f64";
  } else {
    constexpr std::array<std::string_view, 9> kSigned{
        "", "i8", "i16", "", "i32", "", "", "", "i64"};
    constexpr std::array<std::string_view, 9> kUnsigned{
        "", "u8", "u16", "", "u32", "", "", "", "u64"};
    return std::is_signed_v<T> ? kSigned[sizeof(T)] : kUnsigned[sizeof(T)];
  }
}

template <typename T>
concept Number = (std::integral<T> && !std::same_as<T, bool>) || std::same_as<T, float> ||
                 std::same_as<T, double>;

template <>
struct Codec<bool> {
  static void put(Writer& writer, bool value) { writer.truth(value); }
  static bool take(Reader& reader) { return reader.truth(); }
};

template <Number T>
struct Codec<T> {
  static void put(Writer& writer, T value) {
    if constexpr (std::floating_point<T>) {
      writer.real(value);
    } else if constexpr (std::is_signed_v<T>) {
      writer.whole(value);
    } else {
      writer.natural(value);
    }
  }
  static T take(Reader& reader) {
    if constexpr (std::floating_point<T>) {
      return static_cast<T>(reader.real());
    } else if constexpr (std::is_signed_v<T>) {
      return fit(reader.whole());
    } else {
      return fit(reader.natural());
    }
  }

 private:
  template <typename Wide>
  static T fit(Wide value) {
    const T narrow = static_cast<T>(value);
    if (static_cast<Wide>(narrow) != value) {
      Reader::out_of_range(std::to_string(value), std::string(number_name<T>()));
    }
    return narrow;
  }
};

template <typename T>
requires std::is_enum_v<T>
struct Codec<T> {
  using Number = std::underlying_type_t<T>;
  static void put(Writer& writer, T value) {
    Codec<Number>::put(writer, static_cast<Number>(value));
  }
  static T take(Reader& reader) { return static_cast<T>(Codec<Number>::take(reader)); }
};

template <>
struct Codec<std::string> {
  static void put(Writer& writer, std::string_view value) { writer.text(value); }
  static std::string take(Reader& reader) { return std::string(reader.text()); }
};

template <>
struct Codec<Memory> {
  static void put(Writer& writer, const Memory& value) { writer.memory(value); }
  static Memory take(Reader& reader) { return reader.memory(); }
};

template <Number T>
struct Codec<std::vector<T>> {
  static void put(Writer& writer, const std::vector<T>& values) {
    writer.numbers(number_name<T>(), std::as_bytes(std::span<const T>(values)));
  }
  static std::vector<T> take(Reader& reader) {
    const std::string_view data = reader.numbers(number_name<T>(), sizeof(T));
    std::vector<T> values(data.size() / sizeof(T));
    if (!data.empty()) {
      std::memcpy(values.data(), data.data(), data.size());
    }
    return values;
  }
};

template <typename T>
requires(!Number<T> && Travels<T>) struct Codec<std::vector<T>> {
  static void put(Writer& writer, const std::vector<T>& values) {
    writer.begin_list();
    for (const auto& value : values) {
      Codec<T>::put(writer, value);
    }
    writer.end_list();
  }
  static std::vector<T> take(Reader& reader) {
    std::vector<T> values;
    values.reserve(reader.begin_list());
    while (reader.left() > 0) {
      values.push_back(Codec<T>::take(reader));
    }
    reader.end_list();
    return values;
  }
};

/// What is made of a fixed number of parts, as one list.
template <typename... Parts>
struct PartsCodec {
  static void put(Writer& writer, const Parts&... parts) {
    writer.begin_list();
    (Codec<Parts>::put(writer, parts), ...);
    writer.end_list();
  }
  static std::tuple<Parts...> take(Reader& reader) {
    (void)reader.begin_list();
    std::tuple<Parts...> parts{Codec<Parts>::take(reader)...};  // braces: from left to right
    reader.end_list();
    return parts;
  }
};

template <Travels... Parts>
struct Codec<std::tuple<Parts...>> {
  static void put(Writer& writer, const std::tuple<Parts...>& value) {
    std::apply([&](const Parts&... parts) { PartsCodec<Parts...>::put(writer, parts...); }, value);
  }
  static std::tuple<Parts...> take(Reader& reader) { return PartsCodec<Parts...>::take(reader); }
};

template <Travels First, Travels Second>
struct Codec<std::pair<First, Second>> {
  static void put(Writer& writer, const std::pair<First, Second>& value) {
    PartsCodec<First, Second>::put(writer, value.first, value.second);
  }
  static std::pair<First, Second> take(Reader& reader) {
    return std::make_from_tuple<std::pair<First, Second>>(PartsCodec<First, Second>::take(reader));
  }
};

template <Travels T, size_t size>
struct Codec<std::array<T, size>> {
  static void put(Writer& writer, const std::array<T, size>& values) {
    writer.begin_list();
    for (const T& value : values) {
      Codec<T>::put(writer, value);
    }
    writer.end_list();
  }
  static std::array<T, size> take(Reader& reader) {
    std::array<T, size> values{};
    (void)reader.begin_list();
    for (T& value : values) {
      value = Codec<T>::take(reader);
    }
    reader.end_list();
    return values;
  }
};

/// A list of none or one.
template <Travels T>
struct Codec<std::optional<T>> {
  static void put(Writer& writer, const std::optional<T>& value) {
    writer.begin_list();
    if (value) {
      Codec<T>::put(writer, *value);
    }
    writer.end_list();
  }
  static std::optional<T> take(Reader& reader) {
    std::optional<T> value;
    if (reader.begin_list() > 0) {
      value = Codec<T>::take(reader);
    }
    reader.end_list();
    return value;
  }
};

template <typename Map>
struct MapCodec {
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;
  static void put(Writer& writer, const Map& map) {
    writer.begin_list();
    for (const auto& [key, value] : map) {
      Codec<Key>::put(writer, key);
      Codec<Value>::put(writer, value);
    }
    writer.end_list();
  }
  static Map take(Reader& reader) {
    Map map;
    (void)reader.begin_list();
    while (reader.left() > 0) {
      Key key = Codec<Key>::take(reader);
      map.insert_or_assign(std::move(key), Codec<Value>::take(reader));
    }
    reader.end_list();
    return map;
  }
};
template <Travels Key, Travels Value>
struct Codec<std::map<Key, Value>> : MapCodec<std::map<Key, Value>> {};
template <Travels Key, Travels Value>
struct Codec<std::unordered_map<Key, Value>> : MapCodec<std::unordered_map<Key, Value>> {};

template <typename T>
requires requires(T& value) {
  value.fields();
}
struct Codec<T> {
  static void put(Writer& writer, const T& value) {
    writer.begin_list();
    std::apply(
        [&](const auto&... fields) {
          (Codec<std::remove_cvref_t<decltype(fields)>>::put(writer, fields), ...);
        },
        const_cast<T&>(value).fields());  // which only names them
    writer.end_list();
  }
  static T take(Reader& reader) {
    T value{};
    (void)reader.begin_list();
    std::apply(
        [&](auto&... fields) {
          ((fields = Codec<std::remove_cvref_t<decltype(fields)>>::take(reader)), ...);
        },
        value.fields());
    reader.end_list();
    return value;
  }
};

/// The type as which an argument travels: text for a literal.
template <typename T>
using Sent = std::conditional_t<std::is_convertible_v<std::decay_t<T>, std::string_view>,
                                std::string,
                                std::decay_t<T>>;

}  // namespace argosy::rpc
