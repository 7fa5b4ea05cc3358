// What Python sees of the group. ARGOSY_MODULE names the version of Paddle that this is compiled
// for.
#include <pybind11/pybind11.h>

#include <cmath>

#include "argosy/abi/interpreter.h"

#include "process_group.h"

namespace py = pybind11;
using argosy_paddle::ProcessGroup;

namespace {

std::shared_ptr<ProcessGroup> make(const std::shared_ptr<phi::distributed::Store>& store,
                                   int rank,
                                   int size,
                                   int id,
                                   int world_rank,
                                   const std::string& towards,
                                   double timeout) {
  const py::gil_scoped_release released;
  const std::chrono::milliseconds limit(static_cast<int64_t>(std::ceil(timeout * 1000)));
  return std::make_shared<ProcessGroup>(
      *store, rank, size, argosy_paddle::GroupOptions{id, world_rank, towards, limit});
}

}  // namespace

PYBIND11_MODULE(ARGOSY_MODULE, module) {
  py::module_::import("paddle.base.libpaddle");  // has the classes that these are made of
  module.def("close_all", &argosy::abi::close_all_groups);
  module.def("load",
             [](const std::string& path) { argosy::abi::library().load(path, "argosy.paddle"); });
  py::class_<ProcessGroup, phi::distributed::ProcessGroup, std::shared_ptr<ProcessGroup>>(
      module, "ProcessGroupArgosy")
      .def(py::init(&make),
           py::arg("store"),
           py::arg("rank"),
           py::arg("size"),
           py::arg("id"),
           py::arg("world_rank"),
           py::arg("towards"),
           py::arg("timeout"))
      .def("flight_record", &ProcessGroup::record, py::call_guard<py::gil_scoped_release>());
}
