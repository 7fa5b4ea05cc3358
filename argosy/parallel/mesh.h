#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/comm/group.h"

namespace argosy::parallel {

/// One direction of a mesh.
struct MeshAxis {
  std::string name{};  ///< "dp"
  int64_t size = 1;    ///< -1, for one axis: what the others leave

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// The ranks of a group on a grid, with an axis for each way to divide a training among them.
///
///     parallel::Mesh mesh(comm::init(), {{"dp", 2}, {"sharding", -1}});     // 8 ranks
///     mesh.size("sharding");      // 4
///     mesh.group("sharding");     // of rank 5: ranks 4 to 7
///     mesh.group("dp");           // of rank 5: ranks 1 and 5
///
/// The first axis is the outermost: ranks are numbered row by row, so neighbours along the last
/// axis have neighbouring numbers, and mostly one host. A group is made when it is first asked for,
/// by its members alone.
///
/// A handle: copies are the same mesh. Not thread-safe.
/// Errors: UsageError for an axis that the mesh does not have, naming those that it has.
/// Source: torch.distributed.device_mesh.DeviceMesh; fleet's topology in PaddlePaddle.
class Mesh final {
 public:
  Mesh() = default;  ///< empty; every use throws UsageError
  /// Collective over `ranks`. Errors: UsageError, on all ranks: the sizes do not make the number of
  /// ranks, a name is used twice, or ranks were given different axes. Warns of an axis "mp" that
  /// leaves a host, because all layers communicate along it, and of an axis "sharding" that leaves
  /// one with room for it.
  Mesh(comm::Group ranks, std::vector<MeshAxis> axes);

  [[nodiscard]] bool valid() const { return state_ != nullptr; }
  [[nodiscard]] const std::vector<MeshAxis>& axes() const;
  /// All ranks of the mesh.
  [[nodiscard]] const comm::Group& ranks() const;
  [[nodiscard]] bool has(std::string_view axis) const;
  [[nodiscard]] int64_t size(std::string_view axis) const;
  /// Where this process is along an axis: its rank in group(axis).
  [[nodiscard]] int64_t coordinate(std::string_view axis) const;
  [[nodiscard]] int64_t coordinate(std::string_view axis, int rank) const;
  /// Where a rank is, along each axis in their order.
  [[nodiscard]] std::vector<int64_t> coordinates(int rank) const;
  /// The rank at these coordinates; along the other axes it is where this process is.
  [[nodiscard]] int rank_at(const std::map<std::string, int64_t>& coordinates) const;
  /// The ranks that differ from this process along these axes only, itself included, ascending.
  [[nodiscard]] std::vector<int> ranks_along(const std::vector<std::string>& axes) const;

  /// The group of ranks_along(axes), in that order: ranks() itself if these are all. Collective
  /// over it when it is first asked for. A try that failed is not repeated: make another mesh.
  [[nodiscard]] comm::Group group_along(const std::vector<std::string>& axes) const;
  [[nodiscard]] comm::Group group(const std::string& axis) const { return group_along({axis}); }
  /// The mesh of group_along(axes), with these axes in the order of this mesh. Collective over
  /// them.
  [[nodiscard]] Mesh submesh(const std::vector<std::string>& axes) const;

  /// One line for each axis of more than one rank: its name, size, and the groups along it.
  ///
  ///     dp        2  0,4 1,5 2,6 3,7
  ///     sharding  4  0-3 4-7
  [[nodiscard]] std::string describe() const;

 private:
  struct State;
  [[nodiscard]] State& state() const;
  [[nodiscard]] std::size_t index_of(std::string_view axis) const;
  [[nodiscard]] std::vector<int> along(const std::vector<bool>& chosen, int rank) const;
  [[nodiscard]] std::vector<bool> chosen(const std::vector<std::string>& axes) const;

  std::shared_ptr<State> state_;
};

}  // namespace argosy::parallel
