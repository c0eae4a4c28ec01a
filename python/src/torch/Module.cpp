//===- Module.cpp - the module greta._torch -------------------------------===//
//
// In: calls of greta/torch/*.py. Out: devices, launches of kernels on torch's
// tensors, and counters.
//
//===----------------------------------------------------------------------===//

#include "../Session.h"
#include "CallPlan.h"
#include "DLPack.h"
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

  /// Called as Triton's launchers are.
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

/// The launches of a call, for calls with the same key.
class BoundPlan {
public:
  BoundPlan(CallPlan plan, std::vector<nb::object> kernels, bool isOne)
      : plan(std::move(plan)), kernels(std::move(kernels)), isOne(isOne) {}

  nb::object operator()(nb::list tensors) const {
    std::vector<at::Tensor> given = tensorsOf(tensors), made;
    {
      nb::gil_scoped_release release;
      made = plan.run(given);
    }
    nb::list results;
    for (size_t i = 0; i < made.size(); ++i) {
      if (plan.results[i].given)
        results.append(tensors[*plan.results[i].given]);
      else if (made[i].defined())
        results.append(nb::steal(THPVariable_Wrap(made[i])));
      else
        results.append(nb::none());
    }
    return isOne ? nb::object(results[0]) : nb::object(nb::tuple(results));
  }

private:
  CallPlan plan;
  std::vector<nb::object> kernels; // kept
  bool isOne;
};

/// `with` records the calls in it.
class BoundRecorder {
public:
  explicit BoundRecorder(nb::list tensors) : tensors(tensorsOf(tensors)) {}

  BoundRecorder &enter() {
    recorder.emplace(tensors);
    return *this;
  }
  void exit(nb::args) { recorder.reset(); }

  /// None where the launches do not repeat the calls.
  nb::object plan(nb::object result) const {
    TORCH_CHECK(recorder, "nothing is being recorded");
    bool isOne = THPVariable_Check(result.ptr());
    nb::list all;
    if (isOne)
      all.append(result);
    else
      all = nb::list(result);
    std::vector<std::optional<at::Tensor>> results;
    for (nb::handle one : all)
      results.push_back(one.is_none() ? std::nullopt
                                      : std::optional<at::Tensor>(
                                            THPVariable_Unpack(one.ptr())));
    std::optional<CallPlan> made = recorder->plan(results);
    std::vector<nb::object> kernels;
    for (Kernel *kernel : recorder->kernels()) {
      kernels.push_back(nb::find(kernel));
      if (!kernels.back().is_valid())
        return nb::none();
    }
    if (!made)
      return nb::none();
    return nb::cast(BoundPlan(std::move(*made), std::move(kernels), isOne));
  }

private:
  std::vector<at::Tensor> tensors;
  std::optional<PlanRecorder> recorder;
};

/// A key tells calls of an operator apart: by types, sizes, strides and
/// alignments of tensors, by which of them share memory and how, and by all
/// other arguments.
class CallKey {
public:
  CallKey() { append(at::get_default_dtype_as_scalartype()); }

  /// False: of this argument nothing short can be said.
  bool add(nb::handle value) {
    PyObject *object = value.ptr();
    if (THPVariable_Check(object))
      return add(THPVariable_Unpack(object), value);
    if (object == Py_None || PyBool_Check(object) || THPDtype_Check(object)) {
      append('o');
      append(object);
    } else if (PyLong_Check(object)) {
      int overflow = 0;
      append('i');
      append(PyLong_AsLongLongAndOverflow(object, &overflow));
      return !overflow;
    } else if (PyFloat_Check(object)) {
      append('f');
      append(PyFloat_AS_DOUBLE(object));
    } else if (PyUnicode_Check(object)) {
      Py_ssize_t size = 0;
      const char *text = PyUnicode_AsUTF8AndSize(object, &size);
      append('s');
      append(size);
      bytes.append(text, size);
    } else if (PyTuple_Check(object) || PyList_Check(object)) {
      append('(');
      append(PySequence_Fast_GET_SIZE(object));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        if (!add(PySequence_Fast_GET_ITEM(object, i)))
          return false;
    } else {
      return false;
    }
    return true;
  }

  nb::object get() const {
    return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), tensors);
  }

private:
  template <typename T> void append(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }

  bool add(const at::Tensor &tensor, nb::handle object) {
    if (tensor.device().type() != deviceType || tensor.is_neg() ||
        tensor.layout() != at::kStrided || tensor.numel() == 0)
      return false;
    auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    // DLPack gives memory a second storage, which may begin elsewhere in it.
    const void *memory = tensor.storage().data();
    auto first = std::find_if(places.begin(), places.end(), [&](auto &place) {
      return place.first == memory || place.second == address;
    });
    append('t');
    append(tensor.scalar_type());
    append(tensor.device().index());
    append(int(first - places.begin()));
    append(first == places.end() ? address % 16 : address - first->second);
    append(tensor.dim());
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      append(tensor.size(d));
      append(tensor.stride(d));
    }
    places.push_back({memory, address});
    tensors.append(object);
    return true;
  }

  std::string bytes;
  std::vector<std::pair<const void *, uintptr_t>> places;
  nb::list tensors;
};

nb::object keyOf(nb::tuple arguments, nb::dict named) {
  CallKey key;
  for (nb::handle one : arguments)
    if (!key.add(one))
      return nb::none();
  for (auto [name, one] : named)
    if (!key.add(name) || !key.add(one))
      return nb::none();
  return key.get();
}

nb::object &findKernel = *new nb::object; // Python has ended before globals do

/// Asks Python for the kernel that copies, and remembers the one it has.
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
        nb::gil_scoped_release release; // threads that start take it
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
      .def("move_away", &Lending::moveAway,
           "Gives those lent last that are in use memory of their own");
  m.def(
      "is_lent",
      [](nb::handle tensor) {
        return Lending::isLent(THPVariable_Unpack(tensor.ptr()));
      },
      "tensor"_a, "Whether a tensor's memory is a graph's");
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
  m.def("fallbacks", &fallbacks, "reset"_a = false);
  m.def("count_fallback", &countFallback, "name"_a);
  m.def("allow_fallback", &allowFallback, "allowed"_a);
  m.def("key_of", &keyOf, "arguments"_a, "named"_a,
        "Bytes that tell kinds of calls apart, and a call's tensors; None "
        "where an argument cannot be told in short");
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
  nb::class_<BoundPlan>(m, "CallPlan", "The launches of a call")
      .def("__call__", &BoundPlan::operator(), "tensors"_a,
           "For tensors that lie as the call's do: results as the call's");
  nb::class_<BoundRecorder>(m, "PlanRecorder",
                            "Records what is launched in `with`")
      .def(nb::init<nb::list>(), "tensors"_a)
      .def("__enter__", &BoundRecorder::enter, nb::rv_policy::reference)
      .def("__exit__", &BoundRecorder::exit)
      .def("plan", &BoundRecorder::plan, "result"_a,
           "In `with`, its launches for a call of these tensors with this "
           "result, a tensor or several; None where more than launches has to "
           "be repeated");
  nb::class_<TensorLauncher>(m, "Launcher", "Launches kernels of one signature")
      .def(nb::init<const std::vector<std::string> &>(), "signature"_a)
      .def("__call__", &TensorLauncher::operator(), "grid_x"_a, "grid_y"_a,
           "grid_z"_a, "stream"_a.none(), "function"_a, "packed"_a.none(),
           "metadata"_a.none(), "enter"_a.none(), "exit"_a.none(), "args"_a);
}
