//===- Schedule.cpp - the attribute #greta.schedule -----------------------===//
//
// Parses, prints, compares and verifies schedules entry by entry, as
// `forEachEntry` lists them. An entry that has its default is not printed.
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace greta;
using Delimiter = AsmParser::Delimiter;

//===- comparing ----------------------------------------------------------===//

template <typename Entries>
static bool areEqual(const Entries &a, const Entries &b) {
  bool equal = true;
  Entries::forEachEntry(
      [&](StringRef, auto member) { equal = equal && a.*member == b.*member; });
  return equal;
}

template <typename Entries> static llvm::hash_code hashOf(const Entries &all) {
  llvm::hash_code hash(0);
  Entries::forEachEntry([&](StringRef, auto member) {
    if constexpr (std::is_scalar_v<std::decay_t<decltype(all.*member)>> ||
                  std::is_base_of_v<Attribute,
                                    std::decay_t<decltype(all.*member)>>)
      hash = llvm::hash_combine(hash, all.*member);
    else
      hash = llvm::hash_combine(hash, llvm::hash_combine_range(all.*member));
  });
  return hash;
}

bool greta::operator==(const SpaceSchedule &a, const SpaceSchedule &b) {
  return areEqual(a, b);
}
bool greta::operator==(const Schedule &a, const Schedule &b) {
  return areEqual(a, b);
}
llvm::hash_code greta::hash_value(const SpaceSchedule &schedule) {
  return hashOf(schedule);
}
llvm::hash_code greta::hash_value(const Schedule &schedule) {
  return hashOf(schedule);
}

//===- parsing ------------------------------------------------------------===//

template <typename Entries>
static ParseResult parseEntries(AsmParser &parser, Entries &all,
                                Delimiter delimiter);

static ParseResult parseEntry(AsmParser &parser, int64_t &value) {
  return parser.parseInteger(value);
}
template <typename Attr>
static std::enable_if_t<std::is_base_of_v<Attribute, Attr>, ParseResult>
parseEntry(AsmParser &parser, Attr &value) {
  return parser.parseAttribute(value);
}
static ParseResult parseEntry(AsmParser &parser, SpaceSchedule &value) {
  return parseEntries(parser, value, Delimiter::Braces);
}
template <typename T>
static ParseResult parseEntry(AsmParser &parser, SmallVector<T> &value) {
  return parser.parseCommaSeparatedList(Delimiter::Square, [&] {
    return parseEntry(parser, value.emplace_back());
  });
}

template <typename Entries>
static ParseResult parseEntries(AsmParser &parser, Entries &all,
                                Delimiter delimiter) {
  llvm::StringSet<> missing;
  Entries::forEachEntry([&](StringRef name, auto) { missing.insert(name); });
  return parser.parseCommaSeparatedList(delimiter, [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef found;
    if (parser.parseKeyword(&found))
      return failure();
    if (!missing.erase(found))
      return parser.emitError(loc) << "a schedule has no entry '" << found
                                   << "' here, or has it already";
    ParseResult result = success();
    Entries::forEachEntry([&](StringRef name, auto member) {
      if (name != found)
        return;
      if constexpr (std::is_same_v<decltype(member), bool Entries::*>)
        all.*member = true;
      else
        result =
            failure(parser.parseEqual() || parseEntry(parser, all.*member));
    });
    return result;
  });
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Schedule schedule;
  if (parseEntries(parser, schedule, Delimiter::LessGreater))
    return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(),
                                         std::move(schedule));
}

//===- printing -----------------------------------------------------------===//

template <typename Entries>
static void printEntries(AsmPrinter &printer, const Entries &all);

static void printEntry(AsmPrinter &printer, int64_t value) { printer << value; }
static void printEntry(AsmPrinter &printer, Attribute value) {
  printer << value;
}
static void printEntry(AsmPrinter &printer, const SpaceSchedule &value) {
  printer << "{";
  printEntries(printer, value);
  printer << "}";
}
template <typename T>
static void printEntry(AsmPrinter &printer, const SmallVector<T> &value) {
  printer << "[";
  llvm::interleaveComma(value, printer,
                        [&](const T &each) { printEntry(printer, each); });
  printer << "]";
}

template <typename Entries>
static void printEntries(AsmPrinter &printer, const Entries &all) {
  StringRef separator;
  Entries::forEachEntry([&](StringRef name, auto member) {
    if (all.*member == Entries().*member)
      return;
    printer << separator << name;
    separator = ", ";
    if constexpr (!std::is_same_v<decltype(member), bool Entries::*>) {
      printer << " = ";
      printEntry(printer, all.*member);
    }
  });
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printEntries(printer, getValue());
  printer << ">";
}

//===- verifying ----------------------------------------------------------===//

template <typename Entries>
static LogicalResult
verifyIntegers(function_ref<InFlightDiagnostic()> emitError,
               const Entries &all) {
  LogicalResult result = success();
  Entries::forEachEntry([&](StringRef name, auto member) {
    if constexpr (std::is_same_v<decltype(member), int64_t Entries::*>) {
      int64_t value = all.*member, least = Entries().*member;
      if (succeeded(result) && (value < least || value > INT32_MAX))
        result = emitError() << "a schedule has '" << name << "' " << value
                             << "; it is from " << least << " to 2^31 - 1";
    }
  });
  return result;
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Schedule schedule) {
  if (failed(verifyIntegers(emitError, schedule)))
    return failure();
  bool hasSizes = schedule.blockSize && schedule.waveSize &&
                  schedule.blockSize % schedule.waveSize == 0;
  if (schedule.waves ? schedule.blockSize || schedule.waveSize : !hasSizes)
    return emitError() << "a schedule has 'waves', or a 'block_size' that is a "
                          "multiple of its 'wave_size'";
  for (const SpaceSchedule &space : schedule.spaces) {
    if (failed(verifyIntegers(emitError, space)))
      return failure();
    if (llvm::any_of(space.rows, [](int64_t n) { return n < 1; }) ||
        (space.flat && !space.rows.empty()))
      return emitError() << "a space of a schedule has positive 'rows', or "
                            "none and is 'flat'";
  }
  return success();
}
