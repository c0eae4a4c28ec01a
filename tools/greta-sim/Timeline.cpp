//===- Timeline.cpp - the cycle model's replay as a picture ---------------===//
//
// In: what the waves of a compute unit did, cycle by cycle. Out: JSON in
// Chrome's trace format for Perfetto or chrome://tracing, one cycle drawn as a
// microsecond: a track for each wave with its instructions and what it waited
// for, a track for each unit of a SIMD with when it was busy, and the memory
// operations in flight. Instructions have their assembly and, where the code
// object has a line table, their line.
//
//===----------------------------------------------------------------------===//
#include "Options.h"
#include "greta/Sim/Simulator.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace llvm;
using namespace greta::sim;

namespace {
class Writer {
public:
  Writer(json::OStream &out, const Timeline &timeline, DWARFContext *lines)
      : out(out), timeline(timeline), lines(lines) {}

  void write() {
    name("process_name", waves, 0, "waves");
    name("process_name", units, 0, "units");
    for (const TimelineEntry &e : timeline.entries) {
      if (waveNames.try_emplace(e.wave).second)
        name("thread_name", waves, e.wave,
             ("wave " + Twine(e.wave) + " (workgroup " + Twine(e.workgroup) +
              ", SIMD " + Twine(e.simd) + ")")
                 .str());
      slice(waves, e.wave, "wait", ("wait: " + Twine(e.waited)).str(), e.from,
            e.ready);
      if (!e.unit)
        continue;
      slice(waves, e.wave, "wait", ("wait: " + Twine(e.unit)).str(), e.ready,
            e.issued);
      const std::string &text = timeline.text.at(e.address);
      std::string mnemonic = StringRef(text).trim().split(' ').first.str();
      slice(waves, e.wave, "instruction", mnemonic, e.issued, e.until, &e);
      auto [track, isNew] =
          unitTracks.try_emplace({e.simd, e.unit}, unitTracks.size());
      if (isNew)
        name("thread_name", units, track->second,
             ("SIMD " + Twine(e.simd) + " " + e.unit).str());
      slice(units, track->second, "unit", mnemonic, e.issued, e.issued + e.busy,
            &e);
      if (e.arrives)
        inFlight(e, mnemonic);
    }
  }

private:
  static constexpr int waves = 1, units = 2;

  void name(StringRef what, int process, uint64_t track, StringRef text) {
    out.object([&] {
      out.attribute("ph", "M");
      out.attribute("name", what);
      out.attribute("pid", process);
      out.attribute("tid", track);
      out.attributeObject("args", [&] { out.attribute("name", text); });
    });
  }

  void slice(int process, uint64_t track, StringRef category, StringRef title,
             uint64_t from, uint64_t until,
             const TimelineEntry *instruction = nullptr) {
    if (until <= from)
      return;
    out.object([&] {
      out.attribute("ph", "X");
      out.attribute("cat", category);
      out.attribute("name", title);
      out.attribute("pid", process);
      out.attribute("tid", track);
      out.attribute("ts", from);
      out.attribute("dur", until - from);
      if (instruction)
        out.attributeObject("args", [&] {
          out.attribute(
              "assembly",
              StringRef(timeline.text.at(instruction->address)).trim());
          out.attribute("address",
                        "0x" + utohexstr(instruction->address, true));
          if (std::string line = lineOf(instruction->address); !line.empty())
            out.attribute("line", line);
        });
    });
  }

  /// Several at a time, so they are no slices of one track.
  void inFlight(const TimelineEntry &e, StringRef mnemonic) {
    for (const char *phase : {"b", "e"})
      out.object([&] {
        out.attribute("ph", phase);
        out.attribute("cat", "memory");
        out.attribute("name", mnemonic);
        out.attribute("id", operations);
        out.attribute("pid", waves);
        out.attribute("tid", e.wave);
        out.attribute("ts", *phase == 'b' ? e.issued : e.arrives);
      });
    ++operations;
  }

  std::string lineOf(uint64_t address) {
    if (!lines)
      return "";
    auto [line, isNew] = lineTexts.try_emplace(address);
    if (!isNew)
      return line->second;
    DILineInfo info =
        lines->getLineInfoForAddress({address}).value_or(DILineInfo());
    if (info.Line)
      line->second =
          (sys::path::filename(info.FileName) + ":" + Twine(info.Line)).str();
    return line->second;
  }

  json::OStream &out;
  const Timeline &timeline;
  DWARFContext *lines;
  std::map<unsigned, bool> waveNames;
  std::map<std::pair<unsigned, StringRef>, uint64_t> unitTracks;
  std::map<uint64_t, std::string> lineTexts;
  uint64_t operations = 0;
};
} // namespace

Error greta_sim::writeTimeline(StringRef path, const Timeline &timeline,
                               MemoryBufferRef code) {
  std::error_code failure;
  ToolOutputFile file(path, failure, sys::fs::OF_Text);
  if (failure)
    return createStringError("cannot write '" + path +
                             "': " + failure.message());
  std::unique_ptr<DWARFContext> lines;
  auto object = object::ObjectFile::createObjectFile(code);
  if (object)
    lines = DWARFContext::create(**object);
  else // the simulator has read it; without lines there is a picture, too
    consumeError(object.takeError());
  json::OStream out(file.os());
  out.object([&] {
    out.attributeArray("traceEvents",
                       [&] { Writer(out, timeline, lines.get()).write(); });
    out.attribute("cycles_drawn_as", "microseconds");
  });
  file.os() << "\n";
  file.os().close();
  if (file.os().has_error()) {
    std::string why = file.os().error().message();
    file.os().clear_error();
    return createStringError("cannot write '" + path + "': " + why);
  }
  file.keep();
  return Error::success();
}
