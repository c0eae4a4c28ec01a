//===- Nodes.h - the files that say there is a card -------------*- C++ -*-===//
#ifndef GRETA_VIRTUALRADEON_NODES_H
#define GRETA_VIRTUALRADEON_NODES_H

#include <string>
#include <vector>

namespace greta::radeon {

/// A file, a folder, a link or a device, which is nowhere on a disk.
struct Node {
  enum Kind { File, Folder, Link, Device } kind = File;
  std::string text = {}; ///< of a file, or where a link leads
  std::vector<std::string> names = {};
  unsigned minor = 0;
};

constexpr unsigned DrmMajor = 226;

/// Null for every other path, and where no card is asked for.
const Node *findNode(const char *path);

} // namespace greta::radeon

#endif
