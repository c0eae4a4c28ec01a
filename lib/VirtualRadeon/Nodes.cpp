//===- Nodes.cpp - the files that say there is a card ---------------------===//
//
// Programs find cards in /dev/dri and learn from /sys/dev/char/226:N on which
// bus each is and which it is. This card hides all others: /dev/dri is its own.
//
//===----------------------------------------------------------------------===//
#include "Nodes.h"
#include "Radeon.h"
#include <cstring>

using namespace greta::radeon;

static std::map<std::string, Node> makeNodes(const Chip &chip) {
  std::map<std::string, Node> nodes;
  const std::vector<std::string> names = {"card0", "renderD128"};
  const unsigned minors[] = {0, 128};
  nodes["/dev/dri"] = {Node::Folder, "", names};
  char ids[3][32];
  std::snprintf(ids[0], 32, "0x%04x\n", chip.deviceId);
  std::snprintf(ids[1], 32, "0x%02x\n", chip.pciRevision);
  std::snprintf(ids[2], 32, "1002:%04X\n", chip.deviceId);
  for (unsigned k = 0; k < 2; ++k) {
    std::string minor = std::to_string(minors[k]);
    nodes["/dev/dri/" + names[k]] = {Node::Device, "", {}, minors[k]};
    std::string at = "/sys/dev/char/" + std::to_string(DrmMajor) + ":" + minor;
    nodes[at] = {Node::Link,
                 "../../devices/pci0000:00/0000:03:00.0/drm/" + names[k]};
    nodes[at + "/uevent"] = {
        Node::File, "MAJOR=" + std::to_string(DrmMajor) + "\nMINOR=" + minor +
                        "\nDEVNAME=dri/" + names[k] + "\nDEVTYPE=drm_minor\n"};
    at += "/device";
    nodes[at] = {Node::Folder, "", {"drm"}};
    nodes[at + "/drm"] = {Node::Folder, "", names};
    nodes[at + "/subsystem"] = {Node::Link, "../../../bus/pci"};
    nodes[at + "/uevent"] = {
        Node::File,
        std::string("DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=") + ids[2] +
            "PCI_SUBSYS_ID=1002:0000\nPCI_SLOT_NAME=0000:03:00.0\n"};
    nodes[at + "/vendor"] = {Node::File, "0x1002\n"};
    nodes[at + "/device"] = {Node::File, ids[0]};
    nodes[at + "/revision"] = {Node::File, ids[1]};
    nodes[at + "/subsystem_vendor"] = {Node::File, "0x1002\n"};
    nodes[at + "/subsystem_device"] = {Node::File, "0x0000\n"};
  }
  return nodes;
}

const Node *greta::radeon::findNode(const char *path) {
  // Nearly every path ends here.
  if (!path || (std::strncmp(path, "/dev/dri", 8) &&
                std::strncmp(path, "/sys/dev/char/226:", 18)))
    return nullptr;
  Machine *machine = Machine::get();
  if (!machine)
    return nullptr;
  static auto *nodes =
      new std::map<std::string, Node>(makeNodes(machine->chip()));
  std::string name = path;
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  auto at = nodes->find(name);
  return at == nodes->end() ? nullptr : &at->second;
}
