// Files.h: whole-file reads, atomic writes, and where the runtime's cache lies.
#ifndef GRETA_RUNTIME_FILES_H
#define GRETA_RUNTIME_FILES_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::rt {

// Returns the folder that this library was loaded from.
std::string ownFolder();

// Reads a file; returns false when it is missing or cannot be read.
bool readFile(const std::string &Path, std::vector<uint8_t> &Bytes);

// Writes all of it, also when signals interrupt; returns false if it fails.
bool writeAll(int FD, const void *Data, size_t Size);

// Writes beside the target and renames, so readers see the old file or the new.
// Returns false if it fails: a cache that cannot be written is no error.
bool writeFileAtomically(const std::string &Path, const void *Data,
                         size_t Size);

// Returns $XDG_CACHE_HOME/greta or ~/.cache/greta, made, for this user alone;
// "" if none is safe to use.
std::string cacheDirectory();

// Cache files carry their SHA-256 in front, so that a damaged one is a miss and
// never reaches a driver.
bool readCache(const std::string &Name, std::vector<uint8_t> &Bytes);
void writeCache(const std::string &Name, const std::vector<uint8_t> &Bytes);

} // namespace greta::rt
#endif
