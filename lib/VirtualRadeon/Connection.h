//===- Connection.h - open files of the virtual card ------------*- C++ -*-===//
#ifndef GRETA_VIRTUALRADEON_CONNECTION_H
#define GRETA_VIRTUALRADEON_CONNECTION_H

#include "Radeon.h"

namespace greta::radeon {

/// An open file of the card, behind a file number of the process.
struct OpenFile {
  std::shared_ptr<Connection> connection;
  unsigned minor = 0;
  std::shared_ptr<SharedObject> shared;
};

/// Null for files that are none of the card's: quick, it is asked for every
/// file that the program closes.
std::shared_ptr<OpenFile> fileOf(int file);
/// Closes `file` and gives -1 when it cannot be remembered.
int remember(int file, std::shared_ptr<OpenFile> what);
void forget(int file);
/// `copy` stands for the same.
void duplicate(int file, int copy);

/// Opens the card's device file.
int connect(unsigned minor, int flags);

} // namespace greta::radeon

#endif
