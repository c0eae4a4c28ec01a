//===- MsgPackCheck.cpp - bounds of a MessagePack document ----------------===//
#include "Code/CodeObject.h"
#include "llvm/BinaryFormat/MsgPackReader.h"
#include "llvm/Support/MemoryBufferRef.h"

using namespace llvm;

/// Accepts complete maps with keys that LLVM's document can order, lists and
/// scalars, at most 16 deep, with no more elements than there are bytes.
static Error check(msgpack::Reader &reader, size_t &elements, unsigned depth,
                   bool key) {
  msgpack::Object object;
  auto more = reader.read(object);
  if (!more)
    return more.takeError();
  if (!*more)
    return createStringError("code object: its metadata is cut short");
  if (!elements--)
    return createStringError("code object: its metadata is too large");
  bool container =
      object.Kind == msgpack::Type::Map || object.Kind == msgpack::Type::Array;
  if (object.Kind == msgpack::Type::Extension ||
      object.Kind == msgpack::Type::Binary || (key && container))
    return createStringError("code object: its metadata has a strange type");
  if (!container)
    return Error::success();
  if (depth == 0 || object.Length > elements)
    return createStringError("code object: its metadata is nested or counted "
                             "beyond its size");
  for (size_t k = 0; k < object.Length; ++k) {
    if (object.Kind == msgpack::Type::Map)
      if (Error e = check(reader, elements, depth - 1, true))
        return e;
    if (Error e = check(reader, elements, depth - 1, false))
      return e;
  }
  return Error::success();
}

Error greta::sim::checkMsgPack(StringRef blob) {
  msgpack::Reader reader(MemoryBufferRef(blob, "metadata"));
  size_t elements = blob.size() + 1;
  return check(reader, elements, 16, false);
}
