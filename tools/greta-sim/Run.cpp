//===- Run.cpp - run a kernel of a code object on the CPU -----------------===//
//
// Files and numbers become the kernel's arguments. Output files are written
// only when the kernel ends well; any mistake gives one diagnostic and exit
// status 1.
//
//===----------------------------------------------------------------------===//
#include "OneLine.h"
#include "Options.h"
#include "greta/Sim/EstimateJson.h"
#include "greta/Sim/Fidelity.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Memory.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;
using namespace greta::sim;

static Dim3 dim(const std::vector<uint32_t> &extents) {
  Dim3 d;
  uint32_t *to[] = {&d.x, &d.y, &d.z};
  for (size_t k = 0; k < extents.size(); ++k)
    *to[k] = extents[k];
  return d;
}

static Expected<EstimateOptions>
parseEstimateOptions(const greta_sim::Options &options) {
  EstimateOptions o;
  SmallVector<StringRef, 4> parts;
  if (!options.latency.empty())
    StringRef(options.latency).split(parts, ',');
  for (StringRef part : parts) {
    auto [name, value] = part.split(':');
    unsigned *to = StringSwitch<unsigned *>(name)
                       .Case("lds", &o.ldsLatency)
                       .Case("scalar", &o.scalarLatency)
                       .Case("cache", &o.cacheLatency)
                       .Case("memory", &o.memoryLatency)
                       .Default(nullptr);
    if (to && *to)
      return createStringError("--latency=" + options.latency + ": '" + name +
                               "' stands there twice");
    if (!to || value.getAsInteger(10, *to) || !*to || *to > 65535)
      return createStringError("--latency=" + options.latency + ": '" + part +
                               "' is not one of lds, scalar, cache, memory "
                               "with a number from 1 to 65535");
  }
  parts.clear();
  SmallPtrSet<double *, 2> scaled;
  if (!options.scale.empty())
    StringRef(options.scale).split(parts, ',');
  for (StringRef part : parts) {
    auto [name, value] = part.split(':');
    double *to = StringSwitch<double *>(name)
                     .Case("latency", &o.latencyScale)
                     .Case("lds-rate", &o.ldsRate)
                     .Default(nullptr);
    if (to && !scaled.insert(to).second)
      return createStringError("--scale=" + options.scale + ": '" + name +
                               "' stands there twice");
    if (!to || value.getAsDouble(*to) || !(*to >= 0.01 && *to <= 100))
      return createStringError("--scale=" + options.scale + ": '" + part +
                               "' is not latency or lds-rate with a number "
                               "from 0.01 to 100");
  }
  o.workgroups = options.cuWorkgroups;
  o.computeUnits = options.computeUnits;
  o.oneWave = options.oneWave;
  return o;
}

static Expected<std::unique_ptr<MemoryBuffer>> readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("cannot read '" + path +
                             "': " + buffer.getError().message());
  return std::move(*buffer);
}

namespace {
struct Output {
  std::string path;
  const void *data;
  uint64_t bytes;
};
} // namespace

static Error makeArguments(ArrayRef<std::string> texts, Device &device,
                           std::vector<uint8_t> &kernarg,
                           std::vector<Output> &outputs,
                           std::vector<sys::OwningMemoryBlock> &zeros) {
  auto append = [&](const void *p, size_t n) {
    kernarg.resize((kernarg.size() + n - 1) / n * n);
    const uint8_t *b = static_cast<const uint8_t *>(p);
    kernarg.insert(kernarg.end(), b, b + n);
  };
  for (StringRef t : texts) {
    auto [kind, value] = t.split(':');
    auto bad = [&](const Twine &why) {
      return createStringError("--arg=" + t + ": " + why);
    };
    if (kind == "zero") {
      uint64_t bytes;
      if (value.getAsInteger(10, bytes))
        return bad("zero:BYTES needs a number of bytes");
      // Pages that no workgroup touches are never made.
      std::error_code code;
      zeros.emplace_back(sys::Memory::allocateMappedMemory(
          std::max<uint64_t>(bytes, 1), nullptr,
          sys::Memory::MF_READ | sys::Memory::MF_WRITE, code));
      void *p = zeros.back().base();
      if (code || !p)
        return bad(Twine(bytes) + " bytes cannot be allocated");
      if (Error e = device.registerHost(p, bytes))
        return e;
      append(&p, 8);
    } else if (kind == "null") {
      append("\0\0\0\0\0\0\0", 8);
    } else if (kind == "align") {
      uint64_t n;
      if (value.getAsInteger(10, n) || !isPowerOf2_64(n) || n > 4096)
        return bad("align:N needs a power of two up to 4096");
      kernarg.resize(alignTo(kernarg.size(), n));
    } else if (kind == "in" || kind == "inout" || kind == "out") {
      StringRef path = value;
      uint64_t bytes = 0;
      std::unique_ptr<MemoryBuffer> data;
      if (kind == "out") {
        auto [p, n] = value.rsplit(':');
        path = p;
        if (n.getAsInteger(10, bytes))
          return bad("out:FILE:BYTES needs a number of bytes");
      } else {
        auto file = readFile(path);
        if (!file)
          return bad(toString(file.takeError()));
        data = std::move(*file);
        bytes = data->getBufferSize();
      }
      void *p = device.allocate(bytes);
      if (!p)
        return bad(Twine(bytes) + " bytes cannot be allocated");
      std::memset(p, 0, bytes);
      if (data)
        std::memcpy(p, data->getBufferStart(), bytes);
      if (kind != "in")
        outputs.push_back({path.str(), p, bytes});
      append(&p, 8);
    } else if (kind == "i32" || kind == "u32") {
      int64_t x;
      if (value.getAsInteger(0, x) || x < INT32_MIN || x > int64_t(UINT32_MAX))
        return bad("not a 32-bit integer");
      append(&x, 4);
    } else if (kind == "i64" || kind == "u64") {
      int64_t x;
      uint64_t u;
      if (value.getAsInteger(0, x)) {
        if (value.getAsInteger(0, u))
          return bad("not a 64-bit integer");
        x = int64_t(u);
      }
      append(&x, 8);
    } else if (kind == "f32") {
      double d;
      if (value.getAsDouble(d))
        return bad("not a number");
      float f = float(d);
      append(&f, 4);
    } else {
      return bad("unknown kind; there are in, out, inout, zero, null, i32, "
                 "i64, f32, align");
    }
  }
  return Error::success();
}

static void printStats(const LaunchStats &s) {
  auto percent = [](uint64_t a, uint64_t b) {
    return b ? 100. * double(a) / double(b) : 0.;
  };
  outs() << "workgroups " << s.workgroups << ", waves " << s.waves << "\n"
         << "instructions " << s.instructions << ": salu " << s.salu
         << ", valu " << s.valu << ", matrix " << s.matrix << ", lds " << s.lds
         << ", vmem " << s.vmem << ", smem " << s.smem << ", branch "
         << s.branch << ", other " << s.other << "\n"
         << "global: " << s.globalLoadBytes << " bytes loaded, "
         << s.globalStoreBytes << " stored, " << s.globalRequests
         << " accesses, " << s.globalLines << " lines of 128 bytes, "
         << format("%.0f", percent(s.globalLoadBytes + s.globalStoreBytes,
                                   s.globalLines * 128))
         << "% of them used\n"
         << "lds: " << s.ldsBytes << " bytes, " << s.ldsConflictCycles
         << " cycles of bank conflicts\n";
}

static void printEstimate(const CycleEstimate &e) {
  auto p = [](double x) { return format("%.1f%%", 100 * x); };
  outs() << "compute unit: " << e.workgroups << " workgroups ("
         << e.occupancyLimit << "), " << format("%.1f", e.wavesPerSimd)
         << " waves per SIMD, " << e.cycles << " cycles, bound by " << e.bound
         << "\n"
         << "busy: matrix " << p(e.matrixShare) << ", valu " << p(e.valuShare)
         << ", salu " << p(e.saluShare) << ", lds " << p(e.ldsShare)
         << ", vmem " << p(e.vmemShare) << "\n"
         << "waves wait: global " << p(e.waitGlobal) << ", lds " << p(e.waitLds)
         << ", scalar loads " << p(e.waitScalar) << ", barrier "
         << p(e.waitBarrier) << ", dependency " << p(e.waitDependency)
         << ", unit " << p(e.waitUnit) << "\n";
  if (e.loopIterations)
    outs() << "main loop 0x" << utohexstr(e.loopBegin) << "-0x"
           << utohexstr(e.loopEnd) << ": " << e.loopIterations
           << " iterations, " << format("%.1f", e.loopCyclesPerIteration)
           << " cycles each, of them matrix "
           << format("%.1f", e.loopMatrixPerIteration) << "; matrix units busy "
           << p(e.loopMatrixShare) << " of its time\n";
  if (e.launchCycles)
    outs() << "launch: " << e.launchCycles << " cycles, "
           << format("%.2f", e.microseconds) << " us at the peak clock (memory "
           << e.memoryCycles << ")\n";
  if (e.truncated)
    outs()
        << "the waves' streams were cut: the launch is extrapolated from their "
           "beginning\n";
}

static void printFidelity(const Fidelity &f) {
  struct Part {
    const char *title;
    const std::vector<std::string> &what;
  };
  for (const Part &part :
       {Part{"exact", f.exact}, Part{"approximate", f.approximate},
        Part{"not modelled", f.notModelled}, Part{"checked", f.checked}}) {
    bool isNames = &part.what == &f.checked;
    outs() << part.title << ": "
           << (part.what.empty() ? "nothing"
                                 : join(part.what, isNames ? ", " : "; "))
           << "\n";
  }
}

static void printTimingNumbers(ArrayRef<TimingNumber> numbers) {
  for (const TimingNumber &n : numbers)
    outs() << "timing: " << StringRef(n.name) << " " << format("%g", n.value)
           << (*n.unit ? " " : "") << n.unit << " (" << n.source << ")\n";
}

static void printJson(const LaunchStats *s, const CycleEstimate &e,
                      const Fidelity &f, ArrayRef<TimingNumber> numbers) {
  json::OStream out(outs());
  out.object([&] {
    if (s)
      out.attributeObject("stats", [&] {
        out.attribute("workgroups", s->workgroups);
        out.attribute("waves", s->waves);
        out.attribute("instructions", s->instructions);
        out.attribute("salu", s->salu);
        out.attribute("valu", s->valu);
        out.attribute("matrix", s->matrix);
        out.attribute("lds", s->lds);
        out.attribute("vmem", s->vmem);
        out.attribute("smem", s->smem);
        out.attribute("branch", s->branch);
        out.attribute("other", s->other);
        out.attribute("global_load_bytes", s->globalLoadBytes);
        out.attribute("global_store_bytes", s->globalStoreBytes);
        out.attribute("lds_bytes", s->ldsBytes);
        out.attribute("lds_conflict_cycles", s->ldsConflictCycles);
      });
    writeEstimate(out, e);
    out.attributeObject("fidelity", [&] {
      auto list = [&](const char *name, ArrayRef<std::string> texts) {
        out.attributeArray(name, [&] {
          for (const std::string &text : texts)
            out.value(text);
        });
      };
      list("exact", f.exact);
      list("approximate", f.approximate);
      list("not_modelled", f.notModelled);
      list("checked", f.checked);
    });
    out.attributeObject("timing", [&] {
      for (const TimingNumber &n : numbers)
        out.attributeObject(n.name, [&] {
          out.attribute("value", n.value);
          out.attribute("unit", n.unit);
          out.attribute("source", n.source);
        });
    });
  });
  outs() << "\n";
}

/// The first few, and how many more there are.
static void printWarnings(ArrayRef<std::string> warnings) {
  constexpr size_t shown = 3;
  for (const std::string &w : warnings.take_front(shown))
    WithColor::warning(errs(), "greta-sim") << onOneLine(w) << "\n";
  if (warnings.size() > shown)
    WithColor::warning(errs(), "greta-sim")
        << warnings.size() - shown << " more instructions like these\n";
}

/// The kernel that is asked for, or the only one.
static Expected<const Kernel *> chooseKernel(const greta_sim::Options &options,
                                             const Module &module) {
  const Kernel *kernel = nullptr;
  if (!options.kernel.empty())
    kernel = module.find(options.kernel);
  else if (module.kernels().size() == 1)
    kernel = &module.kernels().front();
  if (!kernel) {
    std::string names;
    for (const Kernel &k : module.kernels())
      names += " " + k.info().name;
    return createStringError(
        "'" + options.input + "' has " +
        (options.kernel.empty()
             ? std::string("several kernels; choose one with --kernel:")
             : "no kernel '" + options.kernel + "'; it has:") +
        names);
  }
  return kernel;
}

static Error writeOutputs(ArrayRef<Output> outputs) {
  for (const Output &o : outputs) {
    std::error_code code;
    ToolOutputFile out(o.path, code, sys::fs::OF_None);
    if (code)
      return createStringError("cannot write '" + o.path +
                               "': " + code.message());
    out.os().write(static_cast<const char *>(o.data), o.bytes);
    out.os().close();
    if (out.os().has_error()) {
      std::string why = out.os().error().message();
      out.os().clear_error();
      return createStringError("cannot write '" + o.path + "': " + why);
    }
    out.keep();
  }
  return Error::success();
}

static Error simulate(const greta_sim::Options &options) {
  const std::string &input = options.input;
  if (!options.stats && !options.estimate &&
      (options.oneWave || options.json || options.cuWorkgroups ||
       options.computeUnits || !options.scale.empty() ||
       !options.latency.empty() || !options.timeline.empty()))
    return createStringError(
        "--one-wave, --json, --latency, --scale, --timeline, --cu-workgroups "
        "and --compute-units need --stats or --estimate");
  auto checks = parseChecks(options.check);
  if (!checks)
    return createStringError("--check=" + options.check + ": " +
                             toString(checks.takeError()));
  auto estimateOptions = parseEstimateOptions(options);
  if (!estimateOptions)
    return estimateOptions.takeError();
  auto file = readFile(input);
  if (!file)
    return file.takeError();
  ArrayRef<uint8_t> bytes = arrayRefFromStringRef((*file)->getBuffer());
  auto chip = chipOfCodeObject(bytes);
  if (!chip)
    return createStringError("'" + input + "': " + toString(chip.takeError()));
  auto device = Device::create(*chip);
  if (!device)
    return createStringError("'" + input +
                             "': " + toString(device.takeError()));
  auto module = (*device)->load(bytes);
  if (!module)
    return createStringError("'" + input +
                             "': " + toString(module.takeError()));
  auto chosen = chooseKernel(options, **module);
  if (!chosen)
    return chosen.takeError();
  const Kernel *kernel = *chosen;
  std::vector<uint8_t> kernarg;
  std::vector<Output> outputs;
  std::vector<sys::OwningMemoryBlock> zeros;
  if (Error e =
          makeArguments(options.arguments, **device, kernarg, outputs, zeros))
    return e;
  LaunchConfig config;
  LaunchStats counted;
  CycleEstimate estimate;
  config.grid = dim(options.grid);
  config.block = dim(options.block);
  config.kernarg = kernarg;
  config.dynamicLds = options.lds;
  config.checks = *checks;
  config.threads = options.threads;
  config.instructionBudget = options.budget;
  config.trace = options.trace;
  config.traceStream = options.trace ? &outs() : nullptr;
  config.stats = options.stats ? &counted : nullptr;
  config.estimate = options.stats || options.estimate ? &estimate : nullptr;
  config.estimateOnly = options.estimate;
  config.estimateOptions = *estimateOptions;
  Timeline timeline;
  if (!options.timeline.empty())
    config.estimateOptions.timeline = &timeline;
  std::vector<std::string> warnings;
  config.warnings = &warnings;
  Error failed = (*device)->launch(*kernel, config);
  printWarnings(warnings);
  if (failed)
    return failed;
  if (!options.estimate)
    if (Error e = writeOutputs(outputs))
      return e;
  if (!options.timeline.empty())
    if (Error e = greta_sim::writeTimeline(options.timeline, timeline,
                                           (*file)->getMemBufferRef()))
      return e;
  Fidelity fidelity = fidelityOf(*kernel, config);
  std::vector<TimingNumber> numbers;
  if (config.estimate)
    numbers = timingNumbers(*chip, config.estimateOptions);
  if (options.json) {
    printJson(config.stats, estimate, fidelity, numbers);
    return Error::success();
  }
  if (options.stats)
    printStats(counted);
  if (config.estimate)
    printEstimate(estimate);
  printFidelity(fidelity);
  printTimingNumbers(numbers);
  return Error::success();
}

int greta_sim::run(const Options &options) {
  Error failed = simulate(options);
  if (!failed)
    return 0;
  WithColor::error(errs(), "greta-sim")
      << onOneLine(toString(std::move(failed))) << "\n";
  return 1;
}
