// OutputFiles.h: files that a tool writes. In: paths and bytes. Out: all of the
// files, or none and the reason.
#ifndef GRETA_RUN_OUTPUTFILES_H
#define GRETA_RUN_OUTPUTFILES_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace greta_run {

// Everything is written beside its target first, then renamed. A path that is a
// device, a FIFO or a symlink stays what it is and is written through at the
// end. Throws where a file cannot be written.
class OutputFiles {
public:
  ~OutputFiles();
  void add(const std::string &Path, std::vector<uint8_t> Bytes);
  void commit();

private:
  std::vector<std::pair<std::string, std::string>> Renamed;
  std::vector<std::pair<std::string, std::vector<uint8_t>>> Through;
};

} // namespace greta_run
#endif
