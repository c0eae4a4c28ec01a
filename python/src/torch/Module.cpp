//===- Module.cpp - the module greta._torch -------------------------------===//
//
// In: calls of greta/torch/*.py. Out: devices, launches of kernels on torch's
// tensors, and counters.
//
//===----------------------------------------------------------------------===//

#include "../Session.h"
#include "CallPlan.h"
#include "DLPack.h"
#include "Dispatch.h"
#include "Distributed.h"
#include "Generator.h"
#include "Lending.h"
#include "Tensors.h"

#include <ATen/dlpack.h>
#include <algorithm>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/autograd/python_variable.h>
#include <unordered_set>

namespace nb = nanobind;
using namespace nb::literals;
using namespace greta::torch_device;
using Greta = greta::torch_device::Device;

namespace {

/// Knows which of the arguments that Triton passes the kernel takes.
class TensorLauncher {
public:
  explicit TensorLauncher(const std::vector<std::string> &signature) {
    for (const std::string &type : signature)
      kinds.push_back(type == "constexpr" ? Kind::Constant
                      : type[0] == '*'    ? Kind::Pointer
                                          : Kind::Scalar);
  }

  /// Launches when called as Triton's launchers are.
  void operator()(int64_t x, int64_t y, int64_t z, nb::handle stream,
                  Kernel &kernel, nb::handle, nb::handle metadata,
                  nb::handle enter, nb::handle exit, nb::args given) const {
    if (!enter.is_none())
      enter(metadata);
    c10::DeviceIndex index = currentDevice();
    Launch launch(kernel, index,
                  PyLong_Check(stream.ptr()) ? nb::cast<int64_t>(stream)
                                             : currentStream(index));
    for (size_t i = 0; i < given.size() && i < kinds.size(); ++i) {
      if (kinds[i] == Kind::Pointer)
        addPointer(launch, given[i]);
      else if (kinds[i] == Kind::Scalar)
        launch.add(greta::python::scalarBits(launch.type(), given[i]));
    }
    {
      nb::gil_scoped_release release;
      launch.run(x, y, z);
    }
    if (!exit.is_none())
      exit(metadata);
  }

private:
  enum class Kind { Constant, Pointer, Scalar };

  static void addPointer(Launch &launch, nb::handle value) {
    if (THPVariable_Check(value.ptr()))
      return launch.add(THPVariable_Unpack(value.ptr()));
    // triton.reinterpret leaves the tensor in `base`.
    nb::object base = nb::getattr(value, "base", nb::none());
    if (!THPVariable_Check(base.ptr()))
      throw nb::type_error("a pointer of a kernel is a tensor of torch on a "
                           "device rdna");
    launch.add(THPVariable_Unpack(base.ptr()));
  }

  std::vector<Kind> kinds;
};

std::vector<at::Tensor> tensorsOf(nb::handle given) {
  std::vector<at::Tensor> tensors;
  for (nb::handle one : given) {
    if (!THPVariable_Check(one.ptr()))
      throw nb::type_error("a function takes tensors of torch");
    tensors.push_back(THPVariable_Unpack(one.ptr()));
  }
  return tensors;
}

void callFunction(Kernel &kernel, nb::sequence arguments,
                  nb::sequence results) {
  std::vector<at::Tensor> in = tensorsOf(arguments), out = tensorsOf(results);
  auto operands = [](const std::vector<at::Tensor> &tensors) {
    std::vector<Operand> list;
    for (const at::Tensor &tensor : tensors) {
      TORCH_CHECK(tensor.is_contiguous(),
                  "a function takes tensors whose elements lie row by row");
      list.push_back({tensor, tensor.sizes()});
    }
    return list;
  };
  nb::gil_scoped_release release;
  c10::DeviceIndex index = currentDevice();
  launch(kernel, index, currentStream(index), operands(in), operands(out));
}

/// Keeps kernels' Python objects alive as long as the process lives.
bool keepForever(Kernel &kernel) {
  static auto &kept = *new std::unordered_set<Kernel *>;
  nb::gil_scoped_acquire acquire;
  if (kept.count(&kernel))
    return true;
  nb::object object = nb::find(&kernel);
  if (!object.is_valid())
    return false;
  object.release();
  kept.insert(&kernel);
  return true;
}

/// Keeps recorders of calls from recording the work in its `with`.
class PauseOfRecorders {
public:
  void enter() { pause.emplace(); }
  void exit(nb::args) { pause.reset(); }

private:
  std::optional<PlanRecorder::Pause> pause;
};

nb::object &findKernel = *new nb::object; // Python ends before globals do

/// Asks Python for the kernel that copies, and remembers its answer.
Kernel *findCopyKernel(c10::ScalarType to, c10::ScalarType from, int rank,
                       bool isFar, bool negates) {
  using Key = std::tuple<c10::ScalarType, c10::ScalarType, int, bool, bool,
                         c10::DeviceIndex>;
  static auto &found = *new std::map<Key, Kernel *>;
  static std::mutex lock;
  Key key{to, from, rank, isFar, negates, currentDevice()};
  {
    std::lock_guard<std::mutex> guard(lock);
    auto known = found.find(key);
    if (known != found.end())
      return known->second;
  }
  nb::gil_scoped_acquire acquire;
  nb::object kernel =
      findKernel(c10::toString(to), c10::toString(from), rank, isFar, negates);
  if (kernel.is_none())
    return nullptr;
  auto *result = nb::cast<Kernel *>(kernel);
  kernel.release(); // lives as long as the process
  std::lock_guard<std::mutex> guard(lock);
  return found[key] = result;
}

} // namespace

static void bindDevices(nb::module_ &m) {
  m.def(
      "configure",
      [](const std::vector<std::string> &specs, nb::object find) {
        configure(specs, [find = find.release()](const std::string &spec) {
          nb::gil_scoped_acquire acquire;
          auto session =
              nb::cast<std::shared_ptr<greta::python::Device>>(find(spec))
                  ->session();
          return session->process == getpid()
                     ? std::shared_ptr<const greta::Runtime>(session,
                                                             &session->runtime)
                     : std::make_shared<const greta::Runtime>(spec);
        });
        nb::gil_scoped_release release; // starting threads take it
        joinAutograd();
      },
      "specs"_a, "find"_a, "`find` gives greta's device of a name");
  m.def("device_count", [] { return int(deviceCount()); });
  m.def("current_device", [] { return int(currentDevice()); });
  m.def("set_device", [](int index) { setCurrentDevice(index); });
  m.def(
      "exchange_device",
      [](int index) {
        int before = currentDevice();
        if (index >= 0)
          setCurrentDevice(index);
        return before;
      },
      "Returns the one before; a negative index changes nothing");
  m.def("spec", [](int index) { return device(index).spec; });
  m.def("info", [](int index) { return device(index).runtime().info(); });
  m.def("register_graphs", &registerGraphs, "name"_a);
  m.def(
      "is_capturing",
      [](int index) { return device(index).isCapturing(currentStream(index)); },
      "index"_a, "Whether a graph is recorded from the stream in use");
  m.def("raw_stream", [](int index) { return currentStream(index); });
  m.def(
      "synchronize",
      [](int index) {
        nb::gil_scoped_release release;
        device(index).synchronize();
      },
      "index"_a);
  m.def("memory_summary",
        [](int index) { return device(index).memorySummary(); });
  m.def(
      "memory",
      [](int index) {
        greta_memory now = device(index).memory();
        return nb::make_tuple(unusedOf(now), now.largest_free);
      },
      "index"_a,
      "Bytes that the driver gave and nobody uses, and the largest piece");
  m.def(
      "memory_pieces",
      [](int index) {
        nb::list all;
        for (const Piece &one : device(index).pieces())
          all.append(nb::make_tuple(one.address, one.size, one.requested,
                                    one.stream, one.graph, one.isUsed));
        return all;
      },
      "index"_a,
      "Buffers: address, size, requested bytes, stream, graph, and whether a "
      "tensor has it");
  m.def("default_generator", [](int index) {
    return nb::steal(
        THPGenerator_initDefaultGenerator(defaultGenerator(index)));
  });
  m.def(
      "take_numbers",
      [](nb::handle generator, int index, uint64_t count) {
        PlanRecorder::didMore();
        at::Generator of = generator.is_none()
                               ? defaultGenerator(index)
                               : THPGenerator_Unwrap(generator.ptr());
        if (auto recorded = recordNumbers(of, index, count))
          return nb::make_tuple(nb::steal(THPVariable_Wrap(recorded->state)),
                                recorded->first);
        std::lock_guard<std::mutex> guard(of.mutex());
        auto *ours =
            static_cast<PhiloxGenerator *>(of.unsafeGetGeneratorImpl());
        uint64_t offset = ours->take(count);
        return nb::make_tuple(ours->current_seed(), offset);
      },
      "generator"_a.none(), "index"_a, "count"_a,
      "Takes random numbers: the seed, and the offset of the first. While a "
      "graph is recorded, the tensor that will hold both, and an offset from "
      "there");
}

static void bindDLPack(nb::module_ &m) {
  m.def(
      "export_dlpack",
      [](nb::handle tensor) {
        DLManagedTensor *made = exportTensor(THPVariable_Unpack(tensor.ptr()));
        PyObject *capsule = PyCapsule_New(made, "dltensor", [](PyObject *self) {
          if (!PyCapsule_IsValid(self, "dltensor"))
            return; // taken
          auto *left = static_cast<DLManagedTensor *>(
              PyCapsule_GetPointer(self, "dltensor"));
          left->deleter(left);
        });
        if (!capsule)
          made->deleter(made);
        DLDevice device = made->dl_tensor.device;
        return nb::make_tuple(nb::steal(capsule), int(device.device_type),
                              device.device_id);
      },
      "tensor"_a, "A capsule, and DLPack's device that it is of");
  m.def(
      "import_dlpack",
      [](nb::handle capsule, int index) {
        auto *given = static_cast<DLManagedTensor *>(
            PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        if (!given)
          throw nb::python_error();
        at::Tensor tensor = importTensor(given, index);
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        return nb::steal(THPVariable_Wrap(tensor));
      },
      "capsule"_a, "index"_a, "The same memory as a tensor");
}

static void bindLending(nb::module_ &m) {
  nb::class_<Lending>(m, "Lending", "Memory that a graph's replays write")
      .def(
          "__init__",
          [](Lending *self, nb::sequence given) {
            std::vector<at::Tensor> tensors;
            for (nb::handle one : given)
              tensors.push_back(THPVariable_Unpack(one.ptr()));
            new (self) Lending(std::move(tensors));
          },
          "tensors"_a)
      .def(
          "lend",
          [](Lending &self) {
            nb::list tensors;
            for (const at::Tensor &one : self.lend())
              tensors.append(nb::steal(THPVariable_Wrap(one)));
            return tensors;
          },
          "Tensors over the same memory with storages of their own")
      .def(
          "prepare_replay",
          [](Lending &self, nb::sequence given) {
            std::vector<at::Tensor> read;
            for (nb::handle one : given)
              read.push_back(THPVariable_Unpack(one.ptr()));
            self.prepareReplay(read);
          },
          "read"_a,
          "Before a replay: waits for other streams that use the memory, and "
          "gives those lent last that are in use memory of their own");
  m.def(
      "move_away",
      [](nb::handle tensor) {
        Lending::moveAway(THPVariable_Unpack(tensor.ptr()));
      },
      "tensor"_a, "Gives a tensor memory of its own if a graph's was lent");
  m.def(
      "is_lent",
      [](nb::handle tensor) {
        return Lending::isLent(THPVariable_Unpack(tensor.ptr()));
      },
      "tensor"_a, "Whether a tensor's memory is a graph's");
  m.def(
      "reserve_stream", [](int index) { return device(index).reserveStream(); },
      "index"_a, "The number of a stream that users do not get");
}

NB_MODULE(_torch, m) {
  m.doc() = "GRETA's device of torch; greta.torch is what to use";
  nb::set_leak_warnings(false);
  m.attr("torch_version") = TORCH_VERSION;
  m.attr("own_stream") = ownStream;
  registerBackend();
  bindDevices(m);
  bindDLPack(m);
  bindLending(m);
  m.def(
      "make_collectives",
      [](nb::handle store, int rank, int size, double timeout) {
        return nb::steal(makeCollectives(store.ptr(), rank, size, timeout));
      },
      "store"_a, "rank"_a, "size"_a, "timeout"_a,
      "A backend of torch.distributed; the time-out is in seconds");
  m.def("end_collectives", &endCollectives, "Ends its backends");
  m.def("fallbacks", &fallbacks, "reset"_a = false);
  m.def("count_fallback", &countFallback, "name"_a);
  m.def("allow_fallback", &allowFallback, "allowed"_a);
  m.def("allow_quadratic_attention", &allowQuadraticAttention, "allowed"_a);
  m.def("find_copy_kernel", [](nb::object find) {
    findKernel = std::move(find);
    setFindCopyKernel(&findCopyKernel);
  });
  nb::class_<Kernel>(m, "Kernel", "A function of a package")
      .def(
          "__init__",
          [](Kernel *self, nb::bytes package, const std::string &name) {
            new (self) Kernel(package.data(), package.size(), name);
          },
          "package"_a, "name"_a)
      .def(
          "load", [](Kernel &kernel, int index) { kernel.on(device(index)); },
          "index"_a, "Loads it on a device; an error where it cannot run")
      .def("__call__", &callFunction, "arguments"_a, "results"_a,
           "Launches a function of greta's dialect on the device and in the "
           "stream in use; tensors lie as its are, and begin at multiples of "
           "16 bytes");
  nb::class_<PauseOfRecorders>(m, "PauseOfRecorders",
                               "In `with`, the thread's calls are not recorded")
      .def(nb::init<>())
      .def("__enter__", &PauseOfRecorders::enter)
      .def("__exit__", &PauseOfRecorders::exit);
  setKeepKernel(&keepForever);
  m.def("is_recording", &PlanRecorder::isRecording,
        "Whether the thread's launches are recorded, to be launched again");
  m.def(
      "reads_constant",
      [](nb::handle tensor) {
        PlanRecorder::reads(THPVariable_Unpack(tensor.ptr()));
      },
      "tensor"_a,
      "Launches that are recorded may read it: it stays as it is, and is "
      "complete for all streams");
  m.def("call_plans", &callPlans,
        "By operator: how many kinds of calls are launched again without "
        "Python, and how often that was done");
  m.def("forget_call_plans", &forgetCallPlans);
  nb::class_<TensorLauncher>(m, "Launcher", "Launches kernels of one signature")
      .def(nb::init<const std::vector<std::string> &>(), "signature"_a)
      .def("__call__", &TensorLauncher::operator(), "grid_x"_a, "grid_y"_a,
           "grid_z"_a, "stream"_a.none(), "function"_a, "packed"_a.none(),
           "metadata"_a.none(), "enter"_a.none(), "exit"_a.none(), "args"_a);
}
