#include "argosy/ps/table_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/formats/safetensors.h"
#include "argosy/os/whole_file.h"

#include <nlohmann/json.hpp>

namespace argosy::ps {
namespace {

using checkpoint::ManifestFile;
using checkpoint::ManifestTensor;
using formats::SafetensorType;

constexpr const char* kModel = "model";
constexpr const char* kTables = "tables";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kLinesFile = "tables.json";
constexpr const char* kPlaceFile = "place.txt";

std::string file_of(int shard) {
  return fmt::format("shard-{:02}-of-{}.safetensors", shard, kShards);
}

/// The kinds of numbers of a sparse table that are saved.
struct Column {
  const char* name;
  SafetensorType type;
  size_t width;  ///< numbers of each; 0: one, and no dim of its own
  enum class Of { kRow, kWaitingId, kShard } of;
};

std::vector<Column> columns_of(const SparseOptions& table) {
  const RowTable empty(table);
  std::vector<Column> columns{{"ids", SafetensorType::kI64, 0, Column::Of::kRow},
                              {"weights", SafetensorType::kF32, table.dim, Column::Of::kRow}};
  if (empty.state_size() > 0) {
    columns.push_back({"state", SafetensorType::kF32, empty.state_size(), Column::Of::kRow});
  }
  if (table.entry.waits()) {
    columns.push_back({"waiting", SafetensorType::kI64, 0, Column::Of::kWaitingId});
    columns.push_back({"sights", SafetensorType::kI32, 0, Column::Of::kWaitingId});
  }
  if (table.statistics) {
    columns.push_back({"day", SafetensorType::kI32, 0, Column::Of::kShard});
  }
  return columns;
}

std::string name_of(const SparseOptions& table, const Column& column) {
  return table.name + "/" + column.name;
}

/// Calls `visit` with the numbers of a column.
template <typename Rows, typename Visit>
void visit_column(Rows& rows, std::string_view column, Visit visit) {
  column == "ids"       ? visit(rows.ids)
  : column == "weights" ? visit(rows.weights)
  : column == "state"   ? visit(rows.state)
  : column == "waiting" ? visit(rows.waiting)
  : column == "sights"  ? visit(rows.sights)
                        : visit(rows.day);
}

std::vector<int64_t> shape_of(const DenseOptions& parameter) {
  return parameter.shape.empty() ? std::vector{std::ssize(parameter.initial)} : parameter.shape;
}

std::string state_name(const DenseOptions& parameter) {
  return parameter.name + "/state";
}

/// A tensor of a file that is being made.
struct FilePart {
  formats::SafetensorEntry entry{};
  std::span<const std::byte> bytes{};
};

template <typename Number>
FilePart part_of(const std::string& name,
                 const std::vector<Number>& numbers,
                 SafetensorType type = SafetensorType::kF32,
                 const std::vector<int64_t>& shape = {}) {
  FilePart part{.bytes = std::as_bytes(std::span(numbers))};
  part.entry.name = name;
  part.entry.type = type;
  part.entry.shape = shape.empty() ? std::vector<int64_t>{std::ssize(numbers)} : shape;
  return part;
}

ManifestFile write_parts(const std::string& folder,
                         const std::string& name,
                         std::vector<FilePart> all) {
  std::vector<formats::SafetensorEntry> entries;
  std::ranges::transform(all, std::back_inserter(entries), &FilePart::entry);
  const formats::SafetensorsLayout layout = formats::lay_out_safetensors(std::move(entries));
  std::vector<std::pair<int64_t, std::span<const std::byte>>> placed;
  for (const FilePart& part : all) {
    const auto there =
        std::ranges::find(layout.header.entries, part.entry.name, &formats::SafetensorEntry::name);
    placed.emplace_back(there->offset, part.bytes);
  }
  std::ranges::stable_sort(placed, {}, [](const auto& one) { return one.first; });
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(layout.head))};
  std::ranges::transform(
      placed, std::back_inserter(pieces), [](const auto& one) { return one.second; });
  return checkpoint::write_file(folder, name, pieces);
}

/// The tensor of a column, whose shards lie in one file each.
ManifestTensor column_tensor(const SparseOptions& table,
                             const Column& column,
                             size_t index,
                             std::span<const ShardFile> shards) {
  ManifestTensor tensor{.part = kTables,
                        .name = name_of(table, column),
                        .dtype = std::string(formats::to_string(column.type)),
                        .shape = {0}};
  const auto width = static_cast<int64_t>(std::max<size_t>(column.width, 1));
  int64_t at = 0;
  for (const ShardFile& shard : shards) {
    const uint64_t n = column.of == Column::Of::kRow         ? shard.rows[index]
                       : column.of == Column::Of::kWaitingId ? shard.waiting[index]
                                                             : 1;
    const int64_t end = at + static_cast<int64_t>(n) * width;
    tensor.pieces.push_back({file_of(static_cast<int>(shard.shard)), {at, end}});
    at = end;
    tensor.shape[0] += static_cast<int64_t>(n);
  }
  if (column.width > 0) {
    tensor.shape.push_back(width);
  }
  return tensor;
}

std::string whole_text(const std::string& folder, const ManifestFile& file) {
  const std::string path = (std::filesystem::path(folder) / file.name).string();
  std::string text =
      os::read_file(path).or_throw<CheckpointError>("ps.load", CheckpointPlace{path});
  if (checkpoint::checksum_of(text) != file.checksum) {
    throw CheckpointError("ps.load", "damaged: other bytes than were written", {path, {}});
  }
  return text;
}

std::vector<std::string> saved_lines(const std::string& folder,
                                     const checkpoint::Manifest& manifest) {
  const ManifestFile* const known = manifest.find_file(kLinesFile);
  if (known == nullptr) {
    throw CheckpointError(
        "ps.load",
        "has no tables.json: a checkpoint of a training without servers. Take one that "
        "ServedTraining or TableSaver wrote",
        {folder, {}});
  }
  return nlohmann::json::parse(whole_text(folder, *known)).get<std::vector<std::string>>();
}

void check_lines(const std::string& folder,
                 const std::vector<std::string>& saved,
                 const std::vector<std::string>& mine) {
  const std::optional<LinesApart> apart = first_apart(saved, mine);
  ARGOSY_CHECK(!apart,
               "ps.load",
               "{} was saved of other tables: it has {}; this program has {}. Resume with the "
               "program and the options that saved it",
               folder,
               apart->theirs,
               apart->mine);
}

}  // namespace

ShardFile write_shard(const std::string& folder,
                      int shard,
                      const TableSet& tables,
                      std::span<const SavedRows> rows,
                      std::span<const SavedDense> dense) {
  ShardFile file{.shard = static_cast<uint32_t>(shard)};
  std::vector<FilePart> parts;
  for (size_t t = 0; t < tables.sparse.size(); ++t) {
    for (const Column& column : columns_of(tables.sparse[t])) {
      visit_column(rows[t], column.name, [&](const auto& numbers) {  // flat, as pieces are
        parts.push_back(part_of(name_of(tables.sparse[t], column), numbers, column.type));
      });
    }
    file.rows.push_back(rows[t].ids.size());
    file.waiting.push_back(rows[t].waiting.size());
  }
  for (const SavedDense& one : dense) {
    const DenseOptions& parameter = tables.dense[one.number];
    parts.push_back(
        part_of(parameter.name, one.values.weights, SafetensorType::kF32, shape_of(parameter)));
    if (!one.values.state.empty()) {
      parts.push_back(part_of(state_name(parameter), one.values.state));
    }
  }
  const ManifestFile written = write_parts(folder, file_of(shard), std::move(parts));
  file.bytes = written.bytes;
  file.checksum = written.checksum;
  file.blocks = written.blocks;
  return file;
}

checkpoint::Manifest describe(const std::string& folder,
                              const TableSet& tables,
                              std::span<const ShardFile> shards) {
  checkpoint::Manifest manifest{.library = checkpoint::library_version(),
                                .parts = {kModel, kTables, kOptimizer}};
  for (const ShardFile& shard : shards) {
    manifest.files.push_back({.name = file_of(static_cast<int>(shard.shard)),
                              .bytes = shard.bytes,
                              .checksum = shard.checksum,
                              .blocks = shard.blocks});
  }
  manifest.files.push_back(
      checkpoint::write_file(folder, kLinesFile, nlohmann::json(tables.lines()).dump(1) + "\n"));
  const std::vector<int> shard_of_dense = dense_shards(tables.dense);
  for (size_t i = 0; i < tables.dense.size(); ++i) {
    const DenseOptions& parameter = tables.dense[i];
    const std::string file = file_of(shard_of_dense[i]);
    manifest.tensors.push_back({.part = kModel,
                                .name = parameter.name,
                                .dtype = "F32",
                                .shape = shape_of(parameter),
                                .file = file});
    if (const size_t n = parameter.rule->state_size(parameter.initial.size()); n > 0) {
      manifest.tensors.push_back({.part = kOptimizer,
                                  .name = state_name(parameter),
                                  .dtype = "F32",
                                  .shape = {static_cast<int64_t>(n)},
                                  .file = file});
    }
  }
  for (size_t t = 0; t < tables.sparse.size(); ++t) {
    for (const Column& column : columns_of(tables.sparse[t])) {
      manifest.tensors.push_back(column_tensor(tables.sparse[t], column, t, shards));
    }
  }
  return manifest;
}

void write_place(const std::string& folder,
                 const std::string& place,
                 checkpoint::Manifest& manifest) {
  manifest.files.push_back(checkpoint::write_file(folder, kPlaceFile, place));
}

std::string read_place(const std::string& folder) {
  const checkpoint::Manifest manifest = checkpoint::read_manifest(folder);
  const ManifestFile* const file = manifest.find_file(kPlaceFile);
  return file == nullptr ? "" : whole_text(folder, *file);
}

TableFiles::TableFiles(const std::string& folder, const TableSet& tables)
    : reader_(folder, checkpoint::read_manifest(folder)), tables_(tables) {
  check_lines(folder, saved_lines(folder, reader_.manifest()), tables.lines());
}

/// Fills `to` with a tensor of one file, or with what one shard has of it.
template <typename Number>
void TableFiles::read(const std::string& part,
                      const std::string& name,
                      int shard,
                      std::vector<Number>& to) const {
  const std::vector<ManifestTensor>& all = reader_.manifest().tensors;
  const auto tensor = std::ranges::find_if(
      all, [&](const ManifestTensor& one) { return one.part == part && one.name == name; });
  const auto piece = static_cast<size_t>(shard);
  if (tensor == all.end() || (!tensor->pieces.empty() && tensor->pieces.size() != kShards)) {
    throw CheckpointError("ps.load",
                          fmt::format("expected it in {} shards. Take another checkpoint", kShards),
                          {reader_.folder(), name});
  }
  const IndexRange range =
      tensor->pieces.empty() ? IndexRange{0, numel(*tensor)} : tensor->pieces[piece].range;
  to.resize(static_cast<size_t>(range.size()));
  reader_.read(*tensor,
               std::as_writable_bytes(std::span(to)),
               range.begin * static_cast<int64_t>(sizeof(Number)));
}

SavedRows TableFiles::rows(uint32_t table, int shard) const {
  SavedRows rows;
  const SparseOptions& options = tables_.sparse[table];
  for (const Column& column : columns_of(options)) {
    visit_column(rows, column.name, [&](auto& numbers) {
      read(kTables, name_of(options, column), shard, numbers);
    });
  }
  const auto is_elsewhere = [&](uint64_t id) { return shard_of(id) != shard; };
  if (std::ranges::any_of(rows.ids, is_elsewhere) ||
      std::ranges::any_of(rows.waiting, is_elsewhere)) {
    throw CheckpointError("ps.load",
                          fmt::format("shard {} has ids of another one", shard),
                          {reader_.folder(), options.name});
  }
  return rows;
}

DenseNumbers TableFiles::dense(size_t number) const {
  const DenseOptions& parameter = tables_.dense[number];
  DenseNumbers values;
  read(kModel, parameter.name, 0, values.weights);
  if (parameter.rule->state_size(parameter.initial.size()) > 0) {
    read(kOptimizer, state_name(parameter), 0, values.state);
  }
  return values;
}

}  // namespace argosy::ps
