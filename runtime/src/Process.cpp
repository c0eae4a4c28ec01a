// Process.cpp: see Process.h.
#include "Process.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace greta::rt {

const char *environment(const char *Name) { return secure_getenv(Name); }

bool isOn(const char *Name) {
  const char *Value = environment(Name);
  return Value && *Value && strcmp(Value, "0") != 0;
}

namespace {
struct Listener {
  std::mutex Lock; // held in a call, which then has its callback
  greta_log_callback Callback = nullptr;
  void *User = nullptr;
};
// It is never destroyed, as static streams may report later.
Listener &listener() {
  static auto *L = new Listener();
  return *L;
}
} // namespace

void setLogCallback(greta_log_callback Callback, void *User) {
  Listener &L = listener();
  std::lock_guard<std::mutex> Guard(L.Lock);
  L.Callback = Callback;
  L.User = User;
}

void report(greta_log_level Level, const std::string &Message) {
  Listener &L = listener();
  std::lock_guard<std::mutex> Guard(L.Lock);
  if (L.Callback)
    L.Callback(Level, Message.c_str(), L.User);
  else if (isatty(STDERR_FILENO)) // a terminal may show progress
    fprintf(stderr, "\r\033[Kgreta: %s\n", Message.c_str());
  else if (Level == GRETA_LOG_WARNING)
    fprintf(stderr, "greta: %s\n", Message.c_str());
}

} // namespace greta::rt
