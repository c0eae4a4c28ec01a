//===- greta-sim.cpp - run a kernel of a code object on the CPU -----------===//
//
//   greta-sim k.hsaco --kernel=name --grid=x,y,z --block=x,y,z
//     --arg=in:a.bin --arg=out:c.bin:BYTES --arg=inout:d.bin --arg=i32:5
//     --arg=i64:5 --arg=f32:0.5 [--lds=BYTES] [--check=...] [--stats]
//     [--estimate] [--trace=N]
//
// grid counts workgroups. Output files are written only when the kernel ends
// well; any mistake gives one diagnostic and exit code 1.
//
//===----------------------------------------------------------------------===//
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;
using namespace greta::sim;

static const char usage[] =
    "usage: greta-sim CODE-OBJECT [options]\n"
    "  --kernel=NAME       may be left out when there is one kernel\n"
    "  --grid=X[,Y[,Z]]    workgroups\n"
    "  --block=X[,Y[,Z]]   work items of a workgroup\n"
    "  --arg=ARG           in the kernel's order: in:FILE, out:FILE:BYTES,\n"
    "                      inout:FILE, i32:N, i64:N, f32:X\n"
    "  --lds=BYTES         dynamic LDS\n"
    "  --check=LIST        all (default), none, or some of\n"
    "                      bounds,uninit,races,waits,hazards, and align,\n"
    "                      which is not among all\n"
    "  --stats             counts and an estimate of cycles\n"
    "  --estimate          the estimate alone, running only the workgroups it\n"
    "                      needs: outputs are incomplete and not written\n"
    "  --one-wave          estimate one wave alone on its SIMD\n"
    "  --latency=LIST      cycles instead of the chip table's, for example\n"
    "                      lds:64,scalar:100,cache:128,memory:700\n"
    "  --cu-workgroups=N   workgroups per compute unit (default: what fits)\n"
    "  --trace=N           print the first N instructions of workgroup 0\n"
    "  --threads=N         worker threads (default: one per core)\n"
    "  --budget=N          instructions a wave may execute\n";

// Not llvm::cl: its registry is shared with every option inside LLVM's library,
// which already has --stats and --threads.
static std::string input, kernelName, gridText = "1", blockText = "1",
                                      check = "all", latency;
static std::vector<std::string> argTexts;
static uint64_t lds = 0, trace = 0, threads = 0, budget = 2000000000ull,
                cuWorkgroups = 0;
static bool stats = false, estimateOnly = false, oneWave = false;

static Error parseCommandLine(ArrayRef<const char *> arguments) {
  for (StringRef a : arguments) {
    if (!a.consume_front("-")) {
      if (!input.empty())
        return createStringError("two code objects: '" + input + "' and '" + a +
                                 "'");
      input = a.str();
      continue;
    }
    a.consume_front("-");
    auto [name, value] = a.split('=');
    uint64_t *number = StringSwitch<uint64_t *>(name)
                           .Case("lds", &lds)
                           .Case("trace", &trace)
                           .Case("threads", &threads)
                           .Case("budget", &budget)
                           .Case("cu-workgroups", &cuWorkgroups)
                           .Default(nullptr);
    std::string *text = StringSwitch<std::string *>(name)
                            .Case("kernel", &kernelName)
                            .Case("grid", &gridText)
                            .Case("block", &blockText)
                            .Case("check", &check)
                            .Case("latency", &latency)
                            .Default(nullptr);
    if (number) {
      if (value.getAsInteger(10, *number))
        return createStringError("--" + a + ": '" + value +
                                 "' is not a number");
    } else if (text) {
      *text = value.str();
    } else if (name == "arg") {
      argTexts.push_back(value.str());
    } else if (a == "stats") {
      stats = true;
    } else if (a == "estimate") {
      estimateOnly = true;
    } else if (a == "one-wave") {
      oneWave = true;
    } else {
      return createStringError("unknown option '--" + a +
                               "'; --help lists them");
    }
  }
  if (input.empty())
    return createStringError("no code object given; --help lists the options");
  if (lds > UINT32_MAX || threads > 4096 || cuWorkgroups > 4096)
    return createStringError(
        "--lds, --threads or --cu-workgroups is out of range");
  if (!stats && !estimateOnly && (oneWave || cuWorkgroups))
    return createStringError(
        "--one-wave and --cu-workgroups need --stats or --estimate");
  return Error::success();
}

static Expected<Dim3> parseDim(StringRef option, StringRef text) {
  Dim3 d;
  SmallVector<StringRef, 3> parts;
  text.split(parts, ',');
  uint32_t *to[] = {&d.x, &d.y, &d.z};
  if (parts.empty() || parts.size() > 3)
    return createStringError("--" + option + "=" + text +
                             ": give x, x,y or x,y,z");
  for (size_t k = 0; k < parts.size(); ++k)
    if (parts[k].trim().getAsInteger(10, *to[k]) || !*to[k])
      return createStringError("--" + option + "=" + text + ": '" + parts[k] +
                               "' is not a positive number");
  return d;
}

static Expected<EstimateLatencies> parseLatencies(StringRef text) {
  EstimateLatencies l;
  SmallVector<StringRef, 4> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, value] = part.split(':');
    unsigned *to = StringSwitch<unsigned *>(name)
                       .Case("lds", &l.lds)
                       .Case("scalar", &l.scalar)
                       .Case("cache", &l.cache)
                       .Case("memory", &l.memory)
                       .Default(nullptr);
    if (!to || value.getAsInteger(10, *to) || !*to || *to > 65535)
      return createStringError("--latency=" + text + ": '" + part +
                               "' is not one of lds, scalar, cache, memory "
                               "with a number from 1 to 65535");
  }
  return l;
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

static Error makeArguments(Device &device, std::vector<uint8_t> &kernarg,
                           std::vector<Output> &outputs) {
  auto append = [&](const void *p, size_t n) {
    kernarg.resize((kernarg.size() + n - 1) / n * n);
    const uint8_t *b = static_cast<const uint8_t *>(p);
    kernarg.insert(kernarg.end(), b, b + n);
  };
  for (StringRef t : argTexts) {
    auto [kind, value] = t.split(':');
    auto bad = [&](const Twine &why) {
      return createStringError("--arg=" + t + ": " + why);
    };
    if (kind == "in" || kind == "inout" || kind == "out") {
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
      return bad("unknown kind; there are in, out, inout, i32, i64, f32");
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

static Error run(ArrayRef<const char *> arguments) {
  if (Error e = parseCommandLine(arguments))
    return e;
  auto grid = parseDim("grid", gridText);
  if (!grid)
    return grid.takeError();
  auto block = parseDim("block", blockText);
  if (!block)
    return block.takeError();
  auto checks = parseChecks(check);
  if (!checks)
    return createStringError("--check=" + check + ": " +
                             toString(checks.takeError()));
  auto latencies = parseLatencies(latency);
  if (!latencies)
    return latencies.takeError();
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
  const Kernel *kernel = nullptr;
  if (!kernelName.empty())
    kernel = (*module)->find(kernelName);
  else if ((*module)->kernels().size() == 1)
    kernel = &(*module)->kernels().front();
  if (!kernel) {
    std::string names;
    for (const Kernel &k : (*module)->kernels())
      names += " " + k.info().name;
    return createStringError(
        "'" + input + "' has " +
        (kernelName.empty()
             ? std::string("several kernels; choose one with --kernel:")
             : "no kernel '" + kernelName + "'; it has:") +
        names);
  }
  std::vector<uint8_t> kernarg;
  std::vector<Output> outputs;
  if (Error e = makeArguments(**device, kernarg, outputs))
    return e;
  LaunchConfig config;
  LaunchStats counted;
  CycleEstimate estimate;
  config.grid = *grid;
  config.block = *block;
  config.kernarg = kernarg;
  config.dynamicLds = uint32_t(lds);
  config.checks = *checks;
  config.threads = unsigned(threads);
  config.instructionBudget = budget;
  config.trace = trace;
  config.traceStream = trace ? &outs() : nullptr;
  config.stats = stats ? &counted : nullptr;
  config.estimate = stats || estimateOnly ? &estimate : nullptr;
  config.estimateOnly = estimateOnly;
  config.estimateOneWave = oneWave;
  config.estimateLatencies = *latencies;
  config.estimateWorkgroups = unsigned(cuWorkgroups);
  if (Error e = (*device)->launch(*kernel, config))
    return e;
  for (const Output &o : outputs) {
    if (estimateOnly)
      break;
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
  if (stats)
    printStats(counted);
  if (config.estimate)
    printEstimate(estimate);
  return Error::success();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  ArrayRef<const char *> arguments(argv + 1, argv + argc);
  for (StringRef a : arguments)
    if (a == "--help" || a == "-h") {
      outs() << usage;
      return 0;
    }
  if (Error e = run(arguments)) {
    errs() << "greta-sim: " << toString(std::move(e)) << "\n";
    return 1;
  }
  return 0;
}
