// Process.h: the process around the library: its environment, and who hears of
// what is no error of a call.
#ifndef GRETA_RUNTIME_PROCESS_H
#define GRETA_RUNTIME_PROCESS_H

#include "Error.h"

namespace greta::rt {

// Returns a variable of the environment. It is null if it is not set, and
// always if the process has more rights than whoever started it (SECURITY.md).
// Nothing else here reads the environment.
const char *environment(const char *Name);
// Returns whether it is set to anything but "" and "0".
bool isOn(const char *Name);

// Tells the application's callback. Without one, warnings go to stderr; all
// messages do if that is a terminal.
void report(greta_log_level Level, const std::string &Message);
void setLogCallback(greta_log_callback Callback, void *User);

} // namespace greta::rt
#endif
