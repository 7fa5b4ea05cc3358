#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argosy::formats {

/// One header and its data of a tar file, byte by byte, so that tests can lie in any field.
inline std::string tar_member(std::string_view name,
                              std::string_view content,
                              char type = '0',
                              std::string_view link = "") {
  std::string header(512, '\0');
  const auto put = [&](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  char size[16];
  std::snprintf(size, sizeof(size), "%011zo", content.size());
  put(124, std::string_view(size, 11));
  put(136, "00000000000");
  header[156] = type;
  put(157, link);
  put(257, std::string_view("ustar\00000", 8));
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  char text[16];
  std::snprintf(text, sizeof(text), "%06o", sum);
  put(148, std::string_view(text, 7));
  std::string data(content);
  data.resize((data.size() + 511) / 512 * 512, '\0');
  return header + data;
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

/// GNU's long name: a member of type L before the one that it names.
inline std::string tar_long_name(const std::string& name, std::string_view content) {
  return tar_member("././@LongLink", name + '\0', 'L') + tar_member(name, content);
}

/// A pax record: "length key=value\n", its own length included.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string body = " " + key + "=" + value + "\n";
  size_t length = body.size() + 1;
  while (std::to_string(length).size() + body.size() != length) {
    ++length;
  }
  return std::to_string(length) + body;
}

/// A member with POSIX's extended header: one of type x before it.
inline std::string tar_pax(const std::string& records, std::string_view content) {
  return tar_member("PaxHeader", records, 'x') + tar_member("short", content);
}

inline std::string tar_pax_name(const std::string& name, std::string_view content) {
  return tar_pax(pax_record("path", name), content);
}

using TestMembers = std::vector<std::pair<std::string, std::string>>;

inline std::string tar(const TestMembers& members) {
  std::string text;
  for (const auto& [name, content] : members) {
    text += name.size() > 100 ? tar_long_name(name, content) : tar_member(name, content);
  }
  return text + tar_end();
}

/// A zip file, written by libarchive; `compression` is "deflate" or "store".
inline std::string zip(const TestMembers& members, const std::string& compression = "deflate") {
  std::string text(1 << 20, '\0');
  for (const auto& [name, content] : members) {
    text.resize(text.size() + name.size() * 2 + content.size() + 1024);
  }
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_zip(writer);
  archive_write_set_format_option(writer, "zip", "compression", compression.c_str());
  archive_write_set_bytes_in_last_block(writer, 1);
  archive_write_open_memory(writer, text.data(), text.size(), &used);
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  text.resize(used);
  return text;
}

}  // namespace argosy::formats
