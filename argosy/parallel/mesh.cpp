#include "argosy/parallel/mesh.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/parallel/ddp/verify.h"

namespace argosy::parallel {

struct Mesh::State {
  comm::Group ranks;
  std::vector<MeshAxis> axes;
  std::map<std::vector<bool>, comm::Group> groups;  // by which axes they run along
};

namespace {

constexpr const char* kMesh = "parallel.Mesh";
constexpr int64_t kMostRanks = int64_t{1} << 31;

std::string in_words(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> all;
  for (const MeshAxis& axis : axes) {
    all.push_back(fmt::format("{}={}", axis.name, axis.size));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Without those of one rank, and of what the others leave, which mostly nobody has written.
std::vector<MeshAxis> of_several_ranks(std::vector<MeshAxis> axes) {
  const std::vector<MeshAxis> all = axes;
  std::erase_if(axes, [](const MeshAxis& axis) { return axis.size == 1 || axis.size == -1; });
  return axes.empty() ? all : axes;
}

/// The axes with the size of each.
std::vector<MeshAxis> settled(std::vector<MeshAxis> axes, int64_t ranks) {
  const std::string given = in_words(of_several_ranks(axes));
  int64_t known = 1;
  MeshAxis* open = nullptr;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    MeshAxis& axis = axes[i];
    ARGOSY_CHECK(!axis.name.empty(), kMesh, "axis {} has no name", i);
    ARGOSY_CHECK(std::ranges::count(axes, axis.name, &MeshAxis::name) == 1,
                 kMesh,
                 "there are two axes \"{}\"",
                 axis.name);
    ARGOSY_CHECK(axis.size >= 1 || axis.size == -1,
                 kMesh,
                 "axis {}: expected a number of ranks from 1 on, or -1 for what the others leave, "
                 "got {}",
                 axis.name,
                 axis.size);
    if (axis.size == -1) {
      ARGOSY_CHECK(open == nullptr,
                   kMesh,
                   "{}: both {} and {} are -1: say how large one of them is",
                   given,
                   open->name,
                   axis.name);
      open = &axis;
    } else {
      known = std::min(known * std::min(axis.size, kMostRanks), kMostRanks);
    }
  }
  ARGOSY_CHECK(!axes.empty(), kMesh, "no axes given: expected one at least, {{\"dp\", -1}}");
  ARGOSY_CHECK(known < kMostRanks, kMesh, "{}: that is more ranks than there can be", given);
  if (open != nullptr) {
    ARGOSY_CHECK(ranks % known == 0,
                 kMesh,
                 "{} needs a multiple of {} ranks, and there {} {}. Start as many (argosy launch "
                 "-n {}), or change the sizes",
                 given,
                 known,
                 ranks == 1 ? "is" : "are",
                 ranks,
                 known);
    open->size = ranks / known;
  } else {
    ARGOSY_CHECK(known == ranks,
                 kMesh,
                 "{} makes {} ranks, and there {} {}. Start {} (argosy launch -n {}), or give one "
                 "axis the size -1",
                 given,
                 known,
                 ranks == 1 ? "is" : "are",
                 ranks,
                 known,
                 known);
  }
  return axes;
}

/// Tells who communicates along an axis over hosts, although it had better not.
void warn_of_hosts(const Mesh& mesh) {
  const std::vector<int> hosts = mesh.ranks().hosts();
  if (hosts.empty()) {
    return;
  }
  const int host = hosts[static_cast<std::size_t>(mesh.ranks().rank())];
  const auto leaves_it = [&](const char* axis) {
    return mesh.has(axis) && std::ranges::any_of(mesh.ranks_along({axis}), [&](int rank) {
             return hosts[static_cast<std::size_t>(rank)] != host;
           });
  };
  if (leaves_it("mp")) {
    log::warn(
        "[{}] the ranks {} along mp are on several hosts. All layers wait for what goes along it, "
        "so mostly it should stay inside of one: make it at most as large as a host has ranks",
        kMesh,
        strings::ranges(mesh.ranks_along({"mp"})));
  }
  if (leaves_it("sharding") && std::ranges::count(hosts, host) >= mesh.size("sharding")) {
    log::warn(
        "[{}] the ranks {} along sharding are on several hosts, where one has room for so many: "
        "parameters are gathered over the network. Start a multiple of {} ranks on each host, and "
        "let no axis that is larger than 1 come behind sharding",
        kMesh,
        strings::ranges(mesh.ranks_along({"sharding"})),
        mesh.size("sharding"));
  }
}

}  // namespace

Mesh::Mesh(comm::Group ranks, std::vector<MeshAxis> axes) {
  ddp::Signature mine;
  for (const MeshAxis& axis : axes) {
    mine.lines.push_back({.name = axis.name, .value = fmt::format("{}", axis.size)});
  }
  ddp::verify_equal(mine,
                    ranks,
                    ranks.timeout(),
                    {.where = kMesh,
                     .what = "the axes differ",
                     .advice = "Give all ranks the same ones, in the same order."});
  axes = settled(std::move(axes), ranks.size());
  state_ = std::make_shared<State>(State{std::move(ranks), std::move(axes), {}});
  warn_of_hosts(*this);
}

Mesh::State& Mesh::state() const {
  ARGOSY_CHECK(state_ != nullptr, kMesh, "this mesh is empty (default-constructed or moved from)");
  return *state_;
}

const std::vector<MeshAxis>& Mesh::axes() const {
  return state().axes;
}
const comm::Group& Mesh::ranks() const {
  return state().ranks;
}
bool Mesh::has(std::string_view axis) const {
  return std::ranges::find(state().axes, axis, &MeshAxis::name) != state().axes.end();
}

std::size_t Mesh::index_of(std::string_view axis) const {
  const std::vector<MeshAxis>& all = state().axes;
  const auto found = std::ranges::find(all, axis, &MeshAxis::name);
  ARGOSY_CHECK(
      found != all.end(), kMesh, "there is no axis \"{}\". This mesh has {}", axis, in_words(all));
  return static_cast<std::size_t>(found - all.begin());
}

int64_t Mesh::size(std::string_view axis) const {
  return axes()[index_of(axis)].size;
}
int64_t Mesh::coordinate(std::string_view axis) const {
  return coordinate(axis, ranks().rank());
}
int64_t Mesh::coordinate(std::string_view axis, int rank) const {
  return coordinates(rank)[index_of(axis)];
}

std::vector<int64_t> Mesh::coordinates(int rank) const {
  ARGOSY_CHECK(rank >= 0 && rank < ranks().size(),
               kMesh,
               "rank {} is not in the mesh: expected 0 to {}",
               rank,
               ranks().size() - 1);
  std::vector<int64_t> result(axes().size());
  int64_t rest = rank;
  for (std::size_t i = axes().size(); i-- > 0;) {
    result[i] = rest % axes()[i].size;
    rest /= axes()[i].size;
  }
  return result;
}

int Mesh::rank_at(const std::map<std::string, int64_t>& coordinates) const {
  std::vector<int64_t> place = this->coordinates(ranks().rank());
  for (const auto& [axis, coordinate] : coordinates) {
    ARGOSY_CHECK(coordinate >= 0 && coordinate < size(axis),
                 kMesh,
                 "axis {}: expected a coordinate from 0 to {}, got {}",
                 axis,
                 size(axis) - 1,
                 coordinate);
    place[index_of(axis)] = coordinate;
  }
  int64_t rank = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    rank = rank * axes()[i].size + place[i];
  }
  return static_cast<int>(rank);
}

std::vector<bool> Mesh::chosen(const std::vector<std::string>& axes) const {
  std::vector<bool> result(this->axes().size());
  for (const std::string& axis : axes) {
    result[index_of(axis)] = true;
  }
  return result;
}

std::vector<int> Mesh::along(const std::vector<bool>& chosen, int rank) const {
  const std::vector<int64_t> mine = coordinates(rank);
  std::vector<int> result;
  for (int other = 0; other < ranks().size(); ++other) {
    const std::vector<int64_t> theirs = coordinates(other);
    bool same = true;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      same = same && (chosen[i] || mine[i] == theirs[i]);
    }
    if (same) {
      result.push_back(other);
    }
  }
  return result;
}

std::vector<int> Mesh::ranks_along(const std::vector<std::string>& axes) const {
  return along(chosen(axes), ranks().rank());
}

comm::Group Mesh::group_along(const std::vector<std::string>& axes) const {
  const std::vector<bool> key = chosen(axes);
  const std::vector<int> members = along(key, ranks().rank());
  if (std::ssize(members) == ranks().size()) {
    return ranks();
  }
  const auto found = state().groups.find(key);
  if (found != state().groups.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i]) {
      names.push_back(this->axes()[i].name);
    }
  }
  comm::Group made = ranks().new_group(
      members, {.members_only = true, .label = fmt::format("{}", fmt::join(names, "+"))});
  state().groups.emplace(key, made);
  return made;
}

Mesh Mesh::submesh(const std::vector<std::string>& axes) const {
  ARGOSY_CHECK(!axes.empty(), kMesh, "submesh() of no axes: expected one at least");
  const std::vector<bool> key = chosen(axes);
  std::vector<MeshAxis> kept;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i]) {
      kept.push_back(this->axes()[i]);
    }
  }
  return Mesh(group_along(axes), std::move(kept));
}

std::string Mesh::describe() const {
  constexpr std::size_t kMostShown = 8;
  std::size_t width = 0;
  for (const MeshAxis& axis : axes()) {
    width = std::max(width, axis.name.size());
  }
  std::string text;
  for (const MeshAxis& axis : axes()) {
    if (axis.size == 1) {
      continue;
    }
    std::vector<std::string> groups;
    const std::vector<bool> key = chosen({axis.name});
    for (int rank = 0; rank < ranks().size() && groups.size() <= kMostShown; ++rank) {
      const std::vector<int> members = along(key, rank);
      if (members.front() == rank) {
        groups.push_back(groups.size() < kMostShown ? strings::ranges(members) : "…");
      }
    }
    text += fmt::format("{:<{}}  {}  {}\n", axis.name, width, axis.size, fmt::join(groups, " | "));
  }
  return text;
}

}  // namespace argosy::parallel
