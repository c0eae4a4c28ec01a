// Progress.h: a line on a terminal that says what the program is busy with. The
// next one replaces it, and nothing of it is left at the end. Nothing is
// written if stderr is no terminal.
#ifndef GRETA_TOOLS_PROGRESS_H
#define GRETA_TOOLS_PROGRESS_H

#include <cstdio>
#include <string>
#include <unistd.h>

class Progress {
public:
  explicit Progress(bool IsQuiet = false)
      : Shows(!IsQuiet && isatty(STDERR_FILENO)) {}
  ~Progress() { clear(); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void say(const std::string &What) {
    if (!Shows || What == Shown)
      return;
    Shown = What;
    // Back to the line's first column, and to its end nothing.
    fprintf(stderr, "\r\033[K%s", What.c_str());
    fflush(stderr);
  }
  // Before anything else is written to the terminal.
  void clear() {
    if (!Shown.empty())
      fputs("\r\033[K", stderr);
    Shown.clear();
  }

private:
  bool Shows;
  std::string Shown;
};

#endif
