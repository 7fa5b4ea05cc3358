#include "argosy/formats/archive.h"

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_archives.h"
#include "argosy/formats/test_damage.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string text(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string noise(size_t n) {
  std::string data(n, '\0');
  uint32_t state = 7;
  for (char& c : data) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return data;
}

TestMembers read_members(const std::string& path, const ArchiveLimits& limits = {}) {
  ArchiveReader reader(path, limits);
  TestMembers members;
  while (const auto member = reader.next()) {
    const std::string content = text(reader.read_all());
    EXPECT_EQ(static_cast<int64_t>(content.size()), member->size);
    members.emplace_back(member->name, content);
  }
  return members;
}

DataError error_of(const std::string& content, const ArchiveLimits& limits = {}) {
  const TestFile file(content, "some.tar.gz");
  try {
    read_members(file.path(), limits);
  } catch (const DataError& error) {
    EXPECT_THAT(error.place().path, testing::StartsWith(file.path()));
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

const TestMembers& some_members() {
  static const TestMembers members{
      {"jpg/a.jpg", noise(1500)}, {"empty", ""}, {"jpg/b.jpg", noise(512)}, {"c.txt", "text"}};
  return members;
}

/// The same members in each form.
std::vector<std::pair<std::string, std::string>> forms() {
  const TestMembers& members = some_members();
  return {{"tar", tar(members)},
          {"tgz", gzip(tar(members))},
          {"zip", zip(members)},
          {"stored zip", zip(members, "store")}};
}

TEST(ArchiveReader, EveryFormGivesTheSameMembers) {
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    EXPECT_EQ(read_members(TestFile(content, "no_suffix").path()), some_members());
  }
}

TEST(ArchiveReader, KindIsSeenByContent) {
  const auto kind = [](const std::string& content) {
    return archive_kind(TestFile(content, "x.jpg").path());
  };
  EXPECT_EQ(kind(tar(some_members())), ArchiveKind::kTar);
  EXPECT_EQ(kind(gzip(tar(some_members()))), ArchiveKind::kTar);
  EXPECT_EQ(kind(zip(some_members())), ArchiveKind::kZip);
  EXPECT_EQ(kind(tar({})), ArchiveKind::kTar);
  EXPECT_EQ(kind(gzip(zip(some_members()))), ArchiveKind::kNone);
  EXPECT_EQ(kind(noise(5000)), ArchiveKind::kNone);
  EXPECT_EQ(kind(""), ArchiveKind::kNone);
}

TEST(ArchiveReader, MembersCanBePassedOverOrReadInPieces) {
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const TestFile file(content);
    ArchiveReader reader(file.path());
    ASSERT_TRUE(reader.next());
    ASSERT_TRUE(reader.next());
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.place(), file.path() + ":jpg/b.jpg");
    std::array<uint8_t, 200> piece{};
    EXPECT_EQ(reader.read(piece), 200U);
    std::string all = text(piece) + text(reader.read_all());
    EXPECT_EQ(all, some_members()[2].second);
    EXPECT_EQ(reader.read(piece), 0U);
    EXPECT_TRUE(reader.next());
    EXPECT_FALSE(reader.next());
  }
}

TEST(ArchiveReader, LongAndForeignNamesWhateverTheLocale) {
  const std::string longer = std::string(150, 'd') + "/" + std::string(150, 'f');
  const std::string foreign = "bl\xc3\xbcten/\xe8\x8a\xb1.jpg";
  const std::string latin1 = "bl\xfcten.jpg";
  const std::string content =
      tar_long_name(longer, "gnu") + tar_pax_name(longer + "2", "pax") +
      tar_pax_name(foreign, "f") + tar_member(foreign + "2", "g") +
      tar_pax(pax_record("hdrcharset", "BINARY") + pax_record("path", latin1), "h") + tar_end();
  EXPECT_THAT(read_members(TestFile(content).path()),
              ElementsAre(Pair(longer, "gnu"),
                          Pair(longer + "2", "pax"),
                          Pair(foreign, "f"),
                          Pair(foreign + "2", "g"),
                          Pair(latin1, "h")));
  EXPECT_THAT(read_members(TestFile(zip({{foreign, "z"}})).path()),
              ElementsAre(Pair(foreign, "z")));
}

TEST(ArchiveReader, APaxNameThatIsNotUtf8AndDoesNotSaySoIsDamaged) {
  EXPECT_THAT(error_of(tar_pax_name("bl\xfcten.jpg", "x") + tar_end()).what(), HasSubstr("UTF-8"));
}

TEST(ArchiveReader, FoldersArePassedOverAndLeadingDotsDropped) {
  const std::string content = tar_member("./", "", '5') + tar_member("./jpg/", "", '5') +
                              tar_member("./jpg/a", "x") + tar_end();
  EXPECT_THAT(read_members(TestFile(content).path()), ElementsAre(Pair("jpg/a", "x")));
  EXPECT_TRUE(read_members(TestFile(tar({})).path()).empty());
}

TEST(ArchiveReader, NamesThatLeadOutAreRefused) {
  for (const std::string name : {"../x", "a/../../x", "a/..", "/etc/passwd", "./../x"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(error_of(tar({{name, "x"}})).what(),
                HasSubstr("its name leads out of the archive"));
    EXPECT_THAT(error_of(zip({{name, "x"}})).what(),
                HasSubstr("its name leads out of the archive"));
  }
  const DataError error = error_of(gzip(tar({{"good", "x"}, {"../bad", "x"}})));
  EXPECT_THAT(error.place().path, testing::EndsWith("some.tar.gz:../bad"));
  EXPECT_THAT(error_of(tar_member("../d", "", '5') + tar_end()).what(), HasSubstr("leads out"));
  EXPECT_EQ(read_members(TestFile(tar({{"a..b/..c/d..", "x"}})).path()).size(), 1U);
}

TEST(ArchiveReader, HugeNamesAreRefusedAndShownInPart) {
  const DataError error = error_of(tar_long_name(std::string(5000, 'n'), "x") + tar_end());
  EXPECT_THAT(error.what(), HasSubstr("its name has more than 4096 bytes"));
  EXPECT_LT(std::string(error.what()).size(), 500U);
  EXPECT_THROW(
      read_members(TestFile(tar_long_name(std::string(3'000'000, 'n'), "x") + tar_end()).path()),
      DataError);
}

TEST(ArchiveReader, UnprintableNamesAreEscapedInMessages) {
  EXPECT_THAT(error_of(tar({{"/\x1b[2J\n", "x"}})).what(), HasSubstr("/\\x1b[2J\\x0a"));
}

TEST(ArchiveReader, LinksAndDevicesAreRefused) {
  const auto with_type = [](char type) {
    return tar_member("file", "", '0') + tar_member("m", "", type, "file") + tar_end();
  };
  EXPECT_THAT(error_of(with_type('1')).what(), HasSubstr("a link to another one"));
  EXPECT_THAT(error_of(with_type('2')).what(), HasSubstr("a symbolic link"));
  EXPECT_THAT(error_of(with_type('3')).what(), HasSubstr("a device"));
  EXPECT_THAT(error_of(with_type('4')).what(), HasSubstr("a device"));
  EXPECT_THAT(error_of(with_type('6')).what(), HasSubstr("a named pipe"));
}

TEST(ArchiveReader, SparseFilesAreRefusedBeforeTheirHolesTakeMemory) {
  // As GNU tar writes it with --format=pax --sparse-version=0.1: a byte of data at 2^40.
  const std::string content = tar_pax(pax_record("GNU.sparse.size", "1099511627777") +
                                          pax_record("GNU.sparse.numblocks", "1") +
                                          pax_record("GNU.sparse.map", "1099511627776,1"),
                                      "x") +
                              tar_end();
  EXPECT_THAT(error_of(content).what(), HasSubstr("a sparse file"));
}

TEST(ArchiveReader, EveryTruncationIsAnError) {
  const MemoryFile file;
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const DamageCount count = read_truncated(
        content, [&](const std::string& damaged) { read_members(file.path(damaged)); });
    EXPECT_EQ(count.refused, 200);
  }
}

TEST(ArchiveReader, ATarFileCutBetweenTwoMembersIsTruncated) {
  const std::string whole = tar(some_members());
  const std::string first = tar_member(some_members()[0].first, some_members()[0].second);
  for (const std::string& cut : {first, first + std::string(512, '\0'), gzip(first)}) {
    const DataError error = error_of(cut);
    EXPECT_THAT(error.what(), HasSubstr("truncated: the file ends without"));
  }
  EXPECT_EQ(error_of(first).place().offset, static_cast<int64_t>(first.size()));
}

TEST(ArchiveReader, BytesAfterTheEndAreAnError) {
  const std::string whole = tar(some_members());
  for (const std::string& joined :
       {whole + whole, whole + "x", gzip(whole + std::string(1 << 20, '\0') + "x")}) {
    EXPECT_THAT(error_of(joined).what(), HasSubstr("trailing bytes after the archive's end"));
  }
  EXPECT_EQ(read_members(TestFile(whole + std::string(9000, '\0')).path()), some_members());
}

TEST(ArchiveReader, FlippedBytesGiveErrorsOrMembersAndNothingElse) {
  const MemoryFile file;
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const DamageCount count = read_flipped(
        content, [&](const std::string& damaged) { read_members(file.path(damaged)); });
    EXPECT_GT(count.refused, 0);
    std::cout << form << ": " << count.refused << " refused, " << count.read << " read\n";
  }
}

TEST(ArchiveReader, AGzipBombIsRefusedWithTheLimitAndHowToRaiseIt) {
  std::string bomb = tar_member("zeros", std::string(70 << 20, '\0')) + tar_end();
  bomb = gzip(bomb);
  ASSERT_LT(bomb.size(), 200'000U);
  const DataError error = error_of(bomb);
  EXPECT_THAT(error.what(), HasSubstr("unpack to more than 200 times as many"));
  EXPECT_THAT(error.what(), HasSubstr("raise ArchiveLimits::ratio"));
  EXPECT_GE(error.place().offset, 64 << 20);
  EXPECT_EQ(read_members(TestFile(bomb).path(), {.ratio = 2000}).size(), 1U);
}

TEST(ArchiveReader, AZipBombIsRefused) {
  const std::string bomb = zip({{"zeros", std::string(70 << 20, '\0')}});
  EXPECT_THAT(error_of(bomb).what(), HasSubstr("raise ArchiveLimits::ratio"));
}

TEST(ArchiveReader, ZerosAfterTheEndCountAsUnpacked) {
  EXPECT_THAT(error_of(gzip(tar({}) + std::string(70 << 20, '\0'))).what(),
              HasSubstr("ArchiveLimits::ratio"));
}

TEST(ArchiveReader, LimitsNameThemselves) {
  const std::string content = tar(some_members());
  EXPECT_THAT(error_of(content, {.members = 3}).what(),
              HasSubstr("more than 3 members. If it is sound, raise ArchiveLimits::members"));
  EXPECT_THAT(error_of(content, {.member_bytes = 1499}).what(),
              HasSubstr("more than 1499 bytes. If it is sound, raise ArchiveLimits::member_bytes"));
  EXPECT_EQ(read_members(TestFile(content).path(), {.members = 4, .member_bytes = 1500}).size(),
            4U);
  EXPECT_THROW(ArchiveReader(TestFile(content).path(), {.ratio = 0}), UsageError);
}

TEST(ArchiveReader, AMemberThatSaysItIsTooLargeIsNotUnpacked) {
  std::string content = tar({{"big", std::string(1500, 'x')}});
  content.resize(512 + 512);  // of the three blocks that its header promises one is there
  EXPECT_THAT(error_of(content, {.member_bytes = 1499}).what(), HasSubstr("more than 1499 bytes"));
}

TEST(ArchiveReader, ABadChecksumIsSeenThoughAllMembersCame) {
  std::string content = gzip(tar(some_members()));
  content[content.size() - 8] ^= 1;
  EXPECT_THAT(error_of(content).what(), HasSubstr("wrong checksum or length"));
  std::string packed = zip({{"a", noise(100)}}, "store");
  packed[packed.find(noise(100)) + 50] ^= 1;
  EXPECT_THAT(error_of(packed).what(), HasSubstr("CRC"));
}

TEST(ArchiveReader, WhatIsNoArchiveIsNamedSo) {
  for (const std::string& content : {std::string(),
                                     std::string("text"),
                                     noise(10'000),
                                     gzip(noise(10'000)),
                                     gzip(zip(some_members()))}) {
    EXPECT_THAT(error_of(content).what(), HasSubstr("not an archive"));
  }
  EXPECT_THROW(ArchiveReader("/nonexistent.tar"), DataError);
  EXPECT_THROW(ArchiveReader(std::filesystem::temp_directory_path().string()), DataError);
}

TEST(ArchiveImage, EveryFormGivesTheSameMembers) {
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const ArchiveImage image(TestFile(content).path());  // the file is gone, its bytes are not
    ASSERT_EQ(image.size(), some_members().size());
    for (size_t i = 0; i < image.size(); ++i) {
      const auto& [name, bytes] = some_members()[i];
      EXPECT_EQ(image.name(i), name);
      EXPECT_EQ(text(image.bytes(i)), bytes);
      EXPECT_EQ(image.find(name), i);
      EXPECT_EQ(text(image.at(name)), bytes);
    }
    EXPECT_EQ(image.find("jpg/"), std::nullopt);
    EXPECT_THROW((void)image.at("jpg/c.jpg"), DataError);
    EXPECT_THROW((void)image.bytes(image.size()), UsageError);
  }
}

TEST(ArchiveImage, PlainMembersAreMappedAndPackedOnesAreNot) {
  const auto memory = [](const std::string& content) {
    return ArchiveImage(TestFile(content).path()).memory_bytes();
  };
  EXPECT_EQ(memory(tar(some_members())), 0U);
  EXPECT_EQ(memory(zip(some_members(), "store")), 0U);
  EXPECT_EQ(memory(gzip(tar(some_members()))), 2016U);
  EXPECT_EQ(memory(zip(some_members())), 2016U);
}

TEST(ArchiveImage, TakesOnlyWhatIsWanted) {
  const TestFile file(gzip(tar(some_members())));
  const ArchiveImage image(file.path(),
                           [](std::string_view name) { return name.ends_with(".jpg"); },
                           {.total_bytes = 2012});
  ASSERT_EQ(image.size(), 2U);
  EXPECT_EQ(image.name(1), "jpg/b.jpg");
  EXPECT_EQ(image.place(1), file.path() + ":jpg/b.jpg");
  EXPECT_EQ(image.memory_bytes(), 2012U);
}

TEST(ArchiveImage, LimitsNameThemselves) {
  const TestFile file(gzip(tar(some_members())));
  const auto message = [&](const ArchiveLimits& limits) -> std::string {
    try {
      const ArchiveImage image(file.path(), {}, limits);
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message({.total_bytes = 2015}), HasSubstr("raise ArchiveLimits::total_bytes"));
  EXPECT_THAT(message({.member_bytes = 1499}), HasSubstr("raise ArchiveLimits::member_bytes"));
  EXPECT_EQ(message({.member_bytes = 1500, .total_bytes = 2016}), "nothing was thrown");
}

TEST(ArchiveImage, NamesOfEmptyMembersMeetTheLimitToo) {
  TestMembers members;
  for (int i = 0; i < 10; ++i) {
    members.emplace_back(std::to_string(i) + std::string(1000, 'n'), "");
  }
  const TestFile file(gzip(tar(members)));
  EXPECT_EQ(ArchiveImage(file.path(), {}, {.total_bytes = 20'000}).size(), 10U);
  EXPECT_THROW(ArchiveImage(file.path(), {}, {.total_bytes = 9'000}), DataError);
}

TEST(ArchiveImage, TwoMembersOfOneNameAreAnError) {
  const TestFile file(tar({{"a", "1"}, {"b", "2"}, {"a", "3"}}));
  EXPECT_THROW(ArchiveImage(file.path()), DataError);
  EXPECT_EQ(ArchiveImage(file.path(), [](std::string_view name) { return name == "b"; }).size(),
            1U);
}

TEST(ArchiveImage, EveryTruncationIsAnError) {
  const MemoryFile file;
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const DamageCount count = read_truncated(
        content, [&](const std::string& damaged) { ArchiveImage(file.path(damaged)); });
    EXPECT_EQ(count.refused, 200);
  }
}

TEST(ArchiveImage, FlippedBytesGiveErrorsOrMembersAndNothingElse) {
  const MemoryFile file;
  for (const auto& [form, content] : forms()) {
    SCOPED_TRACE(form);
    const DamageCount count = read_flipped(content, [&](const std::string& damaged) {
      const ArchiveImage image(file.path(damaged));
      for (size_t i = 0; i < image.size(); ++i) {
        EXPECT_LE(image.bytes(i).size(), size_t{1} << 20);
      }
    });
    EXPECT_GT(count.refused, 0);
  }
}

TEST(ArchiveImage, SpansSurviveAMoveAndThreadsShareIt) {
  ArchiveImage first(TestFile(gzip(tar(some_members()))).path());
  const std::span<const uint8_t> bytes = first.bytes(0);
  const ArchiveImage image = std::move(first);
  EXPECT_EQ(image.bytes(0).data(), bytes.data());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(text(image.at("jpg/a.jpg")), some_members()[0].second);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace argosy::formats
