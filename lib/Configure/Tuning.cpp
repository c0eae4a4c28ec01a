//===- Tuning.cpp - the tuning database as JSON ---------------------------===//
//
// The file may come from anywhere: every value is checked before it is used.
//
//===----------------------------------------------------------------------===//

#include "greta/Configure/Tuning.h"
#include "greta/Target/Target.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace greta;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

static constexpr int64_t schema = 1;
static constexpr uint64_t maxBytes = 64 << 20;
static constexpr unsigned maxDepth = 16;
static constexpr StringRef dynamicExtent = "?";

static llvm::Error bad(const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

bool TuningKey::sharesBucket(const TuningKey &other) const {
  auto bucket = [](int64_t extent) {
    return mlir::ShapedType::isDynamic(extent)
               ? extent
               : static_cast<int64_t>(llvm::PowerOf2Ceil(extent));
  };
  return target == other.target && op == other.op &&
         llvm::equal(shape, other.shape, [&](int64_t a, int64_t b) {
           return bucket(a) == bucket(b);
         });
}

bool TuningEntry::isMeasuredFor(const TargetRow &row) const {
  return !isEstimate() && (!computeUnits || computeUnits == row.computeUnits);
}

const TuningEntry *TuningDatabase::find(const TuningKey &key,
                                        const TargetRow &row) const {
  const TuningEntry *best = nullptr;
  unsigned bestRank = 0;
  for (const TuningEntry &entry : entries) {
    if (!key.sharesBucket(entry.key))
      continue;
    unsigned rank = 1 + 2 * (key == entry.key) + entry.isMeasuredFor(row);
    if (rank > bestRank) {
      best = &entry;
      bestRank = rank;
    }
  }
  return best;
}

//===- reading ------------------------------------------------------------===//

/// LLVM's parser recurses as deep as the text nests.
static bool nestsTooDeep(StringRef text) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > maxDepth)
      return true;
    else if (!inString && (c == ']' || c == '}') && depth)
      --depth;
  }
  return false;
}

static bool isNumber(const json::Value &value) {
  std::optional<int64_t> number = value.getAsInteger();
  return number && llvm::isInt<32>(*number);
}

bool TuningDatabase::isConfig(const json::Object &config) {
  return llvm::all_of(config, [](const auto &entry) {
    const json::Value &value = entry.second;
    if (StringRef(entry.first).empty())
      return false;
    if (const json::Array *numbers = value.getAsArray())
      return llvm::all_of(*numbers, isNumber);
    return isNumber(value) || value.getAsBoolean() == true;
  });
}

static llvm::Expected<double> readTime(const json::Object &object) {
  std::optional<double> time = object.getNumber("us");
  if (!time || !(*time > 0) || *time > 1e15)
    return bad("'us' is not a positive number of microseconds");
  return *time;
}

static llvm::Expected<json::Object> readConfig(const json::Object &object) {
  const json::Object *config = object.getObject("config");
  if (!config || !TuningDatabase::isConfig(*config))
    return bad("'config' is not an object of integers below 2^31, arrays of "
               "them, and true");
  return *config;
}

static llvm::Expected<TuningCandidate> readCandidate(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return bad("a candidate is no object");
  TuningCandidate candidate;
  llvm::Expected<json::Object> config = readConfig(*object);
  if (!config)
    return config.takeError();
  candidate.config = std::move(*config);
  if (std::optional<StringRef> why = object->getString("rejected")) {
    candidate.rejected = why->empty() ? "?" : why->str();
    return candidate;
  }
  llvm::Expected<double> time = readTime(*object);
  if (!time)
    return time.takeError();
  candidate.microseconds = *time;
  return candidate;
}

static llvm::Expected<TuningEntry> readEntry(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return bad("it is no object");
  TuningEntry entry;
  for (auto [name, to] :
       {std::pair("target", &entry.key.target), std::pair("op", &entry.key.op),
        std::pair("device", &entry.device)}) {
    std::optional<StringRef> text = object->getString(name);
    if (!text || text->empty())
      return bad("'" + Twine(name) + "' is not a string");
    *to = text->str();
  }
  if (const json::Value *units = object->get("compute_units")) {
    entry.computeUnits = units->getAsInteger().value_or(0);
    if (entry.computeUnits < 1)
      return bad("'compute_units' is not a positive number");
  }
  const json::Array *shape = object->getArray("shape");
  for (const json::Value &extent : shape ? *shape : json::Array()) {
    std::optional<int64_t> number = extent.getAsInteger();
    if (extent.getAsString() == dynamicExtent)
      number = mlir::ShapedType::kDynamic;
    else if (!number || *number < 0 || *number > INT64_MAX / 2)
      shape = nullptr;
    if (!shape)
      break;
    entry.key.shape.push_back(*number);
  }
  if (!shape || shape->empty())
    return bad("'shape' is not an array of extents and \"?\"");
  llvm::Expected<json::Object> config = readConfig(*object);
  if (!config)
    return config.takeError();
  entry.config = std::move(*config);
  const json::Value *candidates = object->get("candidates");
  if (!candidates)
    return entry;
  if (!candidates->getAsArray())
    return bad("'candidates' is not an array");
  for (const json::Value &one : *candidates->getAsArray()) {
    llvm::Expected<TuningCandidate> candidate = readCandidate(one);
    if (!candidate)
      return candidate.takeError();
    entry.candidates.push_back(std::move(*candidate));
  }
  return entry;
}

llvm::Expected<TuningDatabase> TuningDatabase::parse(StringRef text) {
  if (nestsTooDeep(text))
    return bad("it nests deeper than " + Twine(maxDepth));
  llvm::Expected<json::Value> root = json::parse(text);
  if (!root)
    return bad("it is no JSON: " + llvm::toString(root.takeError()));
  const json::Object *object = root->getAsObject();
  std::optional<int64_t> found =
      object ? object->getInteger("schema") : std::nullopt;
  if (!found)
    return bad("it has no 'schema'");
  if (*found != schema)
    return bad("it has schema " + Twine(*found) + ", this compiler reads " +
               Twine(schema) + ": tune again");
  const json::Array *list = object->getArray("entries");
  if (!list)
    return bad("'entries' is not an array");
  TuningDatabase database;
  for (const json::Value &value : *list) {
    llvm::Expected<TuningEntry> entry = readEntry(value);
    if (!entry)
      return bad("entry " + Twine(database.entries.size() + 1) + ": " +
                 llvm::toString(entry.takeError()));
    database.entries.push_back(std::move(*entry));
  }
  return database;
}

llvm::Expected<TuningDatabase> TuningDatabase::load(StringRef path) {
  auto complain = [&](const Twine &what) {
    return bad("tuning database '" + path + "': " + what);
  };
  // Devices and pipes may have no end.
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return complain(error.message());
  if (!llvm::sys::fs::is_regular_file(status))
    return complain("it is no file");
  if (status.getSize() > maxBytes)
    return complain("it has more than 64 MiB");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return complain(file.getError().message());
  llvm::Expected<TuningDatabase> database = parse((*file)->getBuffer());
  if (!database)
    return complain(llvm::toString(database.takeError()));
  return database;
}

const TuningDatabase &TuningDatabase::shipped() {
  static const TuningDatabase database = llvm::cantFail(parse(
#include "Measured.inc"
      ));
  return database;
}

//===- writing ------------------------------------------------------------===//

std::string TuningDatabase::print() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  // An entry's parts a line each, a candidate on one.
  auto line = [&](const json::Value &value) {
    std::string part;
    llvm::raw_string_ostream(part) << value;
    return part;
  };
  os << "{\n\"schema\": " << schema << ",\n\"entries\": [";
  for (const TuningEntry &entry : entries) {
    json::Array shape;
    for (int64_t extent : entry.key.shape)
      shape.push_back(mlir::ShapedType::isDynamic(extent)
                          ? json::Value(dynamicExtent)
                          : json::Value(extent));
    os << (&entry == entries.data() ? "\n{" : ",\n{")
       << "\"target\": " << line(entry.key.target)
       << ", \"device\": " << line(entry.device);
    if (entry.computeUnits)
      os << ", \"compute_units\": " << entry.computeUnits;
    os << ", \"op\": " << line(entry.key.op)
       << ", \"shape\": " << line(std::move(shape))
       << ",\n \"config\": " << line(json::Object(entry.config))
       << ",\n \"candidates\": [";
    for (const TuningCandidate &candidate : entry.candidates) {
      os << (&candidate == entry.candidates.data() ? "\n  " : ",\n  ")
         << "{\"config\": " << line(json::Object(candidate.config));
      if (candidate.rejected.empty())
        os << ", \"us\": " << llvm::formatv("{0:f3}", candidate.microseconds);
      else
        os << ", \"rejected\": " << line(candidate.rejected);
      os << "}";
    }
    os << "]}";
  }
  os << "]}\n";
  return text;
}

mlir::DictionaryAttr greta::toAttribute(mlir::MLIRContext *context,
                                        const json::Object &config) {
  mlir::Builder b(context);
  mlir::NamedAttrList entries;
  for (const auto &[name, value] : config) {
    mlir::Attribute attribute = b.getUnitAttr();
    if (const json::Array *numbers = value.getAsArray()) {
      llvm::SmallVector<int64_t> all;
      for (const json::Value &number : *numbers)
        all.push_back(*number.getAsInteger());
      attribute = b.getI64ArrayAttr(all);
    } else if (std::optional<int64_t> number = value.getAsInteger()) {
      attribute = b.getI64IntegerAttr(*number);
    }
    entries.set(StringRef(name), attribute);
  }
  return entries.getDictionary(context);
}
