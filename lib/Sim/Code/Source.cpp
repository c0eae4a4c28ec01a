//===- Source.cpp - what a code object says about its source --------------===//
#include "Code/Source.h"
#include "greta/Interface/AccessNotes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace greta::sim;
using namespace llvm;

static bool isSame(const DILineInfo &a, const DILineInfo &b) {
  return a.Line == b.Line && a.Column == b.Column && a.FileName == b.FileName;
}

std::unique_ptr<Source> Source::read(std::unique_ptr<MemoryBuffer> bytes,
                                     std::unique_ptr<object::ObjectFile> object,
                                     StringRef accesses) {
  std::unique_ptr<Source> source;
  for (const object::SectionRef &section : object->sections()) {
    Expected<StringRef> name = section.getName();
    if (!name)
      consumeError(name.takeError());
    else if (*name == ".debug_line")
      source.reset(new Source());
  }
  if (!source)
    return nullptr;
  source->readAccesses(accesses);
  for (const object::SectionRef &section : object->sections())
    if (Expected<StringRef> name = section.getName();
        name && *name == greta::accesses::pcsName)
      source->readAddresses(section);
    else if (!name)
      consumeError(name.takeError());
  source->lines = DWARFContext::create(*object);
  source->readRows();
  source->bytes = std::move(bytes);
  source->object = std::move(object);
  return source;
}

/// Reads lines "file:line:column argument,argument".
void Source::readAccesses(StringRef text) {
  for (StringRef line : split(text, '\n')) {
    auto [where, arguments] = line.rsplit(' ');
    if (arguments.empty())
      continue;
    SourceAccess &access = accesses.emplace_back();
    auto [rest, column] = where.rsplit(':');
    auto [file, number] = rest.rsplit(':');
    access.place.FileName = file.str();
    if (number.getAsInteger(10, access.place.Line) ||
        column.getAsInteger(10, access.place.Column))
      access.place.Line = 0;
    for (StringRef argument : split(arguments, ',')) {
      unsigned index;
      if (argument.getAsInteger(10, index))
        access.elsewhere = true;
      else
        access.arguments.push_back(index);
    }
  }
}

/// Reads the distances of an access's instructions, and its number behind them.
void Source::readAddresses(const object::SectionRef &section) {
  Expected<StringRef> content = section.getContents();
  if (!content)
    return consumeError(content.takeError());
  SmallVector<uint64_t> addresses;
  for (uint64_t at = 0; at + 4 <= content->size(); at += 4) {
    uint32_t word = support::endian::read32le(content->data() + at);
    std::optional<uint32_t> number = greta::accesses::placeOf(word);
    if (!number) {
      addresses.push_back(section.getAddress() + at + int64_t(int32_t(word)));
      continue;
    }
    constexpr uint32_t kinds = greta::accesses::reads | greta::accesses::writes;
    if ((*number & ~kinds) < accesses.size())
      for (uint64_t address : addresses) {
        byAddress[address] = &accesses[*number & ~kinds];
        doesElse[address] = ~*number & kinds;
      }
    addresses.clear();
  }
}

void Source::readRows() {
  for (const std::unique_ptr<DWARFUnit> &unit : lines->normal_units())
    if (const DWARFDebugLine::LineTable *table =
            lines->getLineTableForUnit(unit.get()))
      for (const DWARFDebugLine::Row &row : table->Rows)
        beginsRow.insert(row.Address.Address);
}

DILineInfo Source::place(uint64_t address) {
  if (const SourceAccess *known = byAddress.lookup(address))
    return known->place;
  return lines
      ->getLineInfoForAddress(
          {address}, {DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath,
                      DILineInfoSpecifier::FunctionNameKind::None})
      .value_or(DILineInfo());
}

std::string Source::excerpt(const DILineInfo &at) {
  auto file = MemoryBuffer::getFile(at.FileName, /*IsText=*/true);
  if (!file)
    return "";
  StringRef rest = (*file)->getBuffer();
  for (uint32_t skipped = 1; skipped < at.Line; ++skipped)
    rest = rest.split('\n').second;
  StringRef line = rest.split('\n').first.rtrim();
  if (line.empty())
    return "";
  size_t column = at.Column ? at.Column - 1 : 0;
  return ("\n" + line + "\n" + Twine(std::string(column, ' ')) + "^").str();
}

std::string Source::shortPlace(uint64_t address) {
  DILineInfo at = place(address);
  return at.Line
             ? (sys::path::filename(at.FileName) + ":" + Twine(at.Line)).str()
             : "";
}

const SourceAccess *Source::access(uint64_t address, bool write) {
  if (doesElse.lookup(address) &
      (write ? greta::accesses::writes : greta::accesses::reads))
    return nullptr;
  auto [known, isNew] = byAddress.try_emplace(address);
  if (!isNew)
    return known->second;
  // Two accesses became one, or one became several. Instructions behind the
  // first one of a row may have no place of their own.
  if (!beginsRow.contains(address))
    return nullptr;
  DILineInfo at = place(address);
  auto found = llvm::find_if(accesses, [&](const SourceAccess &access) {
    return at.Line && isSame(access.place, at);
  });
  if (found != accesses.end())
    known->second = &*found;
  return known->second;
}
