//===- Runtime.cpp - the module greta._runtime ----------------------------===//
//
// In: Python's calls, with arrays whose types and shapes greta/_arrays.py has
// prepared. Out: devices, arrays, streams, events, packages and launches of
// the runtime. Failures are greta.Error.
//
//===----------------------------------------------------------------------===//

#include "Communicator.h"
#include "DLPack.h"
#include "Describe.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

using namespace greta;
using namespace greta::python;
using namespace nb::literals;

/// Contiguous memory of the host, of any type.
using HostBytes =
    nb::ndarray<nb::ro, uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes =
    nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void checkSize(const Array &array, size_t bytes) {
  if (array.bytes() != bytes)
    throw nb::value_error("the array on the host has another size");
}

static nb::tuple shapeOf(const Array &array) {
  nb::list shape;
  for (int64_t extent : array.shape)
    shape.append(extent);
  return nb::tuple(shape);
}

/// Exports the array as a tensor of DLPack, with NumPy's type.
static DLManagedTensor *exported(const Array &array) {
  std::string kind = nb::cast<std::string>(array.dtype.attr("kind"));
  std::string type = kind == "b"   ? "i1"
                     : kind == "u" ? "u" + array.type.substr(1)
                                   : array.type;
  return array.buffer->exportDLPack(type, array.shape, array.offset);
}

/// Makes a capsule, which deletes the tensor unless somebody has taken it and
/// renamed the capsule.
static nb::object capsuleOf(DLManagedTensor *tensor) {
  PyObject *capsule = PyCapsule_New(tensor, "dltensor", [](PyObject *self) {
    if (!PyCapsule_IsValid(self, "dltensor"))
      return;
    auto *left =
        static_cast<DLManagedTensor *>(PyCapsule_GetPointer(self, "dltensor"));
    left->deleter(left);
  });
  if (!capsule)
    tensor->deleter(tensor);
  return nb::steal(capsule);
}

static void bindDevices(nb::module_ &m) {
  nb::class_<Device>(m, "Device", "A device by name; opened when it is used")
      .def(nb::init<std::string>(), "spec"_a)
      .def_ro("spec", &Device::spec)
      .def_prop_ro("is_open", &Device::isOpen)
      .def("open", [](Device &device) { device.session(); })
      .def("close", &Device::close,
           "Drops what is loaded; arrays there stay, and keep it open")
      .def(
          "info",
          [](Device &device) { return device.session()->runtime.info(); },
          "The driver's description of the device, as JSON")
      .def("synchronize", [](Device &device) {
        if (device.isOpen())
          device.session()->queue->run(
              [](greta::Stream &stream) { stream.synchronize(); });
      });
}

/// Copies all of an array to or from memory of the host that has its size.
template <auto Copy, typename Bytes>
static void copyWhole(const Array &array, const Bytes &data) {
  checkSize(array, data.nbytes());
  array.session->queue->run([&](greta::Stream &stream) {
    (stream.*Copy)(*array.buffer, data.data(), data.nbytes(), array.offset);
  });
}

/// Binds copies of an array's elements, and its exports to other libraries.
static void bindTransfers(nb::class_<Array> &array) {
  array
      .def(
          "write",
          [](Array &a, HostBytes data) {
            copyWhole<&greta::Stream::write>(a, data);
          },
          "data"_a)
      .def(
          "read",
          [](const Array &a, WritableBytes data) {
            copyWhole<&greta::Stream::read>(a, data);
          },
          "data"_a)
      .def(
          "__dlpack__",
          [](const Array &a, const nb::kwargs &) {
            a.session->queue->run(
                [](greta::Stream &stream) { stream.synchronize(); });
            return capsuleOf(exported(a));
          },
          "The same memory for another library, when the work before is done")
      .def("__dlpack_device__",
           [](const Array &a) {
             DLManagedTensor *tensor = exported(a);
             DLDevice device = tensor->dl_tensor.device;
             tensor->deleter(tensor);
             return nb::make_tuple(static_cast<int>(device.device_type),
                                   device.device_id);
           })
      .def("copy_from", [](Array &a, const Array &from) {
        checkSize(a, from.bytes());
        if (from.session != a.session)
          throw nb::value_error("the other array lies on another device");
        a.session->queue->run([&](greta::Stream &stream) {
          check(greta_buffer_copy(stream.get(), a.buffer->get(), a.offset,
                                  from.buffer->get(), from.offset,
                                  from.bytes()));
        });
      });
}

static void bindArrays(nb::module_ &m) {
  nb::class_<Array> array(m, "Array", "A contiguous array on a device");
  array
      .def(nb::init<std::shared_ptr<Device>, std::vector<int64_t>, nb::object,
                    std::string, size_t>(),
           "device"_a, "shape"_a, "dtype"_a, "type"_a, "itemsize"_a)
      .def(
          "__init__",
          [](Array *self, const Array &of, std::vector<int64_t> shape,
             size_t offset) {
            Array view(of, std::move(shape), offset);
            if (view.offset + view.bytes() > of.offset + of.bytes())
              throw nb::value_error("a view is larger than its array");
            new (self) Array(std::move(view));
          },
          "of"_a, "shape"_a, "offset"_a = 0, "The same memory")
      .def(
          "__init__",
          [](Array *self, std::shared_ptr<Device> device, nb::object capsule,
             std::vector<int64_t> shape, nb::object dtype, std::string type,
             size_t itemsize) {
            auto *given = static_cast<DLManagedTensor *>(
                PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
            if (!given)
              throw nb::python_error();
            new (self) Array(std::move(device), given, std::move(shape),
                             std::move(dtype), std::move(type), itemsize);
            PyCapsule_SetName(capsule.ptr(), "used_dltensor");
          },
          "device"_a, "capsule"_a, "shape"_a, "dtype"_a, "type"_a, "itemsize"_a,
          "DLPack's memory")
      .def_ro("device", &Array::device)
      .def_prop_ro("shape", shapeOf)
      .def_ro("dtype", &Array::dtype)
      .def_ro("type", &Array::type, "The element type's name in packages")
      .def_ro("itemsize", &Array::itemSize)
      .def_ro("offset", &Array::offset, "Bytes into its buffer")
      .def_prop_ro("ndim", [](const Array &a) { return a.shape.size(); })
      .def_prop_ro("size", &Array::count)
      .def_prop_ro("nbytes", &Array::bytes)
      .def("data_ptr", &Array::address, "The address on the device")
      .def(
          "ptr_range",
          [](const Array &a) {
            return a.offset == 0 ? a.buffer->size() : UINT64_MAX;
          },
          "Bytes of the buffer that it begins; the most where it begins none, "
          "because a kernel's offsets may be negative then")
      .def(
          "lies_on",
          [](const Array &a, Device &device) {
            return device.isOpen() && a.session == device.session();
          },
          "device"_a);
  bindTransfers(array);
}

namespace {
/// A point in a device's stream.
struct PythonEvent {
  explicit PythonEvent(Device &device)
      : session(device.session()), event(session->runtime.event()) {}

  std::shared_ptr<Session> session; // outlives the event
  greta::Event event;
};

/// A stream that a `with` block makes the one in use. It begins when the work
/// of the stream before it is done.
struct PythonStream {
  explicit PythonStream(Device &device)
      : session(device.session()),
        queue(std::make_shared<Queue>(session->runtime.stream())) {}

  std::shared_ptr<Session> session;
  std::shared_ptr<Queue> queue;
  std::vector<std::shared_ptr<Queue>> outer;
};
} // namespace

static void bindStreams(nb::module_ &m) {
  nb::class_<PythonEvent>(m, "Event", "A point in a stream, with a time")
      .def(nb::init<Device &>(), "device"_a)
      .def(
          "record",
          [](PythonEvent &e) {
            e.session->queue->run(
                [&](greta::Stream &stream) { stream.record(e.event); });
          },
          "In the stream in use")
      .def(
          "wait",
          [](PythonEvent &e) {
            e.session->queue->run(
                [&](greta::Stream &stream) { stream.wait(e.event); });
          },
          "The stream in use goes on after it")
      .def("synchronize",
           [](PythonEvent &e) {
             nb::gil_scoped_release release;
             e.event.synchronize();
           })
      .def(
          "elapsed_time",
          [](PythonEvent &start, PythonEvent &end) {
            nb::gil_scoped_release release;
            return end.event.since(start.event) / 1000;
          },
          "end"_a, "Milliseconds on the device from this event to `end`");
  nb::class_<PythonStream>(m, "Stream",
                           "A queue of work; `with` makes it the one in use")
      .def(nb::init<Device &>(), "device"_a)
      .def("synchronize",
           [](PythonStream &s) {
             s.queue->run([](greta::Stream &stream) { stream.synchronize(); });
           })
      .def("__enter__",
           [](nb::handle_t<PythonStream> self) {
             auto &s = nb::cast<PythonStream &>(self);
             greta::Event before = s.session->runtime.event();
             s.session->queue->run(
                 [&](greta::Stream &stream) { stream.record(before); });
             s.queue->run([&](greta::Stream &stream) { stream.wait(before); });
             s.outer.push_back(s.session->queue);
             s.session->queue = s.queue;
             return nb::borrow(self);
           })
      .def("__exit__", [](PythonStream &s, nb::args) {
        s.session->queue = s.outer.back();
        s.outer.pop_back();
      });
}

namespace {
/// Holds the arguments of a launch as the C API takes them.
class Tensors {
public:
  Tensors(const std::vector<TensorInfo> &declared, nb::sequence values) {
    size_t count = nb::len(values);
    numbers.resize(count);
    for (size_t i = 0; i < count; ++i) {
      nb::handle value = values[i];
      if (nb::isinstance<Array>(value)) {
        owners.push_back(nb::borrow(value));
        raw.push_back(nb::cast<const Array &>(value).tensor());
        continue;
      }
      const std::string type = i < declared.size() ? declared[i].dtype : "";
      raw.push_back({nullptr, 0, nullptr, 0, &numbers[i]});
      numbers[i] = scalarBits(type, value);
    }
  }
  const greta_tensor *data() const { return raw.data(); }
  size_t size() const { return raw.size(); }

private:
  std::vector<nb::object> owners;
  std::vector<int64_t> numbers;
  std::vector<greta_tensor> raw;
};
} // namespace

static nb::list describe(const std::vector<TensorInfo> &all) {
  nb::list list;
  for (const TensorInfo &info : all) {
    nb::dict one;
    one["name"] = info.name;
    one["dtype"] = info.dtype;
    one["shape"] = info.shape;
    one["is_scalar"] = info.isScalar;
    one["tied"] = info.tied;
    list.append(one);
  }
  return list;
}

static void bindPackages(nb::module_ &m) {
  nb::class_<greta::Package>(m, "Package", "A package's bytes, checked")
      .def(
          "__init__",
          [](greta::Package *self, nb::bytes bytes) {
            new (self) greta::Package(bytes.data(), bytes.size());
          },
          "data"_a)
      .def_prop_ro("manifest", &greta::Package::manifest)
      .def_prop_ro("functions", &greta::Package::functions);

  nb::class_<PackageFunction>(m, "Function", "A function of a package")
      .def(nb::init<std::shared_ptr<greta::Package>, std::string>(),
           "package"_a, "name"_a)
      .def_ro("name", &PackageFunction::name)
      .def_rw("addresses", &PackageFunction::addresses,
              "The arguments that hold addresses, which kernels follow")
      .def(
          "variant",
          [](PackageFunction &f, Device &device) {
            return f.on(device.session()).function.variant();
          },
          "device"_a, "The name of the variant that runs there")
      .def(
          "arguments",
          [](PackageFunction &f, Device &device) {
            return describe(f.on(device.session()).arguments);
          },
          "device"_a)
      .def(
          "results",
          [](PackageFunction &f, Device &device) {
            return describe(f.on(device.session()).results);
          },
          "device"_a)
      .def(
          "result_shape",
          [](PackageFunction &f, Device &device, nb::sequence arguments,
             size_t index) {
            const Loaded &loaded = f.on(device.session());
            Tensors tensors(loaded.arguments, arguments);
            std::vector<int64_t> shape(loaded.results.at(index).shape.size());
            check(greta_function_result_shape(loaded.function.get(),
                                              tensors.data(), tensors.size(),
                                              index, shape.data(), nullptr));
            return shape;
          },
          "device"_a, "arguments"_a, "index"_a)
      .def(
          "launch",
          [](PackageFunction &f, Device &device, nb::sequence arguments,
             nb::sequence results, Communicator *over) {
            const std::shared_ptr<Session> &session = device.session();
            const Loaded &loaded = f.on(session);
            Tensors in(loaded.arguments, arguments);
            Tensors out(loaded.results, results);
            greta_function *function = loaded.function.get();
            auto launch = [&](greta_stream *stream) {
              return greta_function_launch(function, stream, in.data(),
                                           in.size(), out.data(), out.size());
            };
            if (!over || !loaded.function.sums())
              return session->queue->run(
                  [&](greta::Stream &stream) { check(launch(stream.get())); });
            over->run([&](greta_comm *comm, greta_stream *stream) {
              std::lock_guard<std::mutex> guard(loaded.communicator);
              check(greta_function_set_comm(function, comm));
              greta_status status = launch(stream);
              greta_function_set_comm(function, nullptr);
              return status;
            });
          },
          "device"_a, "arguments"_a, "results"_a, "over"_a.none() = nb::none());
}

NB_MODULE(_runtime, m) {
  m.doc() = "GRETA's runtime; greta's other modules are what to use";
  // Triton's caches keep kernels, and globals arrays, until the process ends.
  nb::set_leak_warnings(false);
  nb::exception<greta::Error>(m, "Error", PyExc_RuntimeError);
  m.def("version", &greta_version);
  m.def("describe", &greta_run::describeManifest, "manifest"_a,
        "A manifest for people, as greta-run --inspect prints it");
  m.def("devices", &greta::Runtime::devices,
        "The devices and libraries that were probed, as greta_device_list has "
        "them");
  bindDevices(m);
  m.def("advice", &greta_run::diagnose, "devices"_a,
        "Advice on what to install or change, from the results of probing");
  bindArrays(m);
  bindStreams(m);
  bindPackages(m);
  bindLauncher(m);
  bindCommunicators(m);
}
