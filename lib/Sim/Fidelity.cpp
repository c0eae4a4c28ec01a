//===- Fidelity.cpp - how far a simulated run is the hardware's -----------===//
#include "greta/Sim/Fidelity.h"
#include "Code/Program.h"
#include "Timing/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace greta::sim;
using llvm::StringRef;

/// Returns the instructions that the kernel's entry leads to. A computed
/// address may be any instruction's.
static std::vector<const Inst *> reachable(const Kernel &kernel) {
  const Program &program = *kernel.module().program();
  std::vector<const Inst *> found;
  std::vector<bool> seen(program.size());
  std::vector<uint32_t> open;
  auto visit = [&](int64_t index) {
    if (index < 0 || index >= int64_t(program.size()) || seen[size_t(index)])
      return;
    seen[size_t(index)] = true;
    open.push_back(uint32_t(index));
  };
  visit(program.indexOf(kernel.entryOffset()));
  while (!open.empty()) {
    uint32_t at = open.back();
    open.pop_back();
    const Inst &i = program.code()[at];
    if (!i.op) // an instruction that is not known ends the launch
      continue;
    found.push_back(&i);
    StringRef name = i.op->name;
    if (name == "s_setpc_b64" || name == "s_swappc_b64" || name == "s_call_b64")
      for (uint32_t k = 0; k < program.size(); ++k)
        visit(k);
    if (i.unit == Unit::Branch)
      visit(i.imm);
    if (name != "s_branch" && !name.starts_with("s_endpgm"))
      visit(at + 1);
  }
  return found;
}

/// Returns text such as "v_exp_f32, v_rcp_f32 and 3 more".
static std::string listed(const std::set<std::string> &names) {
  constexpr size_t Shown = 6;
  std::vector<std::string> first;
  for (const std::string &name : names)
    if (first.size() < Shown)
      first.push_back(name);
  std::string text = llvm::join(first, ", ");
  if (names.size() > Shown)
    text += " and " + std::to_string(names.size() - Shown) + " more";
  return text;
}

Fidelity greta::sim::fidelityOf(const Kernel &kernel,
                                const LaunchConfig &config) {
  const Chip &chip = *findChip(kernel.module().chip());
  std::set<std::string> trans, matrix, integerMatrix, dot, random, clocks,
      floatAtomics;
  bool floats = false;
  for (const Inst *i : reachable(kernel)) {
    StringRef name = i->op->name;
    bool wrapsFloats = name.contains("_f16") || name.contains("_f32") ||
                       name.contains("_f64") || name.contains("_bf16");
    if (i->unit == Unit::Matrix)
      (name.contains("_i32_") ? integerMatrix : matrix).insert(name.str());
    else if (i->unit == Unit::Trans)
      trans.insert(name.str());
    else if (name.starts_with("v_dot2") && wrapsFloats)
      dot.insert(name.str());
    else if (name.contains("_sr_"))
      random.insert(name.str());
    else if (name.starts_with("s_memtime") ||
             name.starts_with("s_memrealtime") ||
             name.starts_with("s_sendmsg_rtn"))
      clocks.insert(name.str());
    else if (name.contains("atomic") && wrapsFloats && name.contains("add"))
      floatAtomics.insert(name.str());
    else if (name.starts_with("v_") && wrapsFloats)
      floats = true;
  }
  Fidelity f;
  f.exact.push_back("integer, lane, scalar, branch and memory instructions");
  if (floats)
    f.exact.push_back("additions, products, fused multiply-adds, comparisons "
                      "and conversions of floats, with MODE's rounding and "
                      "denormals");
  if (!integerMatrix.empty())
    f.exact.push_back("matrix products of integers (" + listed(integerMatrix) +
                      ")");
  auto approximate = [&](const std::set<std::string> &names, const char *why) {
    if (!names.empty())
      f.approximate.push_back(listed(names) + ": " + why);
  };
  approximate(trans,
              "rounded from the host's; the hardware's last bit may differ");
  approximate(matrix, "one fused multiply-add after the other along K; AMD "
                      "publishes neither order nor inner precision");
  approximate(dot, "order and inner rounding of the sum are assumptions");
  approximate(random, "random bits are taken as AMD's manuals say, and no "
                      "device was compared");
  approximate(clocks, "counts of calls, not time");
  approximate(floatAtomics,
              "one of the orders in which additions may reach memory");
  f.notModelled.push_back("caches: what is stored is seen by all at once, so "
                          "that a missing invalidation shows in no result");
  f.notModelled.push_back("orders of waves other than the one that was run");
  if (chip.isGfx10())
    f.notModelled.push_back("wait states: RDNA 2 needs none");
  else if (!chip.isGfx9())
    f.notModelled.push_back("wait states but for those of WMMA after WMMA");
  if (config.estimate && config.estimateOnly)
    f.notModelled.push_back("workgroups that the estimate does without");
  if (config.estimate)
    for (const char *what :
         {"the time of instruction fetch, of a full L2, of compute units that "
          "contend for it, of clocks that change",
          "register-bank conflicts, VOPD's pairing rules, limits of queues and "
          "counters"})
      f.notModelled.push_back(what);
  struct Name {
    Check bit;
    const char *name;
  };
  static constexpr Name names[] = {
      {CheckBounds, "bounds"},    {CheckUninit, "uninit"},
      {CheckRaces, "races"},      {CheckWaits, "waits"},
      {CheckHazards, "hazards"},  {CheckAlign, "align"},
      {CheckPrograms, "programs"}};
  for (const Name &n : names)
    if (config.checks & n.bit)
      f.checked.push_back(n.name);
  return f;
}

static std::string number(double x) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", x);
  return text;
}

std::vector<TimingNumber> greta::sim::timingNumbers(StringRef chipName,
                                                    const EstimateOptions &o) {
  const Chip &chip = *findChip(chipName);
  const TimingRow &row = timingRow(chip);
  const char *product = "AMD's product page", *compiler = "LLVM",
             *assumption = "assumption, of the order that public "
                           "microbenchmarks report";
  const char *isa = chip.isGfx9() ? "CDNA3 ISA manual" : "RDNA3 ISA manual";
  std::vector<TimingNumber> all;
  auto latency = [&](const char *name, unsigned table, unsigned given) {
    double value = given ? given : table;
    std::string source = given ? "given" : assumption;
    if (o.latencyScale != 1) {
      value = std::max(1., double(unsigned(value * o.latencyScale)));
      source += ", times " + number(o.latencyScale);
    }
    all.push_back({name, "cycles", value, source});
  };
  all.push_back({"clock", "MHz", double(row.clockMHz), product});
  all.push_back({"memory", "GB/s", double(row.memoryGBs), product});
  all.push_back({"compute_units", "",
                 double(o.computeUnits ? o.computeUnits : chip.computeUnits),
                 o.computeUnits ? "given" : product});
  all.push_back({"registers", "a SIMD's lane", double(row.vgprs), compiler});
  all.push_back({"waves", "a SIMD", double(row.maxWaves), compiler});
  all.push_back(
      {"issue", "cycles between a wave's instructions", double(row.slot), isa});
  all.push_back({"alu", "cycles to a dependent instruction",
                 double(row.aluLatency), "LLVM SISchedule.td"});
  all.push_back({"transcendental", "cycles", double(row.transCycles),
                 "assumption: a quarter of the rate"});
  all.push_back({"f64", "cycles", double(row.f64Cycles), product});
  double ldsBytes = chip.family == Family::GFX950 ? 256 : 128;
  all.push_back({"lds", "bytes a cycle", ldsBytes * o.ldsRate,
                 o.ldsRate == 1 ? std::string(isa) + "'s banks"
                                : std::string(isa) + "'s banks, times " +
                                      number(o.ldsRate)});
  all.push_back({"vector_cache", "bytes a cycle",
                 double(row.cacheBytesPerCycle),
                 chip.isGfx9() ? "ROCm Compute Profiler" : "RDNA white paper"});
  all.push_back({"second_cache", "bytes a cycle of a compute unit",
                 double(row.fillBytesPerCycle),
                 chip.isGfx9() ? "ROCm Compute Profiler" : "RDNA white paper"});
  latency("lds_latency", row.ldsLatency, o.ldsLatency);
  latency("scalar_latency", row.scalarLatency, o.scalarLatency);
  latency("cache_latency", row.cacheLatency, o.cacheLatency);
  latency("memory_latency", row.memoryLatency, o.memoryLatency);
  all.push_back({"barrier", "cycles", double(row.barrier), "assumption"});
  all.push_back({"taken_branch", "cycles", double(row.branch), "assumption"});
  return all;
}
